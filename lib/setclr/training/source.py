"""What a Trainer trains on. A `Source` gives, for each step of the `Batches`, views of the things in it.

The images of a batch are a function of the seed and the epoch alone. All that is random in a source is a
function of the step's key and of the place in the batch. So a run that is resumed, or shared by many
processes, sees the same views.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Number
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import ConcatDataset, Dataset, Subset

from setclr import views as views_of
from setclr.checks import integer
from setclr.data import ImageSet
from setclr.data.sets import checked_labels
from setclr.data.streaming import streamed
from setclr.losses import Objective
from setclr.seeding import seeded, seeded_globals
from setclr.settings import flag, whole
from setclr.training.distributed import rank, world
from setclr.training.grad_cache import Group
from setclr.training.momentum import outputs
from setclr.training.optimisers import LRSchedule
from setclr.views import View, view

OF_DATASET = (
    "ImageSet(torch.stack([pil_to_tensor(x) for x, _ in dataset]), torch.tensor([y for _, y in dataset]), "
)
OF_DATASET += "tuple(dataset.classes)) makes one of a Dataset; LoaderViews takes views that it makes itself"


class Step(NamedTuple):
    """What a source gives views of: this process's share of a batch.

    >>> import torch
    >>> from setclr.training import Step
    >>> whole = torch.tensor([3, 1, 2, 0])
    >>> Step(whole[2:], key=(0, 5, 17), first=2, batch=whole).indices  # of the second of two processes
    tensor([2, 0])
    """

    indices: Tensor  # (n,) of the things in this process's share
    key: tuple[int, int, int]  # seed, epoch, step within the epoch
    first: int  # the place in the batch of this process's first thing
    batch: Tensor  # (N,) the whole batch, over all processes


@dataclass(frozen=True)
class Batching:
    """How batches are made.

    `size`: images, graphs or the like in a batch, over all processes. `images_per_class`: how many of one
    class stand in it together. `drop_last`: leave out the last batch of an epoch if it is incomplete.

    >>> from setclr.training import Batching
    >>> Batching(256, images_per_class=4)
    Batching(size=256, images_per_class=4, drop_last=True)
    """

    size: int = 128
    images_per_class: int = whole(1, least=1)
    drop_last: bool = flag(True)


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of every epoch: shuffled indices of the `things` whose classes are `labels` (N,).

    With `images_per_class` = g > 1, batches consist of random groups of g images of one class, as in
    table 8d of the GroCo paper (g = 4): every image then has g − 1 false negatives. Images without a label
    (-1) are left out there.

    Raises ValueError unless 2 ≤ batch ≤ N and g divides it. Also raises it if `drop_last` is False and the
    last batch has a single image.
    """

    labels: Tensor
    how: Batching
    seed: int = 0
    things: str = "images"

    def __post_init__(self) -> None:
        n, size, group = len(self.labels), self.how.size, self.how.images_per_class
        if n < 2:
            raise ValueError(f"{self.things} must be at least 2, got {n}; add some")
        integer("batch", size, least=2, most=n, hint=f"there are {n} {self.things}")
        integer("seed", self.seed, least=0)
        if size % group:
            raise ValueError(f"batch must be a multiple of images_per_class={group}, got {size}")
        if self.images % size == 1:
            one = f"{self.things.removesuffix('s')}, of {n} in batches of {size}"
            raise ValueError(f"drop_last must be True: the last batch would hold 1 {one}; set drop_last=True")

    @property
    def images(self) -> int:
        """The number of images in an epoch."""
        size, group, known = self.how.size, self.how.images_per_class, self.labels[self.labels >= 0]
        counts = known.unique(return_counts=True)[1]
        complete = int((counts // group).sum()) * group if group > 1 else len(self.labels)
        return complete // size * size if self.how.drop_last else complete

    def __len__(self) -> int:
        """The number of batches in every epoch."""
        return -(-self.images // self.how.size)

    def of_epoch(self, epoch: int) -> tuple[Tensor, ...]:
        """The image indices of each batch of the epoch."""
        generator = seeded(self.seed, epoch)
        order = torch.randperm(len(self.labels), generator=generator)
        if self.how.images_per_class > 1:
            order = self._groups(order, generator)
        return order[: self.images].split(self.how.size)

    def steps(self, first: int, epochs: int) -> Iterator[Step]:
        """This process's share of each batch, from the step `first` to the end of so many epochs."""
        for step in range(first, epochs * len(self)):
            epoch, position = divmod(step, len(self))
            if step == first or not position:
                order = self.of_epoch(epoch)
            share = len(order[position]) // world()
            place = rank() * share
            mine = order[position][place : place + share]
            yield Step(mine, (self.seed, epoch, position), place, order[position])

    def _groups(self, order: Tensor, generator: torch.Generator) -> Tensor:
        """The shuffled image indices, dealt into groups of one class; the groups are in random order."""
        size, order = self.how.images_per_class, order[self.labels[order] >= 0]
        of_class, known = order[self.labels[order].argsort(stable=True)], self.labels[order]
        classes = of_class.split(known.unique(return_counts=True)[1].tolist())
        groups = torch.cat([images[: len(images) // size * size].view(-1, size) for images in classes])
        return groups[torch.randperm(len(groups), generator=generator)].flatten()


@runtime_checkable
class Source(Protocol):
    """Things to contrast, such as `ImageViews`, `LoaderViews`, `video.ClipViews` and `graphs.GraphViews`.

    A source may also have `things`, the plural of what it holds, for messages; `digest()`, a text that
    is the same for the same data; `dims`, of what the encoder gets, 4 for images (N, C, H, W), if shapes
    are the same in every batch, without which a Trainer does not compile.

    >>> import torch
    >>> from setclr.training import Source
    >>> class Noise:  # eight things without classes; of each, two views of four numbers
    ...     labels = torch.full((8,), -1)
    ...     def __len__(self): return 8
    ...     def batches(self, steps, device, workers, compiled):
    ...         return ([torch.randn(2, len(step.indices), 4, device=device)] for step in steps)
    >>> isinstance(Noise(), Source)  # so a Trainer takes it
    True
    """

    labels: Tensor
    """(N,) int64, the class of each thing; -1 where it has none."""

    def __len__(self) -> int: ...

    def batches(
        self, steps: Iterable[Step], device: torch.device, workers: int, compiled: bool
    ) -> Iterator[list[Group]]:
        """For each step its views, on the device. A tensor of them is (V, n, ...), views first.

        `workers` processes may read ahead. `compiled`: use torch.compile.
        """
        ...


def check_set(images: Any) -> ImageSet:
    """The images. Raises ValueError, with the line that makes an ImageSet of a Dataset, if they are none."""
    if not isinstance(images, ImageSet):
        raise ValueError(f"images must be an ImageSet, got {type(images).__name__}; {OF_DATASET}")
    return images


class ImageViews:
    """Random views of images. `views` are as `views.preset` makes them.

        ImageViews(data.load("photo-patches"), views.preset("photo"))

    Raises ValueError for other images or views; for a Dataset it says how an ImageSet is made of it.

    >>> import torch
    >>> from setclr import data, views
    >>> from setclr.training import ImageViews
    >>> images = torch.randint(256, (8, 3, 16, 16)).byte()
    >>> len(ImageViews(data.ImageSet(images, torch.arange(8) % 2, ("cat", "dog")), views.preset("photo")))
    8
    """

    things = "images"
    dims = 4

    def __init__(self, images: ImageSet, views: Sequence[View]):
        view.check_views(views)
        self.views, self.images = tuple(views), check_set(images)
        self.labels, self.digest = self.images.labels, self.images.digest

    def __len__(self) -> int:
        return len(self.images)

    def batches(
        self, steps: Iterable[Step], device: torch.device, workers: int, compiled: bool
    ) -> Iterator[list[Group]]:
        drawn = (
            (step.indices, views_of.draw(self.views, len(step.indices), seeded(*step.key), first=step.first))
            for step in steps
        )
        view_batches: Any = self.images.view_batches(self.views, drawn, workers, device, compiled)
        yield from view_batches


class LoaderViews:
    """The views that a Dataset's own transform makes, as torchvision's, lightly's or solo-learn's do.

        LoaderViews(ImageFolder("photos", transform=lambda image: [augment(image), augment(image)]))

    An item is a list or tuple of V views, or a tuple that begins with one. A view is a floating tensor,
    such as an image (C, H, W); views of one shape go through the encoder together. Labels are those that the
    Dataset gives (`labels_of`), -1 without them.

    Before each item the generators of torch, numpy and Python are seeded by the step's key and the place
    in the batch, and restored afterwards. So a transform that draws from these makes the same view in any
    worker. One that holds a generator of its own, as albumentations' may, cannot be resumed exactly.

    >>> import torch
    >>> from setclr.training import LoaderViews
    >>> noisy = [[x + 0.1 * torch.randn(3), x + 0.1 * torch.randn(3)] for x in torch.randn(8, 3)]
    >>> len(LoaderViews(noisy))
    8

    Raises ValueError where the Dataset has no length or items, an item is not as above, or its label is not
    that of the Dataset's `targets`.
    """

    things = "items"

    def __init__(self, dataset: Dataset):
        if not {"__getitem__", "__len__"} <= {*dir(dataset)} or isinstance(dataset, Tensor):
            got = f"{type(dataset).__name__}; of a DataLoader take its .dataset"
            raise ValueError(f"dataset must be a Dataset with a length and numbered items, got {got}")
        self.dataset = dataset
        with seeded_globals(0):
            self.dims = 1 + max(one.ndim for one in views_in(item_of(dataset, 0), 0))
            self.labels = labels_of(dataset)

    def __len__(self) -> int:
        return len(self.labels)

    def digest(self) -> str:
        checksum = hashlib.sha256(self.labels.numpy().tobytes()).hexdigest()[:12]
        return f"{len(self)} items whose labels have the checksum {checksum}"

    def batches(
        self, steps: Iterable[Step], device: torch.device, workers: int, compiled: bool
    ) -> Iterator[list[Group]]:
        yield from streamed(partial(read, self.dataset), steps, workers, device)


def read(dataset: Dataset, step: Step) -> list[Tensor]:
    """The views of a step, one tensor (V, n, ...) for each shape."""
    items: list[list[Tensor]] = []
    shapes: dict[tuple, int] = {}
    for place, index in enumerate(step.indices.tolist(), step.first):
        with seeded_globals(*step.key, place):
            items.append(views_in(item_of(dataset, index), index))
        shapes.setdefault(tuple(tuple(one.shape) for one in items[-1]), index)  # the first item of each
    if len(shapes) > 1:
        got = " and ".join(f"{shape} for item {index}" for shape, index in shapes.items())
        raise ValueError(f"views must have the same shapes for all items, got {got}; resize them")
    groups: dict[torch.Size, list[Tensor]] = {}
    for views in zip(*items):
        groups.setdefault(views[0].shape, []).append(torch.stack(views))
    return [torch.stack(of_shape).detach() for of_shape in groups.values()]  # a graph cannot be sent


def item_of(dataset: Any, index: int) -> Any:
    """`dataset[index]`. An error of the Dataset gets a note that names the item."""
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"item {index} of {type(dataset).__name__} raised it")
        raise


def views_in(item: Any, index: int) -> list[Tensor]:
    """The views that an item of a Dataset holds. Raises ValueError, naming the item, if it holds none."""
    whole = item[0] if isinstance(item, tuple | list) and item and isinstance(item[0], tuple | list) else item
    views = list(whole) if isinstance(whole, tuple | list) else []
    while views and whole is item and is_label(views[-1]):
        views.pop()
    if not views:
        got = type(item).__name__
        raise ValueError(f"item {index} must be a list of views, or begin with one, got {got}; make two")
    for one in views:
        if not isinstance(one, Tensor) or not one.is_floating_point() or not one.ndim:
            got = f"{tuple(one.shape)} of {one.dtype}" if isinstance(one, Tensor) else type(one).__name__
            hint = "end its transform with v2.ToImage() and v2.ToDtype(torch.float32, scale=True)"
            raise ValueError(f"a view of item {index} must be a floating tensor, got {got}; {hint}")
        if not one.isfinite().all():
            raise ValueError(f"a view of item {index} must be finite, got NaN or inf; look at its transform")
    return views


def labels_of(dataset: Any, indices: Tensor | None = None) -> Tensor:
    """The labels (n,) that a Dataset gives for these items or for all, -1 where they have none.

    They are its `targets` or `labels`, after its `target_transform`; of a Subset or ConcatDataset those of
    the Datasets in it. Without them, if the first item has a label, each item is read once for its label.
    Raises ValueError if they are no whole numbers, or if the first item has another label.
    """
    index = torch.arange(len(dataset)) if indices is None else indices
    name = "labels" if getattr(dataset, "targets", None) is None else "targets"
    given, change = getattr(dataset, name, None), getattr(dataset, "target_transform", None)
    first = label_in(item_of(dataset, int(index[0]))) if len(index) else None
    if isinstance(dataset, Subset):
        labels = labels_of(dataset.dataset, torch.as_tensor(dataset.indices, dtype=torch.int64)[index])
    elif isinstance(dataset, ConcatDataset):
        labels = torch.cat([labels_of(part) for part in dataset.datasets])[index]
    elif given is not None:
        given = [change(x) for x in getattr(given, "tolist", lambda: given)()] if change else given
        labels = checked_labels(name, given, len(dataset))[index]
    else:
        each = (None if first is None else label_in(item_of(dataset, i)) for i in index.tolist())
        labels = checked_labels("labels of items", [-1 if x is None else x for x in each], len(index))
    if first is not None and first != labels[0]:
        got = f"{first} in item {index[0]} and {labels[0]} among its {name}; make them the same"
        raise ValueError(f"labels of {type(dataset).__name__} must be those of its items, got {got}")
    return labels


def label_in(item: Any) -> int | None:
    """The first whole number that follows the views of an item, if there is one: its label."""
    after = item[1:] if isinstance(item, tuple | list) else ()
    numbers = (x.item() if isinstance(x, Tensor | np.generic) and not x.ndim else x for x in after)
    return next((int(x) for x in numbers if isinstance(x, Integral)), None)


def is_label(x: Any) -> bool:
    """Whether what follows the views of an item is a label, a name or the like."""
    return isinstance(x, Number | str) or (isinstance(x, Tensor | np.generic) and x.ndim == 0)


def check_parts(
    source: object, encoder: object, head: object, loss: object, optimiser: object, lr_schedule: object
) -> None:  # fmt: skip
    """Raises ValueError, naming the argument and the remedy, if a Trainer cannot use one of these."""
    source_hint = "ImageViews(images, views.preset('photo')) is one, LoaderViews(dataset) another"
    sgd = "torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)"
    for name, part, kind, wanted, hint in (
        ("source", source, Source, "a setclr.training.Source", source_hint),
        ("encoder", encoder, nn.Module, "a module", "setclr.models.encoder makes some by name"),
        ("head", head, nn.Module, "a module", "setclr.models.head makes one"),
        ("loss", loss, Objective, "a loss, or a module or function of z", "InfoNCE(0.2) is one"),
        ("optimiser", optimiser, Optimizer | None, "a torch.optim.Optimizer", f"{sgd} is one, None Adam"),
        ("lr_schedule", lr_schedule, LRSchedule | None, "an LRSchedule", "the optimiser's lr is its peak"),
    ):
        if not isinstance(part, kind):
            raise ValueError(f"{name} must be {wanted}, got {type(part).__name__}; {hint}")


def check_classes(source: Source, things: str, loss: Objective, head: nn.Module) -> None:
    """Raises ValueError, where the loss gets labels, if one of the `things` has none, or if it classifies and
    the head has fewer outputs than there are classes."""
    if lacking := int((source.labels < 0).sum()):
        got = f"{lacking} of {len(source)} without; leave these out, or train without labels"
        raise ValueError(f"all {things} must have a label where the loss gets them, got {got}")
    if loss.classifies:
        classes = int(source.labels.max()) + 1
        hint = f"each of the {classes} classes needs an output"
        integer("embedding", outputs(head), least=classes, hint=hint)

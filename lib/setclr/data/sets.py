"""Sets of images, those that have a name (`setclr.data_sets`), and labels that users give."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import tee
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setclr import checks
from setclr.data.photographs import Photographs
from setclr.data.streaming import streamed
from setclr.data_sets import FOLDER, NAMES, SPLITS, known
from setclr.seeding import generator_of
from setclr.views import View, apply_all, finish
from setclr.views.numbers import sent

REMEDY = "number the classes 0, 1, ..."  # of bad labels
Images = Tensor | Photographs
Batch = tuple[Tensor, Tensor]  # indices (n,), draws (n, V, 36) of `views.draw`
Views = Iterator[list[Tensor]]  # for each batch a list of (V, n, C, S, S), one for each size


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """Images with their classes. The label -1 means that an image has no label.

    Raises ValueError if types, shapes or labels do not fit together.
    """

    images: Images  # (N, C, H, W) uint8, or Photographs if they are streamed from files
    labels: Tensor  # (N,) int64, indices into `classes`, or -1
    classes: tuple[str, ...]  # () if no image has a label

    def __post_init__(self) -> None:
        x = self.images
        if not isinstance(x, Images) or x.ndim != 4 or x.dtype != torch.uint8 or not len(x):
            got = f"{tuple(x.shape)} of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(f"images must be a (N, C, H, W) tensor of torch.uint8 with N >= 1, got {got}")
        labels = checked_labels("labels", self.labels, len(x))
        if labels.max() >= len(self.classes):
            wanted = f"indices of the {len(self.classes)} classes, or -1 for no label"
            raise ValueError(f"labels must be {wanted}, got {labels.max()}")
        object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        without = int((self.labels < 0).sum())
        classes = f"{len(self.classes)} classes" + (f", {without} without a label" if without else "")
        return f"<ImageSet: {len(self)} images {tuple(self.images.shape[1:])}, {classes}>"

    def subset(self, index: Tensor) -> "ImageSet":
        """The images where `index` (N,) bool is True, or those of these numbers."""
        return ImageSet(select(self.images, index), self.labels[index], self.classes)

    def view_batches(
        self, views: Sequence[View], batches: Iterable[Batch], workers: int, device: torch.device,
        compiled: bool = False,
    ) -> Views:  # fmt: skip
        """The views of each batch (indices (n,), draws (n, V, 36)), on the device.

        `workers` processes decode photographs, a few batches ahead, each in several threads if there are
        processors left; a tensor is moved to the device.
        """
        if isinstance(self.images, Photographs):
            asked, again = tee(batches)
            read = partial(_crops, self.images, views)
            for crops, (_, draws) in zip(streamed(read, asked, workers, device), again):
                yield finish(crops, views, draws, compiled)
            return
        images = self.images.to(device)
        for index, draws in batches:
            yield apply_all(images[sent(index, device)], views, draws, compiled)

    def digest(self) -> str:
        """How many images these are, and a checksum that tells them from others.

        It is made of labels, classes and, in RAM, the first and the last image; of files, the names of all
        below the folder that holds them. So it is the same wherever the files lie. Cost: one pass over labels
        and names.
        """
        checksum = sha256(repr(self.classes).encode() + self.labels.cpu().numpy().tobytes())
        if isinstance(self.images, Tensor):
            checksum.update(self.images[[0, -1]].cpu().numpy().tobytes())
        else:
            paths = [self.images.path(i) for i in range(len(self))]
            common = len(os.path.dirname(os.path.commonprefix(paths)))
            checksum.update("\n".join(path[common:] for path in paths).encode(errors="surrogateescape"))
        return f"{len(self)} images with checksum {checksum.hexdigest()[:12]}"

    def sample(self, n: int, seed: int = 0) -> "ImageSet":
        """n different images, as evenly over the classes as possible, in random order fixed by the seed.

        Images without a label count as one class more. Pairs do not stay together. To sample
        "stereo-patches", slice `images.view(2, -1, 3, 32, 32)` instead. Raises ValueError if there are
        fewer than n images.
        """
        checks.default_device()
        checks.integer("n", n, least=1, most=len(self), hint=f"the set has {len(self)} images")
        shuffled = torch.randperm(len(self), generator=generator_of(seed))
        labels = self.labels[shuffled] + 1  # 0: without a label
        # Deal the shuffled images out class by class: an image's round is its position within its class.
        grouped, counts = labels.argsort(stable=True), labels.bincount()
        rounds = torch.empty_like(labels)
        rounds[grouped] = torch.arange(len(self)) - (counts.cumsum(0) - counts)[labels[grouped]]
        chosen = shuffled[rounds.argsort(stable=True)[:n].sort().values]
        return self.subset(chosen)


def _crops(images: Photographs, views: Sequence[View], batch: Batch) -> list[Tensor]:
    return images.crops(batch[0], views, batch[1])


def load(
    name: str, root: str | Path = "data", split: str = "train", size: int | None = None,
    stream: bool | None = None, verify: bool = False,
) -> ImageSet:  # fmt: skip
    """A data set by name. `data.NAMES` lists the names; what each one is stands in `setclr.data_sets`.

    Of folders, the usual formats of images that Pillow reads are taken, as RGB, if their values have 8 bits;
    of several pages or frames the first, with a warning. Files that are no images by their ending, broken
    links and names that begin with a dot are passed over.

    Args:
        root: the folder of saved and downloaded data sets; not used by "folder:PATH" and "pairs:PATH".
            "~" is the home folder, here and in PATH.
        split: "train" or "test"; of "stl10" also "unlabelled".
        size: pixels, for image files only: the shorter side is resized to it, the centre cropped square.
            None keeps the size, but takes 224 for "imagenet" and "imagenet100". For "pairs:PATH" it is the
            height; the width becomes half of it, the shape in which people are cut out for matching, and
            nothing is cropped.
        stream: for image files only. True leaves them on disk, as Photographs that decode on demand. False
            decodes all now, and None does so if that takes 8 GB at most.
        verify: decode all files that stay on disk once, before returning. An error then names a truncated
            file before the training starts.

    Raises:
        ValueError: an argument, file or folder is not as it must be. The message names a bad file to delete.
        FileNotFoundError: PATH, the split's folder or a data set that you must put there by hand is missing.
        ConnectionError: a data set is missing or damaged, and cannot be downloaded; the message says what to
            put where.
    """
    this = known(name)
    if not this.read:
        checks.choice("name", name, NAMES, f"a folder of images is {FOLDER}PATH")
    checks.choice("split", split, dict.fromkeys((*SPLITS, this.pretraining)))
    checks.boolean("verify", verify)
    given: dict = {"size": size, "stream": stream}
    for argument, value in given.items():
        if value is not None and argument not in this.takes:
            raise ValueError(f"{argument} must be left out for {name}, got {value!r}")
    if stream is not None:
        checks.boolean("stream", stream)
    path = name.partition(":")[2]
    place = Path(os.path.expanduser(path)) if path else Path(os.path.expanduser(root), name)
    read = resolve_name(this.read if "." in this.read else f"setclr.data.{this.read}")
    given["size"] = this.side if size is None else size
    images = read(*this.of, place, split, **{argument: given[argument] for argument in this.takes})
    if verify and isinstance(images.images, Photographs):
        images.images.verify()
    return images


def select(images: Images, index: slice | Tensor) -> Images:
    """The images of these numbers, or where `index` is True; photographs are not read."""
    return images.subset(index) if isinstance(images, Photographs) else images[index]


def validation_split(name: str, train: ImageSet) -> tuple[ImageSet, ImageSet]:
    """A data set's training images in two parts: those to train on, and at least a fifth for validation.

    The split is always the same, and both parts keep the order of the images. For "photo-patches" whole
    blocks of each photograph are held out, as for its test images, because patches of one block overlap. For
    other data sets, any folder of photographs included, it is `held_out_mask`, and raises as that does.
    """
    choose = known(name).validation
    mask = torch.as_tensor(resolve_name(f"setclr.data.{choose}")() if choose else held_out_mask(train.labels))
    return train.subset(~mask), train.subset(mask)


def held_out_mask(labels: Tensor, seed: int = 0) -> Tensor:
    """Which of N things are held out: a fifth of each class, drawn by the seed, (N,) bool.

    `labels` (N,) are their classes. A class of one stays, and those without a label (-1) count as one class
    more. Raises ValueError if there are fewer than 5, or if none is held out.
    """
    checks.integer("len(train)", len(labels), least=5, hint="a fifth of them is held out")
    shuffled = torch.randperm(len(labels), generator=generator_of(seed))
    grouped = shuffled[labels[shuffled].argsort(stable=True)]
    mask = torch.zeros(len(labels), dtype=torch.bool)
    mask[grouped[4::5]] = True
    mask &= (labels + 1).bincount()[labels + 1] > 1
    if not mask.any():
        raise ValueError("train must have a class of two or more, got one of each; add some")
    return mask


def checked_labels(name: str, labels: Any, n: int) -> Tensor:
    """Labels as an int64 tensor (n,) on the CPU, each a class from 0, or -1 where there is no label.

    `labels` is a tensor, an array or a sequence of n whole numbers. 2.0 and True are whole; 0.7 and NaN are
    not. Raises ValueError for anything else. The message calls the labels `name`, and says what was given
    and where. Cost: one pass.
    """
    wanted = f"{name} must be {n} whole numbers (n,), each -1 or more"
    kind = type(labels).__name__
    try:
        if isinstance(labels, Tensor):
            labels = labels.detach().cpu()
            labels = labels.float() if labels.dtype == torch.bfloat16 else labels  # NumPy has no bfloat16
        array = np.asarray(labels)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{wanted}, got {kind} ({' '.join(str(error).split())}); {REMEDY}") from None
    if array.shape != (n,):
        raise ValueError(f"{wanted}, got {kind} of shape {array.shape}; {REMEDY}")
    if n and array.dtype.kind not in "buif":
        raise ValueError(f"{wanted}, got {array.tolist()[0]!r} among {array.dtype}; {REMEDY}")
    # NaN passes no comparison. Beyond 2**53 a float is no longer a number of its own.
    whole = (array >= -1) & (array <= 2**53) & (array == np.floor(array))
    if not whole.all():
        place = int(whole.argmin())
        raise ValueError(f"{wanted}, got {array[place].item()!r} at place {place}; {REMEDY}")
    return torch.from_numpy(array.astype(np.int64))

"""Data sets by name: patches of photographs, downloads, and folders of any size."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from setclr import checks
from setclr import views as views_of
from setclr.data import patches
from setclr.data.any_folder import any_folder, path_hint
from setclr.data.cameras import PAIRS, two_cameras
from setclr.data.downloads import DOWNLOADED, UNLABELLED, downloaded
from setclr.data.folders import FOLDER, TREES, tree
from setclr.data.photographs import Photographs
from setclr.data.streaming import Batch, stream_batches
from setclr.data.writing import replacing
from setclr.views import View
from setclr.views.numbers import sent

MADE = {"photo-patches": patches.photo_patches, "stereo-patches": patches.stereo_patches}
NAMES = (*MADE, *DOWNLOADED, *TREES, f"{FOLDER}PATH", f"{PAIRS}PATH")
Images = Tensor | Photographs
Views = Iterator[list[Tensor]]  # for each batch a list of (V, n, C, S, S), one for each size
KEYS = ("images", "labels", "classes")
FORMAT = 1  # of the saved patches; raise it whenever `patches` makes different ones


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """Images with their classes. The label -1 means that an image has no label.

    Raises ValueError if types, shapes or labels do not fit together.
    """

    images: Images  # (N, C, H, W) uint8, or Photographs if they are streamed from files
    labels: Tensor  # (N,) int64, indices into `classes`, or -1
    classes: tuple[str, ...]  # () if no image has a label

    def __post_init__(self) -> None:
        for name, dims, dtype in (("images", 4, torch.uint8), ("labels", 1, torch.int64)):
            value = getattr(self, name)
            kinds = Images if name == "images" else Tensor
            if not isinstance(value, kinds) or value.ndim != dims or value.dtype != dtype or not len(value):
                wanted = "(N, C, H, W)" if dims == 4 else "(N,)"
                got = type(value).__name__
                got += f" {tuple(value.shape)} of {value.dtype}" if isinstance(value, Tensor) else ""
                raise ValueError(f"{name} must be a {wanted} tensor of {dtype} with N >= 1, got {got}")
        n, images = len(self.labels), len(self.images)
        if n != images:
            raise ValueError(f"labels must be as many as images, got {n} labels for {images} images")
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < -1 or high >= len(self.classes):
            wanted = f"indices of the {len(self.classes)} classes, or -1 for no label"
            raise ValueError(f"labels must be {wanted}, got {low}..{high}")

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        without = int((self.labels < 0).sum())
        said = f"{len(self.classes)} classes" + (f", {without} without a label" if without else "")
        return f"<ImageSet: {len(self)} images {tuple(self.images.shape[1:])}, {said}>"

    @property
    def in_ram(self) -> bool:
        """Whether the images are a tensor, not files."""
        return isinstance(self.images, Tensor)

    def verify(self, decode: bool = False) -> None:
        """Raises ValueError if a file is no image (`Photographs.verify`); a tensor has no files to check."""
        if isinstance(self.images, Photographs):
            self.images.verify(None if decode else 5, decode)

    def subset(self, index: Tensor) -> "ImageSet":
        """The images where `index` (N,) bool is True, or those of these numbers."""
        return ImageSet(some(self.images, index), self.labels[index], self.classes)

    def view_batches(
        self, views: Sequence[View], batches: Iterable[Batch], workers: int, device: torch.device,
        compiled: bool = False,
    ) -> Views:  # fmt: skip
        """The views of each batch (indices (n,), draws (n, V, 36)), on the device.

        `workers` processes decode photographs; a tensor is moved to the device.
        """
        if isinstance(self.images, Photographs):
            for crops, draws in stream_batches(self.images, views, batches, workers, device):
                yield views_of.finish(crops, views, draws, compiled)
            return
        images = self.images.to(device)
        for index, draws in batches:
            yield views_of.apply_all(images[sent(index, device)], views, draws, compiled)

    def digest(self) -> str:
        """How many images these are, and a checksum that tells them from others.

        It is made of labels, classes and, in RAM, the first and the last image; of files, the names of all
        below the folder that holds them. So it is the same wherever the files lie. Cost: one pass over labels
        and names.
        """
        found = sha256(repr(self.classes).encode() + self.labels.cpu().numpy().tobytes())
        if isinstance(self.images, Tensor):
            found.update(self.images[[0, -1]].cpu().numpy().tobytes())
        else:
            paths = [self.images.path(i) for i in range(len(self))]
            common = len(os.path.dirname(os.path.commonprefix(paths)))
            found.update("\n".join(path[common:] for path in paths).encode(errors="surrogateescape"))
        return f"{len(self)} images with checksum {found.hexdigest()[:12]}"

    def sample(self, n: int, seed: int = 0) -> "ImageSet":
        """n different images, as evenly over the classes as possible, in random order fixed by the seed.

        Images without a label count as one class more. Pairs do not stay together. To sample
        "stereo-patches", slice `images.view(2, -1, 3, 32, 32)` instead. Raises ValueError if there are
        fewer than n images.
        """
        checks.integer("n", n, least=1, most=len(self), hint=f"the set has {len(self)} images")
        shuffled = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        labels = self.labels[shuffled] + 1  # 0: without a label
        # Deal the shuffled images out class by class: an image's round is its position within its class.
        grouped, counts = labels.argsort(stable=True), labels.bincount()
        rounds = torch.empty_like(labels)
        rounds[grouped] = torch.arange(len(self)) - (counts.cumsum(0) - counts)[labels[grouped]]
        chosen = shuffled[rounds.argsort(stable=True)[:n].sort().values]
        return self.subset(chosen)


def load(
    name: str, root: str | Path = "data", split: str = "train", size: int | None = None,
    stream: bool | None = None, verify: bool = False,
) -> ImageSet:  # fmt: skip
    """A data set by name.

    - "photo-patches": 7,200 + 1,800 grey patches of 18 photographs, (3, 32, 32), under random casts and
      contrasts; the class is the photograph. Made in a few seconds and saved under `root`; needs no download.
    - "stereo-patches": 1,141 + 1,343 pairs of colour patches, (3, 32, 32), of what two cameras see.
      All left views come first: `images.view(2, -1, 3, 32, 32)`. The label is the pair. Made and
      saved like "photo-patches".
    - "mnist" (1, 28, 28), "cifar10", "cifar100", "svhn" (3, 32, 32), "stl10" (3, 96, 96): downloaded by
      torchvision into root/NAME, each file verified by its checksum. "stl10" has a third split, "unlabelled":
      the 5,000 training images and then the 100,000 without a label (-1).
    - "tiny-imagenet" (3, 64, 64): root/tiny-imagenet-200 as the archive unpacks; downloaded if it is
      missing. "imagenet": root/imagenet/train/WNID and val/WNID, which you put there by hand.
      "imagenet100": the 100 classes of Tian et al. 2020, in root/imagenet100 or root/imagenet. Numbers of
      images are verified.
    - "folder:PATH": PATH/train/CLASS/IMAGE, and PATH/val or else PATH/test for the test split. Or
      PATH/CLASS/IMAGE, or images without classes at any depth, with labels -1; these have no test split
      (`data.any_folder`). Any format Pillow reads, as RGB; files that are no images by their ending, broken
      links and names that begin with a dot are passed over.
    - "pairs:PATH": PATH/CAMERA/THING.jpg of two cameras, all pictures of the first one first, as in
      "stereo-patches". 15 % of the things, chosen by a fixed seed, are the test split (`data.cameras`).

    Args:
        root: the folder of saved and downloaded data sets; not used by "folder:PATH" and "pairs:PATH".
            "~" is the home folder, here and in PATH.
        split: "train" or "test"; `pretraining_split` says which one to train on without labels.
        size: pixels, for image files only: the shorter side is resized to it, the centre cropped square.
            None keeps the size, but takes 224 for "imagenet" and "imagenet100". For "pairs:PATH" it is the
            height; the width becomes half of it, the shape in which people are cut out for matching, and
            nothing is cropped.
        stream: for image files only. True leaves them on disk, as Photographs that decode on demand. False
            decodes all now. None decodes all now if that takes 8 GB at most.
        verify: decode all files that stay on disk once, before returning. An error then names a truncated
            file before the training starts. A note that the files are good lets the next call skip this.

    Raises:
        ValueError: an argument, file or folder is not as it must be. The message names a bad file to delete.
        FileNotFoundError: PATH, the split's folder or a data set that you must put there by hand is missing.
        ConnectionError: a data set is missing and cannot be downloaded; the message says what to put where.
    """
    checks.choice("split", split, [*patches.SPLITS, *([UNLABELLED] if name == "stl10" else [])])
    checks.boolean("verify", verify)
    if stream is not None:
        checks.boolean("stream", stream)
    root = Path(os.path.expanduser(root))
    kind, colon, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    place = Path(os.path.expanduser(path))
    if kind + colon == PAIRS:
        if stream:
            raise ValueError(f"stream must be left out for {PAIRS}PATH, which is held in RAM, got True")
        return ImageSet(*two_cameras(place, split, size))
    if kind + colon == FOLDER or name in TREES:
        if size is not None:
            checks.integer("size", size, least=1)
        parts = any_folder(place, split, size, stream) if colon else tree(name, root, split, size, stream)
        found = ImageSet(*parts)
        if verify:
            found.verify(decode=True)
        return found
    _refuse_other_names(name, size, stream)
    if name in MADE:
        return _kept(Path(root, name, "patches.npz"), MADE[name], split)
    return ImageSet(*downloaded(name, Path(root, name), split))


def _refuse_other_names(name: str, size: int | None, stream: bool | None) -> None:
    """Raises ValueError unless `name` is a data set in one tensor, with neither size nor stream."""
    if name not in NAMES and (hint := path_hint(name)):
        raise ValueError(f"name must be that of a data set, got {str(name)!r}; {hint}")
    checks.choice("name", name, NAMES)
    for argument, value in (("size", size), ("stream", stream)):
        if value is not None:
            got = f"{argument}={value!r} with name={name!r}; leave it out"
            raise ValueError(f"{argument} applies to {FOLDER}PATH, {', '.join(TREES)}, got {got}")


def some(images: Images, index: slice | Tensor) -> Images:
    """The images of these numbers, or where `index` is True; photographs are not read."""
    return images.subset(index) if isinstance(images, Photographs) else images[index]


def pretraining_split(name: str) -> str:
    """The split to train on without labels: "unlabelled" for "stl10", "train" for all others."""
    return UNLABELLED if name == "stl10" else "train"


def _kept(path: Path, make: Callable, split: str) -> ImageSet:
    """The image set of a split, read from `path`; if the file is missing, it is first made by `make`."""
    if not path.exists():
        arrays = {f"{key}_{part}": x for part in patches.SPLITS for key, x in zip(KEYS, make(part))}
        with replacing(path) as file:
            np.savez(file, format=FORMAT, **arrays)
    try:
        with np.load(path, allow_pickle=False) as kept:
            if kept["format"] != FORMAT:
                raise ValueError(f"its format is {kept['format']}, not {FORMAT}")
            images, labels, classes = (kept[f"{key}_{split}"] for key in KEYS)
            return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), tuple(classes.tolist()))
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        problem = f"{path} is truncated or not of this version of setclr ({error})"
        raise ValueError(f"{problem}; delete it and load again, which makes it in seconds") from error

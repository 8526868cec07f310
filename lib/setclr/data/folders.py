"""Image folders by class, and tiny-ImageNet and ImageNet as they are unpacked.

For the known data sets, classes and numbers of images are checked before any image is decoded.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import torch
from torch import Tensor

from setclr.data.downloads import downloading
from setclr.data.photographs import Photographs, is_image, shown

FOLDER = "folder:"
MOST_BYTES = 8e9  # of decoded images in RAM
Loaded = tuple[Tensor | Photographs, Tensor, tuple[str, ...]]  # images, labels, classes


@dataclass(frozen=True)
class Expected:
    """The classes and numbers of images that a data set must have."""

    classes: int
    images: dict[str, int]  # by split
    each: dict[str, tuple[int, int]]  # the fewest and the most images of a class, by split
    size: int | None = None  # side in pixels to which images are resized by default
    names: tuple[str, ...] = ()  # of the classes to take, if the folders may hold more


EACH = dict(train=(732, 1300), test=(50, 50))
# The usual choice: imagenet100.txt of Tian, Krishnan & Isola 2020, github.com/HobbitLong/CMC.
WNIDS = tuple(sorted((files("setclr.data") / "imagenet100.txt").read_text().split()))
TREES = {
    "tiny-imagenet": Expected(200, dict(train=100_000, test=10_000), dict(train=(500, 500), test=(50, 50))),
    "imagenet100": Expected(100, dict(train=126_689, test=5_000), EACH, size=224, names=WNIDS),
    "imagenet": Expected(1000, dict(train=1_281_167, test=50_000), EACH, size=224),
}
TINY = "tiny-imagenet-200"
TINY_URL = "https://cs231n.stanford.edu/tiny-imagenet-200.zip"
# The archive has 248,100,043 bytes. Its makers publish no digest; others all publish this one.
TINY_SHA256 = "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821"


def tree(name: str, root: Path, split: str, size: int | None, stream: bool | None) -> Loaded:
    """A data set of TREES under `root`, with its classes and numbers of images verified.

    Raises as `setclr.data.load` does.
    """
    expected = TREES[name]
    if name == "tiny-imagenet":
        path = _tiny(root)
        files = _tiny_files(path, split)
    else:
        path = root / (name if (root / name).is_dir() else "imagenet")
        files = _imagenet_files(name, path, expected, split)
    _verify(name, path, expected, split, files)
    return loaded(files, size or expected.size, stream)


def loaded(files: dict[str, list[str]], size: int | None, stream: bool | None) -> Loaded:
    """Images, labels and classes of the files of each class, as `decoded` gives them."""
    labels = torch.tensor([label for label, inside in enumerate(files.values()) for _ in inside])
    images = decoded([path for inside in files.values() for path in inside], size, stream)
    return images, labels, tuple(map(shown, files))


def decoded(paths: list[str], size: int | None, stream: bool | None) -> Tensor | Photographs:
    """The images of these files.

    `stream` True decodes later, on demand; False decodes now; None decodes now if the images fit in
    MOST_BYTES.
    """
    images = Photographs(paths, size)
    total = images.shape.numel()
    if stream is False and total > MOST_BYTES:
        what = f"{len(images)} images of {images.shape[3]}x{images.shape[2]} pixels"
        got = f"{total / 1e9:.1f} GB, more than the {MOST_BYTES / 1e9:g} GB allowed"
        raise ValueError(f"{what} would take {got}; load them with a smaller size= or stream=True")
    return images if stream or total > MOST_BYTES else images[:]


def _imagenet_files(name: str, path: Path, expected: Expected, split: str) -> dict[str, list[str]]:
    """The files of a split by class. Both splits must have the same classes.

    If `expected.names` is given, other classes are left out.
    """
    folders = {"train": path / "train", "test": path / "val"}
    for inside in folders.values():
        if not inside.is_dir():
            where = f"{path}/train/WNID/ and {path}/val/WNID/, a folder for each class, such as n01440764"
            get = f"get ImageNet (ILSVRC 2012) from image-net.org and put its images into {where}"
            raise FileNotFoundError(f"{inside} is no folder; {name} cannot be downloaded here: {get}")
    found = {}
    for part, inside in folders.items():
        classes = class_folders(inside, wanted=is_image)
        found[part] = {wnid: classes[wnid] for wnid in classes if wnid in (expected.names or classes)}
    same_classes(folders["train"], found["train"], folders["test"], found["test"])
    return {wnid: _files(inside, is_image) for wnid, inside in found[split].items()}


def _tiny_files(folder: Path, split: str) -> dict[str, list[str]]:
    """The files of a split of tiny-ImageNet by class.

    wnids.txt lists the classes; val_annotations.txt gives the class of each test image.
    """
    wnids = sorted(_lines(folder / "wnids.txt"))
    if split == "train":
        return {wnid: _files(folder / "train" / wnid / "images", is_image) for wnid in wnids}
    files: dict[str, list[str]] = {wnid: [] for wnid in wnids}
    there = set(_files(folder / "val" / "images", is_image))
    for line in _lines(folder / "val" / "val_annotations.txt"):
        name, wnid, *_ = f"{line}\t\t".split("\t")
        path = os.path.join(folder, "val", "images", name)
        if wnid in files and path in there:
            files[wnid].append(path)
    return files


def _verify(name: str, path: Path, expected: Expected, split: str, files: dict[str, list[str]]) -> None:
    """Raises ValueError unless the numbers of classes and of images are those that the set must have."""
    (fewest, most), total = expected.each[split], sum(map(len, files.values()))
    wrong = [f"{wnid} ({len(inside)})" for wnid, inside in files.items() if not fewest <= len(inside) <= most]
    if len(files) != expected.classes:
        wanted, got = f"the {expected.classes} classes", f"{len(files)}"
        if missing := sorted(set(expected.names) - files.keys()):
            got += f", without {_some(missing)}"
    elif wrong:
        wanted = f"{fewest if fewest == most else f'{fewest} to {most}'} {split} images of each class"
        got = _some(wrong)
    elif total != expected.images[split]:
        wanted, got = f"the {expected.images[split]:,} {split} images", f"{total:,}"
    else:
        return
    remedy = "unpack it again" if name == "tiny-imagenet" else f"complete it, or load it as {FOLDER}{path}"
    raise ValueError(f"{path} must hold {wanted} of {name}, got {got}; {remedy}")


def _some(names: list[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _tiny(root: Path) -> Path:
    """The unpacked folder of tiny-ImageNet; if it is missing, its archive is fetched and unpacked first."""
    path, archive = root / TINY, root / f"{TINY}.zip"
    if path.is_dir():
        return path
    if not archive.exists():
        root.mkdir(parents=True, exist_ok=True)
        with downloading(f"tiny-imagenet is not under {path}", f"fetch {TINY_URL} and put it into {root}"):
            torch.hub.download_url_to_file(TINY_URL, str(archive), TINY_SHA256)  # verified, then renamed
    with archive.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != TINY_SHA256:
            raise ValueError(f"{archive} is truncated or not {TINY_URL}; delete it and load again")
    unfinished = root / f"{TINY}.{os.getpid()}.tmp"
    try:
        shutil.unpack_archive(archive, unfinished)
        os.replace(unfinished / TINY, path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return path


OF_IMAGES = (
    f"{FOLDER}PATH takes PATH/train/CLASS/IMAGE with PATH/val or PATH/test, PATH/CLASS/IMAGE, or images "
    "without classes at any depth"
)
Wanted = Callable[[str], bool]  # of a file's name


def class_folders(folder: Path, needed: str = OF_IMAGES, wanted: Wanted | None = None) -> dict[str, Path]:
    """The class folders by name, sorted. Files that are not `wanted` are passed over; None wants all.

    Raises FileNotFoundError if there is no such folder; the message says what is `needed`. Raises
    ValueError if the folder has no class folders, or a wanted file among them.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder; {needed}")
    found = {os.path.basename(path): Path(path) for path in _files(folder, wanted)}
    if stray := [path for path in found.values() if not path.is_dir()]:
        said = f"{shown(stray[0])} is no folder, among class folders"
        raise ValueError(f"{said}; move it into one of them, or elsewhere")
    if not found:
        raise ValueError(f"{folder} has no class folders; put the files of each class into one of its own")
    return found


def files_of_classes(found: dict[str, Path], kind: str, wanted: Wanted | None = None) -> dict[str, list[str]]:
    """The wanted files in these class folders, sorted; None wants all. Raises ValueError if one has none.

    The message calls the missing files `kind`.
    """
    files = {name: _files(path, wanted) for name, path in found.items()}
    if empty := [found[name] for name in files if not files[name]]:
        raise ValueError(f"{shown(empty[0])} has no {kind}; fill it or remove it")
    return files


def same_classes(train: Path, of_train: dict[str, Path], test: Path, of_test: dict[str, Path]) -> None:
    """Raises ValueError if a class has no folder in the other split."""
    for name in sorted(of_train.keys() ^ of_test.keys()):
        there, missing = (test, train) if name in of_test else (train, test)
        raise ValueError(f"{shown(there / name)} has no counterpart in {missing}; both need the same classes")


def _files(folder: Path, wanted: Wanted | None = None) -> list[str]:
    """The folders and wanted files in a folder, sorted; None wants all files.

    They are strings, because a million Paths would take a gigabyte.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing; get the set again")
    return sorted(e.path for e in visible(folder) if wanted is None or wanted(e.name) or e.is_dir())


def visible(folder: str | Path) -> list[os.DirEntry[str]]:
    """What a folder holds, without broken links and names that begin with a dot."""
    with os.scandir(folder) as found:
        named = [entry for entry in found if not entry.name.startswith(".")]
    return [entry for entry in named if not entry.is_symlink() or os.path.exists(entry.path)]


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; tiny-imagenet must lie as {TINY_URL} unpacks")
    return [line for line in path.read_text(errors="replace").splitlines() if line]

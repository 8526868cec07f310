"""Image files in folders: ImageNet, two cameras, any folder with splits, classes or neither.

What is no image by its ending is passed over, and so are broken links and names that begin with a dot.
"""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from unicodedata import normalize

import numpy as np
import torch
from PIL.Image import Resampling
from torch import Tensor

from setclr.checks import integer, printable
from setclr.data.photographs import Photographs, complaints, decode, is_image
from setclr.data.sets import ImageSet
from setclr.data_sets import FOLDER

MOST_BYTES = 8e9  # of decoded images in RAM, unless `stream` is False
SPLIT_OF = dict(train="train", training="train", val="val", valid="val", validation="val", eval="val",
                test="test", testing="test")  # by a folder's name in small letters  # fmt: skip
OF_IMAGES = f"{FOLDER}PATH takes PATH/train/CLASS/IMAGE and PATH/val, PATH/CLASS/IMAGE, or images anywhere"
LEAST_THINGS = 14  # of pairs; 15 % of fewer would be less than two
FOR_TEST = 0.15  # the share of pairs in the test split
OF_CAMERAS = "pairs:PATH needs PATH/CAMERA/THING.jpg of two cameras, a thing's two pictures under one name"
Wanted = Callable[[str], bool]  # of a file's name; `bool` wants any
Files = dict[str, list[str]]  # the paths of each class


def any_folder(root: Path, split: str, size: int | None, stream: bool | None) -> ImageSet:
    """The images of a split, sorted by path.

    - root/train/CLASS/IMAGE, and root/val or else root/test, if there is one of these three folders, by any
      name in SPLIT_OF, in small letters or large ones. root/train may hold images alone, without classes.
    - root/CLASS/IMAGE, if there are two classes or more. It has no test split.
    - Otherwise all images in root or below, at any depth, and there are no classes.

    An image that lies elsewhere has the label -1; a warning says so if others lie at root/CLASS/IMAGE. Raises
    as `setclr.data.load` does, also if the names of deeper folders say that they are of several splits.
    Cost: the folders are listed once; of links, the target is looked up.
    """
    if split == "train" and _unlabelled(root):
        paths = images_below(Path(_splits(root)["train"]))
        return ImageSet(decoded(paths, size, stream), torch.full((len(paths),), -1), ())
    if split == "test" or _splits(root):
        found = by_class(_of_split(root, split), size, stream)
        for beside in listed(root, is_image) if split == "train" else ():
            if not _split_of(beside) and (is_image(beside) or any(map(is_image, os.listdir(beside)))):
                hint = "is in no split and passed over; if those beside it are classes, rename them"
                warnings.warn(f"{printable(beside)} {hint}", stacklevel=2)
        return found
    paths = images_below(root)
    folders, top = {os.path.dirname(path) for path in paths}, os.fspath(root)
    words = re.findall("[a-z]+", " ".join(folder[len(top) :] for folder in folders).casefold())
    if len(held := {SPLIT_OF[word] for word in words if word in SPLIT_OF}) > 1 and "train" in held:
        raise ValueError(f"{root} must hold one split, got {' and '.join(sorted(held))} below; {OF_IMAGES}")
    inside = {folder for folder in folders if os.path.dirname(folder) == top}
    if inside == folders and len(inside) > 1:
        return by_class(class_folders(root, wanted=is_image), size, stream)
    classes = named(inside) if len(inside) > 1 else {}
    place = {folder: label for label, folder in enumerate(classes.values())}
    labels = [place.get(os.path.dirname(path), -1) for path in paths]
    if inside != folders and inside:
        got = f"{labels.count(-1)} images have no label, the first is {printable(paths[labels.index(-1)])}"
        warnings.warn(f"{got}; move them to {root}/CLASS/IMAGE, of two classes or more", stacklevel=2)
    return ImageSet(decoded(paths, size, stream), torch.tensor(labels), tuple(map(printable, classes)))


def imagenet(chosen: str, folder: Path, split: str, size: int | None, stream: bool | None) -> ImageSet:
    """ImageNet's images in `folder`, or else in the folder imagenet beside it.

    `chosen` is a file of this package that lists the classes to take; "" takes all.
    """
    folder = folder if folder.is_dir() else folder.with_name("imagenet")
    needed = f"get ILSVRC 2012 from image-net.org by hand, as {folder}/train/WNID/ and {folder}/val/WNID/"
    classes = _of_split(folder, split, needed)
    if chosen:
        wnids = sorted((files("setclr.data") / chosen).read_text().split())
        if missing := [wnid for wnid in wnids if wnid not in classes]:
            got = f"{len(missing)} missing, the first is {missing[0]}"
            raise ValueError(f"{folder} must hold all classes of {chosen}, got {got}; add them")
        classes = {wnid: classes[wnid] for wnid in wnids}
    return by_class(classes, size, stream)


def two_cameras(root: Path, split: str, size: int | None) -> ImageSet:
    """The things of a split, all pictures of the first camera before those of the second.

    root/CAMERA/THING.jpg are the pictures of two cameras, with one file name for both of a thing. Folders and
    files may have any names. The camera whose folder comes first in the alphabet is view 0.

    15 % of the things are for test. A fixed seed chooses them, and the order of all things. With `size`,
    pictures are resized whole to that height and half of it as the width, the shape of people. Raises as
    `setclr.data.load` does.
    """
    folders = class_folders(root, OF_CAMERAS, is_image)
    if len(folders) != 2:
        got = f"{len(folders)}: {', '.join(map(printable, [*folders][:5]))}"
        raise ValueError(f"{root} must hold two folders, got {got}; {OF_CAMERAS}")
    of_camera = files_of_classes(folders, "pictures", is_image)
    first, second = map(named, of_camera.values())
    one, other = folders.values()
    same_names(one, other, first, second)
    names = sorted(first)
    if len(names) < LEAST_THINGS:
        problem = f"{root} must hold at least {LEAST_THINGS} things for its splits, got {len(names)}"
        raise ValueError(f"{problem}; add pictures to both of its folders")
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(0)).tolist()
    test = round(FOR_TEST * len(names))
    chosen = [names[i] for i in (order[-test:] if split == "test" else order[:-test])]
    files = Photographs(path[name] for path in (first, second) for name in chosen)
    if size is None:
        images = files[:]
    else:
        sides = integer("size", size, least=8) // 2, size
        small = [files.upright(i).resize(sides, Resampling.BILINEAR) for i in range(len(files))]
        images = torch.from_numpy(np.stack(list(map(np.asarray, small)))).permute(0, 3, 1, 2).contiguous()
    return ImageSet(images, torch.arange(len(chosen)).repeat(2), tuple(map(printable, chosen)))


def by_class(classes: dict[str, Path], size: int | None, stream: bool | None) -> ImageSet:
    """The images in these class folders."""
    return labelled(files_of_classes(classes, "images", is_image), size, stream)


def labelled(paths: Files, size: int | None, stream: bool | None) -> ImageSet:
    """The images of the files of each class."""
    labels = torch.tensor([label for label, inside in enumerate(paths.values()) for _ in inside])
    images = decoded([path for inside in paths.values() for path in inside], size, stream)
    return ImageSet(images, labels, tuple(map(printable, paths)))


def decoded(paths: list[str], size: int | None, stream: bool | None) -> Tensor | Photographs:
    """The images of these files.

    `stream` True decodes later, on demand; False decodes now; None decodes now if the images fit in
    MOST_BYTES.
    """
    images = Photographs(paths, size)
    if stream is None:
        stream = images.shape.numel() > MOST_BYTES
    return images if stream else images[:]


def _of_split(root: Path, split: str, needed: str = OF_IMAGES) -> dict[str, Path]:
    """The class folders of root/train, or of root/val or else root/test, by any name in SPLIT_OF."""
    splits = _splits(root)
    known, place = Path(splits.get("train", root / "train")), splits.get("val", splits.get("test"))
    needed += "".join(f"; rename {os.path.basename(path)} if it is a class" for path in splits.values())
    if split == "train":
        return class_folders(known, needed, is_image)
    if place is None:
        remedy = "`evaluate` splits images with classes by a seed; or fill PATH/val/CLASS"
        raise FileNotFoundError(f"{root} has no folder val or test; {remedy}")
    if _unlabelled(root):
        return class_folders(Path(place), needed, is_image)
    train, test = (class_folders(folder, needed, is_image) for folder in (known, Path(place)))
    same_names(known, Path(place), train, test)
    return test


def _unlabelled(root: Path) -> bool:
    """Whether root/train holds images alone, and the other split, if there is one, class folders."""
    inside = {name: [*map(os.path.isdir, listed(Path(x), is_image))] for name, x in _splits(root).items()}
    train, test = inside.get("train", []), inside.get("val", inside.get("test", []))
    return bool(train) and not any(train) and all(test)


def _split_of(path: str) -> str:
    """The split that a folder is by its name, or ""."""
    return SPLIT_OF.get(os.path.basename(path).casefold(), "")


def _splits(root: Path) -> dict[str, str]:
    """The folders of splits in root, under "train", "val" and "test"."""
    return named(filter(_split_of, listed(root, is_image) if root.is_dir() else ()), _split_of)


def named(paths: Iterable[str], name_of: Callable[[str], str] = lambda name: name) -> dict[str, str]:
    """The paths by the name of the last part in Unicode's form NFC, sorted. Raises ValueError if two paths
    have one name."""
    found: dict[str, str] = {}
    for path in sorted(paths):
        name = name_of(normalize("NFC", os.path.basename(path)))
        if (same := found.setdefault(name, path)) is not path:
            both = f"{printable(same)} and {printable(os.path.basename(path))} both mean {printable(name)}"
            raise ValueError(f"{both}; put them together, or rename one")
    return dict(sorted(found.items()))


def class_folders(folder: Path, needed: str = OF_IMAGES, wanted: Wanted = bool) -> dict[str, Path]:
    """The class folders by name, sorted. Files that are not `wanted` are passed over.

    Raises FileNotFoundError if there is no such folder; the message says what is `needed`. Raises
    ValueError if the folder has no class folders, or a wanted file among them.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder; {needed}")
    inside = {name: Path(path) for name, path in named(listed(folder, wanted)).items()}
    if stray := [path for path in inside.values() if not path.is_dir()]:
        all_of_it = f"and {printable(folder)} has no class folders; {needed}"
        where = "among class folders; move it into one of them" if len(stray) < len(inside) else all_of_it
        raise ValueError(f"{printable(stray[0])} is no folder, {where}")
    if not inside:
        raise ValueError(f"{folder} has no class folders; put the files of each class into one of its own")
    return inside


LEFT_OUT: ContextVar[list[str] | None] = ContextVar("LEFT_OUT", default=None)


@contextmanager
def skip_damaged(skip: bool = True) -> Iterator[list[str]]:
    """Inside, files of folders that cannot be read are left out; what is wrong with each is in the list. Each
    file is decoded once to see it. Without `skip` nothing changes, and the list is that around it, if any.

    >>> from setclr import data
    >>> with data.skip_damaged() as left_out:
    ...     images = data.load("photo-patches")  # or folder:PATH
    >>> left_out
    []
    """
    token = LEFT_OUT.set([] if skip else LEFT_OUT.get())
    left = LEFT_OUT.get()
    try:
        yield [] if left is None else left
    finally:
        LEFT_OUT.reset(token)


def readable(paths: list[str], check: Callable[[str], object] = decode) -> list[str]:
    """The paths; within `skip_damaged` those of files that `check` accepts."""
    if (left := LEFT_OUT.get()) is None:
        return paths
    problems = complaints(paths, check)
    left += [problem for problem in problems if problem and problem not in left]
    return [path for path, problem in zip(paths, problems) if not problem]


def files_of_classes(
    classes: dict[str, Path], kind: str, wanted: Wanted = bool, check: Callable[[str], object] = decode
) -> Files:
    """The wanted files in these class folders, sorted. Raises ValueError if one has none.

    The message calls the missing files `kind`.
    """
    paths = {name: readable(listed(folder, wanted), check) for name, folder in classes.items()}
    if empty := [classes[name] for name in paths if not paths[name]]:
        raise ValueError(f"{printable(empty[0])} has no {kind}; fill it or remove it")
    return paths


def same_names(one: Path, other: Path, in_one: Collection[str], in_other: Collection[str]) -> None:
    """Raises ValueError if something in one folder has no counterpart of its name in the other."""
    for name in sorted({*in_one} ^ {*in_other}):
        there, missing = (one, other) if name in in_one else (other, one)
        lone = f"{printable(there / name)} has no counterpart in {missing}"
        raise ValueError(f"{lone}; both need the same names")


def listed(folder: Path, wanted: Wanted) -> list[str]:
    """The folders and wanted files in a folder, sorted, without those that are `hidden`.

    They are strings, because a million Paths would take a gigabyte.
    """
    with os.scandir(folder) as entries:
        return sorted(e.path for e in entries if not hidden(e) and (wanted(e.name) or e.is_dir()))


def hidden(entry: os.DirEntry[str]) -> bool:
    """Whether it is a broken link, or its name begins with a dot."""
    return entry.name.startswith(".") or (entry.is_symlink() and not os.path.exists(entry.path))


def images_below(root: Path, warn: bool = False) -> list[str]:
    """The image files in a folder and below, as `files_below` finds them."""
    found = files_below(root, is_image, "image files (.jpg, .png, …)", warn)
    if not (good := readable(found)):
        raise ValueError(f"{root} must have image files that can be read, got {len(found)} damaged ones")
    return good


def files_below(root: Path, wanted: Wanted, kind: str, warn: bool = False) -> list[str]:
    """The files in a folder and below whose name is wanted, sorted by path; no pipes, no devices.

    Links are followed; each folder is read once. With `warn`, a warning says how many files are passed over,
    by the ending of their names. Raises ValueError if there are none, FileNotFoundError if there is no such
    folder. The messages call the files `kind`.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder; give one with {kind} in it, at any depth")
    others: Counter[str] = Counter()
    paths, coming, seen = [], [os.fspath(root)], {os.path.realpath(root)}
    while coming:
        for entry in os.scandir(coming.pop()):
            if hidden(entry):
                others["hidden or broken links"] += 1
            elif entry.is_dir():
                if (target := os.path.realpath(entry.path)) not in seen:
                    seen.add(target)
                    coming.append(entry.path)
            elif wanted(entry.name) and entry.is_file():
                paths.append(entry.path)
            else:
                others[os.path.splitext(entry.name)[1].lower() or "without an ending"] += 1
    if not paths:
        raise ValueError(f"{root} has no {kind} in it or below; choose another folder")
    if warn and others:
        counts = ", ".join(f"{count} {ending}" for ending, count in others.most_common())
        warnings.warn(f"passed over {counts}", stacklevel=2)
    return sorted(paths, key=lambda path: path.split(os.sep))


def without_damaged(paths: list[str], check: Callable[[str], object]) -> list[str]:
    """The files that `check` accepts. A warning names each other one. Raises ValueError if none is left."""
    with skip_damaged() as problems:
        good = readable(paths, check)
    for problem in problems:
        warnings.warn(f"left out: {problem}", stacklevel=2)
    if not good:
        raise ValueError(f"some files must be readable, got {len(paths)} damaged ones: {problems[0]}")
    return good

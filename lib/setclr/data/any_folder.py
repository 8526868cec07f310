"""Any folder of photographs: with splits, with classes alone, or with neither."""

import os
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch

from setclr.data import folders
from setclr.data.folders import OF_IMAGES, Loaded, class_folders, files_of_classes, same_classes, visible
from setclr.data.photographs import complaints, is_image, shown

SPLITS = ("train", "val", "test")


def any_folder(root: Path, split: str, size: int | None, stream: bool | None) -> Loaded:
    """The images of a split, sorted by path.

    - root/train/CLASS/IMAGE, and root/val or else root/test, if there is one of these three folders.
    - root/CLASS/IMAGE, if all images lie so and there are two classes or more. It has no test split.
    - Otherwise all images in root or below, at any depth. Their labels are -1, and there are no classes.

    What is no image by its ending is passed over, and so are broken links and names that begin with a dot.
    Raises as `setclr.data.load` does. Cost: the folders are listed once; of links, the target is looked up.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder; {OF_IMAGES}")
    if any((root / name).is_dir() for name in SPLITS):
        return folders.loaded(files_of_classes(_of_split(root, split), "images", is_image), size, stream)
    files = images_below(root)
    classes = _classes(root, files)
    if split == "test" and classes:
        raise _untested(root)
    if split == "test":
        needed = "a folder for each class: PATH/CLASS/IMAGE, or PATH/train/CLASS/IMAGE with PATH/val"
        raise ValueError(f"images must have labels to be measured, got none in {root}; they need {needed}")
    if classes:
        return folders.loaded(files_of_classes(classes, "images", is_image), size, stream)
    return folders.decoded(files, size, stream), torch.full((len(files),), -1), ()


def _of_split(root: Path, split: str) -> dict[str, Path]:
    """The class folders of root/train, or of root/val or else root/test."""
    train = class_folders(root / "train", wanted=is_image)
    if split == "train":
        return train
    test = next((root / name for name in SPLITS[1:] if (root / name).is_dir()), None)
    if test is None:
        raise _untested(root)
    found = class_folders(test, wanted=is_image)
    same_classes(root / "train", train, test, found)
    return found


def _untested(root: Path) -> FileNotFoundError:
    remedy = "`evaluate` splits the images by a seed; or put some of each class into PATH/val/CLASS"
    return FileNotFoundError(f"{root} has no folder val or test; {remedy}")


def images_below(root: Path, others: Counter[str] | None = None) -> list[str]:
    """The image files in a folder and below, as `files_below` finds them."""
    return files_below(root, is_image, "image files (.jpg, .png, …)", others)


def files_below(
    root: Path, wanted: Callable[[str], bool], called: str, others: Counter[str] | None = None
) -> list[str]:
    """The files in a folder and below whose name is wanted, sorted by path; no pipes, no devices.

    Links are followed; each folder is read once. `others` counts what is passed over, by the ending of its
    name. Raises ValueError if there are none, FileNotFoundError if there is no such folder. The messages say
    what the files are called.
    """
    others = Counter() if others is None else others
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder; give one with {called} in it, at any depth")
    found, coming, seen = [], [os.fspath(root)], {_key(root)}
    while coming:
        for entry in os.scandir(coming.pop()):
            if entry.name.startswith(".") or not os.path.exists(entry.path):
                others["hidden" if entry.name.startswith(".") else "broken links"] += 1
            elif not entry.is_dir() and wanted(entry.name) and entry.is_file():
                found.append(entry.path)
            elif not entry.is_dir():
                others[os.path.splitext(entry.name)[1].lower() or "without an ending"] += 1
            elif (key := _key(entry)) not in seen:
                seen.add(key)
                coming.append(entry.path)
    if not found:
        raise ValueError(f"{root} has no {called} in it or below; choose another folder")
    return sorted(found, key=lambda path: path.split(os.sep))


def without_damaged(paths: list[str], check: Callable[[str], object]) -> list[str]:
    """The files that `check` accepts. A warning names each other one. Raises ValueError if none is left."""
    found = complaints(paths, check)
    for said in filter(None, found):
        warnings.warn(f"left out: {said}", stacklevel=2)
    kept = [path for path, said in zip(paths, found) if not said]
    if not kept:
        raise ValueError(f"some files must be readable, got {len(paths)} damaged ones: {found[0]}")
    return kept


def warn_of(others: Counter[str]) -> None:
    """Warn that so many files were passed over, by the ending of their names."""
    if others:
        listed = ", ".join(f"{count} {ending}" for ending, count in others.most_common())
        what = "file" if others.total() == 1 else "files"
        warnings.warn(f"passed over {others.total()} {what}: {listed}", stacklevel=2)


def _key(place: os.PathLike) -> tuple[int, int]:
    found = os.stat(place)
    return found.st_dev, found.st_ino


def _classes(root: Path, files: list[str]) -> dict[str, Path]:
    """The class folders, if all images lie one level down and at least two folders hold some; else none."""
    inside = {os.path.dirname(path) for path in files}
    if len(inside) < 2 or {os.path.dirname(path) for path in inside} != {os.fspath(root)}:
        return {}
    return {e.name: Path(e.path) for e in sorted(visible(root), key=lambda e: e.name) if e.is_dir()}


def path_hint(name: str) -> str | None:
    """What to write instead, if `name` is a path to a folder that exists, or looks like a path."""
    text = os.fspath(name) if isinstance(name, str | os.PathLike) else ""
    if ":" in text:  # a name of another kind, such as tu:PATH
        return None
    if os.sep in text or text.startswith(("~", ".")) or os.path.isdir(text):
        return f"write folder:{shown(text)} for a folder of images"
    return None

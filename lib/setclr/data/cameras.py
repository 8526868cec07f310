"""Pairs of pictures from two cameras: PATH/CAMERA/THING.jpg, with one file name for both pictures of a thing.

Folders and files may have any names. The camera whose folder comes first in the alphabet is view 0. The
authors of CUHK-03 send it on request; it has up to five pictures of an identity by each of two cameras. Save
the first one of each as PATH/1/IDENTITY.png and PATH/2/IDENTITY.png, and load "pairs:PATH" with size=256.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from setclr import checks
from setclr.data.folders import Loaded, visible
from setclr.data.photographs import Photographs, is_image, shown

PAIRS = "pairs:"
LEAST = 14  # things; 15 % of fewer would be less than two
FOR_TEST = 0.15


class Upright(Photographs):
    """Pictures of people, resized whole to a given height and half of it as the width."""

    def __init__(self, paths: Iterable[str | os.PathLike], height: int):
        super().__init__(paths)
        checks.integer("size", height, least=8, hint="it is the height in pixels")
        self.shape = torch.Size((len(self), 3, height, height // 2))

    def _picture(self, i: int) -> np.ndarray:
        height, width = self.shape[2:]
        small = self.upright(i).resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(small).transpose(2, 0, 1)


def two_cameras(root: Path, split: str, size: int | None) -> Loaded:
    """The things of a split, all pictures of the first camera before those of the second.

    15 % of the things are for test. A fixed seed chooses them, and the order of all things. Raises as
    `setclr.data.load` does.
    """
    folders = camera_folders(root)
    files = [{path.name: path for path in listed(folder)} for folder in folders]
    for name in sorted(files[0].keys() ^ files[1].keys()):
        there, missing = folders if name in files[0] else folders[::-1]
        said = f"{shown(there / name)} has no partner {shown(missing / name)}"
        raise ValueError(f"{said}; add that picture, or remove this")
    names = sorted(files[0])
    if len(names) < LEAST:
        said = f"{root} must hold at least {LEAST} things for its splits, got {len(names)}"
        raise ValueError(f"{said}; add pictures to both of its folders")
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(0)).tolist()
    test = round(FOR_TEST * len(names))
    chosen = [names[i] for i in (order[-test:] if split == "test" else order[:-test])]
    paths = [inside[name] for inside in files for name in chosen]
    images = (Photographs(paths) if size is None else Upright(paths, size))[:]
    return images, torch.arange(len(chosen)).repeat(2), tuple(map(shown, chosen))


def camera_folders(root: Path) -> list[Path]:
    """The two camera folders in `root`, sorted."""
    needed = f"{PAIRS}PATH needs PATH/CAMERA/THING.jpg of two cameras, a thing's two pictures under one name"
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder; {needed}")
    found = listed(root)
    if len(found) != 2 or not all(path.is_dir() for path in found):
        got = ", ".join(shown(path.name) for path in found[:5]) or "nothing"
        raise ValueError(f"{root} must hold two folders and nothing else, got {len(found)}: {got}; {needed}")
    return found


def listed(folder: Path) -> list[Path]:
    """The folders and image files in a folder, sorted."""
    return sorted(Path(e.path) for e in visible(folder) if is_image(e.name) or e.is_dir())

"""The photographs that ship with packages, cut up and written out as a folder tree of JPEG files."""

from pathlib import Path

import numpy as np
from PIL import Image

from setclr.checks import integer
from setclr.data.patches import PHOTOGRAPHS
from setclr_course.kit.few_patches import cut_squares

SHARE = 3 / 4  # of every photograph's width that is for training, the rest for test


def photo_tree(path: str | Path, each: int = 100, side: int = 96) -> Path:
    """Write path/train/PHOTOGRAPH/*.jpg and path/val/PHOTOGRAPH/*.jpg, the usual layout of images.

    Folders that exist are left alone.

    The files are squares of the photographs at their own resolution and in their own colours, `side` pixels
    wide: `each` of a photograph from the left three quarters for training, a quarter as many from the rest.
    Squares that show next to nothing are drawn again.

    Raises:
        ValueError: `side` is larger than the smallest photograph allows.
    """
    path = Path(path)
    integer("side", side, least=8, most=96, hint="a quarter of the smallest photograph is 96 pixels wide")
    integer("each", each, least=4)
    for number, (name, load) in enumerate(PHOTOGRAPHS.items()):
        photograph = np.asarray(Image.fromarray(load()).convert("RGB"))
        border = round(SHARE * photograph.shape[1])
        parts = {"train": (photograph[:, :border], each), "val": (photograph[:, border:], each // 4)}
        for split, (part, wanted) in parts.items():
            folder = path / split / name
            if folder.is_dir():
                continue
            folder.mkdir(parents=True)
            for i, square in enumerate(cut_squares(part, wanted, side, [number, split == "val"])):
                Image.fromarray(square).save(folder / f"{i:04d}.jpg", quality=95)
    return path

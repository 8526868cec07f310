"""Real images that ship with packages: patches of 18 photographs.

Nothing is downloaded; `saved` keeps what the other functions make. Colour casts, contrasts and scales vary so
much that raw pixels fail on most patches. A trained encoder can therefore show what it has learned.
"""

from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.random import Generator, default_rng
from PIL import Image
from skimage import data as photos

from setclr.data.sets import ImageSet
from setclr.data.writing import replacing
from setclr.data_sets import SPLITS

SIDE = 32  # pixels of a finished patch
FLAT = 14  # grey standard deviation (of 0..255) below which a patch counts as flat
FORMAT = 2  # of the saved patches; raise it whenever other ones are made

OF_SKIMAGE = """astronaut brick camera cat coffee coins grass gravel hubble_deep_field immunohistochemistry
moon page retina rocket text"""
SHORT = {"hubble_deep_field": "hubble", "immunohistochemistry": "histology"}
PHOTOGRAPHS = {SHORT.get(name, name): getattr(photos, name) for name in OF_SKIMAGE.split()} | {
    "motorcycle": lambda: photos.stereo_motorcycle()[0],
    "china": lambda: of_sklearn("china.jpg"),
    "flower": lambda: of_sklearn("flower.jpg"),
}
PER_PHOTOGRAPH = {"train": 400, "test": 100}
BLOCKS = 4  # a photograph is cut into 4x4 blocks, 4 of them for test
TRIES = 100  # draws allowed per patch; the moon, mostly flat, needs 11


def photo_set(folder: Path, split: str) -> ImageSet:
    return saved(photo_patches, folder, split)


def saved(make: Callable[[str], tuple], folder: Path, split: str) -> ImageSet:
    """The patches of a split, read from a file in `folder`, which `make` makes first if it is missing.

    Raises ValueError if the file is damaged.
    """
    path = folder / f"{split}-{FORMAT}.npz"
    if not path.exists():
        with replacing(path) as file:
            np.savez(file, *make(split))
    try:
        images, labels, classes = np.load(path, allow_pickle=False).values()
        return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), tuple(classes.tolist()))
    except (BadZipFile, EOFError, AttributeError, TypeError, ValueError) as error:
        problem = f"{path} is damaged ({error})"
        raise ValueError(f"{problem}; delete it and load again, which makes it in seconds") from error


def photo_patches(split: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Grey patches of the photographs under random casts, contrasts, offsets and flips.

    Returns images (n, 3, 32, 32) uint8, sorted by class, labels (n,) int64 and the 18 names. There are 400
    images of each photograph for "train", 100 for "test". They are the same on every call and machine, up
    to libjpeg's rounding.
    """
    images = []
    for index, name in enumerate(PHOTOGRAPHS):
        grey, rng = photograph(name), default_rng([1, index, SPLITS.index(split)])
        for window in photo_windows(name, grey, split):
            patch = altered(cut(grey, window), rng, offset=40)
            images.append(patch[:, :, ::-1] if rng.random() < 0.5 else patch)
    labels = np.repeat(np.arange(len(PHOTOGRAPHS)), PER_PHOTOGRAPH[split])
    return np.stack(images), labels, tuple(PHOTOGRAPHS)


def photograph(name: str) -> np.ndarray:
    """A photograph's grey values, (H, W) uint8."""
    return np.asarray(Image.fromarray(PHOTOGRAPHS[name]()).convert("L"))


def of_sklearn(name: str) -> np.ndarray:
    from sklearn.datasets import load_sample_image  # a slow import: it takes a second

    return load_sample_image(name)


def blocks_for_test(name: str) -> np.ndarray:
    """Which of a photograph's 4x4 blocks are for the test split: (4, 4) bool, 4 of them True."""
    drawn = default_rng([2, list(PHOTOGRAPHS).index(name)]).permutation(BLOCKS**2)
    return drawn.reshape(BLOCKS, BLOCKS) < BLOCKS**2 // 4


def photo_validation() -> np.ndarray:
    """Which training patches are for validation: (7200,) bool.

    Whole blocks of each photograph are taken in a fixed random order, until they hold at least a fifth of
    its patches.
    """
    held = []
    for index, name in enumerate(PHOTOGRAPHS):
        grey = photograph(name)
        windows = photo_windows(name, grey, "train")
        centres = windows[:, :2] + windows[:, 2:] / 2
        row, column = (centres // (np.array(grey.shape) / BLOCKS)).astype(int).T
        block, drawn = row * BLOCKS + column, default_rng([6, index]).permutation(BLOCKS**2)
        held_by_then = np.bincount(block, minlength=BLOCKS**2)[drawn].cumsum()
        last = np.searchsorted(held_by_then, PER_PHOTOGRAPH["train"] / 5)
        held.append(np.isin(block, drawn[: last + 1]))
    return np.concatenate(held)


def photo_windows(name: str, grey: np.ndarray, split: str) -> np.ndarray:
    """Squares of 32 to 64 px, each inside one block of the split: (n, 3) int, top, left, side in pixels.

    A window whose unaltered patch is flat (FLAT) is drawn again. Raises RuntimeError if TRIES draws per
    patch give too few windows that are not flat.
    """
    rng = default_rng([3, list(PHOTOGRAPHS).index(name), SPLITS.index(split)])
    blocks = np.argwhere(blocks_for_test(name) == (split == "test"))
    edges = [np.arange(BLOCKS + 1) * length // BLOCKS for length in grey.shape]
    windows, wanted = [], PER_PHOTOGRAPH[split]
    for _ in range(TRIES * wanted):
        (top, bottom), (left, right) = (edge[i : i + 2] for edge, i in zip(edges, rng.choice(blocks)))
        side = rng.integers(32, min(64, bottom - top, right - left), endpoint=True)
        window = *rng.integers((top, left), (bottom - side, right - side), endpoint=True), side
        if cut(grey, window).std() >= FLAT:
            windows.append(window)
        if len(windows) == wanted:
            return np.array(windows)
    got = f"only {len(windows)} of {TRIES * wanted} windows show anything, {wanted} are needed for {split}"
    raise RuntimeError(f"{name}: {got}; is it the photograph that scikit-image or scikit-learn ships?")


def cut(picture: np.ndarray, window: tuple[int, int, int]) -> np.ndarray:
    """A window (top, left, side) of an (H, W) or (H, W, 3) uint8 picture, resized to (1 or 3, 32, 32) float.

    The window is cropped before it is resized: the antialiasing filter must not reach over the edge of
    a block.
    """
    top, left, side = window
    square = Image.fromarray(np.ascontiguousarray(picture[top : top + side, left : left + side]))
    patch = np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BILINEAR), dtype=float)
    return patch.reshape(SIDE, SIDE, -1).transpose(2, 0, 1)


def altered(patch: np.ndarray, rng: Generator, offset: float = 0) -> np.ndarray:
    """A patch (1 or 3, 32, 32), 0..255, under a random cast, contrast and offset: (3, 32, 32) uint8.

    Each channel is multiplied by 0.6 to 1.4, then the contrast about the mean by 0.5 to 1.5. Then up to
    `offset` grey levels are added or subtracted.
    """
    patch = patch * rng.uniform(0.6, 1.4, (3, 1, 1))
    mean = patch.mean()
    patch = (patch - mean) * rng.uniform(0.5, 1.5) + mean + rng.uniform(-offset, offset)
    return patch.round().clip(0, 255).astype(np.uint8)

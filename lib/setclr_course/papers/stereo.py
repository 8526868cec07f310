"""stereo-patches: pairs of patches that two cameras see (QARe, table 1, in small).

They are made in seconds, without a download."""

import math
from pathlib import Path

import numpy as np
from numpy.random import default_rng
from PIL import Image
from skimage import data as photos

from setclr.data import ImageSet
from setclr.data.patches import FLAT, SIDE, altered, cut, saved
from setclr.data_sets import SPLITS

WINDOW = (16, 64)  # pixels; see `stereo_windows`
STEP = 8  # pixels between neighbouring centres of the stereo pairs


def stereo_set(folder: Path, split: str) -> ImageSet:
    return saved(stereo_patches, folder, split)


def stereo_patches(split: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The same points seen by both cameras of the motorcycle pair, under independent casts and contrasts.

    Returns images (2n, 3, 32, 32) uint8, the n left ones first, labels (2n,) int64, 0..n-1 twice, and names
    such as "row 120 column 300", the point in the left picture. n = 1141 for "train", 1343 for "test".
    """
    left, right, disparity = photos.stereo_motorcycle()
    windows, rng = stereo_windows(left, disparity, split), default_rng([4, SPLITS.index(split)])
    images = [altered(cut(left, window), rng) for window in windows[0]]
    images += [altered(cut(right, window), rng) for window in windows[1]]
    names = tuple(f"row {row} column {column}" for row, column, _ in stereo_centres(left, disparity, split))
    return np.stack(images), np.tile(np.arange(len(names)), 2), names


def stereo_windows(left: np.ndarray, disparity: np.ndarray, split: str) -> np.ndarray:
    """Where the stereo patches are cut: (2, n, 3) int, view, pair, (top, left edge, side) in pixels.

    Sides are 16 to 64 px. With these, raw pixels match two of five pairs in batches of 128; with sides of
    24 to 48 px, they match three.
    """
    rows, columns, matches = stereo_centres(left, disparity, split).T
    sides = default_rng([5, SPLITS.index(split)]).integers(*WINDOW, size=(2, len(rows)), endpoint=True)
    return np.stack([rows - sides // 2, np.stack([columns, matches]) - sides // 2, sides], axis=-1)


def stereo_centres(left: np.ndarray, disparity: np.ndarray, split: str) -> np.ndarray:
    """The points both cameras see, every 8 px of the split's half of the left picture (H, W, 3).

    Returns (n, 3) int: row, column on the left, column on the right. `disparity` is as in `seen_by_both`.
    The two splits share no part of the scene. What the right picture shows at a column, the left one shows
    up to max(disparity) columns further right. So the right windows of "train" end that far before the
    middle, and those of "test" begin at the middle. No window leaves its region. Points with a flat patch
    are dropped.
    """
    (height, width), margin = disparity.shape, WINDOW[1] // 2
    half, furthest = width // 2, math.ceil(disparity[np.isfinite(disparity)].max())
    start, stop, right_stop = (0, half, half - furthest) if split == "train" else (half, width, width)

    grid = np.zeros(disparity.shape, dtype=bool)
    grid[margin : height - margin + 1 : STEP, start + margin : stop - margin + 1 : STEP] = True
    rows, columns = np.nonzero(grid & seen_by_both(disparity))
    matches = np.rint(columns - disparity[rows, columns]).astype(int)
    inside = (matches - margin >= start) & (matches + margin <= right_stop)
    centres = np.stack([rows, columns, matches], axis=1)[inside]
    grey = np.asarray(Image.fromarray(left).convert("L"))
    corners = centres[:, :2] - SIDE // 2
    return centres[[cut(grey, (top, left_edge, SIDE)).std() >= FLAT for top, left_edge in corners]]


def seen_by_both(disparity: np.ndarray) -> np.ndarray:
    """Which pixels of the left picture the right camera sees too, (H, W) bool.

    Column x on the left is x - disparity (H, W) on the right. A pixel is not seen in three cases: its
    disparity is unknown (inf), its column lies outside the right picture, or another pixel hides it. A
    pixel of the same row hides it if it is nearer by more than 1 px of disparity and falls on the same
    column or next to it.
    """
    rows, columns = np.nonzero(np.isfinite(disparity))
    depth = disparity[rows, columns]
    matches = np.rint(columns - depth).astype(int)
    inside = (matches >= 0) & (matches < disparity.shape[1])
    rows, columns, matches, depth = rows[inside], columns[inside], matches[inside], depth[inside]
    nearest = np.full((len(disparity), disparity.shape[1] + 2), -np.inf)
    np.maximum.at(nearest, (rows, matches + 1), depth)
    nearest = np.maximum(np.maximum(nearest[:, :-2], nearest[:, 1:-1]), nearest[:, 2:])
    seen = np.zeros(disparity.shape, dtype=bool)
    seen[rows, columns] = nearest[rows, matches] <= depth + 1
    return seen

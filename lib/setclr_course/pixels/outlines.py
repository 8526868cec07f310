"""Many small numbers as one artist: one text costs half a millisecond, the outlines of 200 hardly more."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextPath

MIDDLE = 0.365  # half the height of a digit, in units of the font's size


@lru_cache(maxsize=2**12)
def outline(text: str) -> Path:
    """The text at size 1, its centre at the origin."""
    path = TextPath((0, 0), text, size=1)
    x = path.vertices[path.codes != Path.CLOSEPOLY, 0]
    return Path(path.vertices - [(x.min() + x.max()) / 2, MIDDLE], path.codes)


def written(texts: Sequence[str], centres, size, down: bool = False) -> Path:
    """The texts (t,) round their centres (t, 2), in data units, of one size or one each; `down` where the
    y axis points downwards."""
    paths = [outline(text) for text in texts]
    if not paths:
        return Path(np.zeros((0, 2)))
    size = np.broadcast_to(size, len(paths))[:, None] * [1, -1 if down else 1]
    return Path(
        np.concatenate(
            [path.vertices * s + centre for path, s, centre in zip(paths, size, np.asarray(centres))]
        ),
        np.concatenate([path.codes for path in paths]),
    )


def ink(axis, colour: str) -> PathPatch:
    """An artist to write with: `set_path(written(...))`."""
    return axis.add_patch(PathPatch(Path(np.zeros((0, 2))), facecolor=colour, linewidth=0, zorder=5))

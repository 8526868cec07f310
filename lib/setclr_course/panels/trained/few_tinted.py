"""The first test patches of every photograph, tints and all, without reading a file."""

from functools import cache

import numpy as np
import torch
from numpy.random import default_rng

from setclr.data import ImageSet
from setclr.data.patches import PHOTOGRAPHS, altered, cut, photo_windows, photograph


@cache
def few_tinted(each: int) -> ImageSet:
    """`each` tinted patches of every photograph, cut where the first test patches of "photo-patches" are."""
    images = []
    for index, name in enumerate(PHOTOGRAPHS):
        grey, rng = photograph(name), default_rng([7, index])
        windows = photo_windows(name, grey, "test")[:each]
        images += [altered(cut(grey, window), rng, offset=40) for window in windows]
    labels = torch.arange(len(PHOTOGRAPHS)).repeat_interleave(each)
    return ImageSet(torch.from_numpy(np.stack(images)), labels, tuple(PHOTOGRAPHS))

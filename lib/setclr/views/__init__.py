"""Random views of images, batched: what a view is (`View`, presets) and how a whole batch gets its views."""

from setclr.views.augmentation import (
    NUMBERS,
    Parameters,
    apply,
    apply_all,
    augment,
    boxes,
    check_draws,
    draw,
    finish,
    parameters,
)
from setclr.views.view import DINO, LOCAL_SCALE, PRESETS, SIMCLR, View, by_size, multi_crop, preset

__all__ = [
    "DINO",
    "LOCAL_SCALE",
    "NUMBERS",
    "PRESETS",
    "SIMCLR",
    "Parameters",
    "View",
    "apply",
    "apply_all",
    "augment",
    "boxes",
    "by_size",
    "check_draws",
    "draw",
    "finish",
    "multi_crop",
    "parameters",
    "preset",
]

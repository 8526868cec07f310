"""Random views of image batches: `View` with its presets, and the functions that make the views."""

from setclr.views.augmentation import apply, apply_all, augment, finish, recolour
from setclr.views.numbers import DRAWS, boxes, check_draws, draw, parameters
from setclr.views.view import LOCAL_SCALE, PRESETS, View, by_size, multi_crop, preset

__all__ = ["DRAWS", "LOCAL_SCALE", "PRESETS", "View", "apply", "apply_all", "augment", "boxes", "by_size"]
__all__ += ["check_draws", "draw", "finish", "multi_crop", "parameters", "preset", "recolour"]

"""Slider panels, one explorer a file: each name in `__all__` is a function that returns a `Panel`."""

from setclr.explore.family_gradients import family_gradients
from setclr.explore.family_matrices import family_matrices
from setclr.explore.five_numbers import five_numbers
from setclr.explore.one_idea import one_idea
from setclr.explore.pair_curves import pair_curves
from setclr.explore.training_film import training_film

__all__ = ["family_gradients", "family_matrices", "five_numbers", "one_idea", "pair_curves", "training_film"]

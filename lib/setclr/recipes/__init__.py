"""Training recipes: `ImageRecipe`, `GraphRecipe` and `VideoRecipe`, and every experiment by name.

`RECIPES[name]` is the recipe of an experiment, `PUBLISHED[name]` what a paper printed for it. The named
recipes are loaded on first use, since training needs the classes alone.
"""

from typing import TYPE_CHECKING

from setclr.extras import at_first_use
from setclr.recipes.graph import GraphRecipe
from setclr.recipes.image import ImageRecipe
from setclr.recipes.recipe import Recipe
from setclr.recipes.registry import Published
from setclr.recipes.video import VideoRecipe

if TYPE_CHECKING:
    from setclr.recipes.named import COMPARED, PUBLISHED, RECIPES

__all__ = ["COMPARED", "PUBLISHED", "RECIPES", "GraphRecipe", "ImageRecipe", "Published", "Recipe",
           "VideoRecipe"]  # fmt: skip
__getattr__ = at_first_use(__name__, dict.fromkeys(("COMPARED", "PUBLISHED", "RECIPES"), "named"))

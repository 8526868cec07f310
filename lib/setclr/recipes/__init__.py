"""What to train: the class `Recipe`, and every experiment by name.

`RECIPES[name]` is what to train, `PUBLISHED[name]` what a paper got with it. Both are built when they are
first asked for: training needs the class alone.
"""

from typing import TYPE_CHECKING, Any

from setclr.recipes.recipe import DEFAULTS, Recipe

if TYPE_CHECKING:
    from setclr.recipes.named import COMPARED, PUBLISHED, RECIPES, Published

__all__ = ["COMPARED", "DEFAULTS", "PUBLISHED", "RECIPES", "Published", "Recipe"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from setclr.recipes import named

        return getattr(named, name)
    raise AttributeError(f"module 'setclr.recipes' has no attribute {name!r}")

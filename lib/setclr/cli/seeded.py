"""What `setclr graphs` and `setclr video` share: recipes by the words in their names, listed or measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def listed_or_measured(
    words: Sequence[str], recipes: Mapping[str, Any], kind: str,
    measure: Callable[[dict[str, Any]], Iterable[str]],
) -> None:  # fmt: skip
    """Print what `measure` says of the recipes whose names have all of the words; without words, list all,
    with their losses and the published numbers. Raises ValueError where no name has the words, with the
    nearest."""
    from setclr.checks import nearest  # brings torch
    from setclr.recipes import PUBLISHED, registry

    found = {name: recipe for name, recipe in recipes.items() if all(word in name for word in words)}
    if not found:
        near = ", ".join(nearest(" ".join(words), recipes, 3))
        raise ValueError(f"no {kind} recipe's name has all of {' '.join(words)!r}; the nearest are {near}")
    if words:
        for line in measure(found):
            print(line, flush=True)
        return
    for name, recipe in found.items():
        said = f"  {PUBLISHED[name]}" if name in PUBLISHED else ""
        print(f"{name:34}{recipe.loss}{said}")
    if missing := registry.missing():
        print(missing)

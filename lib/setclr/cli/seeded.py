"""Shared by `setclr graphs` and `setclr video`: recipes by the words in their names, listed or measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def listed_or_measured(
    words: Sequence[str], recipes: Mapping[str, Any], kind: str,
    measure: Callable[[dict[str, Any]], Iterable[str]],
) -> None:  # fmt: skip
    """Print the lines of `measure` for the recipes whose names have all words; without words, list all.

    The list has their losses and the published numbers. Raises ValueError, with the nearest names, if no
    name has all words.
    """
    from setclr.checks import nearest  # imports torch
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

"""Recipes that other packages register through entry points. The papers' rows come with the course.

A package registers one object in the group "setclr.recipes" (see `Collection`).
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Protocol

from setclr.extras import RECIPES, loaded
from setclr.recipes.published import Published
from setclr.recipes.recipe import Recipe, recipe_class

PAGES = "setclr.pages"
NOT_INSTALLED = "which is not installed: clone the repository and run `make`"
COURSE = f"the papers' rows come with the course, {NOT_INSTALLED}"
NOT_FIELDS = ("protocol", "note")  # keys of a row that are not of its recipe
OWN = "setclr"  # the protocol of recipes that name none


class Collection(Protocol):
    """The interface of the object that a package registers."""

    recipes: Mapping[str, Mapping[str, Any]]
    """By name the fields of a recipe. Further keys are "kind" ("graph" or "video"), "protocol", how it is
    measured, and "note"."""
    published: Mapping[str, Published]
    """By the recipe's name the numbers that a paper printed."""
    protocols: Mapping[str, Any]
    """`evaluation.protocols.Protocol`s by name."""
    data: Mapping[str, Callable[..., Any]]
    """Labelled data sets by name: a function of root and side in pixels gives the ImageSet of each split."""
    losses: Mapping[str, type]
    """Baselines by name, which are no losses of embeddings (`losses.Objective`); a collection may lack it."""


class Recipes(MutableMapping[str, Any]):
    """Recipes by name, each made on first access from its `fields`; one without a "kind" is of images.

    Raises KeyError for an unknown name, and ValueError where a field is invalid.
    """

    def __init__(self, fields: Mapping[str, Mapping[str, Any]]):
        self.fields = dict(fields)
        self.made: dict[str, Recipe] = {}

    def kind(self, name: str) -> str:
        """The kind of the recipe of that name, which is not made for it."""
        return self.fields[name].get("kind", "image")

    def __getitem__(self, name: str) -> Any:
        if name not in self.made:
            fields = {key: x for key, x in self.fields[name].items() if key != "kind"}
            self.made[name] = recipe_class(self.kind(name))(**fields)
        return self.made[name]

    def __setitem__(self, name: str, recipe: Recipe) -> None:
        self.made[name], self.fields[name] = recipe, recipe.to_dict()

    def __delitem__(self, name: str) -> None:
        del self.fields[name]
        self.made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return name in self.fields


def collections() -> tuple[Collection, ...]:
    """The collections of all installed packages."""
    return loaded(RECIPES)


def of_course(what: str) -> Any:
    """The module with what the course adds to the commands: `evaluate_all`, `page` and `search`.

    Raises ValueError, naming `what` needs it, with the remedy, where the course is not installed."""
    if not loaded(PAGES):
        raise ValueError(f"{what} comes with the course, {NOT_INSTALLED}")
    return loaded(PAGES)[0]


def registered() -> dict[str, dict[str, Any]]:
    """The fields of the registered recipes, with their "kind"."""
    return {
        name: {key: x for key, x in row.items() if key not in NOT_FIELDS}
        for one in collections()
        for name, row in one.recipes.items()
    }


def published() -> dict[str, Published]:
    """What the papers printed, by the names of the recipes."""
    return {name: row for one in collections() for name, row in one.published.items()}


def protocol_of(name: str) -> str:
    """The protocol by which the recipe of that name is measured: its paper's, or the project's own."""
    for one in collections():
        if name in one.recipes:
            return one.recipes[name].get("protocol", OWN)
    return OWN


def note_of(name: str) -> str:
    """The note on the recipe of that name, "" where it has none."""
    for one in collections():
        if name in one.recipes:
            return one.published[name].note if name in one.published else one.recipes[name].get("note", "")
    return ""


def missing() -> str:
    """A hint that the course is not installed; "" where it is."""
    return "" if collections() else COURSE

"""Recipes by name, with the papers' numbers. Other packages register them through entry points, as the course
does the papers' rows.

A package registers one object in the group "setclr.recipes" (see `Collection`).
"""

from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from setclr.data_sets import DataSet
from setclr.extras import RECIPES, loaded
from setclr.recipes.recipe import Recipe, recipe_class

PAGES = "setclr.pages"
NOT_INSTALLED = "which is not installed: clone the repository and run `make`"
COURSE = f"the papers' rows and moving-patches come with the course, {NOT_INSTALLED}"
NOT_FIELDS = ("protocol", "note")  # keys of a row that are not of its recipe
OWN = "setclr"  # the protocol of recipes that name none


@dataclass(frozen=True)
class Published:
    """The numbers that a paper printed for one run, and where."""

    paper: str
    """Who and when, such as "Shi 2023"."""
    table: str
    """Number of the table, or "text" for numbers in the text."""
    numbers: dict[str, float]
    """Per cent, as printed. "linear": accuracy of a linear probe, "linear-top5": its top-5 accuracy, "knn20":
    accuracy of 20 nearest neighbours; the note explains others. Empty where the paper prints none."""
    spread: dict[str, float] = field(default_factory=dict)
    """Standard deviation of the number of that name, where printed."""
    note: str = ""
    """Settings that the paper leaves open or its authors' program has otherwise, and the recipe's choice."""

    @property
    def where(self) -> str:
        """The place in the paper: the text or a table."""
        return "text" if self.table == "text" else f"table {self.table}"

    def __str__(self) -> str:
        """The main numbers as text: the linear probe, and the kNN of most neighbours."""
        printed = (*self.numbers.values(), *self.spread.values(), 0)
        digits = max(len(f"{x}".partition(".")[2]) for x in printed)
        knn = [name for name in self.numbers if name.startswith("knn")][-1:]
        shown = [name for name in ("linear", *knn) if name in self.numbers] or list(self.numbers)[:1]
        spread = {name: f" ± {x:.{digits}f}" for name, x in self.spread.items()}
        parts = [f"{name} {self.numbers[name]:.{digits}f}{spread.get(name, '')}" for name in shown]
        return ", ".join(parts) or "no number"


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
    sets: Mapping[str, DataSet]
    """Data sets by name, as `data_sets.DATA_SETS` has them; a collection may lack them."""
    videos: Mapping[str, Callable[..., Any]]
    """Sets of videos by name: functions of split, modality and root; a collection may lack them."""
    losses: Mapping[str, type]
    """Baselines by name, which are no losses of embeddings (`losses.Objective`); a collection may lack it."""
    ours: Callable[..., str]
    """Our numbers of a recipe as text, from the recipe, records, a protocol and the published numbers; a
    collection may lack it."""


class Recipes(UserDict[str, Any]):
    """Recipes by name, each made from its fields on first access; one without a "kind" is of images.

    Raises KeyError for an unknown name, and ValueError where a field is invalid.
    """

    def fields(self, name: str) -> dict[str, Any]:
        """What is given of the recipe of that name, which is not made for it."""
        given = self.data[name]
        given = given.to_dict() if isinstance(given, Recipe) else given
        return {key: x for key, x in given.items() if key not in NOT_FIELDS}

    def kind(self, name: str) -> str:
        return self.fields(name).get("kind", "image")

    def __getitem__(self, name: str) -> Any:
        if not isinstance(self.data[name], Recipe):
            fields = self.fields(name)
            self.data[name] = recipe_class(fields.pop("kind", "image"))(**fields)
        return self.data[name]


def collections() -> tuple[Collection, ...]:
    """The collections of all installed packages."""
    return loaded(RECIPES)


def of_course(what: str) -> Any:
    """The module with what the course adds to the commands: `evaluate_all`, `page`, `campaign`,
    `search`, `summary` and `everything`.

    Raises ValueError, naming `what` needs it, with the remedy, where the course is not installed."""
    if not loaded(PAGES):
        raise ValueError(f"{what} comes with the course, {NOT_INSTALLED}")
    return loaded(PAGES)[0]


def registered() -> dict[str, Mapping[str, Any]]:
    """The rows of the registered recipes, by name."""
    return {name: row for one in collections() for name, row in one.recipes.items()}


def published() -> dict[str, Published]:
    """What the papers printed, by the names of the recipes."""
    return {name: row for one in collections() for name, row in one.published.items()}


def protocol_of(name: str) -> str:
    """The protocol by which the recipe of that name is measured: its paper's, or the project's own."""
    return registered().get(name, {}).get("protocol", OWN)


def note_of(name: str) -> str:
    """The note on the recipe of that name, "" where it has none."""
    return published()[name].note if name in published() else registered().get(name, {}).get("note", "")


def missing() -> str:
    """A hint that the course is not installed; "" where it is."""
    return "" if collections() else COURSE

"""Many recipes, one after the other: train, evaluate, record, and go on where the last call stopped."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from setclr.data import ImageSet
from setclr.evaluation.protocols import protocol_named
from setclr.experiments.pairs import best_epoch
from setclr.experiments.pretraining import of_this_recipe, pretrain
from setclr.experiments.records import counted, describe_machine, read_record, record
from setclr.experiments.run import load_run, refuse_other_recipe
from setclr.experiments.tables import evaluate, labelled
from setclr.recipes.recipe import Recipe
from setclr.recipes.registry import protocol_of
from setclr.training.checkpoint import alone
from setclr.training.devices import choose_device

RECORDED = "recorded before"


def campaign(
    recipes: dict[str, Recipe], seeds: Iterable[int], runs: Path, results: Path, root: Path = Path("data"),
    device: str | None = None, pixels: str = "original", command: str = "", protocol: str | None = None,
    train: Callable = pretrain, split: str = "test", keep_diverged: bool = False,
    compiled: bool | str = "auto",
) -> Iterator[str]:  # fmt: skip
    """Train every recipe with every seed; yields a line for each.

    All recipes with the first seed come first, so that runs can be compared whenever it is stopped. It may
    be killed at any moment: recipes with a record are skipped, unfinished runs go on, and the same call does
    what is left. Several may work on the same list: a run that another process is at is skipped. So is one
    whose record or checkpoint is damaged or another recipe's, and one that diverges; the line says so. Where
    a recipe leaves its precision to the machine, all its seeds take that of its first record.

    Recipes go by name; the record is results/NAME-seedS.json, the run runs/NAME-seedS. Records keep `pixels`,
    their source, and `command`, which was given. Each is measured by the `protocol`; None: by that of its
    name (`evaluation.protocols.protocol_of`). `train` is `pretrain`, or a function with its arguments, and
    gets `compiled`: True pays for many short runs, of which the first alone takes long to compile.
    `split`: measure on the "test" images, or on "validation" images, which are then not trained on
    (`tables.labelled`). `keep_diverged`: a run that diverges gets a record with the reason as "diverged" and
    without accuracies, so that it is not tried again.

    Raises what `train`, `labelled` and `evaluate` do.
    """
    where: dict[str, Any] = {"root": root, "device": device, "compiled": compiled}
    measures = {name: protocol_of(name) if protocol is None else protocol for name in recipes}
    for by in measures.values():
        protocol_named(by)
    sets_of = sets_in(root, split)

    def finish(recipe: Recipe, path: Path, out: Path, by: str) -> str:
        part = {"images": sets_of(recipe, by)[0]} if split == "validation" else {}
        try:
            run = train(recipe, out, on_epoch=best_epoch(recipe, root), **where, **part)
        except FloatingPointError as error:
            if keep_diverged:
                run = load_run(out)
                machine = describe_machine(run.encoder.to(choose_device(device)))
                record(path, run, pd.DataFrame(), {}, pixels, command, machine, by, str(error))
            return str(error)
        train_set, test_set = sets_of(recipe, by)
        table = evaluate(run, train_set, test_set, protocol=by)
        images, machine = counted(train_set, test_set, split), describe_machine(run.encoder)
        record(path, run, table, images, pixels, command, machine, by)
        return ", ".join(f"{column} {value:.1f}" for column, value in table.loc["trained"].items())

    for seed, (name, recipe) in product(seeds, recipes.items()):
        title, by = f"{name}-seed{seed}", measures[name]
        path, out = results / f"{title}.json", runs / title
        recipe = replace(recipe, seed=seed, precision=precision_of(recipe, results, name))
        with ExitStack() as stack:
            try:
                if not path.exists():
                    stack.enter_context(alone(out))
                said = recorded(path, recipe, by) or begun_otherwise(out, recipe)
            except BlockingIOError as error:
                said = f"left to another ({error})"
            yield f"{title}: {said or finish(recipe, path, out, by)}"


def sets_in(root: Path, split: str) -> Callable[[Recipe, str], tuple[ImageSet, ImageSet]]:
    """A function that gives a recipe's labelled images for a protocol, and holds them until others are asked
    for."""
    sets: dict[tuple, tuple[ImageSet, ImageSet]] = {}

    def sets_of(recipe: Recipe, by: str) -> tuple[ImageSet, ImageSet]:
        key = (recipe.data, recipe.size, recipe.view_size, by)
        if key not in sets:
            sets.clear()
            sets[key] = labelled(recipe, root, by, split)
        return sets[key]

    return sets_of


def recorded(path: Path, recipe: Recipe, protocol: str) -> str:
    """What there is to say of the record of a run, "" where there is none."""
    if not path.exists():
        return ""
    try:
        kept = read_record(path)
        refuse_other_recipe(path, Recipe.from_dict(kept["recipe"]), recipe, "results", kept["precision"])
    except ValueError as error:
        return str(error)
    if (by := kept["protocol"]) != protocol:
        differ = f"protocol {by!r} there, {protocol!r} now"
        return f"{path}: holds a run measured otherwise ({differ}); choose another results=, or remove it"
    return RECORDED


def begun_otherwise(out: Path, recipe: Recipe) -> str:
    """What is wrong with the run that was begun in `out`: another recipe's, or a damaged file; else ""."""
    try:
        of_this_recipe(recipe, out)
    except ValueError as error:
        return str(error)
    return ""


def precision_of(recipe: Recipe, results: Path, name: str) -> str:
    """The recipe's precision; for "auto" that of a seed that has been recorded, if one has."""
    for path in sorted(results.glob(f"{name}-seed*.json")) if recipe.precision == "auto" else []:
        with suppress(ValueError):  # damaged, which is said when its seed's turn comes
            return read_record(path)["precision"]
    return recipe.precision

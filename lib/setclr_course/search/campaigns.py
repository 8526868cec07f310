"""Campaigns: train, evaluate and record many recipes; a repeated call goes on where the last one stopped."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from setclr.data.writing import writable
from setclr.evaluation.protocols import protocol_named
from setclr.experiments.kinds import kind_of, measured_on
from setclr.experiments.records import counted, library, read_record, record
from setclr.experiments.run import load_run, of_this_recipe, pretrain, refuse_other_recipe, watch
from setclr.recipes import RECIPES
from setclr.recipes.recipe import Recipe
from setclr.recipes.registry import protocol_of
from setclr.training.checkpoint import locked
from setclr.training.devices import choose_device

RECORDED = "recorded before"


class Failure(str):
    """A line about a run that failed."""


def campaign(
    recipes: dict[str, Recipe], seeds: Iterable[int], runs: Path, results: Path, root: Path = Path("data"),
    device: str | None = None, pixels: str = "original", command: str = "", protocol: str | None = None,
    train: Callable = pretrain, split: str = "test", keep_diverged: bool = False,
    compiled: bool | str = "auto",
) -> Iterator[str]:  # fmt: skip
    """Train, evaluate and record every recipe with every seed; yields a line for each run.

    All recipes with the first seed come first, so that recipes can be compared whenever the campaign is
    stopped. It may be killed at any moment. The same call then skips recorded runs, resumes unfinished
    ones and does the rest. Several processes may share the work: each skips a run that another process
    is training. A run is also skipped if its record or checkpoint is damaged or belongs to another
    recipe, and if it diverges; the line, a `Failure`, says so. If a recipe has the precision "auto", all
    its seeds take that of its first record.

    `recipes` are by NAME. A run's record is results/NAME-seedS.json, and its folder is runs/NAME-seedS; on
    other data than those of the recipe of that name it is NAME-DATA-seedS, after the last part of the place.
    Without test data a fifth of each class stands for them, as in `setclr evaluate`.
    Records keep `pixels`, where the pixels come from, and `command`, which made them. Each run is
    measured by the `protocol`; None: by that of the recipe's name (`recipes.registry.protocol_of`).
    `train` is `pretrain`, or a function with the same arguments. It gets `compiled`: True pays for many
    short runs, since only the first takes long to compile. `split`: measure on the "test" images, or on
    "validation" images, which are then not trained on (`kinds.image.labelled`). `keep_diverged`: a run that
    diverges gets a record with the reason as "diverged" and without accuracies, so that it is not tried
    again.

    Raises OSError, before anything is trained, if `results` cannot be written; and the errors of `train`,
    `labelled` and `evaluate`.
    """
    where: dict[str, Any] = {"root": root, "device": device, "compiled": compiled}
    measures = {name: protocol_of(name) if protocol is None else protocol for name in recipes}
    for by in measures.values():
        protocol_named(by)
    writable(results)
    library()

    def finish(recipe: Recipe, path: Path, out: Path, by: str) -> str:
        if split == "validation":
            train_set, test_set = kind_of(recipe).labelled(recipe, root, by, split)
            part, used = {"data": train_set}, split
        else:  # before the training, which may take days
            (train_set, test_set, used, _), part = measured_on(recipe, root, by), {}
        try:
            run = train(recipe, out, on_epoch=watch(recipe, root), **where, **part)
        except FloatingPointError as error:
            if keep_diverged:
                run = load_run(out)
                run.encoder.to(choose_device(device))
                record(path, run, pd.DataFrame(), {}, pixels, command, by, str(error))
            return Failure(error)
        table = kind_of(recipe).evaluate(run, train_set, test_set, protocol=by)
        record(path, run, table, counted(train_set, test_set, used), pixels, command, by)
        return ", ".join(f"{column} {value:.1f}" for column, value in table.loc["trained"].items())

    for seed, (name, recipe) in product(seeds, recipes.items()):
        known, by = titled(name, recipe), measures[name]
        title = f"{known}-seed{seed}"
        path, out = results / f"{title}.json", runs / title
        recipe = replace(recipe, seed=seed, precision=precision_of(recipe, results, known))
        with ExitStack() as stack:
            try:
                if not path.exists():
                    stack.enter_context(locked(out))
                line = recorded(path, recipe, by)
                if not line:
                    of_this_recipe(recipe, out)
            except BlockingIOError as error:
                line = f"left to another ({error})"
            except ValueError as error:  # another recipe's run, or a damaged one
                line = Failure(error)
            line = line or finish(recipe, path, out, by)
            yield type(line)(f"{title}: {line}")


def titled(name: str, recipe: Recipe) -> str:
    """The name, and the data's if these are others than those of the recipe of that name."""
    place, own = (re.split("[:/]", text.rstrip("/"))[-1] for text in (recipe.data, data_of(name, recipe)))
    return name if place == own else f"{name}-{place}"


def data_of(name: str, recipe: Recipe) -> str:
    """The data of the recipe of that name; of an unknown name those of this recipe."""
    return RECIPES[name].data if name in RECIPES else recipe.data


def recorded(path: Path, recipe: Recipe, protocol: str) -> str:
    """A line about the record of a run: `RECORDED`, or what is wrong with it; "" if there is none."""
    if not path.exists():
        return ""
    try:
        record = read_record(path)
        refuse_other_recipe(path, Recipe.from_dict(record.recipe), recipe, "results", record.precision)
    except ValueError as error:
        return Failure(error)
    if record.protocol != protocol:
        problem = f"measured by another protocol ({record.protocol!r} there, {protocol!r} now)"
        return Failure(f"{path}: holds a run {problem}; remove it, or take another folder")
    return RECORDED


def precision_of(recipe: Recipe, results: Path, name: str) -> str:
    """The recipe's precision; for "auto" that of the first of its records, if there is one."""
    for path in sorted(results.glob(f"{name}-seed*.json")) if recipe.precision == "auto" else []:
        with suppress(ValueError):  # a damaged record; its own seed's line says so
            return read_record(path).precision
    return recipe.precision

"""Many recipes, one after the other: train, evaluate, record, and go on where the last call stopped."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from setclr import training
from setclr.recipes.recipe import Recipe
from setclr.reports.records import counted, describe_machine, record
from setclr.reports.tables import evaluate, labelled
from setclr.training.run import refuse_other_recipe


def campaign(
    recipes: dict[str, Recipe], seeds: Iterable[int], runs: Path, results: Path, root: Path = Path("data"),
    device: str | None = None, pixels: str = "original", command: str = "",
    train: Callable = training.pretrain,
) -> Iterator[str]:  # fmt: skip
    """Train every recipe with every seed; yields a line for each that is done.

    All recipes with the first seed come first, so that runs can be compared whenever it is stopped. Recipes
    with a record are skipped, unfinished runs go on: after an interruption the same call does what is left.

    Recipes go by name; the record is results/NAME-seedS.json, the run runs/NAME-seedS. Records keep `pixels`,
    their source, and `command`, which was given. `train` is `pretrain`, or a function with its arguments.

    Raises what `train` and `evaluate` do, and ValueError where a record of that name is another recipe's.
    """
    sets: dict[tuple, tuple] = {}
    for seed in seeds:
        for name, recipe in recipes.items():
            title = f"{name}-seed{seed}"
            path = results / f"{title}.json"
            recipe = replace(recipe, seed=seed)
            if path.exists():
                recorded = Recipe.from_dict(json.loads(path.read_text())["recipe"])
                refuse_other_recipe(path, recorded, recipe, "results")
                yield f"{title}: recorded before"
                continue
            run = train(recipe, runs / title, root=root, device=device)
            key = (recipe.data, recipe.size, recipe.view_size)
            if key not in sets:
                sets = {key: labelled(recipe, root)}
            table, machine = evaluate(run, *sets[key]), describe_machine(run.encoder)
            record(path, run, table, counted(*sets[key]), pixels, command, machine)
            best = ", ".join(f"{column} {value:.1f}" for column, value in table.loc["trained"].items())
            yield f"{title}: {best}"

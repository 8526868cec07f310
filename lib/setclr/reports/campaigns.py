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
    Where a recipe leaves its precision to the machine, all its seeds take that of its first record.

    Recipes go by name; the record is results/NAME-seedS.json, the run runs/NAME-seedS. Records keep `pixels`,
    their source, and `command`, which was given. `train` is `pretrain`, or a function with its arguments.

    Raises what `train` and `evaluate` do, and ValueError where a record of that name is another recipe's.
    """
    sets: dict[tuple, tuple] = {}
    for seed in seeds:
        for name, recipe in recipes.items():
            title = f"{name}-seed{seed}"
            path = results / f"{title}.json"
            recipe = replace(recipe, seed=seed, precision=precision_of(recipe, results, name))
            if path.exists():
                kept = json.loads(path.read_text())
                used = kept.get("precision", "float32")
                refuse_other_recipe(path, Recipe.from_dict(kept["recipe"]), recipe, "results", used)
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


def precision_of(recipe: Recipe, results: Path, name: str) -> str:
    """The recipe's precision; for "auto" that of a seed that has been recorded, if one has."""
    recorded = sorted(results.glob(f"{name}-seed*.json")) if recipe.precision == "auto" else []
    return json.loads(recorded[0].read_text()).get("precision", "float32") if recorded else recipe.precision

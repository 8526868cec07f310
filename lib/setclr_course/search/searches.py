"""Search: choose each loss's learning rate and hyperparameter on validation images, then compare losses."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from setclr.experiments.kinds import kind_of
from setclr.experiments.run import Run, pretrain
from setclr.recipes.recipe import Recipe
from setclr.recipes.registry import protocol_of
from setclr_course.search import hyperparameters
from setclr_course.search.campaigns import RECORDED, campaign, recorded, titled
from setclr_course.search.comparing import means, metrics_of, pairs, row
from setclr_course.search.hyperparameters import beyond, grid, hyperparameter, hyperparameter_value

TRIALS = "trials"  # the folder of the validation runs, with one folder for each recipe
CURVE_SEEDS = (0, 1, 2)
POINTS = 5  # measurements of each final run while it trains
BEYOND = 2  # how often a grid grows where its best setting lies at an end


def search(
    recipes: dict[str, Recipe], seeds: Iterable[int], runs: Path, results: Path, root: Path = Path("data"),
    device: str | None = None, command: str = "", compiled: bool | str = "auto",
) -> Iterator[str]:  # fmt: skip
    """Choose each recipe's learning rate and hyperparameter, and train it with these; yields lines of text.

    Each run has a line; the last text is the progress of the search (`so_far`). There are three stages:

    1. Trials: every setting of `hyperparameters.grid`, as many for each recipe, with seed 0. They train
       on the training images without those of the validation split, and are measured on that split. The
       best setting is chosen (`chosen`). Where it lies at an end of the rates or of the hyperparameter's
       values, the grid grows beyond that end, at most twice (`settled`).
    2. Final runs: the chosen setting with all `seeds` on all training images, measured on the test
       images. They are also measured while they train: five times in the record's history, by the
       project's own protocol.
    3. Curves: at the chosen learning rate every value of the hyperparameter, as in 1, with seeds 0, 1
       and 2.

    Records are results/NAME-seedS.json and results/trials/NAME/SETTING-seedS.json (`comparing.read`);
    the folders of runs have the same names. Like a `campaign`, a search can be killed, repeated and
    shared; `compiled` means the same. Runs that diverge are recorded as diverged. If another process is
    still at the trials of a recipe, the recipe waits for the next call, and the line says so.

    Raises the errors of `campaign` and `grid`.
    """
    recipes = {titled(name, recipe): recipe for name, recipe in recipes.items()}
    grids: dict[str, dict[str, Recipe]] = {name: {} for name in recipes}
    best, seeds = {}, tuple(seeds)
    for recipe, seed in product(recipes.values(), seeds):
        grid(replace(recipe, seed=seed))  # raises for a bad one before the trials, and not after them
    run = partial(campaign, root=root, device=device, command=command, keep_diverged=True, compiled=compiled)

    def trials(name: str, settings: dict[str, Recipe], seeds: Iterable[int]) -> Iterator[str]:
        folders = runs / TRIALS / name, results / TRIALS / name
        for line in run(settings, seeds, *folders, protocol=protocol_of(name), split="validation"):
            yield f"{name} {line}"

    for _, name in product(range(1 + BEYOND), recipes):
        before, (grids[name], _) = grids[name], settled(name, recipes[name], results)
        yield from trials(name, {t: one for t, one in grids[name].items() if t not in before}, (0,))
    for name, recipe in recipes.items():
        grids[name], title = settled(name, recipe, results)
        if title:
            best[name] = grids[name][title]
        yield f"{name}: {title or 'no choice yet, trials are lacking or all diverged'}"
    yield from run(best, seeds, runs, results, train=measured_often)
    for name, recipe in best.items():
        curve = {title: one for title, one in grids[name].items() if one.lr == recipe.lr}
        yield from trials(name, curve, CURVE_SEEDS)
    yield so_far(recipes, seeds, results)


def chosen(settings: dict[str, Recipe], folder: Path, protocol: str) -> str | None:
    """The setting whose trial with seed 0 is best by its first metric, the first of equal ones.

    None if trials are missing or all diverged. Of images kNN decides because, unlike the probe, it has no
    learning rate of its own.
    """
    scores = {}
    for title, recipe in settings.items():
        path = folder / f"{title}-seed0.json"
        if recorded(path, replace(recipe, seed=0), protocol) != RECORDED:
            return None
        found = row(path)
        metrics = metrics_of(found)
        if metrics and not isnan(score := found[metrics[0]]):
            scores[title] = score
    return max(scores, key=scores.__getitem__, default=None)


def settled(name: str, recipe: Recipe, results: Path) -> tuple[dict[str, Recipe], str | None]:
    """The settings of a recipe that its trials so far ask for, and the best of them (`chosen`)."""
    rates, values = hyperparameters.RATES, hyperparameter(recipe.loss).values
    for _ in range(1 + BEYOND):
        settings = grid(recipe, rates, values)
        title = chosen(settings, results / TRIALS / name, protocol_of(name))
        if title is None:
            break
        best, before = settings[title], (rates, values)
        rates, values = beyond(rates, best.lr), beyond(values, hyperparameter_value(best.loss))
        if (rates, values) == before:
            break
    return settings, title


def tried(recipes: dict[str, Recipe], results: Path) -> dict[str, pd.DataFrame]:
    """The trials of a search of these recipes, as a table of `comparing.read` for each recipe.

    Recorded runs of the curves are in it, too. A recipe is left out if its trials are not all there, or
    all diverged. Raises ValueError if a record is damaged.
    """
    found = {}
    for name, recipe in recipes.items():
        settings, title = settled(name, recipe, results)
        if title:
            found[name] = pd.DataFrame([row(path) for path in trials_of(name, settings, results)])
    return found


def trials_of(
    name: str, settings: dict[str, Recipe], results: Path, seeds: Sequence[int] = CURVE_SEEDS
) -> list[Path]:
    """The records of a recipe's settings on validation images."""
    runs = {
        results / TRIALS / name / f"{title}-seed{seed}.json": replace(one, seed=seed)
        for seed, (title, one) in product(seeds, settings.items())
    }
    return [path for path, one in runs.items() if recorded(path, one, protocol_of(name)) == RECORDED]


def so_far(recipes: dict[str, Recipe], seeds: Sequence[int], results: Path) -> str:
    """The progress of a search with these arguments, as text: how many of its runs are recorded.

    Once all final runs are recorded, it also has a table of their means, and the pairs that Holm's test
    at 0.05 keeps, with their intervals (`comparing.pairs`). Records of other settings do not count.
    """
    finals, trials, wanted = [], 0, 0
    for name, recipe in recipes.items():
        (settings, title), protocol = settled(name, recipe, results), protocol_of(name)
        trials += len(trials_of(name, settings, results, (0,)))
        # A hyperparameter's curve needs more seeds; its first seed is that of the trials.
        wanted += len(settings) + (len(CURVE_SEEDS) - 1) * len({one.loss for one in settings.values()})
        if title:
            curve = {other: one for other, one in settings.items() if one.lr == settings[title].lr}
            trials += len(trials_of(name, curve, results, CURVE_SEEDS[1:]))
            runs = {
                results / f"{name}-seed{seed}.json": replace(settings[title], seed=seed) for seed in seeds
            }
            finals += [path for path, one in runs.items() if recorded(path, one, protocol) == RECORDED]
    all_finals = len(recipes) * len(seeds)
    said = f"{trials + len(finals)} of {wanted + all_finals} runs are recorded"
    if len(finals) < all_finals:
        return f"{said}, of the final ones {len(finals)} of {all_finals}: no claim yet"
    runs = pd.DataFrame([row(path) for path in finals])
    one_digit = {f"{metric}{more}": 1 for metric in metrics_of(runs) for more in ("", " ±")}
    lines = [said, means(runs).round(one_digit).to_string()]
    for metric, table in pairs(runs).groupby("metric"):
        kept = table[table["holm"] <= 0.05]
        lines.append(f"{metric}: Holm's test keeps {len(kept)} of {len(table)} pairs")
        lines += [
            f"  {pair.a} less {pair.b}: {pair.difference:+.1f} points, {pair.low:+.1f} to {pair.high:+.1f}"
            for pair in kept.itertuples()
        ]
    return "\n".join(lines)


def measured_often(recipe: Recipe, out: Path, **where: Any) -> Run:
    """`pretrain`, with test accuracies in the history after every fifth of the epochs."""
    kind = kind_of(recipe)
    train, test = kind.labelled(recipe, where["root"])
    every = max(1, recipe.epochs // POINTS)

    def accuracies(run: Run) -> dict[str, float] | None:
        if not run.rows or len(run.rows) % every:
            return None
        return kind.accuracies(run, train, test)

    return pretrain(recipe, out, **where | {"on_epoch": accuracies})

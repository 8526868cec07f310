"""Tables that compare losses by their records: means with spread, and corrected tests of all pairs."""

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from setclr.experiments.records import read_record
from setclr_course.search.hyperparameters import hyperparameter, hyperparameter_value
from setclr_course.search.recorded import column_of
from setclr_course.search.statistics import holm, paired

ABOUT = ("name", "seed", "lr", "hyperparameter", "value", "diverged", "collapsed")  # columns but the metrics


def read(folder: str | Path) -> pd.DataFrame:
    """The records in a folder that `search` wrote, a row for each, sorted by name and seed.

    Columns: name, seed, lr, hyperparameter (its name), value (the hyperparameter's), diverged, collapsed, and
    the metrics (per cent, NaN where the run diverged): of images knn and linear, of others all that are
    recorded. A run collapsed if it diverged, or if the first metric of the trained encoder is not above that
    of its first weights.

    Raises FileNotFoundError if the folder has no records; ValueError if a record is damaged or its loss
    has no hyperparameter.
    """
    rows = [row(path) for path in sorted(Path(folder).glob("*.json"))]
    if not rows:
        raise FileNotFoundError(f"{folder}: no records there; setclr search FILTER makes some")
    return pd.DataFrame(rows).sort_values(["name", "seed"], ignore_index=True)


def row(path: Path) -> dict[str, Any]:
    """The row of one record in `read`'s table. Raises ValueError as `read` does."""
    record = read_record(path)
    recipe, diverged, none = record.recipe, record.diverged is not None, float("nan")
    found = {"name": path.stem.rpartition("-seed")[0], "seed": recipe["seed"], "lr": recipe["lr"]}
    found |= {"hyperparameter": hyperparameter(recipe["loss"]).name}
    found |= {"value": hyperparameter_value(recipe["loss"]), "diverged": diverged, "collapsed": diverged}
    trained, first = (record.accuracy_percent.get(name, {}) for name in ("trained", "untrained"))
    images = recipe["kind"] == "image"
    metrics = {name: column_of(trained, name) or name for name in (("knn", "linear") if images else trained)}
    found |= {name: trained.get(column, none) for name, column in metrics.items()}
    if not diverged:
        decisive, column = next(iter(metrics.items()))
        found["collapsed"] = found[decisive] <= first.get(column, none)
    return found


def metrics_of(runs: pd.DataFrame | dict[str, Any]) -> list[str]:
    """The metrics in `read`'s table or in a row. The first decides which setting a search chooses."""
    return [name for name in runs if name not in ABOUT]


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """A table with a row for each name in `read`'s table.

    Columns: lr, hyperparameter and value; learnt and collapsed, the numbers of such runs; and over the
    seeds that learnt, the mean and the standard deviation of each metric, as knn, "knn ±".
    """
    groups = runs.groupby("name", sort=False)
    table = groups[["lr", "hyperparameter", "value"]].first()
    table["learnt"] = groups["collapsed"].agg(lambda x: int((~x).sum()))
    table["collapsed"] = groups["collapsed"].sum()
    learnt = runs[~runs["collapsed"]].groupby("name")
    for metric in metrics_of(runs):
        table[metric], table[f"{metric} ±"] = learnt[metric].mean(), learnt[metric].std()
    return table


def pairs(runs: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """All pairs of names in `read`'s table, compared by each metric.

    Runs are paired by seed. Collapsed runs are left out, and so are pairs of names with fewer than two
    seeds. Columns: metric, a, b, seeds (how many), difference (mean of a − b, in points), low and high
    (its interval), p and holm. The pairs of a metric are one family: `holm` is p adjusted for all of
    them, and the intervals cover all differences at once with probability ≥ level
    (`search.statistics`). The intervals are Bonferroni's, which is a little stricter than Holm's
    test: a pair may pass the test with 0 just inside its interval.
    """
    learnt = runs[~runs["collapsed"]]
    tables = []
    for metric in metrics_of(runs):
        wide = learnt.pivot(index="seed", columns="name", values=metric)
        tables.append(told_apart(wide, combinations(wide.columns, 2), level).assign(metric=metric))
    columns = ["metric", "a", "b", "seeds", "difference", "low", "high", "p", "holm"]
    return pd.concat(tables, ignore_index=True)[columns]


def told_apart(wide: pd.DataFrame, couples: Iterable[tuple[str, str]], level: float = 0.95) -> pd.DataFrame:
    """These couples of columns of a table (seeds, names), as one family of questions: see `pairs`."""
    both = {couple: wide[list(couple)].dropna() for couple in couples}
    both = {couple: found for couple, found in both.items() if len(found) > 1}
    rows = [
        {"a": a, "b": b, "seeds": len(found), **paired(found[a], found[b], level, len(both))._asdict()}
        for (a, b), found in both.items()
    ]
    table = pd.DataFrame(rows, columns=["a", "b", "seeds", "difference", "low", "high", "p"])
    return table.assign(holm=holm(table["p"]))

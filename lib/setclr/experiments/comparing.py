"""Tables that compare losses by their records: means with spread, and corrected tests of all pairs."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from setclr.evaluation.statistics import holm, paired
from setclr.experiments.records import column_of, read_record
from setclr.recipes.hyperparameters import hyperparameter, hyperparameter_value

METRICS = ("knn", "linear")


def read(folder: str | Path) -> pd.DataFrame:
    """The records in a folder that `search` wrote, a row for each, sorted by name and seed.

    Columns: name, seed, lr, hyperparameter (its name), value (the hyperparameter's), knn, linear (per
    cent, NaN where the run diverged), diverged, collapsed. A run collapsed if it diverged, or if the kNN
    accuracy of the trained encoder is not above that of its first weights.

    Raises FileNotFoundError if the folder has no records; ValueError if a record is damaged or its loss
    has no hyperparameter.
    """
    rows = [row(path) for path in sorted(Path(folder).glob("*.json"))]
    if not rows:
        raise FileNotFoundError(f"{folder}: no records there; setclr search FILTER makes some")
    return pd.DataFrame(rows).sort_values(["name", "seed"], ignore_index=True)


def row(path: Path) -> dict[str, Any]:
    """The row of one record in `read`'s table. Raises ValueError as `read` does."""
    kept = read_record(path)
    recipe, diverged, none = kept["recipe"], "diverged" in kept, float("nan")
    found = {"name": path.stem.rpartition("-seed")[0], "seed": recipe["seed"], "lr": recipe["lr"]}
    found |= {"hyperparameter": hyperparameter(recipe["loss"]).name}
    found |= {"value": hyperparameter_value(recipe["loss"])}
    found |= {"knn": none, "linear": none, "diverged": diverged, "collapsed": diverged}
    if not diverged:
        trained, first = (kept["accuracy_percent"].get(name, {}) for name in ("trained", "untrained"))
        columns = {metric: column_of(trained, metric) or metric for metric in METRICS}
        found |= {metric: trained.get(column, none) for metric, column in columns.items()}
        found["collapsed"] = found["knn"] <= first.get(columns["knn"], none)
    return found


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """A table with a row for each name in `read`'s table.

    Columns: lr, hyperparameter and value; learnt and collapsed, the numbers of such runs; and over the
    seeds that learnt, the mean and the standard deviation, as knn, "knn ±", linear, "linear ±".
    """
    groups = runs.groupby("name", sort=False)
    table = groups[["lr", "hyperparameter", "value"]].first()
    table["learnt"] = groups["collapsed"].agg(lambda x: int((~x).sum()))
    table["collapsed"] = groups["collapsed"].sum()
    learnt = runs[~runs["collapsed"]].groupby("name")
    for metric in METRICS:
        table[metric], table[f"{metric} ±"] = learnt[metric].mean(), learnt[metric].std()
    return table


def pairs(runs: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """All pairs of names in `read`'s table, compared by kNN and by the linear probe.

    Runs are paired by seed. Collapsed runs are left out, and so are pairs of names with fewer than two
    seeds. Columns: metric, a, b, seeds (how many), difference (mean of a − b, in points), low and high
    (its interval), p and holm. The pairs of a metric are one family: `holm` is p adjusted for all of
    them, and the intervals cover all differences at once with probability ≥ level
    (`evaluation.statistics`). The intervals are Bonferroni's, which is a little stricter than Holm's
    test: a pair may pass the test with 0 just inside its interval.
    """
    tables = []
    for metric in METRICS:
        wide = runs[~runs["collapsed"]].pivot(index="seed", columns="name", values=metric)
        both = {couple: wide[list(couple)].dropna() for couple in combinations(wide.columns, 2)}
        both = {couple: found for couple, found in both.items() if len(found) > 1}
        rows = [
            {"metric": metric, "a": a, "b": b, "seeds": len(found),
             **paired(found[a], found[b], level, len(both))._asdict()}
            for (a, b), found in both.items()
        ]  # fmt: skip
        table = pd.DataFrame(rows, columns=["metric", "a", "b", "seeds", "difference", "low", "high", "p"])
        tables.append(table.assign(holm=holm(table["p"])))
    return pd.concat(tables, ignore_index=True)

"""Recorded trainings that differ in the loss, compared: means, gaps, and how large noise is."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from setclr.recipes import PUBLISHED, RECIPES
from setclr.recipes.recipe import DEFAULTS
from setclr.reports.records import spread

Records = dict[str, dict[int, dict]]  # by name of the loss and by seed: what lies in data/results
OWN = ("loss", "seed")  # fields in which recipes that are compared may differ


def read(folder: str | Path, prefix: str = "compare-conv4-") -> Records:
    """The records FOLDER/PREFIX-NAME-seedS.json, as many as there are.

    Raises:
        FileNotFoundError: there is none.
        ValueError: they differ in more than loss and seed and cannot be compared.
    """
    found: Records = {}
    reference: dict = {}
    for path in sorted(Path(folder).glob(f"{prefix}*-seed*.json")):
        name, _, seed = path.stem.removeprefix(prefix).rpartition("-seed")
        record = json.loads(path.read_text())
        alike = {**DEFAULTS, **record["recipe"], "trained for": record["epochs"]}
        alike |= {key: record[key] for key in ("images", "pixels")}
        alike = {key: value for key, value in alike.items() if key not in OWN}
        reference = reference or alike
        other = [key for key in alike if alike[key] != reference.get(key)]
        if other:
            raise ValueError(f"{path.name} differs from the first record in {', '.join(other)}")
        found.setdefault(name, {})[int(seed)] = record
    if not found:
        raise FileNotFoundError(f"{folder}: no {prefix}*.json; python -m setclr campaign makes them")
    return found


def common_seeds(records: Records) -> Records:
    """Only the seeds that every loss has: means over the same seeds may stand in one column.

    Raises:
        ValueError: there is no such seed.
    """
    shared = set.intersection(*(set(runs) for runs in records.values()))
    if not shared:
        raise ValueError("records must share a seed, got none that every loss has")
    return {name: {seed: runs[seed] for seed in sorted(shared)} for name, runs in records.items()}


def accuracies(runs: dict[int, dict], row: str, column: str) -> list[float]:
    """In per cent, one value for each seed."""
    return [record["accuracy_percent"][row][column] for _, record in sorted(runs.items())]


def ranked(records: Records) -> list[str]:
    """The names of the losses, the best linear probe (mean over the seeds) first."""
    return sorted(records, key=lambda name: -np.mean(accuracies(records[name], "trained", "linear")))


def standings(records: Records) -> pd.DataFrame:
    """Means over the seeds, the best linear probe first; `gain` is how far it is above untrained features."""
    rows = {}
    for name in ranked(records):
        knn, linear = (np.mean(accuracies(records[name], "trained", column)) for column in ("knn", "linear"))
        gain = linear - np.mean(accuracies(records[name], "untrained", "linear"))
        rows[name] = {"kNN": knn, "linear": linear, "gain": gain, "seeds": len(records[name])}
    return pd.DataFrame.from_dict(rows, orient="index")


def deviation(records: Records, within: bool = False) -> float:
    """Standard deviation of the linear probes over seeds, of all losses together; NaN without two seeds.

    With `within`, what a seed adds to all losses alike is taken away first (by least squares): the noise
    between losses trained with the same seeds.
    """
    rows = [(name, seed) for name, runs in records.items() for seed in sorted(runs)]
    seeds = sorted({seed for _, seed in rows})[1:] if within else []
    sides = np.array(
        [[*(n == name for name in records), *(s == seed for seed in seeds)] for n, s in rows], float
    )
    values = np.concatenate([accuracies(runs, "trained", "linear") for runs in records.values()])
    left = values - sides @ np.linalg.lstsq(sides, values, rcond=None)[0]
    freedom = len(values) - np.linalg.matrix_rank(sides)
    return float((left @ left / freedom) ** 0.5) if freedom else float("nan")


def gaps(records: Records, name: str, other: str) -> np.ndarray:
    """By how many points the linear probe of one loss is above the other's, seed by seed."""
    both = set(records.get(name, {})) & set(records.get(other, {}))
    ours, theirs = ({seed: records[n][seed] for seed in both} if both else {} for n in (name, other))
    return np.subtract(accuracies(ours, "trained", "linear"), accuracies(theirs, "trained", "linear"))


def pairs(records: Records) -> pd.DataFrame:
    """All pairs of losses that share a seed: the mean gap, the seeds, and `needed` = 2·r·√(2/seeds), r being
    the deviation within seeds; NaN where it is unknown."""
    r, rows = deviation(records, within=True), {}
    for pair in combinations(ranked(records), 2):
        if len(gap := gaps(records, *pair)):
            rows[pair] = {"gap": gap.mean(), "seeds": len(gap), "needed": 2 * r * (2 / len(gap)) ** 0.5}
    return pd.DataFrame.from_dict(rows, orient="index")


def against_papers(rows: dict[str, str | None], records: Records) -> pd.DataFrame:
    """Rows of papers' tables beside the results here.

    Args:
        rows: the loss to compare with by the name of the row; None where there is none.
    """
    lines = {}
    for row, name in rows.items():
        theirs, found = RECIPES[row], records.get(name or "")
        ours = spread(accuracies(found, "trained", "linear")) if found else "–"
        where = f"{theirs.data}, {theirs.encoder}, {theirs.epochs} epochs"
        lines[row] = {"the paper's data": where, "published": str(PUBLISHED[row]), "ours: linear": ours}
    return pd.DataFrame.from_dict(lines, orient="index")


def losses(record: dict) -> np.ndarray:
    return np.array([row["loss"] for row in record["history"]])


def progress(values: np.ndarray) -> np.ndarray:
    """At every value, how much of the way from the first to the last one is done: from 0 to 1."""
    return (values - values[0]) / (values[-1] - values[0] or 1)

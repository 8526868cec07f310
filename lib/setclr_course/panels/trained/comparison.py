"""Recorded trainings that differ in the loss, compared: means, gaps, and how large noise is."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from setclr_course.kit.palette import INK, OF_LOSS

ALIASES = {"simclr": "infonce", "pgd": "mmcl", "inv": "mmcl"}  # as the papers' tables call them
Records = dict[str, dict[int, dict]]  # by name of the loss and by seed: what lies in data/results
OWN = ("loss", "seed")  # fields in which recipes that are compared may differ
MEASURES = {"kNN": "knn", "linear probe": "linear"}  # as panels call them, and as records do
PROBE_FIRST = dict(reversed(MEASURES.items()))


def read(folder: str | Path, prefix: str = "compare-conv4-") -> Records:
    """The records FOLDER/PREFIX-NAME-seedS.json, as many as there are.

    Raises:
        FileNotFoundError: there is none.
        ValueError: they differ in more than loss and seed and cannot be compared, or one is damaged.
    """
    from setclr.experiments.records import read_record  # which needs torch

    found: Records = {}
    reference: dict = {}
    for path in sorted(Path(folder).glob(f"{prefix}*-seed*.json")):
        name, _, seed = path.stem.removeprefix(prefix).rpartition("-seed")
        record = read_record(path)
        alike = {**record["recipe"], "trained for": record["epochs"]}
        alike |= {key: record[key] for key in ("images", "pixels", "precision")}  # precision: what was used
        alike = {key: value for key, value in alike.items() if key not in OWN}
        reference = reference or alike
        other = [key for key in alike if alike[key] != reference.get(key)]
        if other:
            raise ValueError(f"{path.name} differs from the first record in {', '.join(other)}")
        found.setdefault(name, {})[int(seed)] = dict(record)
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


def colour_of(name: str) -> str:
    """The colour of the loss that a name such as "infonce+qare" begins with; of others, INK."""
    first = name.split("+")[0].split("-")[0]
    return {loss.lower(): colour for loss, colour in OF_LOSS.items()}.get(ALIASES.get(first, first), INK)


def standings(records: Records) -> pd.DataFrame:
    """Means over the seeds, the best linear probe first; `gain` is how far it is above untrained features."""
    rows = {}
    for name in ranked(records):
        knn, linear = (np.mean(accuracies(records[name], "trained", column)) for column in ("knn", "linear"))
        gain = linear - np.mean(accuracies(records[name], "untrained", "linear"))
        rows[name] = {"kNN": knn, "linear": linear, "gain": gain, "seeds": len(records[name])}
    return pd.DataFrame.from_dict(rows, orient="index")


def learnt(records: Records) -> Records:
    """Without the losses of which a run collapsed: one whose kNN accuracy is not above that of its own first
    weights."""
    found = Records()
    for name, runs in records.items():
        after, before = (accuracies(runs, row, "knn") for row in ("trained", "untrained"))
        if all(x > y for x, y in zip(after, before)):
            found[name] = runs
    return found


def deviation(records: Records, within: bool = False, measure: str = "linear") -> float:
    """Standard deviation of the accuracies over seeds, of all losses together; NaN without two seeds.

    With `within`, what a seed adds to all losses alike is taken away first (by least squares): the noise
    between losses trained with the same seeds.
    """
    return spread_and_freedom(records, within, measure)[0]


def spread_and_freedom(records: Records, within: bool, measure: str) -> tuple[float, int]:
    """The deviation, and how many numbers it rests on: accuracies less what was fitted to them."""
    rows = [(name, seed) for name, runs in records.items() for seed in sorted(runs)]
    seeds = sorted({seed for _, seed in rows})[1:] if within else []
    sides = np.array(
        [[*(n == name for name in records), *(s == seed for seed in seeds)] for n, s in rows], float
    )
    values = np.concatenate([accuracies(runs, "trained", measure) for runs in records.values()])
    left = values - sides @ np.linalg.lstsq(sides, values, rcond=None)[0]
    freedom = len(values) - int(np.linalg.matrix_rank(sides))
    return float((left @ left / freedom) ** 0.5) if freedom else float("nan"), freedom


def gaps(records: Records, name: str, other: str, measure: str = "linear") -> np.ndarray:
    """By how many points the accuracy of one loss is above the other's, seed by seed."""
    both = set(records.get(name, {})) & set(records.get(other, {}))
    ours, theirs = ({seed: records[n][seed] for seed in both} if both else {} for n in (name, other))
    return np.subtract(accuracies(ours, "trained", measure), accuracies(theirs, "trained", measure))


def pairs(records: Records, measure: str = "linear", level: float = 0.05) -> pd.DataFrame:
    """All pairs of losses that share a seed, with what noise says of each.

    Columns: the mean `gap`; how many `seeds` it is the mean of; `p`, how likely noise alone makes a gap as
    large (Student's t, with the deviation within seeds of all losses together); `holm`, p adjusted for all
    pairs; `needed`, the gap beyond which Holm's test at `level` keeps this pair. The last three are NaN where
    the deviation is unknown.
    """
    r, freedom = spread_and_freedom(records, True, measure)
    found = {pair: gaps(records, *pair, measure) for pair in combinations(ranked(records), 2)}
    rows = {pair: {"gap": gap.mean(), "seeds": len(gap)} for pair, gap in found.items() if len(gap)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["gap", "seeds"])
    if not freedom or table.empty:
        return table.assign(p=np.nan, holm=np.nan, needed=np.nan)
    from scipy import stats  # takes a second

    from setclr_course.search.statistics import holm  # in a package that needs torch

    error = r * (2 / table["seeds"].to_numpy(float)) ** 0.5  # of a mean gap
    table["p"] = 2 * stats.t.sf(table["gap"].abs() / np.maximum(error, 1e-300), freedom)
    table["holm"] = holm(table["p"])
    refused = max(int((table["holm"] > level).sum()), 1)
    table["needed"] = stats.t.isf(level / refused / 2, freedom) * error
    return table


def against_papers(rows: dict[str, str | None], records: Records) -> pd.DataFrame:
    """Rows of papers' tables beside the results here.

    Args:
        rows: the loss to compare with by the name of the row; None where there is none.
    """
    from setclr.experiments.records import spread
    from setclr.recipes import PUBLISHED, RECIPES  # built when asked for

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


def fall(runs: dict[int, dict]) -> np.ndarray:
    """After every epoch the part of a loss's fall that lies behind it: the mean over its runs."""
    return np.mean([progress(losses(record)) for record in runs.values()], axis=0)


def made_up(number: int = 3) -> Records:
    """So many losses with two seeds each that nobody has measured, each better than the one before."""
    rng, found = np.random.default_rng(0), Records()
    for k, name in enumerate(f"made-up loss {letter}" for letter in "ABCDEFGH"[:number]):
        found[name] = {}
        for seed in (0, 1):
            values = 10.0**-k * (3 + np.exp(-np.arange(10) / (2 + k)) + rng.normal(0, 0.01, 10))
            history = [{"epoch": i, "loss": value} for i, value in enumerate(values.tolist(), 1)]
            trained = {"knn": 38 + 2 * k + rng.random(), "linear": 41 + 2 * k + rng.random()}
            rows = {
                "raw pixels": {"knn": 30.0},
                "untrained": {"knn": 31.0, "linear": 32.0},
                "trained": trained,
            }
            found[name][seed] = {"epochs": 10, "history": history, "accuracy_percent": rows}
    return found

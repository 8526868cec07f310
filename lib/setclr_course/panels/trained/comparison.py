"""Recorded trainings that differ in the loss, compared: means, gaps, and how large noise is."""

from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from setclr_course.kit.palette import INK, OF_LOSS

ALIASES = {"simclr": "infonce", "pgd": "mmcl", "inv": "mmcl"}  # as the papers' tables call them
Records = dict[str, dict[int, dict]]  # by name of the loss and by seed: what lies in data/results
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
        used = {key: getattr(record, key) for key in ("images", "pixels", "precision")}
        alike = {**record.recipe, "trained for": record.epochs} | used
        alike = {key: value for key, value in alike.items() if key not in ("loss", "seed")}
        reference = reference or alike
        other = [key for key in alike if alike[key] != reference.get(key)]
        if other:
            raise ValueError(f"{path.name} differs from the first record in {', '.join(other)}")
        found.setdefault(name, {})[int(seed)] = asdict(record)
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

    def gained(runs: dict[int, dict]) -> bool:
        after, before = (accuracies(runs, row, "knn") for row in ("trained", "untrained"))
        return all(x > y for x, y in zip(after, before))

    return {name: runs for name, runs in records.items() if gained(runs)}


def deviation(records: Records, within: bool = False, measure: str = "linear") -> float:
    """Standard deviation of the accuracies over the seeds that all losses have; NaN where there is one.

    With `within`, what a seed adds to all losses alike is taken away first: the noise between losses trained
    with the same seeds.
    """
    x = np.array([accuracies(runs, "trained", measure) for runs in common_seeds(records).values()])
    left, freedom = x - x.mean(1, keepdims=True), (len(x) - within) * (x.shape[1] - 1)
    left -= within * left.mean(0)
    return float((left**2).sum() / freedom) ** 0.5 if freedom else float("nan")


def gaps(records: Records, name: str, other: str, measure: str = "linear") -> np.ndarray:
    """By how many points the accuracy of one loss is above the other's, seed by seed."""
    both = set(records.get(name, {})) & set(records.get(other, {}))
    ours, theirs = ({seed: records[n][seed] for seed in both} if both else {} for n in (name, other))
    return np.subtract(accuracies(ours, "trained", measure), accuracies(theirs, "trained", measure))


def pairs(records: Records, measure: str = "linear") -> pd.DataFrame:
    """All pairs of losses, compared over the seeds that all have.

    Columns: the mean `gap`; `p`, how likely noise alone makes a gap as large (Student's t, with the deviation
    within seeds of all losses together); and `holm`, p adjusted for all pairs. The last two are NaN where the
    deviation is unknown.
    """
    from scipy import stats  # takes a second

    from setclr_course.search.statistics import holm  # in a package that needs torch

    fair = common_seeds(records)
    seeds = len(next(iter(fair.values())))
    r, freedom = deviation(fair, True, measure), (len(fair) - 1) * (seeds - 1)
    couples = list(combinations(ranked(fair), 2))
    found = [gaps(fair, *couple, measure).mean() for couple in couples]
    table = pd.DataFrame({"gap": found}, pd.Index(couples))
    if not freedom:
        return table.assign(p=np.nan, holm=np.nan)
    error = r * (2 / seeds) ** 0.5  # of a mean gap
    p = 2 * stats.t.sf(table["gap"].abs() / max(error, 1e-300), freedom)
    return table.assign(p=p, holm=holm(p))


def against_papers(rows: dict[str, str | None], records: Records) -> pd.DataFrame:
    """Rows of papers' tables beside the results here.

    Args:
        rows: the loss to compare with by the name of the row; None where there is none.
    """
    from setclr.recipes import PUBLISHED, RECIPES  # built when asked for
    from setclr_course.search.recorded import spread

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
            rows = {"raw pixels": {"knn": 30.0}, "untrained": {"knn": 31.0, "linear": 32.0}}
            rows["trained"] = {"knn": 38 + 2 * k + rng.random(), "linear": 41 + 2 * k + rng.random()}
            found[name][seed] = {"epochs": 10, "history": history, "accuracy_percent": rows}
    return found

"""Small versions of the papers' figures and ablations: rows (small.toml), and records as tables.

The rows of a figure differ in what the paper varies. Encoder, images, batches and epochs are not the
paper's. Nor is GroCo's optimiser: here it is Adam.
"""

from pathlib import Path

import pandas as pd

from setclr.checks import choice
from setclr.experiments.records import read_record
from setclr.recipes import PUBLISHED, RECIPES
from setclr_course.papers.rows import rows
from setclr_course.search.recorded import same_training

FIGURES = rows().figures

THEIRS = {"knn20": "knn", "linear": "linear", "knn20-projection": "knn-projection"}  # paper's column → ours


def frame(figure: str, folder: str | Path = "data/results") -> pd.DataFrame:
    """The measurements for a figure of FIGURES, one line for each run that has a record.

    Columns: "row", as the figure names it, in the figure's order; "seed"; "knn", "linear" and the other
    accuracies of the trained encoder, in per cent, NaN where the run diverged. Records of other versions
    of a recipe are left out. Raises ValueError where there is no such figure, or a record is damaged.
    """
    lines = []
    for row, name in FIGURES[choice("figure", figure, FIGURES)].rows.items():
        for path in sorted(Path(folder).glob(f"{name}-seed*.json")):
            record = read_record(path)
            if same_training(record.recipe, RECIPES[name]):
                measured = record.accuracy_percent.get("trained", {})
                lines.append({"row": row, "seed": record.recipe["seed"], **measured})
    table = pd.DataFrame(lines)
    first = ["row", "seed", "knn", "linear"]
    return table.reindex(columns=[*first, *(name for name in table.columns if name not in first)])


def printed(figure: str) -> pd.DataFrame:
    """The numbers that the paper prints for the rows of `frame`, in per cent.

    NaN where it prints none; no rows where the paper has a curve. Columns: "knn" and "knn-projection", of
    20 neighbours in the features and in the head's outputs, and "linear". Raises ValueError as `frame`
    does.
    """
    table = {}
    for row, name in FIGURES[choice("figure", figure, FIGURES)].printed.items():
        both = [PUBLISHED[one].numbers for one in (name, f"{name}-projection") if one in PUBLISHED]
        table[row] = {ours: number for found in both for theirs, ours in THEIRS.items()
                      if (number := found.get(theirs))}  # fmt: skip
    return pd.DataFrame.from_dict(table, orient="index", columns=list(THEIRS.values()), dtype=float)

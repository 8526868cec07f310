"""The records of the papers' figures in small, as a table."""

from pathlib import Path

import pandas as pd

from setclr.checks import choice
from setclr.recipes.figures import FIGURES, SMALL_RECIPES
from setclr.reports.reading import read_record
from setclr.reports.records import same_training


def frame(figure: str, folder: str | Path = "data/results") -> pd.DataFrame:
    """What was measured for a figure of `recipes.figures.FIGURES`, a line for each run that has a record.

    Columns: "row", as the figure has it, and in its order; "seed"; per cent of "knn", "linear" and what else
    was measured of the trained encoder, NaN where the run diverged. Records of other versions of a recipe are
    left out. Raises ValueError where there is no such figure, or a record is damaged.
    """
    lines = []
    for row, name in FIGURES[choice("figure", figure, FIGURES)].rows.items():
        for path in sorted(Path(folder).glob(f"{name}-seed*.json")):
            kept = read_record(path)
            if same_training(kept["recipe"], SMALL_RECIPES[name]):
                measured = kept["accuracy_percent"].get("trained", {})
                lines.append({"row": row, "seed": kept["recipe"]["seed"], **measured})
    table = pd.DataFrame(lines)
    first = ["row", "seed", "knn", "linear"]
    return table.reindex(columns=[*first, *(name for name in table.columns if name not in first)])

"""The recorded results on graphs and videos, beside the numbers of MMCL's tables 4 and 5."""

import glob
from pathlib import Path

import pandas as pd

from setclr.checks import choice
from setclr.experiments.records import Record, read_record
from setclr.recipes import PUBLISHED, RECIPES
from setclr_course.search.recorded import spread

LAST, BEST = "last epoch", "best epoch"
MEASURES = ("retrieval@1", "linear", "ten crops")


def of_seeds(folder: str | Path, name: str) -> dict[int, Record]:
    """The records of a recipe in a folder, by seed. Raises ValueError if one is damaged."""
    found = (read_record(path) for path in Path(folder).glob(f"{glob.escape(name)}-seed*.json"))
    return {one.recipe["seed"]: one for one in sorted(found, key=lambda one: one.recipe["seed"])}


def recorded(folder: str | Path, kind: str, word: str) -> dict[str, list[Record]]:
    """The records of all recipes of that kind whose data have that name, by recipe, rows of a paper first.

    Raises FileNotFoundError where there are none, ValueError where one is damaged.
    """
    names = [name for name in RECIPES if RECIPES.kind(name) == kind and RECIPES[name].data == word]
    names.sort(key=lambda name: name not in PUBLISHED)
    found = {name: list(of_seeds(folder, name).values()) for name in names}
    if not any(found.values()):
        raise FileNotFoundError(f"{folder}: no records of {word} there; setclr campaign {word} makes them")
    return {name: kept for name, kept in found.items() if kept}


def graph_curves(kept: list[Record]) -> list[list[float]]:
    """For each seed the accuracy after every epoch; of a run that was measured once, that number."""
    return [
        [row["svm"] for row in one.history or [] if "svm" in row] or [one.accuracy_percent["trained"]["svm"]]
        for one in kept
    ]


def graph_results(folder: str | Path, data: str = "mutag") -> pd.DataFrame:
    """A row for each recipe of that set with a record: its loss, what the paper printed, the accuracies
    of the last and the best epoch as mean ± spread, and the number of seeds; "-" where not every epoch was
    measured. Raises FileNotFoundError where there are no records."""
    rows = {}
    for name, kept in recorded(folder, "graph", data).items():
        recipe, curves = RECIPES[name], graph_curves(kept)
        printed = str(PUBLISHED[name]).removeprefix("svm ") if name in PUBLISHED else "-"
        best = spread([max(x) for x in curves]) if len(curves[0]) >= recipe.epochs else "-"
        rows[name] = {
            "loss": recipe.loss if recipe.epochs else "none: first weights", "printed": printed,
            LAST: spread([x[-1] for x in curves]), BEST: best, "seeds": len(curves),
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")


def video_scores(kept: list[Record]) -> dict[str, dict[str, list[float]]]:
    """By the kind of label and the measure the numbers of all seeds, per cent."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in kept:
        for column, value in one.accuracy_percent["trained"].items():
            thing, _, measure = column.partition(" ")
            found.setdefault(thing, {}).setdefault(measure, []).append(value)
    return found


def video_results(
    folder: str | Path, measure: str = "retrieval@1", data: str = "moving-patches"
) -> pd.DataFrame:
    """A row for each recipe with a record: modality, loss, what was printed, number of seeds, and for
    each kind of label of the videos the mean ± spread of the measure in per cent. Raises ValueError for a
    measure that is not one of MEASURES; FileNotFoundError where there are no records."""
    choice("measure", measure, MEASURES)
    rows = {}
    for name, kept in recorded(folder, "video", data).items():
        recipe, said = RECIPES[name], {thing: spread(of[measure]) for thing, of in video_scores(kept).items()}
        loss = recipe.loss if recipe.epochs else "none: first weights"
        rows[name] = {"modality": recipe.modality, "loss": loss, "seeds": len(kept)} | said
        if name in PUBLISHED:
            rows[name]["printed"] = str(PUBLISHED[name])
    return pd.DataFrame.from_dict(rows, orient="index")

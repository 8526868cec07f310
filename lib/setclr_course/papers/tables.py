"""The recorded results on graphs and videos, beside the numbers of MMCL's tables 4 and 5."""

from pathlib import Path

import pandas as pd

from setclr.checks import choice
from setclr.experiments.graph_campaigns import BEST, LAST, read_graph_record
from setclr.experiments.records import spread
from setclr.experiments.video_campaigns import MEASURES, read_video_record
from setclr.recipes import GRAPH_RECIPES, PUBLISHED, VIDEO_RECIPES


def graph_results(folder: str | Path, data: str = "mutag") -> pd.DataFrame:
    """A row for each recipe of that set with a record: its loss, what the paper printed, the accuracies
    of the last and the best epoch as mean ± spread, and the number of seeds. Raises FileNotFoundError
    where there are no records."""
    rows = {}
    for name, recipe in GRAPH_RECIPES.items():
        path = Path(folder) / f"{name}.json"
        if recipe.data == data and path.is_file():
            found = read_graph_record(path)
            printed = str(PUBLISHED[name]).removeprefix("svm ") if name in PUBLISHED else "-"
            accuracies = {kind: spread(found["accuracy_percent"][kind]) for kind in (LAST, BEST)}
            what = {"loss": recipe.loss if recipe.epochs else "none: first weights", "printed": printed}
            rows[name] = what | accuracies | {"seeds": len(found["seeds"])}
    if not rows:
        raise FileNotFoundError(f"{folder}: no records of {data} there; setclr graphs {data} makes them")
    return pd.DataFrame.from_dict(rows, orient="index")


def video_results(folder: str | Path, measure: str = "retrieval@1") -> pd.DataFrame:
    """A row for each recipe with a record: modality, loss, what was printed, number of seeds, and for
    each kind of label of the videos the mean ± spread of the measure in per cent. Raises ValueError for a
    measure that is not one of MEASURES; FileNotFoundError where there are no records."""
    choice("measure", measure, MEASURES)
    rows = {}
    for name, recipe in VIDEO_RECIPES.items():
        path = Path(folder) / f"{name}.json"
        if path.is_file():
            found = read_video_record(path)
            said = {thing: spread(of[measure]) for thing, of in found["accuracy_percent"].items()}
            loss = recipe.loss if recipe.epochs else "none: first weights"
            what = {"modality": recipe.modality, "loss": loss, "seeds": len(found["seeds"])}
            rows[name] = what | said
            if name in PUBLISHED:
                rows[name]["printed"] = str(PUBLISHED[name])
    if not rows:
        raise FileNotFoundError(f"{folder}: no records of videos there; setclr video moving makes them")
    return pd.DataFrame.from_dict(rows, orient="index")

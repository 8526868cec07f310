"""A run's results on disk: a record with the source of its numbers, and tables of many records."""

import json
import os
import platform
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from setclr.data import ImageSet
from setclr.data.cameras import PAIRS
from setclr.data.writing import replacing
from setclr.evaluation.protocols import OWN
from setclr.recipes.recipe import Recipe
from setclr.reports.reading import Record, read_records
from setclr.training.run import Run

SHOWN = (("raw pixels", "knn"), ("untrained", "knn"), ("trained", "knn"), ("trained", "linear"))
COLUMNS = (
    "record", "data, images, pixels", "loss", "encoder, epochs, precision", "raw pixels", "untrained",
    "**kNN**", "**linear**", "seeds", "training",
)  # fmt: skip


def describe_machine(encoder: nn.Module) -> dict:
    """The kind of machine that evaluates an encoder, without any machine's name."""
    on_gpu = next(encoder.parameters()).is_cuda
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    return {"device": device, "processors": os.cpu_count(), "python": platform.python_version(),
            "torch": torch.__version__}  # fmt: skip


def counted(train: ImageSet, test: ImageSet, split: str = "test") -> dict[str, int]:
    return {"train": len(train), split: len(test)}


def record(
    path: Path, run: Run, table: pd.DataFrame, images: dict, source: str, command: str, machine: dict,
    protocol: str = OWN, diverged: str = "",
) -> None:  # fmt: skip
    """Write a result to a JSON file with all that is needed to trace it.

    `images` are the numbers of labelled ones (`counted`); `source` is that of the pixels, such as
    "original" or "JPEG q75"; `command` made the record; `machine` evaluated (`describe_machine`), by the
    `protocol` of that name. `diverged` says what became NaN, where that ended the run. The file is replaced
    in one step.
    """
    result = {
        "accuracy_percent": {row: values.dropna().round(2).to_dict() for row, values in table.iterrows()},
        "epochs": len(run.rows), "training_seconds": round(sum(row["seconds"] for row in run.rows), 1),
        "images": images, "pixels": source, "protocol": protocol, "precision": run.precision,
        "compiled": run.compiled, "recipe": run.recipe.to_dict(),
        "evaluated_with": command, "machine": machine, "history": run.rows,
        **({"diverged": diverged} if diverged else {}),
    }  # fmt: skip
    with replacing(path) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())


def summary(folder: Path) -> str:
    """The records of a folder as a Markdown table; seeds of one recipe share a line, as mean ± spread. The
    first column is the name of their files, without the seed. Runs that diverged are left out; so are damaged
    records, and lines below the table say so.

    Raises FileNotFoundError where the folder holds no records.
    """
    groups: dict[tuple, dict[Path, Record]] = {}
    records, damaged = read_records(folder)
    for path, kept in records.items():
        if "diverged" in kept:
            continue
        recipe = tuple((k, v) for k, v in kept["recipe"].items() if k != "seed")
        key = (recipe, kept["precision"], tuple(kept["images"].items()), kept["pixels"],
               kept["machine"]["device"], kept["protocol"])  # fmt: skip
        groups.setdefault(key, {})[path] = kept
    if not groups and not damaged:
        raise FileNotFoundError(f"{folder}: no records there; setclr evaluate RUN --record FILE makes one")
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    lines += [f"| {' | '.join(cells_of(found))} |" for found in groups.values()]
    return "\n".join(lines + [f"\nLeft out: {said}" for said in damaged])


def cells_of(found: dict[Path, Record]) -> list[str]:
    """The line of records that differ in their seed alone."""
    runs, names = list(found.values()), [re.sub(r"-seed\d+$", "", path.stem) for path in found]
    first, said = runs[0], runs[0]["recipe"]
    data = "/".join(said["data"].removeprefix("folder:").split("/")[-2:])
    cells = [", ".join(dict.fromkeys(names)), f"{data}, {first['images']['train']}, {first['pixels']}"]
    own = first["protocol"] == OWN
    by = "" if own else f", by {first['protocol']}"
    cells += [said["loss"], f"{said['encoder']}, {first['epochs']}, {first['precision']}{by}"]
    for row, kind in SHOWN:
        column = column_of(first["accuracy_percent"].get(row, {}), kind)
        measured = [run["accuracy_percent"].get(row, {}) for run in runs]
        values = [one[column] for one in measured if column in one]
        cells.append(spread(values) if values else "-")
    # The papers' rows train for hours beside other work, and their seconds are no speeds.
    seconds = f"up to {max(run['training_seconds'] for run in runs):.0f} s, " if own else ""
    return [
        *cells,
        ", ".join(str(run["recipe"]["seed"]) for run in runs),
        seconds + first["machine"]["device"],
    ]


def column_of(measured: dict[str, float], kind: str) -> str | None:
    """The column that stands for "knn" or "linear": of that name, or else the kNN of most neighbours."""
    return kind if kind in measured else next((c for c in reversed(measured) if c.startswith(kind)), None)


def spread(values: list[float]) -> str:
    """The mean, with the standard deviation where values differ."""
    x = pd.Series(values)
    return f"{x.mean():.1f}" + (f" ± {x.std():.1f}" if x.nunique() > 1 else "")


def ours(recipe: Recipe, kept: Iterable[Record], protocol: str = OWN, published: Collection[str] = ()) -> str:
    """Mean ± spread of the records of this recipe by this protocol with any seed and any folder of data: of
    the columns that were `published`; where none were, of linear and kNN, or of all if neither is there. "-"
    where there is no such record or column.

    Where records differ in the number of images, those on most count; then those on the original pixels.
    """
    groups: dict[tuple[int, bool, str], list[dict]] = {}
    for result in kept:
        if "diverged" in result or result["protocol"] != protocol:
            continue
        if result["epochs"] == recipe.epochs and same_training(result["recipe"], recipe):
            source = (result["images"]["train"], result["pixels"] == "original", result["pixels"])
            groups.setdefault(source, []).append(result["accuracy_percent"]["trained"])
    if not groups:
        return "-"
    images, _, pixels = max(groups)
    runs = groups[max(groups)]
    columns = [name for name in ("linear", *runs[0]) if all(name in run for run in runs)]
    named = [name for name in columns if name in (published or ("linear", "knn"))]
    columns = named if published else named or columns
    if not columns:
        return "-"
    shown = ", ".join(f"{name} {spread([run[name] for run in runs])}" for name in dict.fromkeys(columns))
    return f"{shown} ({images} images" + ("" if pixels == "original" else f", {pixels}") + ")"


def same_training(values: dict, recipe: Recipe) -> bool:
    """Whether a record's recipe is this one, apart from the seed and the folder of its data; a recipe whose
    precision is "auto" was followed in any."""
    try:
        recorded = Recipe.from_dict(values)
    except ValueError:  # of another version
        return False
    kind, _, place = recorded.data.rpartition(":")
    name = PAIRS * (kind == "pairs") + place.rstrip("/").rsplit("/", 1)[-1]
    precision = "auto" if recipe.precision == "auto" else recorded.precision
    return replace(recorded, data=name, seed=recipe.seed, precision=precision) == recipe

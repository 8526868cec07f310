"""A run's results on disk: a record that says where its numbers come from, and tables of many records."""

import json
import os
import platform
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from setclr.data import ImageSet
from setclr.recipes.recipe import DEFAULTS, Recipe
from setclr.training.checkpoint import Run


def describe_machine(encoder: nn.Module) -> dict:
    """What the evaluation of an encoder runs on, without naming anybody's machine."""
    on_gpu = next(encoder.parameters()).is_cuda
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    return {"device": device, "processors": os.cpu_count(), "python": platform.python_version(),
            "torch": torch.__version__}  # fmt: skip


def counted(train: ImageSet, test: ImageSet) -> dict[str, int]:
    return {"train": len(train), "test": len(test)}


def record(
    path: Path, run: Run, table: pd.DataFrame, images: dict, source: str, command: str, machine: dict
) -> None:
    """Write a result to a JSON file with all that is needed to ask where it came from.

    Args:
        images: numbers of labelled images, "train" and "test": a data set's name does not say whether it
            was whole.
        source: where the pixels come from, for example "original" or "JPEG q75".
        command: what made the record.
        machine: as `describe_machine` gives it, of the evaluation; training times are in the history.
    """
    result = {
        "accuracy_percent": {row: values.dropna().round(2).to_dict() for row, values in table.iterrows()},
        "epochs": len(run.rows),
        "training_seconds": round(sum(row["seconds"] for row in run.rows), 1),
        "images": images,
        "pixels": source,
        "recipe": run.recipe.to_dict(),
        "evaluated_with": command,
        "machine": machine,
        "history": run.rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def summary(folder: Path) -> str:
    """The records of a folder as a Markdown table: runs that differ in the seed alone share a line, mean ±
    spread.

    Raises:
        FileNotFoundError: the folder holds no records.
    """
    groups = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        key = (
            tuple((k, v) for k, v in (DEFAULTS | kept["recipe"]).items() if k != "seed"),
            tuple(kept["images"].items()),
            kept["pixels"],
            kept["machine"]["device"],
        )
        groups.setdefault(key, []).append(kept)
    if not groups:
        raise FileNotFoundError(
            f"{folder}: no records there; python -m setclr evaluate RUN --record FILE makes one"
        )
    columns = ["data, images, pixels", "loss", "encoder, epochs", "raw pixels", "untrained"]
    columns += ["**kNN**", "**linear**", "seeds", "training"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for (recipe, images, source, device), runs in groups.items():
        recipe = dict(recipe)
        name = "/".join(recipe["data"].removeprefix("folder:").split("/")[-2:])
        cells = [f"{name}, {dict(images)['train']}, {source}", recipe["loss"]]
        cells.append(f"{recipe['encoder']}, {runs[0]['epochs']}")
        for row, column in (
            ("raw pixels", "knn"),
            ("untrained", "knn"),
            ("trained", "knn"),
            ("trained", "linear"),
        ):
            cells.append(spread([run["accuracy_percent"][row][column] for run in runs]) if row in
                         runs[0]["accuracy_percent"] else "-")  # fmt: skip
        seeds = ", ".join(str(run["recipe"]["seed"]) for run in runs)
        seconds = [run["training_seconds"] for run in runs]
        cells += [seeds, f"up to {max(seconds):.0f} s, {device}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Mean, and the standard deviation where there are several different values."""
    values = pd.Series(values)
    return f"{values.mean():.1f}" + (f" ± {values.std():.1f}" if values.nunique() > 1 else "")


def ours(recipe: Recipe, kept: list[dict]) -> str:
    """Mean ± spread of the records of this recipe, whatever their seeds and wherever their data lay, or "-".

    Of records on several numbers of images those on most; of several sources of pixels the original files.
    """
    groups: dict[tuple[int, bool, str], list[dict]] = {}
    for result in kept:
        if result["epochs"] == recipe.epochs and same_training(result["recipe"], recipe):
            source = (result["images"]["train"], result["pixels"] == "original", result["pixels"])
            groups.setdefault(source, []).append(result["accuracy_percent"]["trained"])
    if not groups:
        return "-"
    images, _, pixels = max(groups)
    runs = groups[max(groups)]
    columns = [name for name in ("linear", *runs[0]) if all(name in run for run in runs)]
    shown = ", ".join(f"{name} {spread([run[name] for run in runs])}" for name in dict.fromkeys(columns))
    return f"{shown} ({images} images" + ("" if pixels == "original" else f", {pixels}") + ")"


def same_training(values: dict, recipe: Recipe) -> bool:
    """Whether a record's recipe is this one but for the seed and for the folder its data came from."""
    try:
        recorded = Recipe.from_dict(values)
    except ValueError:  # of another version
        return False
    name = recorded.data.removeprefix("folder:").rstrip("/").rsplit("/", 1)[-1]
    return replace(recorded, data=name, seed=recipe.seed) == recipe

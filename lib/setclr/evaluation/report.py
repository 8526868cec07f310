"""One run's results: a table beside what has learned nothing, and a record that says where the numbers come
from."""

import json
import os
import platform
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn

from setclr import data
from setclr.data import ImageSet
from setclr.evaluation.features import features, pixels
from setclr.evaluation.knn import knn
from setclr.evaluation.linear import linear_probe
from setclr.recipe import DEFAULTS, Recipe
from setclr.training.checkpoint import Run, new_run


def evaluate(run: Run, train: ImageSet, test: ImageSet, linear: bool = True) -> pd.DataFrame:
    """Accuracies in per cent: rows raw pixels, untrained, trained; columns knn (k=10, T=0.1) and linear.

    Raw pixels are centred in each channel; untrained is the same encoder with the weights it started from.
    The linear probe of raw pixels is left out: it is no baseline of the papers; so are raw pixels of images
    that are too many to lie in memory.
    """
    device = next(run.encoder.parameters()).device
    untrained = new_run(run.recipe, run.channels).encoder.to(device)
    rows = {"untrained": both(untrained, train, test), "trained": both(run.encoder, train, test)}
    if isinstance(train.images, Tensor):
        rows = {"raw pixels": (pixels(train.images), pixels(test.images)), **rows}
    table = pd.DataFrame(index=list(rows), columns=["knn", "linear"], dtype=float)
    labels = train.labels.to(device)
    for name, (bank, queries) in rows.items():
        bank, queries = bank.to(device), queries.to(device)
        table.loc[name, "knn"] = score(knn(bank, labels, queries, k=10, temperature=0.1), test)
        if linear and name != "raw pixels":
            table.loc[name, "linear"] = score(linear_probe(bank, labels, queries), test)
    return table


def labelled(recipe: Recipe, root: str | Path = "data") -> tuple[ImageSet, ImageSet]:
    """The labelled training and test images of a recipe's data set, files of any sizes at its views' side."""
    files = recipe.data.startswith(data.FOLDER) or recipe.data in data.TREES
    size = recipe.size or (recipe.view_size if files else None)
    train, test = (data.load(recipe.data, root, split, size) for split in ("train", "test"))
    return train, test


def counted(train: ImageSet, test: ImageSet) -> dict[str, int]:
    return {"train": len(train), "test": len(test)}


def both(encoder: nn.Module, train: ImageSet, test: ImageSet) -> tuple[Tensor, Tensor]:
    return features(encoder, train.images), features(encoder, test.images)


def score(predicted: Tensor, test: ImageSet) -> float:
    return 100 * float((predicted.cpu() == test.labels).float().mean())


def describe_machine(encoder: nn.Module) -> dict:
    """What the evaluation of an encoder runs on, without naming anybody's machine."""
    on_gpu = next(encoder.parameters()).is_cuda
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    return {"device": device, "processors": os.cpu_count(), "python": platform.python_version(),
            "torch": torch.__version__}  # fmt: skip


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

"""Records: the results of runs as JSON files that name the source of their numbers, and tables of them.

A record is read back whole, or a ValueError says what is wrong with it.
"""

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sized
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import pandas as pd
import torch
from torch import nn

import setclr
from setclr.checks import printable
from setclr.data.writing import replacing
from setclr.evaluation.protocols import OWN
from setclr.experiments.run import Run
from setclr.recipes.recipe import completed, recipe_class

OF_IMAGES = {  # the measures in a table of records, by title: the row and the column of a record
    "raw pixels": ("raw pixels", "knn"), "untrained": ("untrained", "knn"), "**kNN**": ("trained", "knn"),
    "**linear**": ("trained", "linear"),
}  # fmt: skip
OLDER = {"protocol": OWN, "precision": "float32"}  # for older records that lack these fields


@dataclass(kw_only=True)
class Record:
    """What is kept of a run: the contents of a JSON file, as `record` writes it and `read_record` reads it.

    The record of a run that diverged has no accuracies and no images. Raises ValueError, naming the field, if
    one is missing or of another type. Fields of the recipe that an earlier version lacked are filled in; it
    may have others, which this version does not know.
    """

    accuracy_percent: dict[str, dict[str, float]]
    epochs: int
    training_seconds: float
    images: dict[str, int] | None = None
    graphs: dict[str, int] | None = None
    videos: dict[str, int] | None = None
    pixels: str | None = None
    protocol: str
    precision: str
    compiled: bool | None = None
    draws: int | None = None
    recipe: dict
    evaluated_with: str | None = None
    machine: dict
    history: list[dict] | None = None
    diverged: str | None = None
    version: str | None = None
    commit: str | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value, required = getattr(self, one.name), one.default is MISSING
            if required or value is not None:
                refuse_other_kind(one.name, value, one.type if required else get_args(one.type)[0])
        refuse_other_kind("recipe", self.recipe, dict[str, str | float | None])
        self.recipe = completed(self.recipe)
        of_kind = recipe_class(self.recipe["kind"])
        for one in fields(of_kind):
            refuse_other_kind(f"recipe.{one.name}", self.recipe[one.name], one.type)
        refuse_other_kind("machine.device", self.machine.get("device"), str)
        if of_kind.kind != "graph":
            refuse_other_kind("pixels", self.pixels, str)
        if self.diverged is None:
            refuse_other_kind("accuracy_percent.trained", self.accuracy_percent.get("trained"), dict)
            refuse_other_kind(of_kind.things, self.counts, dict)
            refuse_other_kind(f"{of_kind.things}.train", self.counts.get("train"), int)

    @property
    def things(self) -> str:
        """What was counted: "images", "graphs" or "videos"."""
        return recipe_class(self.recipe["kind"]).things

    @property
    def counts(self) -> dict[str, int]:
        """How many of them the numbers are of."""
        return getattr(self, self.things)


def read_record(path: Path) -> Record:
    """The record in a file.

    Raises ValueError, which names the file and what is wrong, if it is not one that `record` wrote: empty,
    cut off, or with a field missing or of another type.
    """
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        contents = json.loads(path.read_text())
        refuse_other_kind("the record", contents, dict)
        return Record(**{one.name: (OLDER | contents).get(one.name) for one in fields(Record)})
    except (OSError, ValueError, RecursionError) as error:  # what is no JSON is a ValueError
        remedy = "remove it, and the command that made it makes it again"
        raise ValueError(f"{printable(path)} is damaged or no record ({error}); {remedy}") from None


def read_records(folder: Path) -> tuple[dict[Path, Record], list[str]]:
    """The records of a folder by path, sorted, and a line about each damaged record.

    The folder `original` in it belongs to it: rows of papers on the data's own pixels.
    """
    records, damaged = {}, []
    for path in sorted([*folder.glob("*.json"), *folder.glob("original/*.json")]):
        try:
            records[path] = read_record(path)
        except ValueError as error:
            damaged.append(str(error))
    return records, damaged


def refuse_other_kind(name: str, value: Any, kind: Any) -> None:
    """Raises ValueError unless the value is of that type; checks inside dict[str, T] and list[T]."""
    outer = get_origin(kind)
    if outer in (dict, list):
        refuse_other_kind(name, value, outer)
        for key, one in value.items() if outer is dict else enumerate(value):
            refuse_other_kind(f"{name}.{key}", one, get_args(kind)[-1])
        return
    kind = kind | int if isinstance(0.0, kind) else kind  # JSON may write 1.0 as 1
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {getattr(kind, '__name__', kind)}, got {value!r:.40}")


def counted(train: Sized, test: Sized, split: str = "test") -> dict[str, int]:
    """How many there are of each; one set that serves for both is counted once."""
    return {"train": len(train)} | ({} if train is test else {split: len(test)})


def describe_machine(encoder: nn.Module) -> dict:
    """The kind of machine that evaluates an encoder (device, processors, versions), without its name."""
    on_gpu = next(encoder.parameters()).is_cuda
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    return {"device": device, "processors": os.cpu_count(), "python": platform.python_version(),
            "torch": torch.__version__}  # fmt: skip


def record(
    path: Path, run: Run, table: pd.DataFrame, counts: dict, source: str, command: str,
    protocol: str = OWN, diverged: str | None = None,
) -> None:  # fmt: skip
    """Write a result to a JSON file with all that is needed to trace it.

    `counts` are the numbers of labelled images, graphs or videos (`counted`). `source` is where
    pixels come from, such as "original" or "JPEG q75"; graphs have none. `command` is the command that made
    the record, by the `protocol` of that name. `diverged` says what became NaN, if that ended the run. The
    machine is that of the encoder (`describe_machine`). The file is replaced in one step.
    """
    if run.recipe is None:
        raise ValueError("run must have a recipe to be recorded, got a Trainer's run without one")
    more: dict[str, Any] = {run.recipe.things: counts, **library()}
    recipe = run.recipe.to_dict() | ({"loss": run.own_loss} if run.own_loss else {})
    filled = Record(
        accuracy_percent={row: values.dropna().round(2).to_dict() for row, values in table.iterrows()},
        epochs=len(run.rows), training_seconds=round(sum(row["seconds"] for row in run.rows), 1),
        pixels=None if run.recipe.kind == "graph" else source, protocol=protocol,
        precision=run.precision or "float32",  # first weights have none
        compiled=run.compiled, draws=run.draws, recipe=recipe, evaluated_with=command,
        history=run.rows, machine=describe_machine(run.encoder), diverged=diverged, **more,
    )  # fmt: skip
    contents = {name: value for name, value in asdict(filled).items() if value is not None}
    with replacing(path) as file:
        file.write((json.dumps(contents, indent=1) + "\n").encode())


@cache
def library() -> dict[str, str]:
    """The `version` of the library that records and, in a clone, the `commit`.

    "changed" follows where files differ from it. Call it when the work begins: the answer is kept, and the
    files may change while a campaign runs.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(setclr.__file__).resolve().parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", "checks.py")  # a file of setclr, not of a project around it
        changed = ", changed" * bool(git("status", "--porcelain", "--untracked-files=no", "--", "."))
        commit = {"commit": git("rev-parse", "HEAD").strip() + changed}
    except (OSError, subprocess.CalledProcessError):
        commit = {}
    return {"version": setclr.__version__} | commit


def summary(folder: Path) -> str:
    """The records of a folder as Markdown tables, one for each set of measures.

    Seeds of one recipe share a line, as mean ± standard deviation. The first column is the name of their
    files, without the seed. Runs that diverged are left out. Damaged records are left out, too, and
    lines below the table say so.

    Raises FileNotFoundError if the folder holds no records.
    """
    lines: dict[tuple, dict[Path, Record]] = {}  # the records of a line by what they share
    records, damaged = read_records(folder)
    for path, one in records.items():
        recipe = tuple(sorted((name, x) for name, x in one.recipe.items() if name != "seed"))
        shared = (recipe, one.precision, one.pixels, one.machine["device"], one.protocol)
        if one.diverged is None:
            lines.setdefault((*shared, *one.counts.items()), {})[path] = one
    if not lines and not damaged:
        raise FileNotFoundError(f"{folder}: no records there; setclr evaluate RUN --record FILE makes one")
    tables: dict[tuple, list[str]] = {}
    for runs in lines.values():
        cells = cells_of(runs)
        table = tables.setdefault(tuple(cells), [line_of(cells), "|---" * len(cells) + "|"])
        table.append(line_of(cells.values()))
    return "\n\n".join(["\n".join(table) for table in tables.values()] + [f"Left out: {x}" for x in damaged])


def line_of(cells: Iterable[str]) -> str:
    """A line of a Markdown table, whatever is in its cells: lines, strokes, HTML, escape codes are text."""
    inside = [re.sub(r"([\\|<])", r"\\\1", printable(cell)) for cell in cells]
    return f"| {' | '.join(inside)} |"


def cells_of(records: dict[Path, Record]) -> dict[str, str]:
    """The cells, by their titles, of the table's line for records that differ only in their seed."""
    runs = list(records.values())
    names = dict.fromkeys(re.sub(r"-seed\d+$", "", path.stem) for path in records)
    first, recipe = runs[0], runs[0].recipe
    place = "/".join(recipe["data"].removeprefix("folder:").split("/")[-2:])
    about = {"data": place, first.things: str(first.counts["train"])}
    about |= {} if first.pixels is None else {"pixels": first.pixels}
    own = first.protocol == OWN
    how = f"{recipe['encoder']}, {first.epochs}, {first.precision}{'' if own else f', by {first.protocol}'}"
    cells = {"record": ", ".join(names), ", ".join(about): ", ".join(about.values())}
    cells |= {"loss": recipe["loss"], "encoder, epochs, precision": how}
    for title, (row, kind) in measures_of(first).items():
        column = column_of(first.accuracy_percent.get(row, {}), kind)
        measured = [one.accuracy_percent.get(row, {}) for one in runs]
        cells[title] = spread([one[column] for one in measured if column in one])
    # The papers' recipes train for hours beside other work, so their seconds do not measure speed.
    seconds = f"up to {max(one.training_seconds for one in runs):.0f} s, " if own else ""
    seeds = ", ".join(str(one.recipe["seed"]) for one in runs)
    return cells | {"seeds": seeds, "training": seconds + first.machine["device"]}


def measures_of(record: Record) -> dict[str, tuple[str, str]]:
    """The titles of a record's measures in a table, and the row and column of each in the record."""
    if record.things == "images":
        return OF_IMAGES
    rows = {row: record.accuracy_percent.get(row, {}) for row in ("untrained", "trained")}
    return {f"**{column}**" if row == "trained" else f"{row}, {column}": (row, column)
            for row, measured in rows.items() for column in measured}  # fmt: skip


def column_of(measured: dict[str, float], kind: str) -> str | None:
    """The column for "knn" or "linear": of that name, or else the kNN of most neighbours; or None."""
    return kind if kind in measured else next((c for c in reversed(measured) if c.startswith(kind)), None)


def spread(values: list[float]) -> str:
    """The mean, and the standard deviation if the values differ, as text; "-" of no values."""
    x = pd.Series(values)
    return f"{x.mean():.1f}" + (f" ± {x.std():.1f}" if x.nunique() > 1 else "") if len(x) else "-"

"""Records: the results of runs as JSON files that name the source of their numbers.

A record is read back whole, or a ValueError says what is wrong with it.
"""

import json
import os
import platform
import subprocess
from collections.abc import Sized
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

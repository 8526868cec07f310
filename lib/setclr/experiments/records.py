"""Records: the results of runs as JSON files that name the source of their numbers, and tables of them.

A record is read back whole, or a ValueError says what is wrong with it.
"""

import json
import os
import platform
import re
import subprocess
from collections.abc import Collection, Iterable, Sized
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast, get_args, get_origin, get_type_hints

import pandas as pd
import torch
from torch import nn

import setclr
from setclr.checks import printable
from setclr.data.photographs import shown
from setclr.data.writing import replacing
from setclr.evaluation.protocols import OWN
from setclr.experiments.run import Run
from setclr.recipes.recipe import Recipe, recipe_class, renamed

SHOWN = (("raw pixels", "knn"), ("untrained", "knn"), ("trained", "knn"), ("trained", "linear"))
OF_IMAGES = ("raw pixels", "untrained", "**kNN**", "**linear**")  # the columns of SHOWN


class Record(TypedDict):
    """The contents of a file that `records.record` writes.

    The record of a run that diverged has no accuracies and no images.
    """

    accuracy_percent: dict[str, dict[str, float]]
    epochs: int
    training_seconds: float
    images: NotRequired[dict[str, int]]
    graphs: NotRequired[dict[str, int]]
    videos: NotRequired[dict[str, int]]
    pixels: NotRequired[str]
    recipe: dict
    machine: dict
    protocol: str
    precision: str
    compiled: NotRequired[bool]
    evaluated_with: NotRequired[str]
    history: NotRequired[list[dict]]
    diverged: NotRequired[str]
    version: NotRequired[str]
    commit: NotRequired[str]


KINDS = get_type_hints(Record)
OLDER = {"protocol": OWN, "precision": "float32"}  # for older records that lack these fields


def read_record(path: Path) -> Record:
    """The record in a file; fields that an earlier version lacked, also in the recipe, are filled in.

    Raises ValueError if the file is not one that `records.record` wrote: empty, cut off, or with a field
    missing or of another type. A recipe may have fields that this version does not know.
    """
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        return checked(json.loads(path.read_text()))
    except json.JSONDecodeError as error:
        problem = f"no JSON from line {error.lineno} on" if error.doc.strip() else "it is empty"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    remedy = "remove it, and the command that made it makes it again"
    raise ValueError(f"{shown(path)} is damaged or no record ({problem}); {remedy}")


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


def checked(found: Any) -> Record:
    """The contents of a JSON file as a record. Raises ValueError, naming the field, if one is wrong."""
    refuse_other_kind("the record", found, dict)
    kept = OLDER | found
    for name in KINDS:
        require(name in kept or name in Record.__optional_keys__, name)
        if name in kept:
            refuse_other_kind(name, kept[name], KINDS[name])
    refuse_other_kind("recipe", kept["recipe"], dict[str, str | float | None])
    kept["recipe"] = renamed(kept["recipe"])
    require("loss" in kept["recipe"], "recipe.loss")
    of_kind = recipe_class(kept["recipe"].get("kind", "image"))
    require("pixels" in kept or of_kind.kind == "graph", "pixels")
    for field in fields(of_kind):
        if field.name in kept["recipe"]:
            refuse_other_kind(f"recipe.{field.name}", kept["recipe"][field.name], field.type)
    require("device" in kept["machine"], "machine.device")
    refuse_other_kind("machine.device", kept["machine"]["device"], str)
    if "diverged" not in kept:
        require("trained" in kept["accuracy_percent"], "accuracy_percent.trained")
        require(of_kind.things in kept, of_kind.things)
        require("train" in kept[of_kind.things], f"{of_kind.things}.train")
    recipe = {"kind": of_kind.kind} | of_kind.defaults() | kept["recipe"]
    return cast(Record, kept | {"recipe": recipe})


def counts(kept: Record) -> dict[str, int]:
    """How many images, graphs or videos a record's numbers are of."""
    return cast(dict, kept)[recipe_class(kept["recipe"]["kind"]).things]


def require(there: bool, name: str) -> None:
    if not there:
        raise ValueError(f"{name} is missing")


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
    path: Path, run: Run, table: pd.DataFrame, counts: dict, source: str, command: str, machine: dict,
    protocol: str = OWN, diverged: str = "",
) -> None:  # fmt: skip
    """Write a result to a JSON file with all that is needed to trace it.

    `counts` are the numbers of labelled images, graphs or videos (`counted`). `source` is where
    pixels come from, such as "original" or "JPEG q75"; graphs have none. `command` is the command that made
    the record. `machine` is the machine that evaluated (`describe_machine`), by the `protocol` of that name.
    `diverged` says what became NaN, if that ended the run. The file is replaced in one step.
    """
    if run.recipe is None:
        raise ValueError("run must have a recipe to be recorded, got a Trainer's run without one")
    result = {
        "accuracy_percent": {row: values.dropna().round(2).to_dict() for row, values in table.iterrows()},
        "epochs": len(run.rows), "training_seconds": round(sum(row["seconds"] for row in run.rows), 1),
        run.recipe.things: counts, **({} if run.recipe.kind == "graph" else {"pixels": source}),
        "protocol": protocol, "precision": run.precision,
        "compiled": run.compiled, "recipe": run.recipe.to_dict(),
        "evaluated_with": command, "machine": machine, "history": run.rows,
        **({"diverged": diverged} if diverged else {}), **library(),
    }  # fmt: skip
    with replacing(path) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())


@cache
def library() -> dict[str, str]:
    """The `version` of the library that records and, in a clone, the `commit`.

    "changed" follows where files differ from it. Call it when the work begins: the answer is kept, and the
    files may change while a campaign runs.
    """
    place, found = Path(setclr.__file__).resolve().parent, {"version": setclr.__version__}

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", place, *words], capture_output=True, text=True, check=True).stdout

    with suppress(OSError, subprocess.CalledProcessError):
        git("ls-files", "--error-unmatch", "checks.py")  # a file of setclr, not of a project around it
        changed = ", changed" * bool(git("status", "--porcelain", "--untracked-files=no", "--", "."))
        found["commit"] = git("rev-parse", "HEAD").strip() + changed
    return found


def summary(folder: Path) -> str:
    """The records of a folder as Markdown tables, one for each set of measures.

    Seeds of one recipe share a line, as mean ± standard deviation. The first column is the name of their
    files, without the seed. Runs that diverged are left out. Damaged records are left out, too, and
    lines below the table say so.

    Raises FileNotFoundError if the folder holds no records.
    """
    groups: dict[tuple, dict[Path, Record]] = {}
    records, damaged = read_records(folder)
    for path, kept in records.items():
        if "diverged" in kept:
            continue
        recipe = tuple((k, v) for k, v in kept["recipe"].items() if k != "seed")
        key = (recipe, kept["precision"], tuple(counts(kept).items()), kept.get("pixels"),
               kept["machine"]["device"], kept["protocol"])  # fmt: skip
        groups.setdefault(key, {})[path] = kept
    if not groups and not damaged:
        raise FileNotFoundError(f"{folder}: no records there; setclr evaluate RUN --record FILE makes one")
    tables: dict[tuple, list[str]] = {}
    for found in groups.values():
        first = next(iter(found.values()))
        titles, shown = shown_of(first)
        about = f"data, {recipe_class(first['recipe']['kind']).things}"
        about += ", pixels" * ("pixels" in first)
        head = ("record", about, "loss", "encoder, epochs, precision", *titles, "seeds", "training")
        table = tables.setdefault(head, [line_of(head), "|---" * len(head) + "|"])
        table.append(line_of(cells_of(found, shown)))
    lines = ["\n".join(table) for table in tables.values()] + [f"Left out: {said}" for said in damaged]
    return "\n\n".join(lines)


def line_of(cells: Iterable[str]) -> str:
    """A line of a Markdown table, whatever is in its cells: lines, strokes and escape codes stay inside."""
    return f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def shown_of(kept: Record) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The titles of a record's measures in a table, and the row and column of each in the record."""
    measured = kept["accuracy_percent"]
    if kept["recipe"]["kind"] == "image":
        return OF_IMAGES, SHOWN
    shown = tuple((row, column) for row in ("untrained", "trained") for column in measured.get(row, {}))
    return tuple(f"**{column}**" if row == "trained" else f"{row}, {column}" for row, column in shown), shown


def cells_of(found: dict[Path, Record], shown: tuple[tuple[str, str], ...]) -> list[str]:
    """The cells of the table's line for records that differ only in their seed."""
    runs, names = list(found.values()), [re.sub(r"-seed\d+$", "", path.stem) for path in found]
    first, said = runs[0], runs[0]["recipe"]
    data = "/".join(said["data"].removeprefix("folder:").split("/")[-2:])
    pixels = f", {first['pixels']}" if "pixels" in first else ""
    cells = [", ".join(dict.fromkeys(names)), f"{data}, {counts(first)['train']}{pixels}"]
    own = first["protocol"] == OWN
    by = "" if own else f", by {first['protocol']}"
    cells += [said["loss"], f"{said['encoder']}, {first['epochs']}, {first['precision']}{by}"]
    for row, kind in shown:
        column = column_of(first["accuracy_percent"].get(row, {}), kind)
        measured = [run["accuracy_percent"].get(row, {}) for run in runs]
        values = [one[column] for one in measured if column in one]
        cells.append(spread(values) if values else "-")
    # The papers' recipes train for hours beside other work, so their seconds do not measure speed.
    seconds = f"up to {max(run['training_seconds'] for run in runs):.0f} s, " if own else ""
    seeds = ", ".join(str(run["recipe"]["seed"]) for run in runs)
    return [*cells, seeds, seconds + first["machine"]["device"]]


def column_of(measured: dict[str, float], kind: str) -> str | None:
    """The column for "knn" or "linear": of that name, or else the kNN of most neighbours; or None."""
    return kind if kind in measured else next((c for c in reversed(measured) if c.startswith(kind)), None)


def spread(values: list[float]) -> str:
    """The mean, and the standard deviation if the values differ, as text."""
    x = pd.Series(values)
    return f"{x.mean():.1f}" + (f" ± {x.std():.1f}" if x.nunique() > 1 else "")


def ours(recipe: Recipe, kept: Iterable[Record], protocol: str = OWN, published: Collection[str] = ()) -> str:
    """Mean ± standard deviation of the records of this recipe by this protocol, as text.

    Their seed and folder of data may differ. The columns are those that were `published`. If none were,
    they are those that the recipe's kind shows, linear and kNN of images, or all columns if none is there.
    The text is "-" if there is no such record or column.

    If records differ in the number of images, those on most images count, and of these first those on
    the original pixels.
    """
    groups: dict[tuple[int, bool, str], list[dict]] = {}
    for result in kept:
        if "diverged" in result or result["protocol"] != protocol:
            continue
        if result["epochs"] == recipe.epochs and same_training(result["recipe"], recipe):
            pixels = result.get("pixels", "original")
            source = (counts(result)["train"], pixels == "original", pixels)
            groups.setdefault(source, []).append(result["accuracy_percent"]["trained"])
    if not groups:
        return "-"
    images, _, pixels = max(groups)
    runs = groups[max(groups)]
    columns = [name for name in ("linear", *runs[0]) if all(name in run for run in runs)]
    wanted = published or recipe.shown
    named = [name for name in columns if name in wanted]
    columns = named if published else named or columns
    if not columns:
        return "-"
    shown = ", ".join(f"{name} {spread([run[name] for run in runs])}" for name in dict.fromkeys(columns))
    shown, pixels = printable(shown), printable(pixels)
    return f"{shown} ({images} {recipe.things}" + ("" if pixels == "original" else f", {pixels}") + ")"


def same_training(values: dict, recipe: Recipe) -> bool:
    """Whether a record's recipe is this one, apart from the seed and the folder of its data.

    If this recipe's precision is "auto", the record's may be any.
    """
    try:
        recorded = Recipe.from_dict(values)
    except ValueError:  # of another version
        return False
    kind, _, place = recorded.data.rpartition(":")
    name = "pairs:" * (kind == "pairs") + place.rstrip("/").rsplit("/", 1)[-1]
    precision = "auto" if recipe.precision == "auto" else recorded.precision
    return replace(recorded, data=name, seed=recipe.seed, precision=precision) == recipe

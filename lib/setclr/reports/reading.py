"""Records read back: each is whole, or refused with its file, what is wrong with it and the remedy."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast, get_args, get_origin, get_type_hints

from setclr.data.photographs import shown
from setclr.evaluation.protocols import OWN
from setclr.recipes.recipe import DEFAULTS, Recipe


class Record(TypedDict):
    """What `records.record` writes. That of a run that diverged has no accuracies and no images."""

    accuracy_percent: dict[str, dict[str, float]]
    epochs: int
    training_seconds: float
    images: dict[str, int]
    pixels: str
    recipe: dict
    machine: dict
    protocol: str
    precision: str
    compiled: NotRequired[bool]
    evaluated_with: NotRequired[str]
    history: NotRequired[list[dict]]
    diverged: NotRequired[str]


KINDS = get_type_hints(Record)
OLDER = {"protocol": OWN, "precision": "float32"}  # of records without these fields


def read_record(path: Path) -> Record:
    """The record in a file; what an earlier version left out of it and of its recipe is filled in.

    Raises ValueError where the file is none that `records.record` wrote: empty, cut off, with a field missing
    or of another type. A recipe may have fields that this version does not know.
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
    """The records of a folder by their files, sorted, and a line about each damaged one."""
    records, damaged = {}, []
    for path in sorted(folder.glob("*.json")):
        try:
            records[path] = read_record(path)
        except ValueError as error:
            damaged.append(str(error))
    return records, damaged


def checked(found: Any) -> Record:
    """What JSON held, as a record. Raises ValueError, naming the field, where it is none."""
    refuse_other_kind("the record", found, dict)
    kept = OLDER | found
    for name in KINDS:
        require(name in kept or name in Record.__optional_keys__, name)
        if name in kept:
            refuse_other_kind(name, kept[name], KINDS[name])
    refuse_other_kind("recipe", kept["recipe"], dict[str, str | float | None])
    require("loss" in kept["recipe"], "recipe.loss")
    for field in fields(Recipe):
        if field.name in kept["recipe"]:
            refuse_other_kind(f"recipe.{field.name}", kept["recipe"][field.name], field.type)
    require("device" in kept["machine"], "machine.device")
    refuse_other_kind("machine.device", kept["machine"]["device"], str)
    if "diverged" not in kept:
        require("trained" in kept["accuracy_percent"], "accuracy_percent.trained")
        require("train" in kept["images"], "images.train")
    return cast(Record, kept | {"recipe": DEFAULTS | kept["recipe"]})


def require(there: bool, name: str) -> None:
    if not there:
        raise ValueError(f"{name} is missing")


def refuse_other_kind(name: str, value: Any, kind: Any) -> None:
    """Raises ValueError unless the value is of that type; dict[str, T] and list[T] are looked into."""
    outer = get_origin(kind)
    if outer in (dict, list):
        refuse_other_kind(name, value, outer)
        for key, one in value.items() if outer is dict else enumerate(value):
            refuse_other_kind(f"{name}.{key}", one, get_args(kind)[-1])
        return
    kind = kind | int if isinstance(0.0, kind) else kind  # JSON may write 1.0 as 1
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {getattr(kind, '__name__', kind)}, got {value!r:.40}")

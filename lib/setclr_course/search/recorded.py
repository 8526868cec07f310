"""What is on record: our numbers beside the published ones, and a table of everything."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pandas as pd

from setclr.checks import printable
from setclr.evaluation.protocols import OWN
from setclr.experiments.records import Record, read_record, spread
from setclr.recipes.recipe import Recipe


def ours(
    recipe: Recipe, records: Iterable[Record], protocol: str = OWN, published: Collection[str] = ()
) -> str:
    """Mean ± standard deviation of the records of this recipe by this protocol, as text.

    Their seed and folder of data may differ. The columns are those that were `published`. If none were,
    they are those that the recipe's kind shows, linear and kNN of images, or all columns if none is there.
    The text is "-" if there is no such record or column.

    If records differ in the number of images, those on most images count, and of these first those on
    the original pixels.
    """
    groups: dict[tuple[int, bool, str], list[dict]] = {}
    for one in records:
        by_this = one.diverged is None and (one.protocol, one.epochs) == (protocol, recipe.epochs)
        if by_this and same_training(one.recipe, recipe):
            pixels = one.pixels or "original"
            source = (one.counts["train"], pixels == "original", pixels)
            groups.setdefault(source, []).append(one.accuracy_percent["trained"])
    if not groups:
        return "-"
    (count, _, pixels), runs = max(groups.items(), key=itemgetter(0))
    columns = [name for name in dict.fromkeys(("linear", *runs[0])) if all(name in run for run in runs)]
    named = [name for name in columns if name in (published or recipe.shown)]
    columns = named if published else named or columns
    if not columns:
        return "-"
    text = ", ".join(f"{name} {spread([run[name] for run in runs])}" for name in columns)
    about = f"{count} {recipe.things}" + ("" if pixels == "original" else f", {pixels}")
    return printable(f"{text} ({about})")


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


def everything(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """A row for each record in a folder and all below it, and a line about each JSON file that is none.

    The columns: record (its place in the folder), loss, data, pixels, seed, epochs, lr, device, threads,
    torch, version, commit, draws, protocol, precision, diverged, and every accuracy in per cent, such as
    "trained, knn". What a record lacks is empty. Raises FileNotFoundError if there are none.
    """
    rows, damaged = [], []
    for path in sorted(folder.rglob("*.json")):
        try:
            one = read_record(path)
        except ValueError as error:
            damaged.append(str(error))
            continue
        device, _, threads = one.machine["device"].partition(", ")
        row = {"record": path.relative_to(folder).with_suffix("").as_posix(), "loss": one.recipe["loss"],
               "data": one.recipe["data"], "pixels": one.pixels, "seed": one.recipe["seed"],
               "epochs": one.epochs, "lr": one.recipe["lr"], "device": device,
               "threads": threads.removesuffix(" threads"), "torch": one.machine.get("torch"),
               "version": one.version, "commit": one.commit, "draws": one.draws, "protocol": one.protocol,
               "precision": one.precision, "diverged": one.diverged}  # fmt: skip
        for name, measured in one.accuracy_percent.items():
            row |= {f"{name}, {column}": value for column, value in measured.items()}
        rows.append(row)
    if not rows:
        raise FileNotFoundError(f"{folder}: no records there; setclr evaluate RUN --record FILE makes one")
    return pd.DataFrame(rows).convert_dtypes(), damaged

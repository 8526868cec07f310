"""What is on record: tables of records, our numbers beside the published ones, a row for each record."""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pandas as pd

from setclr.checks import printable
from setclr.evaluation.protocols import OWN
from setclr.experiments.records import Record, read_record, read_records
from setclr.recipes.recipe import Recipe

OF_IMAGES = {  # the measures in a table of records, by title: the row and the column of a record
    "raw pixels": ("raw pixels", "knn"), "untrained": ("untrained", "knn"), "**kNN**": ("trained", "knn"),
    "**linear**": ("trained", "linear"),
}  # fmt: skip


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
    """A row for each record in a folder and all below it, and a line about each damaged one. JSON files of
    other measurements, which have no accuracy_percent, are passed over.

    The columns: record (its place in the folder), loss, data, pixels, seed, epochs, lr, device, threads,
    torch, version, commit, draws, protocol, precision, diverged, and every accuracy in per cent, such as
    "trained, knn". What a record lacks is empty. Raises FileNotFoundError if there are none.
    """
    rows, damaged = [], []
    for path in sorted(folder.rglob("*.json")):
        if '"accuracy_percent"' not in path.read_text(errors="replace"):
            continue
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

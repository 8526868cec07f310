"""The rows of the papers' tables, and the figures in small, read from the TOML files beside this module.

Keys above a file's first table hold for all of its rows. Its tables are:

    [notes]        pieces of notes, by name
    [base.NAME]    keys that several rows share; `like` names bases above it, whose keys it inherits
    [[row]]        a recipe, or several at once: each list then has one value for each of them
    [figure.NAME]  a figure in small: see `_figure`

A row has a `name` and the fields of its recipe. These keys are no fields:

    like      the bases whose keys it inherits. Keys of a later base replace those of an earlier one; keys of
              the row replace all
    printed   the paper's numbers, "59.64±0.93" with a standard deviation; "" where the paper prints none.
              A row without this key is in no paper: a variant, or a run to compare with a table
    columns   the names of these numbers, "knn20, linear"
    paper     who and when
    table     its number; if missing, the second part of the row's name gives it
    notes     the names of pieces that are joined to the note
    protocol  how the encoder is measured; "setclr" where no other is named
    kind      "graph" or "video"; recipes of images have none
    fill      further values for placeholders

A placeholder {KEY} in a text, or in a piece of a note, stands for the value of that key.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from setclr.recipes.registry import Published

FILES = ("untuned", "small", "qare", "groco", "iot", "mmcl", "anchor")
PRINTED = ("printed", "columns", "paper", "table", "notes")  # keys of a row that are not fields of its recipe
PLACEHOLDER = re.compile(r"\{(\w+)\}")
NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?:±(\d+(?:\.\d+)?))?")
Table = dict[str, Any]


class Figure(NamedTuple):
    note: str
    """What the paper varies, and how the rows here follow it."""
    rows: dict[str, str]
    """By the row's label here: the name of its recipe."""
    printed: dict[str, str]
    """By the row's label here: its name in the paper's table; {} where the paper has a curve."""


class Rows(NamedTuple):
    recipes: dict[str, Table]
    """By name: the fields of a recipe that are given, and "protocol" and "kind" where they are."""
    published: dict[str, Published]
    """By the recipe's name: the numbers that a paper printed."""
    figures: dict[str, Figure]


@cache
def rows() -> Rows:
    """The content of these files. They are read once."""
    return read(Path(__file__).with_name(f"{name}.toml") for name in FILES)


def read(paths: Iterable[Path]) -> Rows:
    """The content of these files. Raises ValueError, with the place and the remedy, where one is damaged."""
    found = Rows({}, {}, {})
    figures: list[tuple[str, str, Table]] = []
    for path in paths:
        file = path.name
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file} must be TOML: {error}; mend that line") from error
        pieces, bases, entries = content.pop("notes", {}), content.pop("base", {}), content.pop("row", [])
        for name, figure in content.pop("figure", {}).items():
            figures.append((f"{file}, figure {name!r}", name, figure))
        common, made = {"protocol": "setclr", **content}, dict[str, Table]()
        for name, base in bases.items():
            made[name] = _inherited(f"{file}, base {name!r}", base, made)
        for entry in entries:
            where = f"{file}, row {entry.get('name')!r}"
            for name, row, note in _expanded(where, common | _inherited(where, entry, made), pieces):
                where = f"{file}, row {name!r}"
                if name in found.recipes:
                    raise _refused(where, "name", "new", name, "rename one of the two rows")
                if "printed" in row:
                    found.published[name] = _published(where, name, row, note)
                found.recipes[name] = {key: x for key, x in row.items() if key not in PRINTED}
    for where, name, figure in figures:
        found.figures[name] = _figure(where, name, figure, found)
    return found


def _refused(where: str, key: str, wanted: str, got: object, remedy: str) -> ValueError:
    return ValueError(f"{where}: {key} must be {wanted}, got {got!r}; {remedy}")


def _known(where: str, key: str, wanted: str, name: str, options: Iterable[str]) -> None:
    """Raises ValueError, with the nearest option, if the name is none of the options."""
    known = list(options)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
        remedy = f"did you mean {near[0]!r}?" if near else f"there are: {shown or 'none'}"
        raise _refused(where, key, wanted, name, remedy)


def _inherited(where: str, table: Table, bases: Mapping[str, Table]) -> Table:
    """The table with the keys that it inherits from its bases."""
    whole: Table = {}
    fill: Table = {}
    names = table.get("like", "").split()
    for name in names:
        _known(where, "like", "a base above it", name, bases)
    for part in (*(bases[name] for name in names), table):
        fill |= part.get("fill", {})
        whole |= part
    whole.pop("like", None)
    return whole | {"fill": fill}


def _expanded(where: str, entry: Table, pieces: Mapping[str, str]) -> Iterator[tuple[str, Table, str]]:
    """Name, keys and note of each row that the entry stands for, with placeholders filled in."""
    if "name" not in entry:
        raise _refused(where, "name", "given", None, 'write name = "paper-table1-row"')
    fill = entry.pop("fill")
    lists = {key: x for part in (entry, fill) for key, x in part.items() if isinstance(x, list)}
    first = next(iter(lists), "")
    count = len(lists[first]) if lists else 1
    for key, x in lists.items():
        if len(x) != count or not x:
            wanted = f"a list of {count or 'some'} values, as {first} is"
            raise _refused(where, key, wanted, x, "give every list one value for each row")

    for i in range(count):
        row, more = (
            {k: x[i] if isinstance(x, list) else x for k, x in part.items()} for part in (entry, fill)
        )
        values = row | more
        row = {key: _filled(where, x, values) if isinstance(x, str) else x for key, x in row.items()}
        names = row.get("notes", "").split()
        for name in names:
            _known(where, "notes", "pieces of the table [notes]", name, pieces)
        yield row.pop("name"), row, _filled(where, "".join(pieces[name] for name in names), values)


def _filled(where: str, text: str, values: Mapping[str, Any]) -> str:
    """The text with a value for each placeholder. Numbers are written as 1e-6, not 1e-06."""

    def value(found: re.Match[str]) -> str:
        _known(where, f"the placeholder in {text[:40]!r}", "a key of the row", found[1], values)
        x = values[found[1]]
        return str(x).replace("e-0", "e-") if isinstance(x, float) else str(x)

    return PLACEHOLDER.sub(value, text)


def _published(where: str, name: str, row: Table, note: str) -> Published:
    """The numbers that the paper printed for the row."""
    for key in ("paper", "columns"):
        if key not in row:
            raise _refused(where, key, "given with printed numbers", None, "name it once, above the tables")
    columns, cells = row["columns"].split(", "), str(row["printed"]).split()
    if cells and len(cells) != len(columns):
        remedy = f"it has the columns {row['columns']}"
        raise _refused(where, "printed", f"{len(columns)} numbers, not {len(cells)}", row["printed"], remedy)
    numbers, spread = {}, {}
    for column, cell in zip(columns, cells):
        found = NUMBER.fullmatch(cell)
        if not found:
            raise _refused(where, "printed", "numbers", cell, "write 59.64, or 59.64±0.93 with a deviation")
        numbers[column] = float(found[1])
        if found[2]:
            spread[column] = float(found[2])
    table = row.get("table", name.split("-")[1].removeprefix("table"))
    return Published(row["paper"], table, numbers, spread, note)


def _figure(where: str, name: str, figure: Table, found: Rows) -> Figure:
    """A figure in small, from its table in a file.

    The keys are `note`; `rows`, the labels of the rows here; `printed`, their names in the paper's table,
    in the same order; and `shared`, the recipes of rows that have none of their own. The recipe of any
    other row is small-FIGURE-ROW, with ROW in lower case.
    """
    labels, printed = figure["rows"].split(), figure.get("printed", "").split()
    shared = figure.get("shared", {})
    for label in shared:
        _known(where, "shared", "a row of the figure", label, labels)
    called = {label: shared.get(label, f"small-{name}-{label.lower()}") for label in labels}
    for recipe in called.values():
        _known(where, "rows", "names of recipes", recipe, found.recipes)
    if printed and len(printed) != len(labels):
        wanted = f"{len(labels)} names, not {len(printed)}"
        raise _refused(where, "printed", wanted, figure["printed"], "give one for each of the figure's rows")
    large = [f"{name}-{row}" for row in printed]
    for row in large:
        _known(where, "printed", "rows of a paper", row, found.published)
    return Figure(figure["note"], called, dict(zip(called, large)))

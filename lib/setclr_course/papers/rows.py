"""The rows of the papers' tables, and the figures in small, read from the TOML files beside this module.

Keys above a file's first table hold for all of its rows. Its tables are:

    [notes]        pieces of notes, by name
    [base.NAME]    keys that several rows share
    [row.NAME]     the fields of the recipe of that name
    [figure.NAME]  a figure in small: its `note`; `rows`, by their labels the names of recipes; and
                   `printed`, by the labels the names of the rows that it follows

These keys of bases and rows are no fields:

    like      the names of bases above, whose keys it has too. Those of a later base replace those of an
              earlier one; its own replace all
    printed   the paper's numbers by the names of their columns, {} where it prints none. A row without this
              key is in no paper: a variant, or a run to compare with a table
    spread    their standard deviations, where printed
    paper     who and when
    table     its number; if missing, the second part of the row's name gives it
    notes     the names of the pieces of its note
    protocol  how the encoder is measured; "setclr" where no other is named
    kind      "graph" or "video"; recipes of images have none
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from setclr.recipes.registry import Published

FILES = ("untuned", "small", "qare", "groco", "iot", "mmcl", "anchor")
PRINTED = ("printed", "spread", "paper", "table", "notes")  # keys of a row that are not fields of its recipe
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
    """The content of these files. Raises ValueError, with the file and the row, where one is damaged."""
    found = Rows({}, {}, {})
    for path in paths:
        where = path.name
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            notes, bases, entries, figures = (content.pop(x, {}) for x in ("notes", "base", "row", "figure"))
            whole: dict[str, Table] = {}
            for name, base in bases.items():
                where = f"{path.name}, base {name!r}"
                whole[name] = _inherited(base, whole)
            for name, entry in entries.items():
                where = f"{path.name}, row {name!r}"
                if name in found.recipes:
                    raise ValueError("another file has a row of this name, too; rename one of the two")
                row = {"protocol": "setclr", **content, **_inherited(entry, whole)}
                if "printed" in row:
                    found.published[name] = _published(name, row, notes)
                found.recipes[name] = {key: x for key, x in row.items() if key not in PRINTED}
            for name, figure in figures.items():
                where = f"{path.name}, figure {name!r}"
                found.figures[name] = Figure(**{"printed": {}, **figure})
        except KeyError as error:
            raise ValueError(f"{where}: {error} is named and is not there") from error
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error
    return found


def _inherited(table: Table, bases: Mapping[str, Table]) -> Table:
    """The table with the keys of its bases."""
    whole: Table = {}
    for part in (*(bases[name] for name in table.get("like", [])), table):
        whole |= part
    whole.pop("like", None)
    return whole


def _published(name: str, row: Table, notes: Mapping[str, str]) -> Published:
    """The numbers that the paper printed for the row."""
    table = row.get("table", name.split("-")[1].removeprefix("table"))
    note = "".join(notes[piece] for piece in row["notes"])
    return Published(row["paper"], table, row["printed"], row.get("spread", {}), note)

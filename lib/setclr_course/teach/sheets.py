"""The sentence of the course as a table, which the reader fills in word by word and then prints."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setclr_course.teach.asked import content, pages

SHEET = content(pages()["08"])["sheet"]  # the page that asks for it
WORDS: dict[str, dict[str, str]] = SHEET["words"]
"""The words of each column, as they are typed, and what they say."""
RIGHT: dict[str, list[str]] = SHEET["right"]


@dataclass(frozen=True)
class Sheet:
    """The table as far as it is filled in."""

    rows: dict[str, list[str]]

    @property
    def right(self) -> int:
        return sum(cell.startswith("✔") for row in self.rows.values() for cell in row)

    def said(self) -> str:
        whole = len(RIGHT) * len(WORDS)
        if self.right == whole:
            return "All cells are right: this is the sheet to print."
        return f"{self.right} of {whole} cells are right."

    def __repr__(self) -> str:
        return self.said()

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            made = (f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{''.join(made)}</tr>"

        body = "".join(line("td", [name, *row]) for name, row in self.rows.items())
        table = f"<table style='width:100%'>{line('th', ['loss', *WORDS])}{body}</table>"
        return f'<div class="setclr-check" role="status">{table}<p>{html.escape(self.said())}</p></div>'


def sheet(filled: Mapping[str, Sequence[Any]]) -> Sheet:
    """The table with ✔ before each right word and ✘ before each wrong one. `...` is an empty cell.

    Raises ValueError where a loss or a word is none of the table's, or a row has too few or too many.
    """
    rows = {}
    for name, right in RIGHT.items():
        words = list(filled.get(name, [...] * len(WORDS)))
        if len(words) != len(WORDS):
            raise ValueError(f"{name} must have {len(WORDS)} words, {', '.join(WORDS)}; got {len(words)}")
        rows[name] = [marked(column, word, wanted) for column, word, wanted in zip(WORDS, words, right)]
    if unknown := set(filled) - set(RIGHT):
        raise ValueError(f"losses must be among {', '.join(RIGHT)}; got {', '.join(sorted(unknown))}")
    return Sheet(rows)


def marked(column: str, word: Any, wanted: str) -> str:
    """How a cell is shown."""
    if word is ...:
        return "…"
    if word not in WORDS[column]:
        raise ValueError(f"a word of '{column}' must be one of {', '.join(WORDS[column])}; got {word!r}")
    return f"{'✔' if word == wanted else '✘'} {WORDS[column][word]}"

"""A question before a picture, an exercise after it, and where those of a page stand: a file a page.

In the course that is pages/NN.toml, to be read and written by hand. An exercise whose answer is a function
names one of `computed`. In the students' pack it is pages/NN.sealed: the same, encoded, so that nobody reads
an answer by chance, and in place of each function what it gave.
"""

import json
import tomllib
import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from setclr.checks import choice

FOLDER = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Question:
    """To be asked before a picture is shown. Raises ValueError where `right` is none of the choices."""

    text: str
    choices: Mapping[str, str]
    """Two to five, each with what a reader who picks it is told."""
    right: str

    def __post_init__(self) -> None:
        if not 2 <= len(self.choices) <= 5:
            raise ValueError(f"choices must be two to five, got {len(self.choices)}")
        choice("right", self.right, self.choices)


@dataclass(frozen=True)
class Mistake:
    """A likely wrong answer, and what a reader who gives it is told."""

    answer: Any
    """As `right` of the exercise."""
    reason: str


@dataclass(frozen=True)
class Exercise:
    """What an answer must be, and what helps."""

    wants: str
    """The kind of answer: "a number", "a list of 5 numbers", "a word", "a function of z"."""
    right: Any
    """The answer. Of a function: for each of the inputs a list of what it returns, one thing or several."""
    hint: str
    """Shown after a wrong try that is no likely mistake."""
    tolerance: float = 0.01
    """By how much a number may be off: relative to the right one, absolute where that is 0."""
    why: str = ""
    """One sentence, shown after the right answer: why it is right."""
    mistakes: Sequence[Mistake] = ()
    inputs: Sequence | None = None
    """Of a function: lists of arguments, as `functions.told` writes them. Of other answers None."""
    without: Sequence[str] = ()
    """The packages or modules that a function may not call: "setclr" stands for all of the course, too."""
    steps: int = 0
    """How many operations of torch are enough for a function that does all at once; 0 for any number."""
    widest: float = 0
    """How many numbers a table may have that a function makes, for each of the first argument; 0 for any."""
    any_order: bool = False
    """Whether the columns of the last thing that it returns may come in any order."""


def pages() -> dict[str, Path]:
    """The file of each page by its number."""
    return {path.stem: path for path in sorted(FOLDER.iterdir()) if path.suffix in (".toml", ".sealed")}


@cache
def content(path: Path) -> dict[str, Any]:
    """What is in such a file: questions and exercises by number, and on page 08 the sheet."""
    if path.suffix == ".sealed":
        return json.loads(zlib.decompress(b64decode(path.read_bytes())))
    return tomllib.loads(path.read_text(encoding="utf-8"))


def question(name: str) -> Question:
    """The question of that name, such as "07.1". Raises ValueError if there is none."""
    return Question(**found("question", name))


def exercise(name: str) -> Exercise:
    """The exercise of that name, such as "07.1". Raises ValueError if there is none."""
    asked = found("exercise", name)
    if "function" in asked:  # never in the students' pack
        from setclr_course.teach.computed import filled_in

        asked = filled_in(name, asked)
    return Exercise(**{**asked, "mistakes": [Mistake(**one) for one in asked.get("mistakes", ())]})


def found(kind: str, name: str) -> dict[str, Any]:
    """The entry of a question or an exercise. Raises ValueError, with what there is, if there is none."""
    page, _, number = str(name).partition(".")
    files = pages()
    choice("page", page, files, f"{kind}s are named PAGE.NUMBER, such as '02.1'")
    listed = content(files[page])[f"{kind}s"]
    return listed[choice(kind, number, listed, f"page {page} has these")]

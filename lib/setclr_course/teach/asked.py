"""A question before a picture, an exercise after it, and where those of a page stand."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from setclr.checks import choice

PAGES = sorted(path.stem[5:] for path in (Path(__file__).parent / "pages").glob("page_*.py"))


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
class Exercise:
    """What an answer must be, and what helps."""

    wants: str
    """The kind of answer: "a number", "a list of 5 numbers", "a word", "a function of z"."""
    right: Any
    """The answer, or a function of an answer that says whether it is right."""
    hint: str
    """Shown after the first wrong try."""
    tolerance: float = 0.01
    """By how much a number may be off: relative to the right one, absolute where that is 0."""
    why: str = ""
    """One sentence, shown after the right answer: why it is right."""


def question(name: str) -> Question:
    """The question of that name, such as "07.1". Raises ValueError if there is none."""
    return found("question", name, "QUESTIONS")


def exercise(name: str) -> Exercise:
    """The exercise of that name, such as "07.1". Raises ValueError if there is none."""
    return found("exercise", name, "EXERCISES")


def found(kind: str, name: str, table: str) -> Any:
    page, _, number = str(name).partition(".")
    choice("page", page, PAGES, f"{kind}s are named PAGE.NUMBER, such as '02.1'")
    listed = getattr(module(page), table)
    return listed[choice(kind, number, listed, f"page {page} has these")]


def module(page: str) -> Any:
    return import_module(f"setclr_course.teach.pages.page_{page}")

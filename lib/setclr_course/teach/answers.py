"""Exercises: is an answer right, and what helps where it is not."""

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from setclr_course.teach.asked import Exercise, exercise
from setclr_course.teach.functions import NotThisWay, called, numbers, of_shape, the_same


@dataclass(frozen=True)
class Checked:
    """What `check` returns: true where the answer is right; it displays what there is to say."""

    name: str
    """Of the exercise."""
    right: bool
    said: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.said

    def _repr_html_(self) -> str:
        return f'<div class="setclr-check" role="status">{html.escape(self.said)}</div>'


def check(name: str, answer: Any) -> Checked:
    """Whether the answer to an exercise is right.

    `name` is that of the exercise, such as "02.1"; the right answers stand in teach/pages. A likely mistake
    is told why it is one, one that loops or calls what it is to do without is told that, another wrong answer
    brings a hint, and one of another kind than the exercise wants is told so. Raises ValueError if there is
    no such exercise.
    """
    asked = exercise(name)
    if answer is ...:
        return Checked(name, False, f"{name} waits for {asked.wants} instead of the three dots.")
    try:
        found = given(answer, asked)
    except NotThisWay as error:
        return Checked(name, False, f"✘ {name} is not right yet. {error}")
    except Exception as error:
        kind = type(answer).__name__
        return Checked(name, False, f"{name} wants {asked.wants}; this {kind} cannot be checked: {error}")
    if equals(found, asked.right, asked):
        return Checked(name, True, f"✔ {name} is right. {asked.why}".strip())
    reasons = [mistake.reason for mistake in asked.mistakes if equals(found, mistake.answer, asked)]
    helps = reasons[0] if reasons else f"Hint: {asked.hint}"
    return Checked(name, False, f"✘ {name} is not right yet. {helps}")


def given(answer: Any, asked: Exercise) -> Any:
    """The answer as `equals` compares it. Raises where it is none of that kind, or where calling it does."""
    if asked.inputs is not None:
        return called(answer, asked)
    if not isinstance(asked.right, str):
        return of_shape(numbers(answer), asked.right)
    if not isinstance(answer, str):
        raise TypeError(f"it is no word but {answer!r}")
    return answer


def equals(found: Any, wanted: Any, asked: Exercise) -> bool:
    """Whether what is given is what is wanted, or what a mistake gives, up to the tolerance."""
    if asked.inputs is not None:
        return the_same(found, wanted, asked)
    if isinstance(wanted, str):
        return found.strip().casefold() == wanted.casefold()
    scale = np.where(np.equal(wanted, 0), 1, np.abs(wanted))
    return bool(np.all(np.abs(np.subtract(found, wanted)) <= asked.tolerance * scale))

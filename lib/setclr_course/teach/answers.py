"""Exercises: is an answer right, and what helps where it is not."""

import html
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from setclr_course.teach.asked import Exercise, exercise


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

    `name` is that of the exercise, such as "02.1"; the right answers stand in teach/pages. A wrong answer
    brings a hint, and one of another kind than the exercise wants is told so. Raises ValueError if there is
    no such exercise.
    """
    asked = exercise(name)
    if answer is ...:
        return Checked(name, False, f"{name} waits for {asked.wants} instead of the three dots.")
    try:
        right = is_right(asked, answer)
    except Exception as error:
        kind = type(answer).__name__
        return Checked(name, False, f"{name} wants {asked.wants}; this {kind} cannot be checked: {error}")
    if right:
        return Checked(name, True, f"✔ {name} is right. {asked.why}".strip())
    return Checked(name, False, f"✘ {name} is not right yet. Hint: {asked.hint}")


def is_right(asked: Exercise, answer: Any) -> bool:
    """Whether the answer is; raises what comparing it with the right one raises."""
    if callable(asked.right):
        return bool(asked.right(answer))
    if isinstance(asked.right, str):
        if not isinstance(answer, str):
            raise TypeError(f"it is no word but {answer!r}")
        return answer.strip().casefold() == asked.right.casefold()
    given, wanted = numbers(answer), np.asarray(asked.right, float)
    if given.shape != wanted.shape:
        raise ValueError(f"its shape is {given.shape}, not {wanted.shape}")
    scale = np.where(wanted == 0, 1, np.abs(wanted))
    return bool(np.all(np.abs(given - wanted) <= asked.tolerance * scale))


def numbers(answer: Any) -> np.ndarray:
    """The answer, a tensor maybe, as numbers. Raises what numpy does where it is none."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu()
    return np.asarray(answer, float)


def passes(
    reference: Callable, *inputs: Any, tolerance: float = 1e-4, alone: bool = True
) -> Callable[[Callable], bool]:
    """For a function as an answer: whether it gives what the reference gives on each of these inputs.

    `alone`: it is to be written without the library, and one that calls it is told so.
    """

    def right(answer: Callable) -> bool:
        if not callable(answer):
            raise TypeError(f"it is no function but {answer!r}")
        found = [numbers(by_itself(answer, x) if alone else answer(x)) for x in inputs]
        return all(
            np.allclose(a, numbers(reference(x)), rtol=tolerance, atol=tolerance)
            for a, x in zip(found, inputs)
        )

    return right


def by_itself(answer: Callable, x: Any) -> Any:
    """The answer's value at x. Raises ValueError where it calls the library."""

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_globals.get("__name__", "").startswith("setclr."):
            raise ValueError("it calls setclr; write it without")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return answer(x)
    finally:
        sys.setprofile(before)

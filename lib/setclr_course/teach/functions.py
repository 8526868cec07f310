"""An answer that is a function: what it returns for the inputs of its exercise, and whether that is right."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch

from setclr_course.teach.asked import Exercise

Outputs = Sequence[Sequence[Any]]
"""What a function returns, one thing or several, for each of the inputs."""


def called(answer: Callable, asked: Exercise) -> Outputs:
    """What it returns. Raises TypeError for what is no function, ValueError for an output of another shape
    than the right one, or if it is to be written without the library and calls it."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    returned = []
    for listed, wanted in zip(asked.inputs or (), asked.right):
        arguments = list(map(made, listed))
        output = by_itself(answer, arguments) if asked.alone else answer(*arguments)
        several = [output] if len(wanted) == 1 else list(output)
        if len(several) != len(wanted):
            raise ValueError(f"it returns {len(several)} things, not {len(wanted)}")
        returned.append([of_shape(numbers(ours), theirs) for ours, theirs in zip(several, wanted)])
    return returned


def the_same(found: Outputs, wanted: Outputs, asked: Exercise) -> bool:
    """Whether all outputs are, up to the tolerance."""
    for some, others in zip(found, wanted):
        pairs = [(np.asarray(ours, float), np.asarray(theirs, float)) for ours, theirs in zip(some, others)]
        if asked.any_order:
            pairs[-1] = in_order(pairs[-1][0]), in_order(pairs[-1][1])
        for ours, theirs in pairs:
            if ours.shape != theirs.shape or not np.allclose(ours, theirs, asked.tolerance, asked.tolerance):
                return False
    return True


def in_order(table: np.ndarray) -> np.ndarray:
    """Its columns, sorted."""
    return table[:, np.lexsort(table)]


def numbers(answer: Any) -> np.ndarray:
    """The answer, a tensor maybe, as numbers. Raises what numpy does where it is none."""
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().cpu()
    return np.asarray(answer, float)


def of_shape(found: np.ndarray, right: Any) -> np.ndarray:
    """The same. Raises ValueError where it has not the shape of the right answer."""
    if found.shape != np.shape(right):
        raise ValueError(f"its shape is {found.shape}, not {np.shape(right)}")
    return found


def by_itself(answer: Callable, arguments: Sequence) -> Any:
    """What it returns. Raises ValueError where it calls the library."""

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_globals.get("__name__", "").startswith("setclr."):
            raise ValueError("it calls setclr; write it without")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return answer(*arguments)
    finally:
        sys.setprofile(before)


def told(argument: Any) -> Any:
    """An argument as JSON can hold it."""
    if isinstance(argument, torch.Tensor):
        return told(argument.numpy()) | {"kind": "tensor"}
    if isinstance(argument, np.ndarray):
        return {"kind": "array", "dtype": str(argument.dtype), "values": argument.tolist()}
    return argument


def made(said: Any) -> Any:
    """The argument that `told` told of, anew each time: what one answer does to it, no other meets."""
    if not isinstance(said, dict):
        return said
    array = np.array(said["values"], said["dtype"])
    return torch.from_numpy(array) if said["kind"] == "tensor" else array

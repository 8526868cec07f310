"""An answer that is a function: what it returns for the inputs of its exercise, and whether that is right."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from setclr_course.teach.asked import Exercise

Outputs = Sequence[Sequence[Any]]
"""What a function returns, one thing or several, for each of the inputs."""


def called(answer: Callable, asked: Exercise) -> Outputs:
    """What it returns. Raises TypeError for what is no function, ValueError for an output of another shape
    than the right one, NotThisWay where it does what the exercise rules out."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    returned = []
    for listed, wanted in zip(asked.inputs or (), asked.right):
        output = by_itself(answer, list(map(made, listed)), asked)
        several = [output] if len(wanted) == 1 else list(output)
        if len(several) != len(wanted):
            raise ValueError(f"it returns {len(several)} things, not {len(wanted)}")
        returned.append([of_shape(numbers(ours), theirs) for ours, theirs in zip(several, wanted)])
    return returned


def the_same(found: Outputs, wanted: Outputs, asked: Exercise) -> bool:
    """Whether all outputs are, up to the tolerance of the largest number of each."""
    for some, others in zip(found, wanted):
        pairs = [(np.asarray(ours, float), np.asarray(theirs, float)) for ours, theirs in zip(some, others)]
        if asked.any_order:
            pairs[-1] = in_order(pairs[-1][0]), in_order(pairs[-1][1])
        for ours, theirs in pairs:
            scale = np.abs(theirs).max(initial=0) or 1.0  # so that a small loss is compared as closely
            if ours.shape != theirs.shape or not np.allclose(ours, theirs, 0, asked.tolerance * scale):
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


class NotThisWay(ValueError):
    """An answer goes another way than the exercise asks for, whatever it returns."""


class Counted(TorchDispatchMode):
    """How many operations of torch run inside, and how many numbers the largest table has that one makes."""

    steps, numbers = 0, 0

    def __torch_dispatch__(self, operation: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = operation(*args, **(kwargs or {}))
        self.steps += 1
        self.numbers = max([self.numbers, *(t.numel() for t in tree_leaves(made) if torch.is_tensor(t))])
        return made


def by_itself(answer: Callable, arguments: Sequence, asked: Exercise) -> Any:
    """What it returns. Raises NotThisWay where it calls what it is to be written without, loops where one
    step does all, or makes too large a table."""

    def watch(frame: FrameType, event: str, called: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module != __name__ and module.startswith(tuple(asked.without)):
            raise NotThisWay(f"It calls {module}; write it without.")
        of_tensor = event == "c_call" and torch.is_tensor(getattr(called, "__self__", None))
        if (asked.steps or asked.widest) and of_tensor and called.__name__ in ("numpy", "tolist"):
            raise NotThisWay("It leaves torch; stay with torch's own operations.")

    before, given = sys.getprofile(), arguments[0]
    sys.setprofile(watch)
    try:
        with Counted() as counted:
            output = answer(*arguments)
    finally:
        sys.setprofile(before)
    if asked.steps and counted.steps > asked.steps:
        raise NotThisWay(f"It takes {counted.steps} steps of torch; without a loop {asked.steps} are enough.")
    if asked.widest and counted.numbers > asked.widest * given.numel():
        raise NotThisWay(f"It makes a table of {counted.numbers} numbers from {given.numel()}: too large.")
    return output


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

"""What a checkpoint must hold to be gone on from or loaded, and a checksum of all that it holds."""

import math
import zlib
from collections.abc import Callable
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from setclr.recipes import Recipe
from setclr.training.precision import NAMES

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
RESUMED = {"step", "images", "loss", "optimiser"}  # what a checkpoint that can go on has had from the first


def checksum(x: Any, before: int = 0) -> int:
    """CRC-32 of nested plain data and tensors: their kinds, shapes and numbers, in their order, `before` of
    what came before them.

    The same on every machine: numbers are read as little-endian bytes, in the order of the tensor's indices.
    Cost: all is read once, on the CPU.
    """
    if isinstance(x, dict):
        x = [part for item in x.items() for part in item]
    elif isinstance(x, set):
        x = sorted(x, key=repr)
    if isinstance(x, list | tuple):
        before = zlib.crc32(b"%d parts" % len(x), before)
        for part in x:
            before = checksum(part, before)
        return before
    if not isinstance(x, Tensor):
        return zlib.crc32(f"{x!r};".encode(errors="surrogatepass"), before)
    numbers = x.detach().cpu().contiguous().flatten().view(INTEGERS[x.itemsize]).numpy()
    before = zlib.crc32(f"{x.dtype} {tuple(x.shape)};".encode(), before)
    return zlib.crc32(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).data, before)


def check(state: dict) -> None:
    """Raises ValueError, naming the field, where one is not of its kind, or a weight is NaN or inf."""
    for name, (kind, fits) in FIELDS.items():
        if name in state and not fits(state[name]):
            raise ValueError(f"{name} must be {kind}, got {shown(state[name])}")
    for name in ("encoder", "head", "loss", "predictor"):
        _refuse_bad(name, state.get(name, {}))
    for name in ("best", "keys", "optimiser"):
        _refuse_bad(name, state.get(name) or {}, infinite=name == "optimiser")
    if "recipe" in state:
        if "channels" not in state:
            raise ValueError("channels must be there, and is missing")
        try:
            Recipe.from_dict(state["recipe"])
        except ValueError as error:
            raise ValueError(f"recipe: {error}") from error
    lacking = sorted(RESUMED - set(state)) or ([] if {"random", "rng"} & set(state) else ["random"])
    if "optimiser" in state and lacking:
        raise ValueError(f"{lacking[0]} must be there, and is missing")


def refuse_other_weights(part: nn.Module, weights: dict, complaint: str) -> None:
    """Raises ValueError with the first difference if the weights belong to another model."""
    wanted, found = ({key: _form(x) for key, x in d.items()} for d in (part.state_dict(), weights))
    for key in [*wanted, *found]:
        if wanted.get(key) != found.get(key):
            said = f"{key!r} is {found.get(key, 'missing')}, and must be {wanted.get(key, 'absent')}"
            remedy = "take the checkpoint as it was written, or train again in another folder"
            raise ValueError(f"{complaint} ({said}): they come from different runs; {remedy}")


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor with all its numbers in memory, on the CPU."""
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.device.type != "cpu":
        return False
    return x.itemsize in INTEGERS and x.numel() * x.itemsize <= x.untyped_storage().nbytes()


def is_number(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


def is_recipe(x: Any) -> bool:
    plain = str | int | float | None
    return isinstance(x, dict) and all(isinstance(k, str) and isinstance(v, plain) for k, v in x.items())


def is_weights(x: Any) -> bool:
    """Whether x is as a module's state_dict, whose `_extra_state` may be anything."""
    named = isinstance(x, dict) and all(isinstance(key, str) for key in x)
    return named and all(is_tensor(w) or key.endswith("_extra_state") for key, w in x.items())


def is_history(x: Any) -> bool:
    if not isinstance(x, list) or not all(isinstance(row, dict) for row in x):
        return False
    return all(isinstance(key, str) and is_number(value) for row in x for key, value in row.items())


def is_optimiser(x: Any) -> bool:
    """Whether x is as an optimiser's state_dict; `resuming` compares it with the optimiser."""
    if not isinstance(x, dict) or not isinstance(x.get("state"), dict):
        return False
    groups, memories = x.get("param_groups"), x["state"].values()
    kept = (y for memory in memories if isinstance(memory, dict) for y in memory.values())
    return (
        isinstance(groups, list)
        and all(isinstance(group, dict) and isinstance(group.get("params"), list) for group in groups)
        and all(isinstance(memory, dict) for memory in memories)
        and all(is_tensor(y) or is_number(y) or y is None for y in kept)
    )


def is_keys(x: Any) -> bool:
    if x is None:
        return True
    if not isinstance(x, dict) or not is_weights(x.get("model")):
        return False
    return x.get("queue") is None or is_tensor(x["queue"])


def is_generator(x: Any) -> bool:
    return isinstance(x, Tensor) and is_tensor(x) and x.dtype == torch.uint8


def is_best(x: Any) -> bool:
    """Whether x is None, or the best weights of encoder and head."""
    return x is None or (
        isinstance(x, dict) and set(x) == {"encoder", "head"} and all(map(is_weights, x.values()))
    )


def _whole(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


WEIGHTS: tuple[str, Callable[[Any], bool]] = ("a dict of names and tensors", is_weights)
WHOLE: tuple[str, Callable[[Any], bool]] = ("an integer >= 0", _whole)
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "recipe": ("a dict of names and plain values", is_recipe),
    "channels": ("an integer 1 to 10000", lambda x: _whole(x) and 1 <= x <= 10_000),
    "history": ("a list of dicts of numbers", is_history),
    **dict.fromkeys(("encoder", "head", "loss", "predictor"), WEIGHTS),
    "best": ("None, or the weights of encoder and head", is_best),
    "precision": (f"one of {', '.join(NAMES)}, or None", lambda x: x is None or x in NAMES),
    "compiled": ("True, False or None", lambda x: x is None or isinstance(x, bool)),
    **dict.fromkeys(("step", "images", "draws"), WHOLE),
    "values": (
        "a tensor of losses",
        lambda x: is_tensor(x) and x.ndim == 1 and x.is_floating_point() and x.isfinite().all(),
    ),
    "seconds": ("a finite number", lambda x: is_number(x) and math.isfinite(x)),
    "optimiser": ("an optimiser's state_dict", is_optimiser),
    "scaler": ("a dict of numbers", lambda x: isinstance(x, dict) and all(map(is_number, x.values()))),
    "keys": ("None, or a dict of the momentum encoder's weights and queue", is_keys),
    "targets": ("None or a tensor", lambda x: x is None or is_tensor(x)),
    "random": (
        "a dict of states of torch's generators",
        lambda x: isinstance(x, dict) and "cpu" in x and all(map(is_generator, x.values())),
    ),
    "rng": ("the state of a torch generator", is_generator),
}


def _refuse_bad(name: str, part: Any, infinite: bool = False) -> None:
    """Raises ValueError if a number is NaN, or, unless `infinite`, inf."""
    if isinstance(part, dict | list):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            _refuse_bad(f"{name}: {key}", inner, infinite)
    elif isinstance(part, Tensor) and (part.isnan().any() or not (infinite or part.isfinite().all())):
        raise ValueError(f"{name} holds NaN{'' if infinite else ' or inf'}")


def shown(x: object) -> str:
    """x in a line of an error message."""
    return f"{type(x).__name__} {x!r:.60}" if isinstance(x, str | int | float | None) else type(x).__name__


def _form(x: object) -> str:
    if not isinstance(x, Tensor):
        return type(x).__name__
    return f"{tuple(x.shape)}" + ("" if x.is_floating_point() else f" {x.dtype}")

"""Hostile tensors and settings for losses and baselines: refused in words, or finite.

A trial is 40 calls. Counted are those that were refused and those that were finite. What is not finite in
silence, or any other error, did not hold. Where float32 cannot tell costs any more, Sinkhorn warns that it
did not converge: that is not silent.
"""

import inspect
import math
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setclr.losses import LOSSES
from setclr_course.papers.collection import PAPERS

CALLS = 40
NUMBERS = [
    1e-320, 1e-38, 1e-30, 1e-20, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 10.0, 64.0, 1e3, 1e6, 1e9, 1e12,
    1e20, 1e30, 1e300, 0.0, -0.0, -1.0, -1e9, math.inf, -math.inf, math.nan, 1, 2, 5, 0, -1, 10**9, 10**400,
]  # fmt: skip
OTHERS = [None, True, False, "", "x", "rows", b"1", [], [1.0], {}, 1j, object(), int, torch.ones(()),
          torch.ones(2), torch.tensor(math.nan)]  # fmt: skip
USUAL = [0.05, 0.1, 0.5, 1.0, 2.0, 5.0]
NAMES = [
    "rows", "columns", "both", "one-to-one", "batch-hard", "odd-even", "bitonic", "arctan", "logistic", "rbf",
    "linear", "tanh", "exact", "pgd", "inv", "uniform", "total", "l2", "mean", "none", "",
]  # fmt: skip
SIZES = [0.0, 1e-45, 1e-40, 1e-37, 1e-20, 1e-12, 1e-9, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e9, 1e19, 1e37]
DTYPES = [torch.float32] * 6 + [torch.float64] * 3 + [torch.float16, torch.bfloat16, torch.int64, torch.bool,
                                                      torch.complex64]  # fmt: skip


class Drawn(random.Random):
    """Random choices, and how hostile they are: `spite` from 0 to 1, drawn anew for each call."""

    spite = 1.0

    def spiteful(self, chance: float) -> bool:
        return self.random() < chance * self.spite


def setting(by: Drawn, default: Any) -> Any:
    """A value for a parameter, mostly one of its kind."""
    if by.spiteful(0.06):
        return by.choice(OTHERS)
    if by.spiteful(0.25):
        return by.choice(NUMBERS)
    if isinstance(default, bool):
        return by.random() < 0.5
    if isinstance(default, str):
        return by.choice([default, by.choice(NAMES)])
    if isinstance(default, int):
        return by.choice([0, 1, 2, 3, 10])
    return by.choice([default, by.choice(USUAL)])


def tensor(by: Drawn, shape: tuple[int, ...]) -> Any:
    """Numbers of this shape, mostly; rows may be short or long, equal or opposite, NaN or inf."""
    if by.spiteful(0.02):
        return by.choice(OTHERS)
    if by.spiteful(0.1):
        shape = tuple(by.choice([0, 1, 2, 3]) for _ in range(by.randint(0, 4)))
    generator = torch.Generator().manual_seed(by.randrange(2**40))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    if x.dim() and by.spiteful(0.7):
        rows = torch.tensor([by.choice(SIZES) for _ in range(x.shape[:-1].numel())], dtype=torch.float64)
        x = x * rows.view(*x.shape[:-1], 1)
    if x.dim() > 1 and len(x) > 1 and by.random() < 0.2:
        x[1] = x[0] * by.choice([1, -1, 0])
    if x.numel() and by.spiteful(0.1):
        x.view(-1)[by.randrange(x.numel())] = by.choice([math.nan, math.inf, -math.inf, 5e-324, 1e308])
    x = x.to(by.choice(DTYPES if by.spiteful(1) else DTYPES[:9]))
    if x.dim() > 1 and by.random() < 0.1:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    if by.spiteful(0.01):
        x = x.to_sparse()
    floats = x.is_floating_point()
    return x.requires_grad_() if floats and by.random() < 0.8 else x


def trial(seed: int, folder: Path) -> tuple[dict[str, int], list[str]]:
    """A loss or a baseline with settings of any kind, on embeddings of any kind, forty times."""
    by, counts, findings = Drawn(seed), Counter[str](), list[str]()
    for _ in range(CALLS):
        by.spite = by.choice([0.0, 0.3, 1.0])
        text, done, z = call(by)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                wrong = not_finite(done(), z)
                if any("sinkhorn stopped" in str(one.message) for one in warned):
                    wrong = ""
                counts["finite"] += not wrong
            except ValueError as error:
                counts["refused"] += 1
                good = 10 < len(str(error)) < 4000 + 2 * len(text)
                wrong = "" if good else f"it says {str(error)[:600]!r}"
            except BaseException:
                wrong = traceback.format_exc()[-700:]
        findings += [f"{text[:600]}: {wrong}"] * bool(wrong)
    return dict(counts), findings


def call(by: Drawn) -> tuple[str, Callable[[], Any], Any]:
    """What is called, in words; the call; and the embeddings that it is given."""
    kind = by.choice([*LOSSES, *LOSSES, *PAPERS.losses.values()])
    parameters = inspect.signature(kind).parameters.values()
    asked = {p.name: setting(by, p.default) for p in parameters if by.random() < 0.3}
    V, N = by.choice([2, 2, 2, 3, by.randint(1, 4)]), by.choice([2, 3, 4, 6, by.randint(0, 2)])
    E = by.choice([1, 2, 4, 9])
    z, integers = tensor(by, (V, N, E)), torch.tensor([by.randint(-1, 2) for _ in range(N)])
    more: dict[str, Any] = {}
    if kind in LOSSES:
        options = {"keys": (by.choice([V, V, 1]), N, E), "memory": (by.randint(0, 5), E), "weight": (N,)}
        more = {name: tensor(by, shape) for name, shape in options.items() if by.spiteful(0.15)}
        if by.random() < 0.15:
            more["labels"] = by.choice([integers, integers, tensor(by, (N,))])
        if by.spiteful(0.1):
            more["reduction"] = by.choice([*NAMES, None])
    elif by.random() < 0.8 and "labels" in inspect.signature(kind.forward).parameters:
        more["labels"] = by.choice([integers.abs(), integers, tensor(by, (N,))])
    solution = kind in LOSSES and by.random() < 0.15 and not {"weight", "reduction"} & more.keys()

    def done() -> Any:
        loss = kind(**asked)
        return loss.assignment(z, **more) if solution else loss(z, **more)

    given = ", ".join(f"{name} {described(x)}" for name, x in more.items())
    return f"{kind.__name__}({asked}) of {described(z)}, {given}", done, z


def not_finite(value: Any, z: Any) -> str:
    """Where a result, or its gradient with respect to z, is NaN or inf in silence, or "". A gradient in
    float16 may overflow, as whoever computes in it expects."""
    tensors = [x for x in (value if isinstance(value, tuple) else [value]) if isinstance(x, Tensor)]
    if any(not x.isfinite().all() for x in tensors):
        return f"the result is {tensors}"[:300]
    ends = [x.sum().double() for x in tensors if x.requires_grad]
    if ends and isinstance(z, Tensor) and z.requires_grad:
        torch.stack(ends).sum().backward()
        if z.grad is not None and z.dtype != torch.float16 and not z.grad.isfinite().all():
            return f"the gradient is {z.grad.flatten().tolist()}"[:300]
    return ""


def described(x: Any) -> str:
    if not isinstance(x, Tensor):
        return repr(x)
    return f"{x.dtype} {tuple(x.shape)} {x.detach().to_dense().tolist()}"

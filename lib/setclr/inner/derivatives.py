"""Second derivatives: refused where something is held constant, or a gradient is written out by hand."""

from typing import Any

import torch
from torch import Tensor

from setclr.checks import transforms


def once(x: Tensor, why: str) -> Tensor:
    """x, whose gradient cannot be differentiated again: RuntimeError that says `why`, with the remedy."""
    if (depth := transforms()) == 0:
        return _Once.apply(x, why)
    if depth > 1:
        raise RuntimeError(f"a second derivative by torch.func would be wrong: {why}")
    return x


def refuse_second(why: str) -> None:
    """In a `backward`: RuntimeError if its result is to be differentiated again (create_graph=True)."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise RuntimeError(f"a second derivative (create_graph=True) would be wrong: {why}")


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, why: str) -> Tensor:
        ctx.why = why
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        refuse_second(ctx.why)
        return grad, None

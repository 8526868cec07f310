"""Second derivatives of functions whose gradient is written out by hand, or holds something constant."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setclr.checks import transforms


def wanted() -> bool:
    """Inside a `backward`: whether its result will be differentiated again, as with create_graph=True."""
    return torch.is_grad_enabled() and not torch.compiler.is_compiling()


def gradient(formula: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Tensor:
    """The gradient of ⟨grad, formula(x)⟩ by x, computed by autograd, so that it can be differentiated again.

    For a `backward` in which `wanted()`. What it saved besides inputs and outputs is a constant for autograd,
    so a second derivative would lose terms. `formula` is the same function in autograd's own operations.
    Cost: that of `formula`, with a graph of all its steps.
    """
    return torch.autograd.grad(formula(x), x, grad, create_graph=True)[0]


def once(x: Tensor, why: str) -> Tensor:
    """x, whose gradient cannot be differentiated again: RuntimeError that says `why`, with the remedy."""
    if (depth := transforms()) == 0:
        return _Once.apply(x, why)
    if depth > 1:
        raise RuntimeError(f"a second derivative by torch.func would be wrong: {why}")
    return x


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, why: str) -> Tensor:
        ctx.why = why
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if wanted():
            raise RuntimeError(f"a second derivative (create_graph=True) would be wrong: {ctx.why}")
        return grad, None

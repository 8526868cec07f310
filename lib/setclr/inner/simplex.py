"""Two smoothed maxima: log-sum-exp, which weighs every entry, and sparsemax, which gives most entries 0.

Both have the form max_Ω(x) = max over p in the simplex of ⟨p, x⟩ − Ω(p), and their gradient is the maximising
p. Negative entropy as Ω gives the log-sum-exp and the softmax. ½‖p‖² − ½ gives the papers' max_Ω and the
sparsemax.
Sources: Martins & Astudillo 2016 (sparsemax); Moskalev et al. 2022 (SparseCLR), eq. 4, 15 and 16.
"""

import math
from typing import Any

import torch
from torch import Tensor

from setclr.checks import floating, setting, transforms, values_readable
from setclr.inner.derivatives import refuse_second


def soft_maximum(x: Tensor, temperature: float) -> Tensor:
    """Smoothed maximum τ log Σ_j exp(x_j/τ); its gradient is the softmax of x/τ.

    It lies between the maximum and the maximum + τ log n.

    Args:
        x: (..., n) float32 or float64; −inf masks an entry, at least one in a row is finite.
        temperature: τ > 0 in the unit of x; as τ goes to 0, the result goes to the maximum.

    Returns (...). Raises ValueError: an argument is not as above. Cost: O(n) time and space.
    """
    _check("x", x)
    setting("temperature", temperature, above=0, hint="it smooths the maximum; the papers use 0.05 to 0.5")
    return temperature * (x / temperature).logsumexp(-1)


def sparsemax(x: Tensor) -> Tensor:
    """The point of the simplex nearest to x (QARe, eq. 15 and 16).

    p_j = max(0, x_j − T) with the T for which Σ_j p_j = 1. p_j is 0 unless x_j is within 1 of the maximum.

    >>> import torch
    >>> from setclr.inner import sparsemax
    >>> sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])

    Takes x (..., n) float32 or float64; −inf masks an entry, at least one in a row is finite.
    Returns (..., n), each in [0, 1]; rows sum to 1. Its Jacobian is diag(s) − s sᵀ/Σs with s = [p > 0].
    Raises ValueError: x is not as above. Cost: O(R n) time, R as in `sparse_maximum`, O(n) space.
    """
    _check("x", x)
    return _Sparsemax.apply(x) if transforms() == 0 else _followed(x)[0]


def sparse_maximum(x: Tensor, also: Tensor | None = None) -> Tensor:
    """Smoothed maximum max_Ω(x) = ½ Σ_{j: x_j > T} (x_j² − T²) + ½; its gradient is the sparsemax.

    T is the threshold of the sparsemax. The result lies between the maximum and the maximum + ½(1 − 1/n).
    SparseCLR's eq. 8 and 14 mean this; as printed they have the wrong sign, sum over the support of −x and
    lack the ½.

    Args:
        x: (..., n) float32 or float64; −inf masks an entry, at least one in a row is finite.
        also: (..., k): each of the k entries makes a list together with x. The k lists share x, so their
            gradients need the space of one.

    Returns (...), or with `also` (..., k): the maximum of each list. A second derivative is refused.
    Raises ValueError: an argument is not as above; the message names it.
    Cost: O(k R n) time, O(n) space. R Newton steps find the threshold, each with a pass over x. R is as large
    as needed, about 10. Compiled code cannot test for convergence and always makes ½ log₂(n²/ε) steps, ε the
    rounding of 1. On a GPU sorting and one Newton step find it, in a dozen kernel launches, not a hundred.
    """
    _check("x", x)
    if transforms() and also is None:
        return _followed(x)[1]
    if also is None:
        return _SparseMaximum.apply(x, torch.full_like(x[..., :1], -torch.inf)).squeeze(-1)
    _check("also", also)
    if also.shape[:-1] != x.shape[:-1] or also.dtype != x.dtype:
        raise ValueError(
            f"also must be {x.dtype} of shape (..., k) beside x of shape {tuple(x.shape)}, "
            f"got {also.dtype} of shape {tuple(also.shape)}"
        )
    if transforms():
        lists = [_followed(torch.cat([x, own], dim=-1))[1] for own in also.split(1, dim=-1)]
        return torch.stack(lists, dim=-1)
    return _SparseMaximum.apply(x, also)


def _followed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Sparsemax and sparse maximum of x (..., n) in operations that torch.func follows."""
    top = x.detach().amax(-1, keepdim=True)
    depth = _sorted_depth(x - top)
    p = (x - top + depth).clamp(min=0)
    return p, (top - depth).squeeze(-1) + (1 + p.square().sum(-1)) / 2


def _support(x: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum of each list x (..., n), and the depth t of its threshold below the maximum; overwrites x.

    With x measured from the maximum, f(t) = Σ_j max(0, x_j + t) − 1 has slope c(t), the size of the support.
    Newton's steps start at t = 1, where f ≥ 0, and descend to the root. They have reached it once the support
    no longer changes. By convexity f, c and their values f′, c′ after one more step satisfy f′/f + c′/c ≤ 1.
    So each step divides f·c ≤ n² by at least 4. This gives the number of steps after which f is below the
    rounding of 1.
    """
    top = x.amax(-1, keepdim=True)
    x -= top
    if x.device.type != "cpu":
        return top, _newton(x, _sorted_depth(x), 1)
    steps = math.ceil(math.log2(x.shape[-1]) - math.log2(torch.finfo(x.dtype).eps) / 2)
    return top, _newton(x, torch.ones_like(top), steps)


def _newton(x: Tensor, depth: Tensor, steps: int) -> Tensor:
    """The depth after `steps` Newton steps, or fewer if the support no longer changes."""
    size, above = None, torch.empty_like(x)
    for _ in range(steps):
        torch.add(x, depth, out=above).clamp_(min=0)
        excess = above.sum(-1, keepdim=True) - 1
        before, size = size, above.sign_().sum(-1, keepdim=True)
        depth = depth - excess / size
        if values_readable(x) and before is not None and torch.equal(before, size):
            break
    return depth


def _sorted_depth(x: Tensor) -> Tensor:
    """The depth as the minimum over k of (1 − x_(1) − … − x_(k)) / k, as accurate as these sums."""
    sums = x.sort(dim=-1, descending=True).values.cumsum(-1)
    return ((1 - sums) / torch.arange(1, x.shape[-1] + 1, device=x.device)).amin(-1, keepdim=True)


class _Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        top, depth = _support(x.clone())
        p = (x - top + depth).clamp_(min=0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        support = p.sign()
        return support * (grad - (support * grad).sum(-1, keepdim=True) / support.sum(-1, keepdim=True))


class _SparseMaximum(torch.autograd.Function):
    """max_Ω = T + ½(1 + ‖p‖²) of x (..., n) with each of `also` (..., k); backward computes each p again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, also: Tensor) -> Tensor:
        lists = [_support(torch.cat([x, own], dim=-1)) for own in also.split(1, dim=-1)]
        tops, depths = (torch.cat(column, dim=-1) for column in zip(*lists))
        square = (also - tops + depths).clamp_(min=0).square()
        squares = [(x - top + t).clamp_(min=0).square_().sum(-1, keepdim=True) for top, t in lists]
        square += torch.cat(squares, -1)
        ctx.save_for_backward(x, also, tops, depths)
        return tops - depths + (1 + square) / 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, also, tops, depths = ctx.saved_tensors
        refuse_second("the threshold of sparse_maximum is held constant")
        by_x = torch.zeros_like(x)
        for g, top, depth in zip(grad.split(1, -1), tops.split(1, -1), depths.split(1, -1)):
            by_x.addcmul_((x - top + depth).clamp_(min=0), g)
        return by_x, grad * (also - tops + depths).clamp_(min=0)


def _check(name: str, x: Tensor) -> None:
    floating(name, x, "(..., n) with n >= 1", lambda x: x.ndim > 0)
    if values_readable(x):
        top = x.detach().amax(-1)
        if not top.isfinite().all():
            raise ValueError(
                f"{name} must hold a finite maximum in every row, got {top[~top.isfinite()][0].item()}: "
                "-inf masks an entry, not a whole row, and NaN or inf is no entry"
            )

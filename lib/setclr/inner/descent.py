"""Projected gradient descent for the duals of many small support-vector machines.

Sources: Shah et al. 2022 (MMCL); Beck and Teboulle 2009, O'Donoghue and Candès 2015 (acceleration, restart).
"""

import math

import torch
from torch import Tensor

from setclr.inner.dual import Machines

CHECK = 5  # rounds between two checks of the residual
GUESSES = 40  # the most guesses of θ in `nearest`; three are usual
BLOCK = 2**17  # numbers in a block of work: 0.5 MB in float32, which fits into a CPU's cache


def projected_gradient(
    machines: Machines, tolerance: float = 1e-3, rounds: int = 1000, start: Tensor | None = None
) -> Tensor:
    """MMCL_PGD: accelerated projected gradient descent (MMCL, proposition 1), from 0 or a `start` (A, P).

    In the direction in which all α grow at once, g has some hundred times the curvature of other directions.
    A plain step would have to be that much shorter. So the step uses the metric λI + aaᵀ, which is at least Δ
    for

        a = √γ 1 − k_Y / √γ,   γ ≥ k⁺⁺,   λ ≥ ρ + the largest eigenvalue of K_YY.

    `nearest` computes the projected step in this metric. λ starts at ρ plus the mean |diagonal entry| of K
    and grows when a move meets more curvature. Momentum restarts when it points uphill. The rounds end when
    no residual is above `tolerance`. For an indefinite Δ (tanh) they lead to a stationary point.

    Returns α (A, P). Cost: O(A P²) time a round, one matrix product; O(A P) space. The machines should be
    `centred`, or rounding hides small residuals. On a CPU they are solved in blocks.
    """
    A, P = len(machines.positive), len(machines.K)
    size = max(1, BLOCK // P) if machines.K.is_cpu else A
    blocks = [slice(first, first + size) for first in range(0, A, size)]
    starts = [None if start is None else start[block] for block in blocks]
    found = [descend(machines.only(block), tolerance, rounds, x) for block, x in zip(blocks, starts)]
    return torch.cat(found)


def descend(machines: Machines, tolerance: float, rounds: int, start: Tensor | None) -> Tensor:
    """α (A, P) by `projected_gradient`, for all machines at once instead of in blocks."""
    K, own, tiny = machines.K, machines.own, torch.finfo(machines.K.dtype).tiny
    k, size = K[machines.positive], K.diagonal().abs().mean() + tiny
    root = k.gather(1, machines.positive.unsqueeze(1)).clamp(min=0.01 * size).sqrt()  # √γ
    a = (root - k / root).scatter_(1, own, 0)
    if start is None:
        alpha, gradient = torch.zeros_like(a), torch.full_like(a, -2).scatter_(1, own, 0)
        theta = 2 / root  # at this θ every negative with k > 0 gets α > 0
    else:
        alpha, gradient, theta = start, machines.gradient(start), dot(a, start)
    ahead, t = alpha, torch.ones_like(root)
    curvature = (machines.ridge + size) * t
    for done in range(1, rounds + 1):
        target = ahead - torch.addcmul(gradient, a, dot(a, ahead), value=-1).div_(curvature)
        step, theta = nearest(target, a, theta, curvature, machines.C, 1 / done**2)  # their sum is finite
        change = step - alpha
        uphill = dot(ahead - step, change) > 0
        t_next = (1 + (1 + 4 * t * t).sqrt()) / 2
        momentum, t = torch.where(uphill, 0, (t - 1) / t_next), torch.where(uphill, 1, t_next)
        alpha = step
        if done == rounds or (done % CHECK == 0 and arrived(machines, alpha, tolerance)):
            break
        move = torch.addcmul(alpha, momentum, change).sub_(ahead)
        ahead, before = ahead + move, gradient
        gradient = machines.gradient(ahead)
        bend = dot(move, gradient - before) - dot(a, move).square()
        bend /= dot(move, move).clamp(min=tiny)
        curvature = torch.where(bend > curvature, 1.1 * bend, curvature)
    return alpha


def authors_steps(machines: Machines, rounds: int = 1000) -> Tensor:
    """MMCL_PGD as in the authors' program: Nesterov's momentum and steps of 1e-3 (MMCL, proposition 1).

    α starts at max(0, x) with x standard normal. The rounds end when the mean of |change| / (α + 1e-7) over
    all machines is under 1 %. With a wide kernel this happens after a step or two, and α is still the random
    start. Every call draws the same x, so that processes agree; the images differ from batch to batch.

    Returns α (A, P). Cost: O(A P²) time a round. For more than some 1,000 negatives the step is too long.
    """
    drawn = torch.Generator().manual_seed(0)
    alpha = machines.clip(torch.randn(machines.own.shape[0], len(machines.K), generator=drawn).to(machines.K))
    ahead, t = alpha, torch.rand((), generator=drawn).item()
    negatives = alpha.numel() - machines.own.numel()
    for _ in range(rounds):
        step = machines.clip(ahead - 1e-3 * machines.gradient(ahead))
        t_next = (math.sqrt(t**4 + 4 * t * t) - t * t) / 2
        ahead, t = step + t * (1 - t) / (t * t + t_next) * (step - alpha), t_next
        change, alpha = ((step - alpha).abs() / (alpha + 1e-7)).sum() / negatives, step
        if bool(change < 0.01):
            break
    return alpha


def arrived(machines: Machines, alpha: Tensor, tolerance: float) -> bool:
    """Whether all residuals are at most the tolerance; a residual of NaN counts as small."""
    return not bool((machines.residual(alpha) > tolerance).any())


def nearest(
    target: Tensor, a: Tensor, theta: Tensor, curvature: Tensor, C: float, near: float
) -> tuple[Tensor, Tensor]:
    """x (A, P) that minimises λ/2 ‖x − target‖² + ½ (aᵀx)² over 0 ≤ x ≤ C, and θ = aᵀx (A, 1).

    λ is `curvature`. x = clip(target − θ a / λ), so θ is the root of aᵀx − θ. This function falls by at least
    1 when θ grows by 1, so its value bounds the distance to the root. Newton's method starts at `theta`. It
    makes one more step after the relative error is at most `near`. Every fourth guess is the middle of the
    interval that holds the root, because Newton's guesses alone could cycle.
    """
    low, high = torch.full_like(theta, -torch.inf), torch.full_like(theta, torch.inf)
    along = a / curvature
    squares = a * along
    for guess in range(1, GUESSES + 1):
        inside = torch.addcmul(target, along, theta, value=-1)
        x = inside.clamp(0, C)
        off = dot(a, x) - theta
        far = off.abs() > near * theta.abs()  # false for NaN
        low, high = low.maximum(theta + off.clamp(max=0)), high.minimum(theta + off.clamp(min=0))
        newton = theta + off / (1 + dot(x.eq_(inside), squares))
        theta = newton.clamp(low, high) if guess % 4 else (low + high) / 2
        if not bool(far.any()):
            break
    return torch.addcmul(target, along, theta, value=-1).clamp_(0, C), theta


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner product of each row of x with the same row of y, (A, 1)."""
    return torch.linalg.vecdot(x, y).unsqueeze(1)

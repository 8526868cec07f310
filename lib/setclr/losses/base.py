"""What every loss shares: the checks of its input, unit vectors, `+` and `*`, and a repr that evaluates.

A loss sees a batch as `z` (V, N, E): V views of N images, E dimensions. It solves its inner problem on it,
`score`s the true answer by the solution and can show the solution as a matrix, its `assignment`.
"""

import inspect
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from setclr.checks import integer, number, values_readable


class Points(NamedTuple):
    """A checked batch of unit vectors, float32 or float64."""

    anchors: Tensor  # (V, N, E)
    candidates: Tensor  # (V, N, E): the keys, without gradient, where there are any, else the anchors
    memory: Tensor | None  # (Q, E), without gradient


class Objective(nn.Module):
    """What the training loop asks of a loss, or of a baseline, before it calls it with embeddings z.

    `takes`: which of "keys" and "memory" it understands. `targets`: None, or what it must be told of each
    image, "labels" or "clusters". `local`: whether it takes local features, too (`models.LocalFeatures`).
    """

    takes: frozenset[str] = frozenset()
    targets: str | None = None
    local = False

    def __init__(self):
        super().__init__()

    def prepare(self, views: list[Tensor]) -> list[Tensor]:
        """What the encoder is shown of views (V, N, C, S, S), a tensor a size."""
        return views


class SetLoss(Objective):
    """A loss on the set of points z (V, N, E).

    A subclass stores its constructor's arguments under their own names, implements `score` and, unless it is
    a regulariser, `solution`, and lists in `takes` which of "keys" and "memory" it understands.
    """

    def forward(self, z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        """The loss, a 0-d tensor.

        Args:
            z: (V, N, E) floating, V ≥ 2 views of N ≥ 2 images; need not be normalised.
            keys: (V, N, E): momentum embeddings that serve as candidates instead of z; get no gradient.
            memory: (Q, E): more negatives for every anchor; get no gradient.

        Raises:
            ValueError: wrong rank, dtype or size; on the CPU also NaN, inf and rows of zero norm, which on a
                GPU, where looking at values would stall it, come out as NaN.
        """
        with _full_precision(z):
            return self.score(self.points(z, keys, memory))

    @torch.no_grad()
    def assignment(self, z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        """The solution of the inner problem, (V·N, V·N) or with memory (V·N, V·N + Q), view-major.

        Row = anchor, column = candidate; ≥ 0, zero diagonal, no gradient. Takes what `forward` takes.
        """
        with _full_precision(z):
            return self.solution(self.points(z, keys, memory))

    def score(self, points: Points) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not define score(points)")

    def solution(self, points: Points) -> Tensor:
        raise ValueError(f"{self} is a regulariser and has no assignment; add it to a loss that has one")

    @property
    def has_assignment(self) -> bool:
        return type(self).solution is not SetLoss.solution

    def points(self, z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None) -> Points:
        """Check the input and put it on the unit sphere."""
        for name, value in (("keys", keys), ("memory", memory)):
            if value is not None and name not in self.takes:
                raise ValueError(
                    f"{name} must be None for {type(self).__name__}, which does not use any, "
                    f"got {type(value).__name__}"
                )
        _check_tensor("z", z, "(V, N, E), V views of N images (torch.stack([a, b]) joins two (N, E))", 3)
        if z.shape[0] < 2 or z.shape[1] < 2 or z.shape[2] < 1:
            raise ValueError(
                "z must have shape (V, N, E) with V >= 2, N >= 2 and E >= 1, "
                f"got {tuple(z.shape)}: a contrast needs two views and two images"
            )
        anchors = unit("z", z)
        candidates = anchors
        if keys is not None:
            _check_tensor("keys", keys, "of z's shape", 3)
            _check_like_z("keys", keys, keys.shape == z.shape, z)
            candidates = unit("keys", keys.detach().to(anchors.dtype))
        if memory is not None:
            _check_tensor("memory", memory, "(Q, E)", 2)
            _check_like_z("memory", memory, len(memory) > 0 and memory.shape[1] == z.shape[2], z)
            memory = unit("memory", memory.detach().to(anchors.dtype))
        return Points(anchors, candidates, memory)

    def __add__(self, other: "SetLoss") -> "WeightedSum":
        if not isinstance(other, SetLoss):
            return NotImplemented
        return WeightedSum([*_terms(self), *_terms(other)])

    def __mul__(self, weight: float) -> "WeightedSum":
        if isinstance(weight, (SetLoss, Tensor)):
            return NotImplemented
        weight = number("weight", weight, hint="a loss is multiplied by a number")
        return WeightedSum([(weight * w, loss) for w, loss in _terms(self)])

    __rmul__ = __mul__

    def __repr__(self) -> str:
        arguments = {
            name: (getattr(self, name), parameter.default)
            for name, parameter in inspect.signature(type(self)).parameters.items()
        }
        shown = (
            f"{name}={_literal(value)}"
            for name, (value, default) in arguments.items()
            if not (value is None and default is None)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class WeightedSum(SetLoss):
    """Σ weight · loss, what `+` and `*` make. Its assignment is that of its first term that has one."""

    def __init__(self, terms: list[tuple[float, SetLoss]]):
        super().__init__()
        self.weights = [weight for weight, _ in terms]
        self.losses = nn.ModuleList(loss for _, loss in terms)
        self.takes = frozenset.intersection(*(loss.takes for _, loss in terms))

    def forward(self, z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        return sum(weight * loss(z, keys, memory) for weight, loss in zip(self.weights, self.losses))

    def assignment(self, z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        for loss in self.losses:
            if loss.has_assignment:
                return loss.assignment(z, keys, memory)
        raise ValueError(f"{self} has no assignment: each of its terms is a regulariser")

    @property
    def has_assignment(self) -> bool:
        return any(loss.has_assignment for loss in self.losses)

    def __repr__(self) -> str:
        return " + ".join(
            repr(loss) if weight == 1 else f"{weight!r} * {loss!r}"
            for weight, loss in zip(self.weights, self.losses)
        )


def unit(name: str, x: Tensor) -> Tensor:
    """x (..., E) on the unit sphere, in float32 or wider. A row is first divided by its largest entry, so
    that no norm under- or overflows."""
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = x.detach().abs().amax(-1, keepdim=True)
    if values_readable(x):
        bad = ~(scale.isfinite() & (scale > 0)).squeeze(-1)
        if bad.any():
            where = bad.nonzero()[0].tolist()
            what = "only zeros and so has no direction" if scale[tuple(where)] == 0 else "NaN or inf"
            raise ValueError(
                f"{name}{where} must be finite and not zero, got a row that holds {what}; "
                "look for a diverged step, a dead layer or a missing batch norm"
            )
    x = x / scale
    return x / x.norm(dim=-1, keepdim=True)


def check_positive_views(value: int | None, V: int | None = None) -> int | None:
    """`positive_views` as a constructor takes it: None for all views or an integer ≥ 2; with V also ≤ V."""
    hint = "None makes every view a positive; multi-crop has 2 global views"
    return None if value is None else integer("positive_views", value, least=2, most=V, hint=hint)


def positive_weights(V: int, positive_views: int | None, like: Tensor) -> Tensor:
    """(V, V): how much view u counts as a positive of an anchor in view v; rows sum to 1, the diagonal is
    0."""
    positive = 1 - torch.eye(V, dtype=like.dtype, device=like.device)
    if check_positive_views(positive_views, V) is not None:
        positive[:, positive_views:] = 0
    return positive / positive.sum(1, keepdim=True)


def _terms(loss: SetLoss) -> list[tuple[float, SetLoss]]:
    return list(zip(loss.weights, loss.losses)) if isinstance(loss, WeightedSum) else [(1.0, loss)]


def _literal(value) -> str:
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _full_precision(z) -> torch.autocast:
    """Inside a loss autocast is off: a cosine rounded to bf16 is wrong by up to 0.004, which τ = 0.05 makes 8
    %."""
    return torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False)


def _check_tensor(name: str, x, shape: str, rank: int) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a floating tensor {shape}, got {type(x).__name__}")
    if x.ndim != rank:
        raise ValueError(f"{name} must be a floating tensor {shape}, got shape {tuple(x.shape)}")
    if not x.is_floating_point():
        raise ValueError(f"{name} must be a floating tensor {shape}, got {x.dtype}; use {name}.float()")


def _check_like_z(name: str, x: Tensor, fits: bool, z: Tensor) -> None:
    if not fits or x.device != z.device:
        raise ValueError(
            f"{name} must fit z of shape {tuple(z.shape)} on {z.device}, got {tuple(x.shape)} on {x.device}"
        )

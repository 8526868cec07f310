"""What every loss shares: the reduction, sums and multiples, and a repr that evaluates.

A loss sees a batch as `z` (V, N, E): V views of N images, E dimensions. It solves its inner problem on it,
scores the true answer by the solution and can show the solution as a matrix, its `assignment`.
"""

import inspect
import math
import warnings
from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from setclr.checks import choice, setting
from setclr.losses.points import Points, checked_points, checked_weight

Extra = dict[str, Tensor | None]  # keys, memory and labels by name
Factors = tuple[float | Tensor, ...]  # of a term in a sum; their product is its weight


class Objective(nn.Module):
    """What the training loop asks of a loss, or of a baseline, before it calls it with embeddings z.

    `takes`: which of "keys", "memory" and "labels" it understands beside z, and "views" if z may have more
    than two. `targets`: None, or the target of each image that it needs, "labels" or "clusters". `local`:
    None, or of how many features and channels it takes `models.LocalFeatures`.
    """

    takes: frozenset[str] = frozenset()
    targets: str | None = None
    local: tuple[int, int] | None = None

    def __init__(self) -> None:
        super().__init__()

    @property
    def reads_values(self) -> bool:
        """Whether its inner solver looks at numbers to go on: a GPU waits then, and no compiled graph can."""
        return False

    def prepare(self, views: list[Tensor]) -> list[Tensor]:
        """What the encoder is shown of views (V, N, C, S, S), a tensor a size."""
        return views

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters.values()
        shown = (
            f"{p.name}={_literal(getattr(self, p.name))}"
            for p in parameters
            if not (_off(getattr(self, p.name)) and _off(p.default))
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class SetLoss(Objective):
    """A loss on the set of points z (V, N, E).

    A subclass stores its constructor's arguments under their own names and implements `values`, or `score`
    where anchors have no value of their own, and, unless it is a regulariser, `solution`. It lists in `takes`
    what it understands. A constructor raises ValueError where an argument is out of range.
    """

    def __init__(self) -> None:
        super().__init__()
        self._warned: set[str] = set()

    def forward(
        self,
        z: Tensor,
        keys: Tensor | None = None,
        memory: Tensor | None = None,
        labels: Tensor | None = None,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> Tensor:
        """The loss: the mean over anchors, or the value of each.

        Args:
            z: (V, N, E) floating, V ≥ 2 views of N ≥ 2 images, with keys V ≥ 1; need not be normalised.
            keys: (U, N, E): momentum embeddings that serve as candidates instead of z; get no gradient. For
                V = 1 every key of an image is a positive; for V > 1 all but that of the anchor's own crop,
                for the keys of the first V views are those of z's crops.
            memory: (Q, E): more negatives for every anchor; get no gradient.
            labels: (N,) integers: points of one class are positives too. Distinct labels change nothing.
            weight: (N,) ≥ 0, the largest 1e-9 to 1e9, of the images in the mean.
            reduction: "mean" gives Σ_vi w_i ℓ_vi / (V Σ_i w_i), ℓ the anchors' values and w = 1 without
                `weight`; "none" gives w_i ℓ_vi, (V, N).

        Returns a 0-d tensor, or for "none" (V, N).
        Raises ValueError: wrong rank, dtype or size; an argument that the loss does not take; `weight` or
        "none" for a loss without a value for each anchor; on the CPU also NaN, inf and rows of zero norm, and
        labels of one class alone. On a GPU, where looking at values would stall it, these come out as NaN.
        """
        choice("reduction", reduction, ("mean", "none"))
        extra = {"keys": keys, "memory": memory, "labels": labels}
        self._refuse_what_it_does_not_take(extra)
        return self._reduced(z, extra, weight, reduction)

    @torch.no_grad()
    def assignment(
        self,
        z: Tensor,
        keys: Tensor | None = None,
        memory: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """The solution of the inner problem, (V·N, U·N) or with memory (V·N, U·N + Q), view-major.

        Row = anchor, column = candidate; ≥ 0, no gradient; 0 at the anchor. Takes what `forward` takes.
        """
        extra = {"keys": keys, "memory": memory, "labels": labels}
        self._refuse_what_it_does_not_take(extra)
        return self._solved(z, extra)

    def _reduced(self, z: Tensor, extra: Extra, weight: Tensor | None, reduction: str) -> Tensor:
        with _full_precision(z):
            points = self.points(z, **extra)
            if weight is None and reduction == "mean":
                return self.score(points)
            w = z.new_ones(z.shape[1]) if weight is None else checked_weight(weight, points)
            values = w * self.values(points)
            return values if reduction == "none" else values.sum() / (len(z) * w.sum())

    def _solved(self, z: Tensor, extra: Extra) -> Tensor:
        with _full_precision(z):
            return self.solution(self.points(z, **extra))

    def score(self, points: Points) -> Tensor:
        """The loss, a 0-d tensor."""
        return self.values(points).mean()

    def values(self, points: Points) -> Tensor:
        """Each anchor's value, (V, N), whose mean is the loss."""
        raise ValueError(
            f"reduction must be 'mean' and weight None for {self}, which has no value for each anchor"
        )

    def solution(self, points: Points) -> Tensor:
        raise ValueError(f"{self} is a regulariser and has no assignment; add it to a loss that has one")

    @property
    def has_assignment(self) -> bool:
        return type(self).solution is not SetLoss.solution

    def points(
        self,
        z: Tensor,
        keys: Tensor | None = None,
        memory: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Points:
        """Check z and the keys, memory and labels, and put them on the unit sphere."""
        points = checked_points(z, keys, memory, labels)
        V, N, _ = z.shape
        if V > 2 and "views" not in self.takes:
            raise ValueError(f"z must hold two views for {self}, got {V}: it matches one with the other")
        if V > N:
            self.warn_once(f"z is (V, N, E): {V} views of {N} images? torch.stack([a, b]) joins two (N, E)")
        return points

    def warn_once(self, message: str) -> None:
        """Warn, unless this loss has said the same before; never in compiled code."""
        kind = message.split()[0]
        if not torch.compiler.is_compiling() and kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, stacklevel=2)

    def _refuse_what_it_does_not_take(self, extra: Extra) -> None:
        for name, value in extra.items():
            if value is not None and name not in self.takes:
                kind, got = self._get_name(), type(value).__name__
                raise ValueError(f"{name} must be None for {kind}, which does not use any, got {got}")

    def __add__(self, other: "SetLoss") -> "WeightedSum":
        if not isinstance(other, SetLoss):
            return NotImplemented
        return WeightedSum([*_terms(self), *_terms(other)])

    def __radd__(self, other: int) -> "SetLoss":
        return self if type(other) is int and other == 0 else NotImplemented  # what sum() begins with

    def __mul__(self, weight: float | Tensor) -> "WeightedSum":
        if isinstance(weight, SetLoss):
            return NotImplemented
        factor = _factor(weight)
        for factors, _ in _terms(self):
            setting("weight", math.prod(x for x in (factor, *factors) if not isinstance(x, Tensor)))
        return WeightedSum([((factor, *factors), loss) for factors, loss in _terms(self)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "WeightedSum":
        if isinstance(divisor, SetLoss):
            return NotImplemented
        return self * (1 / setting("divisor", divisor, above=0, hint="a loss is divided by a number"))


class WeightedSum(SetLoss):
    """Σ weight · loss, what `+`, `*` and `/` make. Each term gets what it takes of keys, memory and labels.

    `takes`: what one of the terms takes, and "views" if all do. A 0-d tensor as weight stays in the graph, a
    parameter is the sum's. "none" and `weight` need values of all terms; `assignment` is the first there is.
    """

    def __init__(self, terms: list[tuple[Factors, SetLoss]]) -> None:
        super().__init__()
        self.factors = [factors for factors, _ in terms]
        for factor in (factor for factors in self.factors for factor in factors):
            if isinstance(factor, nn.Parameter):
                self.register_parameter(f"weight{len(self._parameters)}", factor)
        self.losses = nn.ModuleList([loss for _, loss in terms])
        one_of_them = frozenset.union(*(loss.takes for _, loss in terms))
        all_of_them = frozenset.intersection(*(loss.takes for _, loss in terms))
        self.takes = one_of_them - {"views"} | all_of_them & {"views"}

    @property
    def weights(self) -> list[float | Tensor]:
        """The terms' weights as they are now."""
        return [math.prod(factors) for factors in self.factors]

    @property
    def reads_values(self) -> bool:
        return any(loss.reads_values for _, loss in _terms(self))

    def _reduced(self, z: Tensor, extra: Extra, weight: Tensor | None, reduction: str) -> Tensor:
        more = {"weight": weight, "reduction": reduction}
        values = [loss(z, **_taken(loss, extra), **more) for _, loss in _terms(self)]
        return sum(factor * value for factor, value in zip(self.weights, values))

    def _solved(self, z: Tensor, extra: Extra) -> Tensor:
        for _, loss in _terms(self):
            if loss.has_assignment:
                return loss.assignment(z, **_taken(loss, extra))
        raise ValueError(f"{self} has no assignment: each of its terms is a regulariser")

    @property
    def has_assignment(self) -> bool:
        return any(loss.has_assignment for _, loss in _terms(self))

    def __repr__(self) -> str:
        return " + ".join(
            repr(loss) if _literal(weight) in ("1", "1.0") else f"{_literal(weight)} * {loss!r}"
            for weight, loss in zip(self.weights, self.losses)
        )


def _terms(loss: SetLoss) -> list[tuple[Factors, SetLoss]]:
    if isinstance(loss, WeightedSum):
        return list(zip(loss.factors, cast(Iterable[SetLoss], loss.losses)))
    return [((), loss)]


def _taken(loss: SetLoss, extra: Extra) -> Extra:
    return {name: x for name, x in extra.items() if name in loss.takes}


def _factor(value: float | Tensor) -> float | Tensor:
    if not isinstance(value, Tensor):
        return setting("weight", value, hint="a loss is multiplied by a number")
    if value.ndim or not value.is_floating_point():
        raise ValueError(
            "weight must be a number or a 0-d floating tensor, "
            f"got {value.dtype} of shape {tuple(value.shape)}; give each loss a weight of its own"
        )
    setting("weight", value.item())
    return value


def _off(value: object) -> bool:
    return value is None or value is False


def _literal(value: object) -> str:
    if isinstance(value, Tensor):
        value = float(f"{value.item():.6g}")
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _full_precision(z: Tensor) -> torch.autocast:
    """Inside a loss autocast is off: a cosine rounded to bf16 is off by up to 0.004, at τ = 0.05 by 8 %."""
    return torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False)

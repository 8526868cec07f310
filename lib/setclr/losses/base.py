"""Base classes of the losses: the reduction, weighted sums, and a repr that can be evaluated.

A loss takes a batch as `z` (V, N, E): V views of N images, E dimensions. It solves its inner problem on the
batch and scores the true answer by the solution. Its method `assignment` returns the solution as a matrix.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from setclr.checks import boolean, choice, setting, values_readable
from setclr.losses.points import Points, checked_points, checked_weight, mean

Extra = dict[str, Any]  # keys, memory, labels, and what goes with them, by name
NEEDS = {"key_labels": {"keys", "labels"}, "memory_labels": {"memory", "labels"}, "positives": {"labels"}}
Factors = tuple[float | Tensor, ...]  # of a term in a sum; their product is the term's weight
signature: Callable[[Any], inspect.Signature] = lru_cache(inspect.signature)  # 0.2 ms, at each new setting


class Made(nn.Module):
    """A module whose constructor lists its arguments where it is given another (ValueError)."""

    def __new__(cls, *_: Any, **named: Any) -> Self:
        for given in named:
            choice(f"{cls.__name__}'s argument", given, signature(cls).parameters)
        return super().__new__(cls)


class Objective(Made):
    """Base class of losses and baselines, with the attributes that the training loop reads.

    `takes`: which of "keys", "memory" and "labels" it accepts beside the embeddings z, and "views" if z may
    have more than two views. One that takes labels takes `positives`, too. `supervised`: whether it is made
    for labels. `classifies`: whether z are the scores of classes, so that it always gets labels. `headless`:
    whether z are the encoder's own features, without a head.

    Settings may be changed later, by `loss.temperature = 0.1`. The constructor checks them then, too.

    >>> from setclr import GroCo
    >>> sorted(GroCo().takes)
    ['keys', 'labels', 'views']
    """

    takes: frozenset[str] = frozenset()
    supervised: bool = False
    classifies: bool = False
    headless: bool = False

    def __init__(self) -> None:
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        settings = signature(type(self)).parameters
        if name in settings and "_tried" not in vars(self) and all(hasattr(self, key) for key in settings):
            tried: Any = type(self).__new__(type(self))
            vars(tried)["_tried"] = True
            with torch.random.fork_rng(devices=[]):  # a constructor may make layers
                tried.__init__(**{key: getattr(self, key) for key in settings} | {name: value})
            vars(self).update({key: x for key, x in vars(tried).items() if not key.startswith("_")})
            value = getattr(tried, name)
        if not isinstance(value, (nn.Parameter, nn.Module)):  # it may have been learnt so far
            for learnt in (vars(self).get("_parameters", {}), vars(self).get("_modules", {})):
                learnt.pop(name, None)
        super().__setattr__(name, value)

    @property
    def reads_values(self) -> bool:
        """Whether the inner solver branches on values: this stalls a GPU and cannot be compiled."""
        return False

    def task(self, trainer: Any) -> Any:
        """What a Trainer does for this loss, a `training.task.Task`; None: it gives it labels if asked to."""
        return None

    def __repr__(self) -> str:
        parameters = signature(type(self)).parameters.values()
        shown = (
            f"{p.name}={_literal(getattr(self, p.name))}"
            for p in parameters
            if not (_off(getattr(self, p.name)) and _off(p.default))
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def check_labels(loss: Objective, labels: bool) -> bool:
    """Whether a training run gives the loss labels: `labels`, or always where it classifies.

    >>> from setclr.losses import InfoNCE, check_labels
    >>> check_labels(InfoNCE(), True)
    True

    Raises ValueError if it gives them to a loss that takes none, or none to a supervised one.
    """
    boolean("labels", labels)
    if loss.classifies:
        return True
    if labels and "labels" not in loss.takes:
        raise ValueError(
            f"labels must be False for {loss}, which takes no labels; InfoNCE and SupCon take them"
        )
    if loss.supervised and not labels:
        hint = "without labels take InfoNCE, which it then equals for two views"
        raise ValueError(f"labels must be True for {loss}, which is made for labels; {hint}")
    return labels


def joined_views(
    z: Tensor, other: Tensor | None, keys: Tensor | None, flat: bool = False
) -> tuple[Tensor, Tensor | None]:
    """z (V, N, E) and keys, where a loss was called as `loss(z1, z2)`, two views (N, E), or `loss(z, keys)`.

    `flat`: z may be (N, E), which is one view.
    """
    if other is None:
        one = flat and isinstance(z, Tensor) and z.ndim == 2
        return (z.unsqueeze(0) if one else z), keys
    if isinstance(z, Tensor) and isinstance(other, Tensor) and z.ndim == 2 and other.ndim < 3:
        if not other.is_floating_point():
            raise ValueError(
                f"z2 must be a second view (N, E), got {other.dtype} {tuple(other.shape)}; labels are named: "
                "loss(z, labels=y)"
            )
        if z.shape != other.shape or z.device != other.device:
            raise ValueError(
                f"z1 and z2 must be two views (N, E) of the same images, got {tuple(z.shape)} on {z.device} "
                f"and {tuple(other.shape)} on {other.device}"
            )
        return torch.stack([z, other]), keys
    if keys is not None:
        raise ValueError("keys must be given once, got two of them; loss(z1, z2, keys=k) has views (N, E)")
    return z, other


class SetLoss(Objective):
    """A loss on the set of points z (V, N, E).

    A subclass stores its constructor's arguments under their own names. It implements `values`, or `score` if
    anchors have no value of their own. Unless it is a regulariser, it implements `solution`. It lists in
    `takes` the inputs that it accepts. A constructor raises ValueError if an argument is out of range.

    >>> import torch
    >>> from setclr.losses import SetLoss
    >>> class Alignment(SetLoss):  # a loss of your own: how far apart are the two views?
    ...     def values(self, points):
    ...         a, b = points.anchors
    ...         return (a - b).square().sum(-1).expand(2, -1)
    >>> Alignment()(torch.eye(3), torch.eye(3)).item()
    0.0
    """

    def __init__(self) -> None:
        super().__init__()
        self._warned: set[str] = set()

    def forward(
        self, z: Tensor, other: Tensor | None = None, memory: Tensor | None = None,
        labels: Tensor | None = None, weight: Tensor | None = None, reduction: str = "mean",
        keys: Tensor | None = None, key_labels: Tensor | None = None, memory_labels: Tensor | None = None,
        positives: Tensor | tuple[Tensor, ...] | None = None,
    ) -> Tensor:  # fmt: skip
        """The loss: the mean over anchors, or each anchor's value.

        `loss(z1, z2)` with two views (N, E) is `loss(torch.stack([z1, z2]))`. `loss(x, labels=y)` with x
        (N, E) is a flat batch: one view, in which points of a class are positives of each other. An anchor
        without a positive or without a negative is left out of the mean. If all are, the loss is 0, with a
        warning.

        Args:
            z: (V, N, E) floating, V ≥ 2 views of N ≥ 2 images, with keys or labels V ≥ 1; need not be
                normalised.
            other: the second view (N, E), where z is the first; or the keys.
            keys: (U, N, E): momentum embeddings, the candidates instead of z; without `key_gradient` they
                get no gradient. For V = 1 every key of an image is a positive. For V > 1 the keys of the
                first V views must be those of z's crops; every key of an image is a positive, except that of
                the anchor's own crop. With `key_labels` or `positives` (U, C, E), of C other images.
            memory: (Q, E): more negatives for every anchor; they get no gradient.
            labels: (N,) integers: points of one class are positives too. Labels that are all distinct change
                nothing. A label below 0, such as -1 or -100, means none: that image is a class of its own.
            weight: (N,) weights of the images in the mean, ≥ 0, the largest 1e-9 to 1e9.
            reduction: "mean" gives Σ_vi w_i ℓ_vi / (V Σ_i w_i), ℓ the anchors' values and w = 1 without
                `weight`; "none" gives w_i ℓ_vi, (V, N), of a flat batch (N,), 0 for anchors left out.
            key_labels: (C,) integers, the classes of keys that are of other images than z.
            memory_labels: (Q,) integers: those of the anchor's class are positives (cross-batch memory,
                Wang et al. 2020). The memory must not hold the batch itself.
            positives: instead of labels: a bool mask (V·N, U·C), view-major, True at the positives; or two
                tensors of indices (anchor, positive), or four, as miners give them: (anchor, positive,
                anchor, negative). All other candidates are negatives, with four tensors only those named.

        Returns a 0-d tensor, or for "none" (V, N).
        Raises ValueError: wrong rank, dtype or size; an argument that the loss does not take; `weight` or
        "none" for a loss without a value for each anchor. On the CPU also: NaN, inf, rows of zero norm, and
        labels that are all one class. On a GPU checking values would stall it, so these give NaN.
        """
        choice("reduction", reduction, ("mean", "none"))
        flat = isinstance(z, Tensor) and z.ndim == 2 and other is None
        z, extra = self._joined(
            z, other, keys=keys, memory=memory, labels=labels, key_labels=key_labels,
            memory_labels=memory_labels, positives=positives,
        )  # fmt: skip
        loss = self._reduced(z, extra, weight, reduction)
        return loss.squeeze(0) if flat and reduction == "none" else loss

    @torch.no_grad()
    def assignment(
        self, z: Tensor, other: Tensor | None = None, memory: Tensor | None = None,
        labels: Tensor | None = None, keys: Tensor | None = None, key_labels: Tensor | None = None,
        memory_labels: Tensor | None = None, positives: Tensor | tuple[Tensor, ...] | None = None,
    ) -> Tensor:  # fmt: skip
        """The solution of the inner problem, (V·N, U·N) or with memory (V·N, U·N + Q), view-major.

        Row = anchor, column = candidate. Entries are ≥ 0, have no gradient and are 0 at the anchor itself,
        and in the row of an anchor that is left out. The arguments are as in `forward`.
        """
        z, extra = self._joined(
            z, other, keys=keys, memory=memory, labels=labels, key_labels=key_labels,
            memory_labels=memory_labels, positives=positives,
        )  # fmt: skip
        return self._solved(z, extra)

    def _reduced(self, z: Tensor, extra: Extra, weight: Tensor | None, reduction: str) -> Tensor:
        with _full_precision(z):
            points = self.points(z, **extra)
            kept = self.kept(points)
            if kept is not None and values_readable(kept) and not kept.any():
                self.warn_once("no anchor of this batch has both a positive and a negative: the loss is 0")
            if weight is None and reduction == "mean":
                return self.score(points)
            w = z.new_ones(z.shape[1]) if weight is None else checked_weight(weight, points)
            values = w * self.values(points)
            if reduction == "none":
                return values if kept is None else values.masked_fill(~kept, 0)
            return mean(values, kept, w)

    def _solved(self, z: Tensor, extra: Extra) -> Tensor:
        with _full_precision(z):
            points = self.points(z, **extra)
            solution, kept = self.solution(points), self.kept(points)
            return solution if kept is None else solution * kept.flatten().unsqueeze(1)

    def kept(self, points: Points) -> Tensor | None:
        """The anchors (V, N) that have a positive and a negative; None: all do."""
        settings = getattr(self, "positive_views", None), getattr(self, "candidates", None)
        return None if points.all_kept(settings[1]) else points.pairs(*settings).kept

    def score(self, points: Points) -> Tensor:
        """The loss, a 0-d tensor."""
        return mean(self.values(points), self.kept(points))

    def values(self, points: Points) -> Tensor:
        """Each anchor's value, (V, N); their mean is the loss."""
        raise ValueError(
            f"reduction must be 'mean' and weight None for {self}, which has no value for each anchor"
        )

    def solution(self, points: Points) -> Tensor:
        raise ValueError(f"{self} is a regulariser and has no assignment; add it to a loss that has one")

    @property
    def has_assignment(self) -> bool:
        return type(self).solution is not SetLoss.solution

    def points(self, z: Tensor, **extra: Any) -> Points:
        """Check z, keys, memory and labels, and scale the vectors to unit length."""
        points = checked_points(z, **extra, key_gradient=getattr(self, "key_gradient", False))
        V, N, _ = z.shape
        if V > 2 and "views" not in self.takes:
            raise ValueError(f"z must hold two views for {self}, got {V}: it matches two views")
        if V > N:
            self.warn_once(f"z is (V, N, E): {V} views of {N} images? torch.stack([a, b]) joins two (N, E)")
        return points

    def warn_once(self, message: str) -> None:
        """Warn once for each first word of a message; never in compiled code."""
        kind = message.split()[0]
        if not torch.compiler.is_compiling() and kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, stacklevel=2)

    def _joined(self, z: Tensor, other: Tensor | None, **extra: Any) -> tuple[Tensor, Extra]:
        """All views as one tensor, and what else was given; what the loss does not use is refused."""
        named = extra["labels"] is not None or extra["positives"] is not None
        z, extra["keys"] = joined_views(z, other, extra["keys"], named)
        for name, value in extra.items():
            if value is not None and not NEEDS.get(name, {name}) <= self.takes:
                kind, got = self._get_name(), type(value).__name__
                raise ValueError(f"{name} must be None for {kind}, which does not use any, got {got}")
        return z, extra

    def __add__(self, other: "SetLoss") -> "WeightedSum":
        if not isinstance(other, SetLoss):
            return NotImplemented
        return WeightedSum([*_terms(self), *_terms(other)])

    def __radd__(self, other: int) -> "SetLoss":
        return self if type(other) is int and other == 0 else NotImplemented  # sum() starts at 0

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
    """Σ weight · loss, made by `+`, `*` and `/`.

    Each term gets those of keys, memory, labels and positives that it takes. `takes` holds what at least one
    term takes, but "views" only if all terms do. A 0-d tensor as weight stays in the graph; a parameter
    becomes the sum's own. "none" and `weight` need each anchor's value from all terms. `assignment` is that
    of the first term that has one.
    """

    def __init__(self, terms: list[tuple[Factors, SetLoss]]) -> None:
        super().__init__()
        self._factors = [tuple(map(self._kept, factors)) for factors, _ in terms]
        self.losses = nn.ModuleList([loss for _, loss in terms])
        one_of_them = frozenset.union(*(loss.takes for _, loss in terms))
        all_of_them = frozenset.intersection(*(loss.takes for _, loss in terms))
        self.takes = one_of_them - {"views"} | all_of_them & {"views"}
        self.supervised = any(loss.supervised for _, loss in terms)

    def _kept(self, factor: float | Tensor) -> float | Tensor | str:
        """The factor; of a parameter the name under which it becomes the sum's own."""
        if not isinstance(factor, nn.Parameter):
            return factor
        name = f"weight{len(self._parameters)}"
        self.register_parameter(name, factor)
        return name

    @property
    def factors(self) -> tuple[Factors, ...]:
        """The current factors of the terms' weights."""
        named = (tuple(getattr(self, x) if isinstance(x, str) else x for x in kept) for kept in self._factors)
        return tuple(named)

    @property
    def weights(self) -> list[float | Tensor]:
        """The current weights of the terms."""
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
    return {name: x for name, x in extra.items() if NEEDS.get(name, {name}) <= loss.takes}


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
    """A context without autocast: bf16 is off by up to 0.004 in a cosine s, by 8 % in e^(s/τ) at τ = 0.05."""
    return torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False)

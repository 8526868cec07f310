"""Base classes of the losses: declared settings, the reduction, and weighted sums.

A loss takes a batch as `z` (V, N, E): V views of N images, E dimensions. It solves its inner problem on the
batch and scores the true answer by the solution. Its method `assignment` returns the solution as a matrix.
"""

import inspect
import math
import warnings
from typing import Any, ClassVar, NamedTuple, Self, cast, dataclass_transform

import torch
from torch import Tensor, nn

from setclr.checks import boolean, choice, setting, values_readable
from setclr.losses.checking import checked, checked_weight, joined_views
from setclr.losses.table import Batch
from setclr.losses.temperature import Learnable
from setclr.settings import Setting, settings_of

NEEDS = {"key_labels": {"keys", "labels"}, "memory_labels": {"memory", "labels"}, "positives": {"labels"}}
Extra = dict[str, Any]  # keys, memory, labels, and what goes with them, by name


class StrictArguments(nn.Module):
    """A module whose constructor lists its arguments where it is given another (ValueError)."""

    def __new__(cls, *_: Any, **named: Any) -> Self:
        for given in named:
            choice(f"{cls.__name__}'s argument", given, inspect.signature(cls).parameters)
        return super().__new__(cls)


@dataclass_transform()
class Objective(StrictArguments):
    """Base class of losses and baselines, with the attributes that the training loop reads.

    `takes`: which of "keys", "memory" and "labels" it accepts beside the embeddings z, "views" if z may have
    more than two views. One that takes labels takes `positives`, too, and weights as these if it has "soft
    positives". `supervised`: whether it is made
    for labels. `classifies`: whether z are the scores of classes, so that it always gets labels. `headless`:
    whether z are the encoder's own features, without a head.

    A class declares its settings in its body (`setclr.settings`). They are the constructor's arguments, in
    that order, and may be changed later, by `loss.temperature = 0.1`; both ways check them.

    >>> from setclr import GroCo
    >>> sorted(GroCo().takes)
    ['keys', 'labels', 'views']
    """

    settings: ClassVar[dict[str, Setting]] = {}  # what has a type here and is no ClassVar is a setting
    __signature__: ClassVar[inspect.Signature] = inspect.Signature()
    takes = frozenset[str]()
    supervised = classifies = headless = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = {name: x for name, x in settings_of(cls).items() if name in vars(cls)}
        cls.settings = declared or cls.settings
        for name in declared:
            delattr(cls, name)  # the values are the instance's own
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if declared:
            arguments = [inspect.Parameter(name, kind, default=x.default) for name, x in declared.items()]
            cls.__signature__ = inspect.Signature(arguments)
        elif "__init__" in vars(cls):
            arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
            cls.__signature__ = inspect.Signature(arguments)

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__()
        if self.settings:
            given = inspect.signature(type(self)).bind(*values, **named)
            given.apply_defaults()
            for name, value in given.arguments.items():
                self._set(name, value)
            self.check()

    def __call__(self, z: Any, *arguments: Any, **named: Any) -> Any:
        """`forward` without autocast: bf16 is off by up to 0.004 in a cosine s, by 8 % in e^(s/0.05)."""
        with full_precision(z):
            return super().__call__(z, *arguments, **named)

    def check(self) -> None:
        """Raise ValueError where two settings contradict each other; called whenever one is set."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.settings:
            super().__setattr__(name, value)
            return
        before = getattr(self, name)
        self._set(name, value)
        try:
            self.check()
        except ValueError:
            self._set(name, before)
            raise

    def _set(self, name: str, value: Any) -> None:
        value = self.settings[name].checked(value)
        self._modules.pop(name, None)  # it may have been learnt so far
        super().__setattr__(name, value)

    @property
    def reads_values(self) -> bool:
        """Whether the inner solver branches on values: this stalls a GPU and cannot be compiled."""
        return False

    def task(self, trainer: Any) -> Any:
        """What a Trainer does for this loss, a `training.task.Task`; None: it gives labels if asked to."""
        return None

    def __repr__(self) -> str:
        arguments = inspect.signature(type(self)).parameters.values()
        values = ((p.name, p.default, getattr(self, p.name)) for p in arguments)
        shown = (f"{name}={_literal(x)}" for name, default, x in values if not (_off(x) and _off(default)))
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
        raise ValueError(f"labels must be False for {loss}, which takes none; InfoNCE and SupCon take them")
    if loss.supervised and not labels:
        hint = "without labels take InfoNCE, which it then equals for two views"
        raise ValueError(f"labels must be True for {loss}, which is made for labels; {hint}")
    return labels


class SetLoss(Objective):
    """A loss on the set of points z (V, N, E).

    A subclass declares its settings. It implements `values`, or `score` if anchors have no value of their
    own. Unless it is a regulariser, it implements `solution`. It lists in `takes` the inputs that it accepts.

    >>> import torch
    >>> from setclr.losses import SetLoss
    >>> class Alignment(SetLoss):  # a loss of your own: how far apart are the two views?
    ...     def values(self, batch):
    ...         a, b = batch.anchors
    ...         return (a - b).square().sum(-1).expand(2, -1)
    >>> Alignment()(torch.eye(3), torch.eye(3)).item()
    0.0
    """

    # Settings that several losses have, as they are in a loss that does not declare them.
    positive_views = candidates = cast(Any, None)
    stop_gradient = key_gradient = clamped = False

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
            z: (V, N, E) floating, V ≥ 2 views of N ≥ 2 images, with keys or labels V ≥ 1, with a memory
                N ≥ 1; need not be normalised.
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
                `SupCon` also takes weights (V·N, U·C + Q), floating, without gradient.

        Returns a 0-d tensor, or for "none" (V, N).
        Raises ValueError: wrong rank, dtype or size; an argument that the loss does not take; `weight` or
        "none" for a loss without a value for each anchor. On the CPU also: NaN, inf and rows of zero norm. On
        a GPU checking values would stall it: there NaN gives NaN.
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
        labels: Tensor | None = None, **more: Any,
    ) -> Tensor:  # fmt: skip
        """The solution of the inner problem, (V·N, U·N) or with memory (V·N, U·N + Q), view-major.

        Row = anchor, column = candidate. Entries are ≥ 0, have no gradient and are 0 at the anchor itself,
        and in the row of an anchor that is left out. The arguments are as in `forward`, without `weight` and
        `reduction`.
        """
        return self._solved(*self._joined(z, other, memory=memory, labels=labels, **more))

    def check(self) -> None:
        if self.key_gradient and self.stop_gradient:
            why = "which holds candidates constant"
            raise ValueError(f"key_gradient must be False with stop_gradient=True, {why}")

    def batch(self, z: Tensor, **extra: Any) -> Batch:
        """The checked batch: unit vectors, and who is whose positive."""
        batch = checked(
            z,
            **extra,
            key_gradient=self.key_gradient,
            positive_views=self.positive_views,
            pool=self.candidates,
        )
        V, N, _ = z.shape
        if V > 2 and "views" not in self.takes:
            raise ValueError(f"z must hold two views for {self}, got {V}: it matches two views")
        if V > N > 1:
            self.warn_once(f"z is (V, N, E): {V} views of {N} images? torch.stack([a, b]) joins two (N, E)")
        return batch.with_constant_candidates() if self.stop_gradient else batch

    def score(self, batch: Batch) -> Tensor:
        """The loss, a 0-d tensor."""
        return mean(self.values(batch), batch)

    def values(self, batch: Batch) -> Tensor:
        """Each anchor's value, (M,) or (V, N); their mean is the loss."""
        why = "which has no value for each anchor"
        raise ValueError(f"reduction must be 'mean' and weight None for {self}, {why}")

    def solution(self, batch: Batch) -> Tensor:
        """The assignment (M, U·C + Q)."""
        raise ValueError(f"{self} is a regulariser and has no assignment; add it to a loss that has one")

    @property
    def has_assignment(self) -> bool:
        return type(self).solution is not SetLoss.solution

    def warn_once(self, message: str) -> None:
        """Warn once for each first word of a message; never in compiled code."""
        warned = vars(self).setdefault("_warned", set())
        if not torch.compiler.is_compiling() and (first := message.split()[0]) not in warned:
            warned.add(first)
            warnings.warn(message, stacklevel=2)

    def _joined(self, z: Tensor, other: Tensor | None, **given: Any) -> tuple[Tensor, Extra]:
        """All views as one tensor, and what else was given; what the loss does not use is refused."""
        flat = given.get("labels") is not None or given.get("positives") is not None
        z, given["keys"] = joined_views(z, other, given.get("keys"), flat)
        extra = {name: x for name, x in given.items() if x is not None}
        x = extra.get("positives")
        if isinstance(x, Tensor) and x.is_floating_point() and "soft positives" not in self.takes:
            got = f"{self._get_name()}, which takes a bool mask, got {x.dtype}; SupCon takes weights"
            raise ValueError(f"positives must not be weights for {got}")
        for name, x in extra.items():
            if not NEEDS.get(name, {name}) <= self.takes:
                kind, got = self._get_name(), type(x).__name__
                raise ValueError(f"{name} must be None for {kind}, which does not use any, got {got}")
        return z, extra

    def _reduced(self, z: Tensor, extra: Extra, weight: Tensor | None, reduction: str) -> Tensor:
        batch = self.batch(z, **extra)
        if batch.complete is not None and values_readable(batch.complete) and not batch.complete.any():
            self.warn_once("no anchor of this batch has both a positive and a negative: the loss is 0")
        if weight is None and reduction == "mean":
            return self.score(batch)
        w = z.new_ones(z.shape[1]) if weight is None else checked_weight(weight, batch.anchors)
        values = w * self.values(batch).view(z.shape[:2])
        if reduction == "mean":
            return mean(values, batch, w)
        return values if batch.complete is None else values.masked_fill(~batch.complete.view_as(values), 0)

    def _solved(self, z: Tensor, extra: Extra) -> Tensor:
        with full_precision(z):
            batch = self.batch(z, **extra)
            solution, complete = self.solution(batch), batch.complete
            return solution if complete is None else solution * complete.unsqueeze(1)

    def __add__(self, other: "SetLoss") -> "WeightedSum":
        if not isinstance(other, SetLoss):
            return NotImplemented
        return WeightedSum([*_terms(self), *_terms(other)])

    def __radd__(self, other: int) -> "SetLoss":
        return self if type(other) is int and other == 0 else NotImplemented  # sum() starts at 0

    def __mul__(self, weight: float | Learnable) -> "WeightedSum":
        if isinstance(weight, SetLoss):
            return NotImplemented
        return WeightedSum([term.times(weight) for term in _terms(self)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "WeightedSum":
        if isinstance(divisor, SetLoss):
            return NotImplemented
        return self * (1 / setting("divisor", divisor, above=0, hint="a loss is divided by a number"))


class Term(NamedTuple):
    """A loss and its weight in a sum: a number, times a learnt one if there is one."""

    number: float
    learnt: Learnable | None
    loss: SetLoss

    def times(self, weight: float | Learnable) -> "Term":
        if isinstance(weight, Learnable):
            if self.learnt is not None:
                raise ValueError(
                    f"weight must be a number for {self}, whose weight is learnt, got {weight!r}"
                )
            return self._replace(learnt=weight)
        weight = setting("weight", weight, hint="a loss is multiplied by a number, or by learnable(0.5)")
        return self._replace(number=setting("weight", weight * self.number))

    @property
    def weight(self) -> float | Tensor:
        """The present weight."""
        return self.number if self.learnt is None else self.number * self.learnt()

    def __repr__(self) -> str:
        said = repr(self.loss) if self.learnt is None else f"{self.learnt!r} * {self.loss!r}"
        if self.number == 1:
            return said
        return f"{_literal(self.number)} * {said if self.learnt is None else f'({said})'}"


class WeightedSum(SetLoss):
    """Σ weight · loss, made by `+`, `*` and `/`. A weight is a number, or `learnable(0.5)`.

    Each term gets those of keys, memory, labels and positives that it takes. `takes` holds what at least one
    term takes, but "views" only if all terms do. "none" and `weight` need each anchor's value from all terms.
    `assignment` is that of the first term that has one.
    """

    def __init__(self, terms: list[Term]) -> None:
        super().__init__()
        self.losses = nn.ModuleList([term.loss for term in terms])
        self.learnt = nn.ModuleList([term.learnt or nn.Identity() for term in terms])
        self.numbers = [term.number for term in terms]
        one_of_them = frozenset.union(*(term.loss.takes for term in terms))
        all_of_them = frozenset.intersection(*(term.loss.takes for term in terms))
        self.takes = one_of_them - {"views"} | all_of_them & {"views"}
        self.supervised = any(term.loss.supervised for term in terms)

    @property
    def terms(self) -> list[Term]:
        parts: Any = zip(self.numbers, self.learnt, self.losses)
        return [Term(x, learnt if isinstance(learnt, Learnable) else None, loss) for x, learnt, loss in parts]

    @property
    def reads_values(self) -> bool:
        return any(term.loss.reads_values for term in self.terms)

    def _reduced(self, z: Tensor, extra: Extra, weight: Tensor | None, reduction: str) -> Tensor:
        more = {"weight": weight, "reduction": reduction}
        return sum(x.weight * x.loss(z, **_taken(x.loss, extra), **more) for x in self.terms)

    def _solved(self, z: Tensor, extra: Extra) -> Tensor:
        for term in self.terms:
            if term.loss.has_assignment:
                return term.loss.assignment(z, **_taken(term.loss, extra))
        raise ValueError(f"{self} has no assignment: each of its terms is a regulariser")

    @property
    def has_assignment(self) -> bool:
        return any(term.loss.has_assignment for term in self.terms)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


def mean(values: Tensor, batch: Batch, weight: Tensor | None = None) -> Tensor:
    """Mean of the values (V, N) of the complete anchors, 0 if there are none.

    With `weight` (N,) the values are weighted already, and the mean divides by the weights' sum.
    """
    V, N, _ = batch.anchors.shape
    if batch.complete is None:
        return values.mean() if weight is None else values.sum() / (V * weight.sum())
    complete = batch.complete.view(V, N)
    total = complete.sum() if weight is None else (weight * complete).sum()
    return values.view(V, N).masked_fill(~complete, 0).sum() / total.masked_fill(total == 0, 1)


def _terms(loss: SetLoss) -> list[Term]:
    return loss.terms if isinstance(loss, WeightedSum) else [Term(1.0, None, loss)]


def _taken(loss: SetLoss, extra: Extra) -> Extra:
    return {name: x for name, x in extra.items() if NEEDS.get(name, {name}) <= loss.takes}


def _off(value: object) -> bool:
    return value is None or value is False


def _literal(value: object) -> str:
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def full_precision(z: Any) -> torch.autocast:
    """A context without autocast. Raises ValueError for a tensor without values."""
    if isinstance(z, Tensor) and z.device.type == "meta":
        raise ValueError(
            "z must have values, got a tensor on the meta device; make it on a device that has some"
        )
    return torch.autocast(z.device.type if isinstance(z, Tensor) else "cpu", enabled=False)

"""A checked batch: unit vectors of anchors and candidates, and which candidates are an anchor's positives."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from setclr.checks import boolean, dense, integer, transforms, values_readable
from setclr.inner.twice import once

LEAST = 1e-12  # for the largest entry of a row: the gradient is divided by the row's length


class Pairs(NamedTuple):
    """Which candidates are an anchor's positives, and which its negatives, (V, N, U·C + Q) bool each.

    An anchor that lacks the one or the other is not `kept`: it has no part in the mean.
    """

    positive: Tensor
    negative: Tensor
    kept: Tensor | None  # (V, N) bool; None: all are

    def filled(self) -> "Pairs":
        """All candidates are both to an anchor that is not kept, so that its value, not used, is finite."""
        if self.kept is None:
            return self
        left_out = ~self.kept.unsqueeze(-1)
        return Pairs(self.positive | left_out, self.negative | left_out, self.kept)


class Points(NamedTuple):
    """A checked batch of unit vectors, float32 or float64."""

    anchors: Tensor  # (V, N, E)
    candidates: Tensor  # (U, C, E): the keys if there are any, else the anchors
    own_views: int  # in so many views, the first, an anchor's own crop is a candidate, but no positive
    memory: Tensor | None = None  # (Q, E), without gradient
    labels: Tensor | None = None  # (N,) int64: the images' classes; None: every image is a class of its own
    key_labels: Tensor | None = None  # (C,) int64, if the keys are of other images than z
    memory_labels: Tensor | None = None  # (Q,) int64; None: the memory holds negatives alone
    chosen: tuple[Tensor, Tensor] | None = None  # masks (V·N, U·C + Q) of the positives and the negatives

    @property
    def labelled(self) -> bool:
        """Whether an anchor's positives may be of other images than its own."""
        return self.labels is not None or self.chosen is not None

    def pairs(self, positive_views: int | None = None, candidates: str | None = None) -> Pairs:
        """The positives, of the first `positive_views` views (None: all), and the negatives.

        `candidates`: "other view" leaves out those of the anchor's own view; "memory" takes the negatives of
        the memory alone.
        """
        V, N, _ = self.anchors.shape
        U, C, _ = self.candidates.shape
        check_positive_views(positive_views, U)
        positive, negative = self._of_one_kind()
        if positive_views is not None:
            positive[..., positive_views * C : U * C] = False
        for mask in (positive, negative):  # batch[tensor] = False makes a GPU wait
            batch = mask[..., : U * C].unflatten(-1, (U, C))
            same_view = batch[: self.own_views].diagonal(dim1=0, dim2=2)  # (N, C, own views)
            same_view = same_view if candidates == "other view" else same_view.diagonal(dim1=0, dim2=1)
            same_view.fill_(False)
        if candidates == "memory":
            negative[..., : U * C] = False
        if self.all_kept(candidates):
            return Pairs(positive, negative, None)
        kept = positive.any(-1) & negative.any(-1)
        return Pairs(positive, negative, kept)

    def all_kept(self, candidates: str | None = None) -> bool:
        """Whether every anchor has a positive and a negative, whatever the labels are."""
        if self.chosen is not None or self.key_labels is not None:
            return False
        if candidates == "memory" and self.memory_labels is not None:
            return False
        return len(self.anchors) > 1 or not self.own_views

    def _of_one_kind(self) -> tuple[Tensor, Tensor]:
        """Masks (V, N, U·C + Q) of the candidates of the anchor's class, itself among them, and of others."""
        V, N, _ = self.anchors.shape
        if self.chosen is not None:
            positive, negative = self.chosen
            return positive.unflatten(0, (V, N)).clone(), negative.unflatten(0, (V, N)).clone()
        own = torch.arange(N, device=self.anchors.device) if self.labels is None else self.labels
        columns = (own if self.key_labels is None else self.key_labels).repeat(len(self.candidates))
        same = own.unsqueeze(1) == columns
        if self.memory is not None:
            none = same.new_zeros(N, len(self.memory))
            known = none if self.memory_labels is None else own.unsqueeze(1) == self.memory_labels
            same = torch.cat([same, known], dim=1)
        return same.repeat(V, 1, 1), (~same).repeat(V, 1, 1)

    def without_other_side(self) -> "Points":
        """The same with constants as candidates: `stop_gradient` of a loss. It has no second derivative."""
        if self.candidates is not self.anchors:
            return self
        why = "stop_gradient=True holds the candidates constant; take stop_gradient=False"
        return self._replace(anchors=once(self.anchors, why), candidates=self.anchors.detach())

    def positive_views(self, most: int | None = None) -> Tensor:
        """Mask (V, U): which views hold a positive of the anchor's image, of the first `most` (None: all)."""
        check_positive_views(most, len(self.candidates))
        V, U = len(self.anchors), len(self.candidates)
        positive = torch.ones(V, U, dtype=torch.bool, device=self.anchors.device)
        positive[:, U if most is None else most :] = False
        return positive.fill_diagonal_(False) if self.own_views else positive


def check_positive_views(value: int | None, views: int | None = None) -> int | None:
    """Check a constructor's `positive_views`: None for all views or an integer ≥ 2, at most `views`."""
    hint = "None makes every view a positive; multi-crop has 2 global views"
    return None if value is None else integer("positive_views", value, least=2, most=views, hint=hint)


def check_key_gradient(value: bool, stop_gradient: bool = False) -> bool:
    """Check a constructor's `key_gradient`, which says the opposite of `stop_gradient`."""
    if boolean("key_gradient", value) and stop_gradient:
        raise ValueError(
            "key_gradient must be False with stop_gradient=True, which holds candidates constant"
        )
    return value


def checked_points(
    z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None, labels: Tensor | None = None,
    key_labels: Tensor | None = None, memory_labels: Tensor | None = None,
    positives: Tensor | tuple[Tensor, ...] | None = None, key_gradient: bool = False,
) -> Points:  # fmt: skip
    """Check a loss's input and scale it to unit length. Raises ValueError as `SetLoss.forward` says."""
    check_tensor("z", z, "(V, N, E), V views of N images (torch.stack([a, b]) joins two (N, E))", 3)
    V, N, _ = z.shape
    alone = keys is None and labels is None and positives is None
    least = 2 if alone else 1
    if not (least <= V and N >= 2 and z.shape[2] >= 1):
        one = "; DataLoader(..., drop_last=True) drops a last batch of one image" if N == 1 else ""
        raise ValueError(
            "z must have shape (V, N, E) with V >= 2 (with keys or labels V >= 1), N >= 2 and E >= 1, "
            f"got {tuple(z.shape)}: a contrast needs two views and two images{one}"
        )
    if labels is not None and positives is not None:
        raise ValueError("labels must be None where positives are given, got both")
    for name, of_others in (("key_labels", key_labels), ("memory_labels", memory_labels)):
        if of_others is not None and labels is None:
            raise ValueError(f"{name} must come with labels, the classes of z's images, got no labels")
    anchors = unit("z", z)
    candidates, own_views, C = anchors, V, N
    if keys is not None:
        check_tensor("keys", keys, "(U, N, E)", 3)
        free = key_labels is not None or positives is not None
        fits = keys.numel() > 0 and keys.shape[2] == z.shape[2] and (free or keys.shape[1] == N)
        hint = "; keys of other images than z come with key_labels" if keys.shape[1] != N else ""
        _check_like_z("keys", keys, fits, z, hint)
        if len(keys) == 1 < V and not free:
            raise ValueError(
                f"keys must hold two views or more beside {V} views in z, got 1: view 0 has no positive"
            )
        candidates = unit("keys", (keys if key_gradient else keys.detach()).to(anchors.dtype))
        C = keys.shape[1]
        own_views = 0 if V == 1 or free else min(V, len(keys))
    if memory is not None:
        check_tensor("memory", memory, "(Q, E)", 2)
        _check_like_z("memory", memory, len(memory) > 0 and memory.shape[1] == z.shape[2], z)
        memory = unit("memory", memory.detach().to(anchors.dtype))
    Q = 0 if memory is None else len(memory)
    if labels is not None:
        labels = _checked_labels("labels", labels, N, z.device, 0)
        if key_labels is not None:
            key_labels = _checked_labels("key_labels", key_labels, C, z.device, N)
        if memory_labels is not None:
            memory_labels = _checked_labels("memory_labels", memory_labels, Q, z.device, N + C)
        _check_two_classes(labels, [x for x in (key_labels, memory_labels) if x is not None], memory)
    chosen = None
    if positives is not None:
        chosen = _chosen_pairs(positives, V * N, len(candidates) * C, Q, z.device)
    return Points(anchors, candidates, own_views, memory, labels, key_labels, memory_labels, chosen)


def unit(name: str, x: Tensor) -> Tensor:
    """x (..., E) scaled to unit length, float32 or wider.

    Each row is first divided by its largest entry, against overflow. Raises ValueError on the CPU for a row
    that is not finite or too short for a gradient.
    """
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = x.detach().abs().amax(-1, keepdim=True)
    if values_readable(x):
        bad = ~(scale.isfinite() & (scale >= LEAST)).squeeze(-1)
        if bad.any():
            where = bad.nonzero()[0].tolist()
            most = float(scale[tuple(where)])
            what = f"nothing above {most:.2g}, too short for a gradient" if 0 < most < LEAST else "NaN or inf"
            what = what if most != 0 else "only zeros and so has no direction"
            raise ValueError(
                f"{name}{where} must be finite and not zero, got a row that holds {what}; "
                "look for a diverged step, a dead layer or a missing batch norm"
            )
    if transforms():
        return x / scale / (x / scale).norm(dim=-1, keepdim=True)
    return _Unit.apply(x, scale)


class _Unit(torch.autograd.Function):
    """u = x/‖x‖ with the gradient (g − u⟨u, g⟩)/‖x‖, which takes half the operations of autograd's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
        u = x / scale
        u /= u.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x, u)
        return u

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, u = ctx.saved_tensors
        length = (x * u).sum(-1, keepdim=True)
        return torch.addcmul(grad, u, (u * grad).sum(-1, keepdim=True), value=-1) / length, None


def length(x: Tensor) -> Tensor:
    """The norm of x along its last dimension. At 0 all its derivatives are 0."""
    zero = (x == 0).all(-1)
    return torch.where(zero.unsqueeze(-1), 1, x).norm(dim=-1).masked_fill(zero, 0)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances (..., n, m) of unit vectors (..., n, E) and (..., m, E); at 0 the gradient is 0.

    √(2 − 2s) would lose half the digits. So vectors of float32 are multiplied in float64, which takes a third
    of the time of differences; what is nearer than 3e-8, half the rounding of float32, counts as equal.
    """
    if transforms():
        return length(x.unsqueeze(-2) - y.unsqueeze(-3))
    if x.dtype == torch.float64:
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    a, b = x.double(), y.double()
    square = a.square().sum(-1).unsqueeze(-1) + b.square().sum(-1).unsqueeze(-2) - 2 * a @ b.mT
    zero = square < 1e-15
    return square.masked_fill(zero, 1).sqrt().masked_fill(zero, 0).to(x.dtype)


def checked_weight(weight: Tensor, points: Points) -> Tensor:
    """`weight` (N,) in the points' precision.

    Raises ValueError unless it is ≥ 0 with a largest entry of 1e-9 to 1e9: a mean divides by the sum.
    """
    anchors = points.anchors
    N = anchors.shape[1]
    check_tensor("weight", weight, f"of {N} numbers, one an image", 1)
    if weight.shape != (N,) or weight.device != anchors.device:
        raise ValueError(
            f"weight must be ({N},), one number for each image, on {anchors.device}, "
            f"got {tuple(weight.shape)} on {weight.device}"
        )
    if values_readable(weight) and not ((weight >= 0).all() and 1e-9 <= float(weight.max()) <= 1e9):
        raise ValueError(f"weight must be >= 0 and its largest entry 1e-9 to 1e9, got {weight.tolist()}")
    return weight.to(anchors.dtype)


def mean(values: Tensor, kept: Tensor | None, weight: Tensor | None = None) -> Tensor:
    """Mean of the values (V, N) of the kept anchors (V, N), 0 if there are none.

    With `weight` (N,) the values are weighted already, and the mean divides by the weights' sum.
    """
    if kept is None:
        return values.mean() if weight is None else values.sum() / (len(values) * weight.sum())
    total = kept.sum() if weight is None else (weight * kept).sum()
    return values.masked_fill(~kept, 0).sum() / total.masked_fill(total == 0, 1)


def check_tensor(name: str, x: Tensor, shape: str, rank: int) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a floating tensor {shape}, got {type(x).__name__}")
    if x.ndim != rank:
        raise ValueError(f"{name} must be a floating tensor {shape}, got shape {tuple(x.shape)}")
    if not x.is_floating_point():
        raise ValueError(f"{name} must be a floating tensor {shape}, got {x.dtype}; use {name}.float()")
    dense(name, x)


def _check_like_z(name: str, x: Tensor, fits: bool, z: Tensor, hint: str = "") -> None:
    if not fits or x.device != z.device:
        raise ValueError(
            f"{name} must fit z of shape {tuple(z.shape)} on {z.device}, got {tuple(x.shape)} on {x.device}"
            + hint
        )


def _checked_labels(name: str, labels: Tensor, N: int, device: torch.device, first: int) -> Tensor:
    """Labels (N,) int64; image i without a label has a class of its own, −1 − first − i."""
    wanted = f"{name} must be a tensor of N = {N} integers on {device}"
    if not isinstance(labels, Tensor):
        raise ValueError(f"{wanted}, got {type(labels).__name__}; use torch.tensor({name})")
    dense(name, labels)
    whole = not (labels.is_floating_point() or labels.is_complex())
    if labels.shape != (N,) or not whole or labels.device != device:
        raise ValueError(f"{wanted}, got {labels.dtype} {tuple(labels.shape)} on {labels.device}")
    return torch.where(labels < 0, -1 - first - torch.arange(N, device=device), labels.long())


def _check_two_classes(labels: Tensor, others: list[Tensor], memory: Tensor | None) -> None:
    """Raise ValueError if all labels are the same; a memory without labels holds other classes."""
    if (memory is not None and not others) or not values_readable(labels):
        return
    every = torch.cat([labels, *others])
    if bool((every == every[0]).all()):
        raise ValueError(
            f"labels must name two classes or more, got only {int(every[0])}: there would be no negatives; "
            "draw batches of several classes"
        )


def _chosen_pairs(
    positives: Any, rows: int, columns: int, Q: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Masks (rows, columns + Q) of positives and negatives, from a mask or from a miner's indices.

    A mask without the columns of the memory leaves these negatives.
    """
    wanted = (
        f"positives must be a bool mask ({rows}, {columns}) on {device}, or two or four tensors of indices"
    )
    if isinstance(positives, Tensor):
        if positives.dtype != torch.bool or positives.shape not in ((rows, columns), (rows, columns + Q)):
            raise ValueError(
                f"{wanted}, got {positives.dtype} {tuple(positives.shape)}; use positives.bool()"
            )
        dense("positives", positives)
        positive = positives.new_zeros(rows, columns + Q)
        positive[:, : positives.shape[1]] = positives
        return positive, ~positive
    if not isinstance(positives, (tuple, list)) or len(positives) not in (2, 4):
        raise ValueError(
            f"{wanted}, (anchor, positive) or (anchor, positive, anchor, negative), got {positives!r}"
        )
    masks = []
    for anchor, other in zip(positives[::2], positives[1::2]):
        for name, x, most in (("anchor", anchor, rows), ("other", other, columns + Q)):
            if not isinstance(x, Tensor) or x.dtype != torch.int64 or x.ndim != 1 or len(x) != len(anchor):
                raise ValueError(f"{wanted}, each of int64 and of equal length, got {name} {x!r}")
            if values_readable(x) and len(x) and not 0 <= int(x.min()) <= int(x.max()) < most:
                raise ValueError(f"positives must hold indices from 0 to {most - 1}, got {x.tolist()}")
        mask = torch.zeros(rows, columns + Q, dtype=torch.bool, device=device)
        # mask[anchor, other] = True would make a GPU wait.
        masks.append(mask.index_put((anchor, other), mask.new_ones(())))
    return masks[0], masks[1] if len(masks) == 2 else ~masks[0]

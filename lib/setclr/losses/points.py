"""A checked batch: unit vectors of anchors and candidates, and which candidates are an anchor's positives."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from setclr.checks import dense, integer, values_readable
from setclr.inner.twice import once

LEAST = 1e-12  # for the largest entry of a row: the gradient is divided by the row's length


class Points(NamedTuple):
    """A checked batch of unit vectors, float32 or float64."""

    anchors: Tensor  # (V, N, E)
    candidates: Tensor  # (U, N, E): the keys, without gradient, if there are any, else the anchors
    memory: Tensor | None = None  # (Q, E), without gradient
    labels: Tensor | None = None  # (N,) int64: the images' classes; None: every image is a class of its own

    def own_views(self) -> int:
        """The number of views, the first ones, whose anchors have their own crop among the candidates.

        An anchor's own crop is not a positive.
        """
        return min(len(self.anchors), len(self.candidates)) if len(self.anchors) > 1 else 0

    def same_class(self) -> Tensor:
        """Which images are of one class, (N, N) bool."""
        if self.labels is None:
            return torch.eye(self.anchors.shape[1], dtype=torch.bool, device=self.anchors.device)
        return self.labels.unsqueeze(1) == self.labels

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
        return positive.fill_diagonal_(False) if V > 1 else positive


def check_positive_views(value: int | None, views: int | None = None) -> int | None:
    """Check a constructor's `positive_views`: None for all views or an integer ≥ 2, at most `views`."""
    hint = "None makes every view a positive; multi-crop has 2 global views"
    return None if value is None else integer("positive_views", value, least=2, most=views, hint=hint)


def checked_points(z: Tensor, keys: Tensor | None, memory: Tensor | None, labels: Tensor | None) -> Points:
    """Check a loss's input and scale it to unit length. Raises ValueError as `SetLoss.forward` says."""
    check_tensor("z", z, "(V, N, E), V views of N images (torch.stack([a, b]) joins two (N, E))", 3)
    if z.shape[0] < (2 if keys is None else 1) or z.shape[1] < 2 or z.shape[2] < 1:
        raise ValueError(
            "z must have shape (V, N, E) with V >= 2 (with keys V >= 1), N >= 2 and E >= 1, "
            f"got {tuple(z.shape)}: a contrast needs two views and two images"
        )
    anchors = unit("z", z)
    candidates = anchors
    if keys is not None:
        check_tensor("keys", keys, "(U, N, E)", 3)
        _check_like_z("keys", keys, len(keys) > 0 and keys.shape[1:] == z.shape[1:], z)
        if len(keys) == 1 < len(z):
            raise ValueError(
                f"keys must hold two views or more beside {len(z)} views in z, got 1: view 0 has no positive"
            )
        candidates = unit("keys", keys.detach().to(anchors.dtype))
    if memory is not None:
        check_tensor("memory", memory, "(Q, E)", 2)
        _check_like_z("memory", memory, len(memory) > 0 and memory.shape[1] == z.shape[2], z)
        memory = unit("memory", memory.detach().to(anchors.dtype))
    if labels is not None:
        labels = _checked_labels(labels, z, memory)
    return Points(anchors, candidates, memory, labels)


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


def check_tensor(name: str, x: Tensor, shape: str, rank: int) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a floating tensor {shape}, got {type(x).__name__}")
    if x.ndim != rank:
        raise ValueError(f"{name} must be a floating tensor {shape}, got shape {tuple(x.shape)}")
    if not x.is_floating_point():
        raise ValueError(f"{name} must be a floating tensor {shape}, got {x.dtype}; use {name}.float()")
    dense(name, x)


def _check_like_z(name: str, x: Tensor, fits: bool, z: Tensor) -> None:
    if not fits or x.device != z.device:
        raise ValueError(
            f"{name} must fit z of shape {tuple(z.shape)} on {z.device}, got {tuple(x.shape)} on {x.device}"
        )


def _checked_labels(labels: Tensor, z: Tensor, memory: Tensor | None) -> Tensor:
    """Labels (N,) int64, in which each image without a label has a class of its own, below 0."""
    N = z.shape[1]
    wanted = f"labels must be a tensor of N = {N} integers on {z.device}"
    if not isinstance(labels, Tensor):
        raise ValueError(f"{wanted}, got {type(labels).__name__}; use torch.tensor(labels)")
    dense("labels", labels)
    whole = not (labels.is_floating_point() or labels.is_complex())
    if labels.shape != (N,) or not whole or labels.device != z.device:
        raise ValueError(f"{wanted}, got {labels.dtype} {tuple(labels.shape)} on {labels.device}")
    labels = torch.where(labels < 0, -1 - torch.arange(N, device=labels.device), labels.long())
    if memory is None and values_readable(labels) and bool((labels == labels[0]).all()):
        raise ValueError(
            f"labels must name two classes or more, got only {int(labels[0])}: there would be no negatives; "
            "draw batches of several classes"
        )
    return labels

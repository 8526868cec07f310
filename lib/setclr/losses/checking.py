"""The batch that a loss is called with: checked, scaled to unit length, and its pairs as masks."""

from typing import Any

import torch
from torch import Tensor

from setclr.checks import dense, integer, values_readable
from setclr.losses.table import Batch, unit

FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LEAST, LEAST_HALF = 1e-12, 1e-4  # for the largest entry of a row: the gradient is divided by its length


def checked(
    z: Tensor, keys: Tensor | None = None, memory: Tensor | None = None, labels: Tensor | None = None,
    key_labels: Tensor | None = None, memory_labels: Tensor | None = None,
    positives: Tensor | tuple[Tensor, ...] | None = None, key_gradient: bool = False,
    positive_views: int | None = None, pool: str | None = None,
) -> Batch:  # fmt: skip
    """The batch of a loss. Raises ValueError as `SetLoss.forward` says."""
    _tensor("z", z, "(V, N, E), V views of N images (torch.stack([a, b]) joins two (N, E))", 3)
    V, N, _ = z.shape
    least = 2 if keys is None and labels is None and positives is None else 1
    if not (least <= V and 1 + (memory is None) <= N and z.shape[2] >= 1):
        one = "; DataLoader(..., drop_last=True) drops a last batch of one image" if N == 1 else ""
        raise ValueError(
            "z must have shape (V, N, E) with V >= 2 (with keys or labels V >= 1), N >= 2 (with a memory "
            f"N >= 1) and E >= 1, got {tuple(z.shape)}: a contrast needs two views and two images{one}"
        )
    if labels is not None and positives is not None:
        raise ValueError("labels must be None where positives are given, got both")
    for name, of_others in (("key_labels", key_labels), ("memory_labels", memory_labels)):
        if of_others is not None and labels is None:
            raise ValueError(f"{name} must come with labels, the classes of z's images, got no labels")
    anchors = candidates = _unit("z", z)
    own_views = V
    if keys is not None:
        others = key_labels is not None or positives is not None  # the keys may be of other images than z
        _check_keys(keys, z, others)
        candidates = _unit("keys", (keys if key_gradient else keys.detach()).to(anchors.dtype))
        own_views = 0 if V == 1 or others else min(V, len(keys))
    if memory is not None:
        _tensor("memory", memory, "(Q, E)", 2)
        _check_like_z("memory", memory, len(memory) > 0 and memory.shape[1] == z.shape[2], z)
        memory = _unit("memory", memory.detach().to(anchors.dtype))
    if positive_views is not None:
        hint = "None makes every view a positive; multi-crop has 2 global views"
        integer("positive_views", positive_views, least=2, most=len(candidates), hint=hint)
    batch = Batch(anchors, candidates, own_views, memory, positive_views, pool)
    if isinstance(positives, Tensor) and positives.is_floating_point():
        return _masked(*_soft_positives(positives, batch), all_complete=True)
    if positives is not None:
        return _masked(batch, *_named_pairs(positives, batch), all_complete=False)
    if labels is None:
        return batch
    of_memory = pool == "memory" and memory_labels is not None  # a class may be missing there
    all_complete = (V > 1 or not own_views) and key_labels is None and not of_memory
    positive, negative, several = class_masks(batch, labels, key_labels, memory_labels)
    return _masked(batch, positive, negative, all_complete and several)


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
        if not other.is_floating_point() or z.shape != other.shape or z.device != other.device:
            got = f"{other.dtype} {tuple(other.shape)} on {other.device}"
            raise ValueError(
                f"z2 must be a second view as z1 is, {tuple(z.shape)} on {z.device}, got {got}; "
                "labels are named: loss(z, labels=y)"
            )
        return torch.stack([z, other]), keys
    if keys is not None:
        raise ValueError("keys must be given once, got two of them; loss(z1, z2, keys=k) has views (N, E)")
    return z, other


def checked_weight(weight: Tensor, anchors: Tensor) -> Tensor:
    """`weight` (N,) in the precision of the anchors (V, N, E).

    Raises ValueError unless it is ≥ 0 with a largest entry of 1e-9 to 1e9: a mean divides by the sum.
    """
    N = anchors.shape[1]
    _tensor("weight", weight, f"of {N} numbers, one an image", 1)
    if weight.shape != (N,) or weight.device != anchors.device:
        raise ValueError(
            f"weight must be ({N},), one number for each image, on {anchors.device}, "
            f"got {tuple(weight.shape)} on {weight.device}"
        )
    if values_readable(weight) and not ((weight >= 0).all() and 1e-9 <= float(weight.max()) <= 1e9):
        raise ValueError(f"weight must be >= 0 and its largest entry 1e-9 to 1e9, got {weight.tolist()}")
    return weight.to(anchors.dtype)


def class_masks(
    batch: Batch, labels: Tensor, key_labels: Tensor | None, memory_labels: Tensor | None
) -> tuple[Tensor, Tensor, bool]:
    """Masks (M, U·C + Q) of the candidates of the anchor's class, itself among them, and of the others, and
    whether the labels are known to be of two classes or more."""
    (V, N, _), (U, C, _) = batch.anchors.shape, batch.candidates.shape
    Q = 0 if batch.memory is None else len(batch.memory)
    device = batch.anchors.device
    labels = columns = _checked_labels("labels", labels, N, device, 0)
    classes = [labels]
    if key_labels is not None:
        columns = _checked_labels("key_labels", key_labels, C, device, N)
        classes.append(columns)
    same = labels.unsqueeze(1) == columns.repeat(U)
    if batch.memory is not None:
        known = same.new_zeros(N, Q)
        if memory_labels is not None:
            classes.append(_checked_labels("memory_labels", memory_labels, Q, device, N + C))
            known = labels.unsqueeze(1) == classes[-1]
        same = torch.cat([same, known], dim=1)
    every = torch.cat(classes)
    of_others = batch.memory is not None and memory_labels is None  # then the memory holds other classes
    several = of_others or (values_readable(every) and bool((every != every[0]).any()))
    return same.repeat(V, 1), (~same).repeat(V, 1), several


def _masked(batch: Batch, positive: Tensor, negative: Tensor, all_complete: bool) -> Batch:
    """The batch with these masks, less what its positive views, its pool and its own crops leave out.

    `all_complete`: every anchor has a positive and a negative, whatever the labels are.
    """
    U, C, _ = batch.candidates.shape
    if batch.positive_views is not None:
        positive[:, batch.positive_views * C : U * C] = False
    for mask in (positive, negative):  # batch[tensor] = False makes a GPU wait
        if batch.pool == "other view":
            view = mask[:, : U * C].unflatten(0, batch.anchors.shape[:2]).unflatten(-1, (U, C))
            view[: batch.own_views].diagonal(dim1=0, dim2=2).fill_(False)
        mask.diagonal()[: batch.own_views * C].fill_(False)
    if batch.pool == "memory":
        negative[:, : U * C] = False
    complete = None if all_complete else positive.any(-1) & negative.any(-1)
    return batch._replace(positive=positive, negative=negative, complete=complete)


def _unit(name: str, x: Tensor) -> Tensor:
    """`unit(x)`. Raises ValueError on the CPU for a row that is not finite or too short for a gradient."""
    if values_readable(x):
        size = x.detach().to(torch.promote_types(x.dtype, torch.float32)).abs().amax(-1)
        least = LEAST_HALF if x.dtype == torch.float16 else LEAST
        bad = ~(size.isfinite() & (size >= least))
        if bad.any():
            where = bad.nonzero()[0].tolist()
            most = float(size[tuple(where)])
            short = f"nothing above {most:.2g}, too short for a gradient in {x.dtype}"
            what = short if 0 < most < least else "NaN or inf"
            what = what if most != 0 else "only zeros and so has no direction"
            raise ValueError(
                f"{name}{where} must be finite and not zero, got a row that holds {what}; "
                "look for a diverged step, a dead layer or a missing batch norm"
            )
    return unit(x)


def _tensor(name: str, x: Tensor, shape: str, rank: int) -> None:
    if isinstance(x, Tensor) and x.is_nested:
        raise ValueError(
            f"{name} must be a floating tensor {shape}, got a nested tensor; torch.stack joins views"
        )
    if isinstance(x, Tensor) and x.ndim == rank and x.dtype in FLOATING:
        return dense(name, x)
    got = type(x).__name__
    if isinstance(x, Tensor):
        got = f"{x.dtype}; use {name}.float()" if x.ndim == rank else f"shape {tuple(x.shape)}"
    raise ValueError(f"{name} must be a floating tensor {shape}, got {got}")


def _check_keys(keys: Tensor, z: Tensor, others: bool) -> None:
    """Raise ValueError unless keys are (U, N, E) for z (V, N, E), or (U, C, E) if they may be of `others`."""
    _tensor("keys", keys, "(U, N, E)", 3)
    hint = "; keys of other images than z come with key_labels" if keys.shape[1] != z.shape[1] else ""
    fits = keys.numel() > 0 and keys.shape[2] == z.shape[2] and (others or not hint)
    _check_like_z("keys", keys, fits, z, hint)
    if len(keys) == 1 < len(z) and not others:
        raise ValueError(
            f"keys must hold two views or more beside {len(z)} views in z, got 1: view 0 has no positive"
        )


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


def _soft_positives(weights: Tensor, batch: Batch) -> tuple[Batch, Tensor, Tensor]:
    """The batch with the weights of its candidates, (M, U·C + Q), and masks of those above 0 and of all."""
    rows, columns = len(batch.rows()), len(batch.columns())
    if weights.shape != (rows, columns) or weights.device != batch.anchors.device:
        raise ValueError(
            f"positives must be a mask or weights ({rows}, {columns}) on {batch.anchors.device}, "
            f"got {tuple(weights.shape)} on {weights.device}"
        )
    dense("positives", weights)
    weights = weights.detach().to(batch.anchors.dtype, copy=True)
    weights.diagonal()[: batch.own_views * batch.candidates.shape[1]].fill_(0)
    total = weights.sum(1, keepdim=True)
    if values_readable(weights) and not ((weights >= 0).all() and ((total > 0) & total.isfinite()).all()):
        got = f"rows of sum {float(total.min()):.3g} or more, the smallest weight {float(weights.min()):.3g}"
        wanted = "weights >= 0 with a sum above 0 in each row, beside the anchor itself"
        raise ValueError(f"positives must be {wanted}, got {got}")
    return batch._replace(weights=weights / total), weights > 0, torch.ones_like(weights, dtype=torch.bool)


def _named_pairs(positives: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Masks (M, U·C + Q) of positives and negatives, from a mask or from a miner's indices.

    A mask without the columns of the memory leaves these negatives.
    """
    device, rows = batch.anchors.device, batch.anchors.shape[:2].numel()
    columns = batch.candidates.shape[:2].numel()
    every = columns + (0 if batch.memory is None else len(batch.memory))
    wanted = (
        f"positives must be a bool mask ({rows}, {columns}) on {device}, or two or four tensors of indices"
    )
    if isinstance(positives, Tensor):
        if positives.dtype != torch.bool or positives.shape not in ((rows, columns), (rows, every)):
            raise ValueError(
                f"{wanted}, got {positives.dtype} {tuple(positives.shape)}; use positives.bool()"
            )
        dense("positives", positives)
        positive = positives.new_zeros(rows, every)
        positive[:, : positives.shape[1]] = positives
        return positive, ~positive
    if not isinstance(positives, (tuple, list)) or len(positives) not in (2, 4):
        raise ValueError(
            f"{wanted}, (anchor, positive) or (anchor, positive, anchor, negative), got {positives!r}"
        )
    masks = []
    for anchor, other in zip(positives[::2], positives[1::2]):
        for name, x, most in (("anchor", anchor, rows), ("other", other, every)):
            if not isinstance(x, Tensor) or x.dtype != torch.int64 or x.ndim != 1 or len(x) != len(anchor):
                raise ValueError(f"{wanted}, each of int64 and of equal length, got {name} {x!r}")
            if values_readable(x) and len(x) and not 0 <= int(x.min()) <= int(x.max()) < most:
                raise ValueError(f"positives must hold indices from 0 to {most - 1}, got {x.tolist()}")
        mask = torch.zeros(rows, every, dtype=torch.bool, device=device)
        # mask[anchor, other] = True would make a GPU wait.
        masks.append(mask.index_put((anchor, other), mask.new_ones(())))
    return masks[0], masks[1] if len(masks) == 2 else ~masks[0]

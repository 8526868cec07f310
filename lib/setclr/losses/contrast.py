"""Similarities of every anchor to its positives, with weights, and to its negatives."""

from typing import NamedTuple

import torch
from torch import Tensor

from setclr.losses.points import Points


class Contrast(NamedTuple):
    """Similarities of the anchors (v, i) to positives and negatives, divided by the temperature."""

    positives: Tensor  # (V, N, K): to the anchor's image, K = U; with labels to all, K = U·C + Q
    weights: Tensor  # (V, 1 or N, K): of the positives in their mean, 0 for others; rows sum to 1
    negatives: list[Tensor]  # (V, N, U·C), −inf where none, and the memory's (V, N, Q); with labels joined
    counts: Tensor  # () or with labels (V, N): how many negatives an anchor has

    def over_positives(self, x: Tensor) -> Tensor:
        """Mean of x (V, N, K) over the positives of each anchor, (V, N)."""
        return (self.weights * x).sum(-1)

    def log_mass(self, scale: float = 1.0) -> Tensor:
        """log Σ_n e^(scale · x_n) over the negatives, (V, N)."""
        scaled = self.negatives if scale == 1 else [scale * x for x in self.negatives]
        return torch.stack([x.logsumexp(-1) for x in scaled]).logsumexp(0)

    def matrix(self) -> Tensor:
        """The negatives as one tensor, (V, N, U·C + Q)."""
        return torch.cat(self.negatives, dim=-1)

    def assignment(self, negatives: Tensor, positives: Tensor) -> Tensor:
        """Assignment (V·N, U·C + Q) from the shares of negatives (V, N, U·C + Q) and positives (V, N, K)."""
        if self.labelled:
            negatives[..., : positives.shape[-1]] += positives
        else:
            same_image(negatives, positives.shape[-1]).add_(positives.mT)
        return negatives.flatten(0, 1)

    @property
    def labelled(self) -> bool:
        return self.counts.ndim > 0


def contrast(
    points: Points, temperature: float | Tensor = 1.0, positive_views: int | None = None,
    candidates: str | None = None, clamped: bool = False,
) -> Contrast:  # fmt: skip
    """The similarities s/τ of every anchor to positives and negatives.

    `positive_views` and `candidates` are as in `Points.pairs`. `clamped`: negative similarities count as 0.
    """
    anchors = points.anchors / temperature
    if points.labelled:
        similarities = products(anchors, all_candidates(points), clamped)
        positive, negative, _ = points.pairs(positive_views, candidates).filled()
        weights = positive.to(similarities) / positive.sum(-1, keepdim=True)
        negatives = similarities.masked_fill(~negative, -torch.inf)
        return Contrast(similarities, weights, [negatives], negative.sum(-1).to(similarities))
    U, N, _ = points.candidates.shape
    negatives = products(anchors, points.candidates.flatten(0, 1), clamped)
    own = same_image(negatives, U)
    positives = own.mT.clone()
    own.fill_(-torch.inf)
    if candidates == "other view":
        negatives = negatives.masked_fill(_own_view(points), -torch.inf)
    elif candidates == "memory":  # joining them would copy a long memory
        negatives = torch.full_like(negatives, -torch.inf)
    positive = points.positive_views(positive_views).unsqueeze(1)
    weights = positive.to(negatives) / positive.sum(-1, keepdim=True)
    count = {None: U, "other view": U - 1, "memory": 0}[candidates] * (N - 1)
    each = [negatives]
    if points.memory is not None:
        each.append(products(anchors, points.memory, clamped))
        count += len(points.memory)
    return Contrast(positives, weights, each, negatives.new_full((), count))


def products(x: Tensor, y: Tensor, clamped: bool = False) -> Tensor:
    """Inner products (V, N, M) of rows of x (V, N, E) and y (M, E); `clamped`: negative ones become 0."""
    return (x @ y.T).clamp(min=0) if clamped else x @ y.T


def same_image(x: Tensor, U: int) -> Tensor:
    """A view (V, U, N) of x (V, N, U·N or more): the entries of anchor (v, i) and view u of its image."""
    V, N, _ = x.shape
    return x[..., : U * N].view(V, N, U, N).diagonal(dim1=1, dim2=3)


def all_candidates(points: Points) -> Tensor:
    """All candidates (U·C + Q, E): those of the batch, view-major, then the memory."""
    candidates = points.candidates.flatten(0, 1)
    return candidates if points.memory is None else torch.cat([candidates, points.memory])


def _own_view(points: Points) -> Tensor:
    """Which candidates are of the anchor's view, (V, 1, U·N) bool."""
    V, U, N = len(points.anchors), *points.candidates.shape[:2]
    same = torch.eye(V, U, dtype=torch.bool, device=points.anchors.device)
    return same.repeat_interleave(N, 1).unsqueeze(1)

"""Similarities of every anchor to its positives, with weights, and to its negatives."""

from typing import NamedTuple

import torch
from torch import Tensor

from setclr.losses.points import Points


class Contrast(NamedTuple):
    """Similarities of the anchors (v, i) to positives and negatives, divided by the temperature."""

    positives: Tensor  # (V, N, K): to the anchor's image, K = U; with labels to all, K = U·N
    weights: Tensor  # (V, 1 or N, K): of the positives in their mean, 0 for others; rows sum to 1
    negatives: list[Tensor]  # (V, N, U·N), −inf at the anchor's class; with memory also (V, N, Q)
    counts: Tensor  # () or with labels (N,): how many negatives an anchor has

    def over_positives(self, x: Tensor) -> Tensor:
        """Mean of x (V, N, K) over the positives of each anchor, (V, N)."""
        return (self.weights * x).sum(-1)

    def log_mass(self, scale: float = 1.0) -> Tensor:
        """log Σ_n e^(scale · x_n) over the negatives, (V, N)."""
        scaled = self.negatives if scale == 1 else [scale * x for x in self.negatives]
        return torch.stack([x.logsumexp(-1) for x in scaled]).logsumexp(0)

    def matrix(self) -> Tensor:
        """The negatives as one tensor, (V, N, U·N + Q)."""
        return torch.cat(self.negatives, dim=-1)

    def assignment(self, negatives: Tensor, positives: Tensor) -> Tensor:
        """Assignment (V·N, U·N + Q) from the shares of negatives (V, N, U·N + Q) and positives (V, N, K)."""
        if self.labelled:
            negatives[..., : positives.shape[-1]] += positives
        else:
            same_image(negatives, positives.shape[-1]).add_(positives.mT)
        return negatives.flatten(0, 1)

    @property
    def labelled(self) -> bool:
        return self.counts.ndim == 1


def contrast(
    points: Points, temperature: float | Tensor = 1.0, positive_views: int | None = None,
    other_view: bool = False, clamped: bool = False,
) -> Contrast:  # fmt: skip
    """The similarities s/τ of every anchor to positives and negatives.

    Those to batch and memory stay separate, since joining them would copy a long memory. `positive_views`:
    only the first so many views are positives; None: all. `other_view`: the anchor's own view has no
    candidates. `clamped`: negative similarities count as 0.
    """
    anchors, candidates, memory, labels = points
    N, U = anchors.shape[1], len(candidates)
    anchors = anchors / temperature
    negatives = products(anchors, candidates.flatten(0, 1), clamped)
    positive = points.positive_views(positive_views)
    if labels is None:
        own = same_image(negatives, U)
        positives = own.mT.clone()
        own.fill_(-torch.inf)
        positive, counts = positive.unsqueeze(1), negatives.new_full((), (U - other_view) * (N - 1))
    else:
        same = points.same_class()
        positives, negatives = negatives, negatives.masked_fill(same.repeat(1, U), -torch.inf)
        positive = _of_the_class(points, positive_views, same, other_view)
        counts = (U - other_view) * (~same).sum(1).to(negatives)
    if other_view:
        negatives = negatives.masked_fill(_own_view(points), -torch.inf)
    weights = positive.to(negatives) / positive.sum(-1, keepdim=True)
    if memory is None:
        return Contrast(positives, weights, [negatives], counts)
    return Contrast(positives, weights, [negatives, products(anchors, memory, clamped)], counts + len(memory))


def products(x: Tensor, y: Tensor, clamped: bool) -> Tensor:
    """Inner products (V, N, M) of rows of x (V, N, E) and y (M, E); `clamped`: negative ones become 0."""
    return (x @ y.T).clamp(min=0) if clamped else x @ y.T


def same_image(x: Tensor, U: int) -> Tensor:
    """A view (V, U, N) of x (V, N, U·N or more): the entries of anchor (v, i) and view u of its image."""
    V, N, _ = x.shape
    return x[..., : U * N].view(V, N, U, N).diagonal(dim1=1, dim2=3)


def all_candidates(points: Points) -> Tensor:
    """All candidates (U·N + Q, E): those of the batch, view-major, then the memory."""
    candidates = points.candidates.flatten(0, 1)
    return candidates if points.memory is None else torch.cat([candidates, points.memory])


def _of_the_class(points: Points, most: int | None, same: Tensor, other_view: bool) -> Tensor:
    """Which candidates are positives of each anchor by their labels, (V, N, U·N) bool."""
    V, U = len(points.anchors), len(points.candidates)
    views = torch.arange(U, device=same.device) < (U if most is None else most)
    positive = (same.unsqueeze(1) & views.unsqueeze(1)).repeat(V, 1, 1, 1)  # (V, N, U, N)
    if points.own_views():
        positive.diagonal(dim1=1, dim2=3).diagonal(dim1=0, dim2=1).fill_(False)
    return positive.flatten(2) & ~_own_view(points) if other_view else positive.flatten(2)


def _own_view(points: Points) -> Tensor:
    """Which candidates are of the anchor's view, (V, 1, U·N) bool."""
    V, U, N = len(points.anchors), *points.candidates.shape[:2]
    same = torch.eye(V, U, dtype=torch.bool, device=points.anchors.device)
    return same.repeat_interleave(N, 1).unsqueeze(1)

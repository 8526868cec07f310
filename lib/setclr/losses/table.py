"""Who is compared with whom: a checked batch, and the table of similarities that a contrastive loss reads.

An anchor is a row, a candidate a column, both view-major: row v·N + i is view v of image i. The positives of
an anchor are the other views of its image, or all points of its class, or those that the caller names. Views,
keys and a memory make a table by arithmetic, labels and named pairs by masks; a loss sees no difference.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import transforms
from setclr.inner.derivatives import once


class Table(NamedTuple):
    """Cosines times a scale: of M anchors to their positives, and to other candidates, C in all."""

    near: Tensor  # (M, K): to the positives
    true: Tensor  # (M, K) bool: which of these entries are positives; at least one in a row
    positive: Tensor  # (M, K): their columns
    far: Tensor  # (M, C): to the negatives, or to `every` candidate but itself; −inf at all others
    size: Tensor  # (1, 1) or (M, 1): how many candidates `far` has
    most: int  # no anchor has more

    def mean(self, x: Tensor) -> Tensor:
        """The mean of x (M, K) over each anchor's positives, (M,)."""
        return torch.where(self.true, x, 0).sum(-1) / self.true.sum(-1)

    def at_positives(self, x: Tensor) -> Tensor:
        """The entries (M, K) of x (M, C) at the positives' columns."""
        return x if x.shape == self.positive.shape else x.gather(1, self.positive)

    def mass(self, scale: float = 1.0) -> Tensor:
        """log Σ exp(scale · far), (M, 1)."""
        return (self.far if scale == 1 else scale * self.far).logsumexp(-1, keepdim=True)

    def assignment(self, near: Tensor, far: Tensor) -> Tensor:
        """What positives (M, K) get, in the mean over them, and negatives (M, C), as one matrix (M, C)."""
        near = near.masked_fill(~self.true, 0) / self.true.sum(-1, keepdim=True)
        return far.scatter_add(1, self.positive, near)

    def compact(self) -> "Table":
        """The same with as few entries K as the positives need. With labels a GPU waits for their number."""
        if self.near.shape != self.far.shape:
            return self
        true, column = self.true.byte().topk(int(self.true.sum(-1).max()))
        return self._replace(near=self.near.gather(1, column), true=true.bool(), positive=column)


class Batch(NamedTuple):
    """A checked batch of unit vectors, float32 or float64, and whose positive is who (`checking.checked`)."""

    anchors: Tensor  # (V, N, E)
    candidates: Tensor  # (U, C, E): the keys if there are any, else the anchors
    own_views: int  # in so many views, the first, an anchor's own crop is a candidate, but no positive
    memory: Tensor | None = None  # (Q, E), without gradient
    positive_views: int | None = None  # only the first so many views hold positives
    pool: str | None = None  # where negatives are from: "other view", "memory", or None: everywhere
    positive: Tensor | None = None  # (M, U·C + Q) bool, for labels and named pairs
    negative: Tensor | None = None  # (M, U·C + Q) bool
    complete: Tensor | None = None  # (M,) bool: which anchors have a positive and a negative; None: all do

    def rows(self) -> Tensor:
        """The anchors, (M, E)."""
        return self.anchors.flatten(0, 1)

    def columns(self) -> Tensor:
        """All candidates (U·C + Q, E), those of the memory last."""
        candidates = self.candidates.flatten(0, 1)
        return candidates if self.memory is None else torch.cat([candidates, self.memory])

    def with_constant_candidates(self) -> "Batch":
        """The same where anchors alone get a gradient (`stop_gradient`); it has no second derivative."""
        if self.candidates is not self.anchors:
            return self
        why = "stop_gradient=True holds the candidates constant; take stop_gradient=False"
        return self._replace(anchors=once(self.anchors, why), candidates=self.anchors.detach())

    def table(self, scale: float | Tensor = 1.0, clamped: bool = False, every: bool = False) -> Table:
        """The table of this batch; `clamped`: negative cosines are 0; `every`: `far` holds all candidates.

        Cost: O(M C E) time and O(M C) space. No value is looked at, so a GPU does not wait.
        """
        x = scale * self.rows()
        if self.positive is not None:
            s = x @ self.columns().T
            return self.by_masks(s.clamp(min=0) if clamped else s, every)
        s = x @ self.candidates.flatten(0, 1).T
        s = s.clamp(min=0) if clamped else s
        row = torch.arange(len(x), device=x.device).unsqueeze(1)
        positive, true = self.positives(row)
        near = s[row, positive]  # gather would keep s, which is overwritten
        far, negatives = self._without_own(s, every)
        if self.memory is not None:
            more = x @ self.memory.T
            far = torch.cat([far, more.clamp(min=0) if clamped else more], dim=1)
            negatives += len(self.memory)
        return Table(near, true, positive, far, s.new_full((1, 1), negatives), negatives)

    def _without_own(self, s: Tensor, every: bool) -> tuple[Tensor, int]:
        """The similarities s (M, U·N), −inf at all but the negatives, or but `every` candidate; their number.

        s is overwritten.
        """
        (V, N, _), U = self.anchors.shape, len(self.candidates)
        if every:  # but itself
            s.diagonal()[: self.own_views * N].fill_(-torch.inf)
            return s, U * N - 1
        if self.pool == "memory":
            return s.fill_(-torch.inf), 0
        views = s.view(V, N, U, N)
        views.diagonal(dim1=1, dim2=3).fill_(-torch.inf)
        if self.pool == "other view":
            views.diagonal(dim1=0, dim2=2).fill_(-torch.inf)
        return s, (U - (self.pool == "other view")) * (N - 1)

    def by_masks(self, s: Tensor, every: bool = False) -> Table:
        """The table of labels or named pairs, from all similarities s (M, U·C + Q)."""
        assert self.positive is not None and self.negative is not None
        positive, negative = self.positive, self.negative
        if self.complete is not None:  # some pair keeps finite what is left out
            some = F.pad(~self.complete.unsqueeze(1), (0, s.shape[1] - 1))
            positive, negative = positive | some, negative | some
        negative = positive | negative if every else negative
        column, size = torch.arange(s.shape[1], device=s.device), negative.sum(-1, keepdim=True).to(s)
        return Table(s, positive, column.expand_as(s), s.masked_fill(~negative, -torch.inf), size, s.shape[1])

    def positives(self, row: Tensor) -> tuple[Tensor, Tensor]:
        """Columns (M, K) of the other views of each row's image, and which of these entries are there."""
        (V, N, _), U = self.anchors.shape, len(self.candidates)
        most = self.positive_views or U
        if self.own_views == V == U == most:  # the next view, and so on; the first comes after the last
            positive = (row + torch.arange(N, V * N, N, device=row.device)) % (V * N)
            return positive, torch.ones_like(positive, dtype=torch.bool)
        positive = row % N + torch.arange(0, most * N, N, device=row.device)
        return positive, (positive != row) | (row >= self.own_views * N)


def unit(x: Tensor) -> Tensor:
    """x (..., E) scaled to unit length, float32 or wider; first by its largest entry, against overflow."""
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = x.detach().abs().amax(-1, keepdim=True)
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

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
    most: int  # no anchor has more candidates in `far`
    counted: Tensor | None = None  # (M, C) bool: those that it has; None: each anchor has `most`
    first: int = 0  # the column of its first entry
    queue: Tensor | None = None  # (M, Q): to the memory's points, where `far` is without them (`joined`)

    def mean(self, x: Tensor) -> Tensor:
        """The mean of x (M, K) over each anchor's positives, (M,)."""
        return torch.where(self.true, x, 0).sum(-1) / self.true.sum(-1)

    def at_positives(self, x: Tensor) -> Tensor:
        """The entries (M, K) of x (M, C) at the positives' columns."""
        return x if x.shape == self.positive.shape else at(x, self.positive)

    def size(self) -> Tensor:
        """How many candidates `far` has, (1, 1) or (M, 1)."""
        if self.counted is None:
            return self.far.new_full((1, 1), self.most)
        return self.counted.sum(-1, keepdim=True).to(self.far)

    def mass(self, scale: float = 1.0) -> Tensor:
        """log Σ exp(scale · x) over all negatives x, (M, 1)."""
        total = (self.far if scale == 1 else scale * self.far).logsumexp(-1, keepdim=True)
        if self.queue is None:
            return total
        return torch.logaddexp(total, self._replace(far=self.queue, queue=None).mass(scale))

    def joined(self) -> "Table":
        """The same with all negatives in `far`."""
        if self.queue is None:
            return self
        return self._replace(far=torch.cat([self.far, self.queue], dim=1), queue=None)

    def assignment(self, near: Tensor, far: Tensor) -> Tensor:
        """What positives (M, K) get, in the mean over them, and negatives (M, C), as one matrix (M, C)."""
        near = near.masked_fill(~self.true, 0) / self.true.sum(-1, keepdim=True)
        return F.pad(far, (self.first, 0)).scatter_add(1, self.positive, near)

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
    weights: Tensor | None = None  # (M, U·C + Q): soft positives; each row sums to 1

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
            return self.by_masks(product(x, self.columns(), clamped), every)
        t = self.by_arithmetic(product(x, self.candidates.flatten(0, 1), clamped), every)
        if self.memory is None:
            return t
        queue = product(x, self.memory, clamped)
        if self.pool == "memory":
            return t._replace(far=queue, most=queue.shape[1], first=t.far.shape[1])
        t = t._replace(queue=queue, most=t.most + queue.shape[1])
        return t.joined() if self.candidates.shape[1] == 1 else t  # of one image `far` alone is empty

    def positives(self) -> tuple[Tensor, Tensor]:
        """Each anchor's places of positives among views and keys, (M, K), and which of them are positives."""
        (V, N, _), U = self.anchors.shape, len(self.candidates)
        G = self.positive_views or U
        row = torch.arange(V * N, device=self.anchors.device).unsqueeze(1)
        if self.own_views == V == U == G:  # the next view, and so on, without its own
            positive = (row + torch.arange(N, V * N, N, device=row.device)) % (V * N)
            return positive, torch.ones_like(positive, dtype=torch.bool)
        positive = row % N + torch.arange(0, G * N, N, device=row.device)
        return positive, (positive != row) | (row >= self.own_views * N)

    def by_arithmetic(self, s: Tensor, every: bool = False) -> Table:
        """The table of views and keys, from their similarities s (M, U·N), which are overwritten."""
        (V, N, _), U = self.anchors.shape, len(self.candidates)
        positive, true = self.positives()
        near = at(s, positive)
        values = s.detach()  # where it becomes −inf, all that is computed of it has the gradient 0
        if every:  # but itself
            values.diagonal()[: self.own_views * N].fill_(-torch.inf)
            return Table(near, true, positive, s, U * N - 1)
        values = values.view(V, N, U, N)
        values.diagonal(dim1=1, dim2=3).fill_(-torch.inf)
        if self.pool == "other view":
            values.diagonal(dim1=0, dim2=2).fill_(-torch.inf)
        return Table(near, true, positive, s, (U - (self.pool == "other view")) * (N - 1))

    def by_masks(self, s: Tensor, every: bool = False) -> Table:
        """The table of labels or named pairs, from all similarities s (M, U·C + Q)."""
        assert self.positive is not None and self.negative is not None
        positive, negative = self.positive, self.negative
        if self.complete is not None:  # some pair keeps finite what is left out
            some = F.pad(~self.complete.unsqueeze(1), (0, s.shape[1] - 1))
            positive, negative = positive | some, negative | some
        negative = positive | negative if every else negative
        column = torch.arange(s.shape[1], device=s.device).expand_as(s)
        return Table(s, positive, column, s.masked_fill(~negative, -torch.inf), s.shape[1], negative)


def product(x: Tensor, y: Tensor, clamped: bool = False) -> Tensor:
    """The inner products (M, C) of rows x (M, E) and y (C, E); `clamped`: negative ones are 0."""
    return (x @ y.T).clamp(min=0) if clamped else x @ y.T


def at(x: Tensor, column: Tensor) -> Tensor:
    """The entries of x (M, C) at these columns (M, K). For its gradient `gather` would keep x."""
    return x[torch.arange(len(x), device=x.device).unsqueeze(1), column]


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

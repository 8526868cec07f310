"""IOT: contrastive learning as inverse optimal transport (Shi et al. 2023, IOT-CL).

Inner problem: move every point's mass to the points it resembles, at the cost C = 1 − s and smoothed by
entropy. Outer problem: an anchor's mass should go to its positives alone.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import MAX_ROUNDS
from setclr.inner.derivatives import once
from setclr.inner.transport import log_coupling
from setclr.losses.base import SetLoss, mean
from setclr.losses.table import Batch, Table
from setclr.losses.temperature import Temperature, current, tau
from setclr.settings import flag, moderate, one_of, whole


class IOT(SetLoss):
    r"""Negative log of the coupling's mass at positive pairs (IOT-CL, eq. 8, 13, 18, 20 and 23).

    .. math::
        L = -\operatorname{mean}_{(i,j) \in S} \log (n P_{ij}) + \lambda\, KL(\bar Q \| P), \qquad
        P = \arg\min_{P \in U} \langle C, P \rangle - \epsilon H(P)

    The n = V·N points are matched with each other, or with the U·N keys. C_ij = 1 − s_ij, and +∞ for i = j. S
    are the positive pairs (IOT-CL, eq. 16 and 17), with labels all pairs of a class. The mean runs over an
    anchor's positives, then over anchors. The factor n makes U(a) equal to InfoNCE for two views. For more
    views, and with labels, the other positives stay in the coupling, since it is one matching of all points.

    - "total", U(1): only the whole mass is prescribed: one softmax over all pairs (IOT-CL, eq. 10 and 19).
    - "rows", U(a): every anchor has mass 1/n: a softmax of each row (IOT-CL, eq. 9 and 12).
    - "both", U(a, b): every candidate has a prescribed mass, too: `iterations` rounds of Sinkhorn, each first
      over columns, then over rows (IOT-CL, algorithm 1).

    The uniformity penalty (IOT-CL, eq. 24 and 25) pulls the negatives' masses to one value. Q̄ equals P at
    positive pairs and q, without gradient, at negative ones. If q is the mean of the negatives' masses, as in
    the text of section 3.4, the penalty is a Kullback–Leibler divergence: ≥ 0, and 0 exactly when all these
    masses are the same. The printed eq. 25 says max. Only negatives contribute, so the gradient also moves
    mass from the positives to the negatives, even if the value is 0. The loss itself has to outweigh that.

    With `memory` (IOT-CL, eq. 38) each view is matched on its own: its N anchors with the other views' points
    and the queue. Pairs of different images of the batch are forbidden, so an in-batch column holds the
    positive alone. "both" prescribes this column's mass, so the result does not depend on the positive's
    similarity: the gradient moves the queue's pairs only, and at convergence nothing. With a queue take
    "rows".

    `assignment`: n·P, (V·N, U·N) or (V·N, U·N + Q); rows sum to 1 for "rows" and "both".

    >>> import torch
    >>> from setclr import IOT
    >>> P = IOT("both", epsilon=0.5, iterations=20).assignment(torch.randn(2, 6, 16))
    >>> torch.allclose(P.sum(0), torch.ones(12), atol=0.01)  # every candidate is looked at equally much
    True

    Args:
        constraint: "total", "rows" or "both".
        epsilon: ε > 0, InfoNCE's temperature, or `learnable(0.07)`; the paper uses 0.5, and
            0.07 with MoCo.
        iterations: rounds for "both", 1 to 100,000 (the paper: 1, 2, 4, 8). None: until convergence, at most
            1,000, then a warning. The other constraints ignore it.
        uniformity: λ ≥ 0, weight of the penalty, for a P of mass 1. In algorithm 1 each row has mass 1, so
            the same λ weighs n times as much.
        uniform_target: "mean" or "max" of the negatives' masses for q.
        key_gradient: as in InfoNCE.

    Raises ValueError: in `forward`, "both" with iterations=None and memory, or labels with memory.
    Cost: O(M² E) time and O(M²) space, M = V·N; "both" adds O(M²) time a round, no space.
    """

    takes = frozenset({"views", "keys", "memory", "labels"})
    constraint: str = one_of("rows", ("total", "rows", "both"))
    epsilon: Temperature = tau(0.5, "the paper uses 0.5, and 0.07 with MoCo")
    iterations: int | None = whole(1, 1, MAX_ROUNDS, "None runs Sinkhorn to convergence", or_none=True)
    uniformity: float = moderate(0.0, "it weighs a penalty", least=0)
    uniform_target: str = one_of("mean", ("mean", "max"))
    key_gradient: bool = flag(False)

    @property
    def reads_values(self) -> bool:
        return self.constraint == "both" and self.iterations is None

    def score(self, batch: Batch) -> Tensor:
        t, log_nP = self.solved(batch)
        loss = mean(self.surprise(t, log_nP), batch)
        if not self.uniformity:
            return loss
        negative = batch.negative
        if negative is None:
            negative = F.pad(batch.table().far > -torch.inf, (t.first, 0))
        penalties = [self.divergence(*problem) for problem in zip(log_nP, negative.view_as(log_nP))]
        return loss + self.uniformity * torch.stack(penalties).mean()

    def values(self, batch: Batch) -> Tensor:
        return super().values(batch) if self.uniformity else self.surprise(*self.solved(batch))

    def solution(self, batch: Batch) -> Tensor:
        return self.solved(batch)[1].exp().flatten(0, 1)

    def batch(self, z: Tensor, **extra: Any) -> Batch:
        batch = super().batch(z, **extra)
        if batch.memory is None:
            return batch
        if batch.positive is not None:
            why = "IOT with memory forbids pairs of different images"
            raise ValueError(f"labels and positives must be None: {why}")
        if self.reads_values:
            why = "a converged coupling gives each positive, alone in its column, a mass that is constant"
            raise ValueError(f"iterations must be a number with memory, got None: {why}")
        return batch._replace(pool="memory")  # pairs of different images of the batch are forbidden

    def solved(self, batch: Batch) -> tuple[Table, Tensor]:
        """The table, and log nP (problems, n, m): one problem, or with memory one for each view."""
        V, N, _ = batch.anchors.shape
        t = batch.table(1 / current(self.epsilon), every=batch.memory is None)  # s/ε is −C/ε but for 1/ε
        if batch.positive is not None:  # who is neither positive nor negative takes part, too
            t.near.detach().diagonal()[: batch.own_views * N].fill_(-torch.inf)
            return t, self.log_coupling(t.near).unsqueeze(0)
        if batch.memory is None:
            return t, self.log_coupling(t.far).unsqueeze(0)
        every = F.pad(t.far, (t.first, 0), value=-torch.inf).scatter(1, t.positive, t.near)
        problems = enumerate(every.view(V, N, -1))
        return t, torch.stack([self.of_view(x, N * v, N * (v < batch.own_views)) for v, x in problems])

    def of_view(self, logits: Tensor, first: int, width: int) -> Tensor:
        """log nP of one view's problem, in which the columns of the anchors themselves have no part."""
        log_nP = self.log_coupling(torch.cat([logits[:, :first], logits[:, first + width :]], dim=1))
        forbidden = logits.new_full((len(logits), width), -torch.inf)
        return torch.cat([log_nP[:, :first], forbidden, log_nP[:, first:]], dim=1)

    def log_coupling(self, logits: Tensor) -> Tensor:
        """log nP, P of mass 1, for logits (n, m)."""
        if self.constraint == "rows":
            return logits.log_softmax(-1)
        log_n = math.log(len(logits))
        if self.constraint == "total":
            return logits - (logits.logsumexp((-2, -1), keepdim=True) - log_n)
        return log_coupling(logits, self.iterations).add_(log_n)

    def surprise(self, t: Table, log_nP: Tensor) -> Tensor:
        """Mean of −log nP over the positives of each anchor, (M,)."""
        return -t.mean(t.at_positives(log_nP.flatten(0, 1)))

    def divergence(self, log_nP: Tensor, negative: Tensor) -> Tensor:
        """Divergence KL(Q̄ ‖ P), to which only the negatives contribute."""
        why = "the target of uniformity is held constant; take uniformity=0"
        log_P = once(log_nP, why) - math.log(len(log_nP))
        masses = log_P.detach().masked_fill(~negative, -torch.inf)
        if self.uniform_target == "max":
            log_q = masses.max()
        else:
            log_q = masses.logsumexp((0, 1)) - negative.sum().to(log_P).log()
        return torch.where(negative, log_q.exp() * (log_q - log_P), 0).sum()

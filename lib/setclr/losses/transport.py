"""IOT: contrastive learning as inverse optimal transport (Shi et al. 2023, IOT-CL).

Inner problem: move every point's mass to the points it resembles, at the cost C = 1 − s and smoothed by
entropy. The constraints decide which sums of the coupling are prescribed. Outer problem: the true coupling
sends all of it to the anchor's positives.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import choice, integer, number
from setclr.inner.transport import log_coupling
from setclr.losses.base import Points, SetLoss

CONSTRAINTS = ("total", "rows", "both")
TARGETS = ("mean", "max")


class Matching(NamedTuple):
    """One transport problem, or with memory one a view: n rows, m columns each."""

    logits: Tensor  # (1 or V, n, m): −C/ε, −inf for forbidden pairs
    positive: Tensor  # (n, m) bool
    negative: Tensor  # (n, m) bool


class IOT(SetLoss):
    r"""The log-mass that the coupling leaves to the positive pairs (IOT-CL, eq. 8, 13, 18, 20 and 23).

    .. math::
        L = -\operatorname{mean}_{(i,j) \in S} \log (n P_{ij}) + \lambda\, KL(\bar Q \| P), \qquad
        P = \arg\min_{P \in U} \langle C, P \rangle - \epsilon H(P)

    over n = V·N points on either side, C_ij = 1 − s_ij and +∞ for i = j, S the positive pairs (IOT-CL, eq. 16
    and 17). The factor n makes U(a) equal to InfoNCE for two views; for more, the other positives stay in the
    coupling, since it is one matching of all points.

    - "total", U(1): only the whole mass is prescribed: one softmax over all pairs (IOT-CL, eq. 10 and 19).
    - "rows", U(a): every anchor has mass 1/n: a softmax of each row (IOT-CL, eq. 9 and 12).
    - "both", U(a, b): every candidate too: `iterations` rounds of Sinkhorn, each columns, then rows (IOT-CL,
      algorithm 1).

    The uniformity penalty (IOT-CL, eq. 24 and 25) pulls the negatives' masses to one value: Q̄ equals P at
    positive pairs and q, without gradient, at negative ones. With the mean for q, as the text of section 3.4
    says, it is a Kullback–Leibler divergence, ≥ 0 and 0 exactly when they are all the same; the printed eq.
    25 says max. Only negatives contribute, so the gradient has a second part, which moves mass from the
    positives to the negatives: it remains where the value is 0, and the loss itself has to outweigh it.

    With `memory` (IOT-CL, eq. 38) each view is matched on its own: its N anchors with the other views' points
    and the queue, where pairs of different images of the batch are forbidden. An in-batch column then holds
    the positive alone, and "both", which prescribes the column's mass, forgets how alike the two are:
    its gradient moves the queue's pairs only, at convergence nothing. With a queue take "rows".

    `assignment`: n·P, (V·N, V·N) or (V·N, V·N + Q); rows sum to 1 for "rows" and "both".

    Args:
        constraint: "total", "rows" or "both".
        epsilon: ε > 0, InfoNCE's temperature; the paper uses 0.5.
        iterations: rounds for "both", ≥ 1 (the paper: 1, 2, 4, 8), or None for as many as it takes to
            converge, at most 1,000, then a warning. Without meaning for the other constraints.
        uniformity: λ ≥ 0, weight of the penalty.
        uniform_target: "mean" or "max" of the negatives' masses for q.

    Raises:
        ValueError: an argument is out of range; in `forward`, "both" with iterations=None and memory.

    Cost: O(M² E) time and O(M²) memory, M = V·N; "both" adds O(M²) time a round, no memory.
    """

    takes = frozenset({"keys", "memory"})

    def __init__(
        self,
        constraint: str = "rows",
        epsilon: float = 0.5,
        iterations: int | None = 1,
        uniformity: float = 0.0,
        uniform_target: str = "mean",
    ):
        super().__init__()
        self.constraint = choice("constraint", constraint, CONSTRAINTS)
        self.epsilon = number("epsilon", epsilon, above=0, hint="the paper uses 0.05 to 0.5")
        if iterations is not None:
            iterations = integer("iterations", iterations, least=1, hint="None runs Sinkhorn to convergence")
        self.iterations = iterations
        self.uniformity = number("uniformity", uniformity, least=0, hint="it weighs a penalty")
        self.uniform_target = choice("uniform_target", uniform_target, TARGETS)

    def score(self, points: Points) -> Tensor:
        logits, positive, negative = self.matching(points)
        log_P = self.log_coupling(logits)
        n = math.log(logits.shape[-2])
        pairs = len(logits) * positive.sum()
        loss = torch.where(positive, -(log_P + n), 0).sum() / pairs
        if self.uniformity:
            loss = loss + self.uniformity * self.divergence(log_P, negative)
        return loss

    def solution(self, points: Points) -> Tensor:
        logits = self.matching(points).logits
        nP = logits.shape[-2] * self.log_coupling(logits).exp()
        if points.memory is None:
            return nP[0]
        N = nP.shape[1]
        own_view = nP.new_zeros(N, N)
        rows = [torch.cat([x[:, : v * N], own_view, x[:, v * N :]], dim=1) for v, x in enumerate(nP)]
        return torch.cat(rows)

    def matching(self, points: Points) -> Matching:
        """The logits −C/ε and which pairs are positive and negative."""
        anchors, candidates, memory = points
        V, N, _ = anchors.shape
        image = torch.arange(N, device=anchors.device)
        if memory is None:
            rows, columns = anchors.flatten(0, 1).unsqueeze(0), candidates.flatten(0, 1).unsqueeze(0)
            same = image.repeat(V).unsqueeze(1) == image.repeat(V)
            itself = torch.eye(V * N, dtype=torch.bool, device=anchors.device)
            positive, negative, forbidden = same & ~itself, ~same, itself
        elif self.constraint == "both" and self.iterations is None:
            raise ValueError(
                "iterations must be a number with memory, got None: a converged coupling gives each in-batch "
                "column, which holds the positive alone, its prescribed mass, so the loss would be constant"
            )
        else:
            others = [torch.cat([candidates[:v], candidates[v + 1 :]]).flatten(0, 1) for v in range(V)]
            rows, columns = anchors, torch.stack([torch.cat([other, memory]) for other in others])
            same = image.unsqueeze(1) == image.repeat(V - 1)
            queue = same.new_ones(N, len(memory))
            positive, negative = (
                torch.cat([same, ~queue], dim=1),
                torch.cat([torch.zeros_like(same), queue], dim=1),
            )
            forbidden = ~(positive | negative)
        logits = (rows @ columns.mT - 1) / self.epsilon
        return Matching(logits.masked_fill(forbidden, -torch.inf), positive, negative)

    def log_coupling(self, logits: Tensor) -> Tensor:
        """log P, of mass 1 in each matching."""
        if self.constraint == "total":
            return logits - logits.logsumexp((1, 2), keepdim=True)
        if self.constraint == "rows":
            return logits.log_softmax(-1) - math.log(logits.shape[1])
        return log_coupling(logits, self.iterations)

    def divergence(self, log_P: Tensor, negative: Tensor) -> Tensor:
        """KL(Q̄ ‖ P), to which only the negatives contribute; the mean over the matchings."""
        masses = log_P.detach().masked_fill(~negative, -torch.inf)
        if self.uniform_target == "max":
            log_q = masses.amax((1, 2), keepdim=True)
        else:
            log_q = masses.logsumexp((1, 2), keepdim=True) - negative.sum().to(log_P).log()
        terms = log_q.exp() * (log_q - log_P)
        return torch.where(negative, terms, 0).sum() / len(log_P)

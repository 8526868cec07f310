"""IOT: contrastive learning as inverse optimal transport (Shi et al. 2023, IOT-CL).

Inner problem: move every point's mass to the points it resembles, at the cost C = 1 − s and smoothed by
entropy. Outer problem: an anchor's mass should go to its positives alone.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import MAX_ROUNDS, choice, integer, setting
from setclr.inner.transport import log_coupling
from setclr.inner.twice import once
from setclr.losses.base import SetLoss
from setclr.losses.points import Points, check_key_gradient, mean
from setclr.losses.temperature import Temperature, checked_temperature, in_use

CONSTRAINTS = ("total", "rows", "both")
TARGETS = ("mean", "max")


class TransportProblem(NamedTuple):
    """A transport problem: the mass of n rows is moved to m columns."""

    logits: Tensor  # (n, m): −C/ε, −inf for forbidden pairs
    positive: Tensor  # (n, m) bool
    negative: Tensor  # (n, m) bool


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

    def __init__(
        self, constraint: str = "rows", epsilon: Temperature = 0.5, iterations: int | None = 1,
        uniformity: float = 0.0, uniform_target: str = "mean", key_gradient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.constraint = choice("constraint", constraint, CONSTRAINTS)
        self.epsilon = checked_temperature("epsilon", epsilon, "the paper uses 0.5, and 0.07 with MoCo")
        if iterations is not None:
            hint = "None runs Sinkhorn to convergence"
            iterations = integer("iterations", iterations, least=1, most=MAX_ROUNDS, hint=hint)
        self.iterations = iterations
        self.uniformity = setting("uniformity", uniformity, least=0, hint="it weighs a penalty")
        self.uniform_target = choice("uniform_target", uniform_target, TARGETS)
        self.key_gradient = check_key_gradient(key_gradient)

    @property
    def reads_values(self) -> bool:
        return self.constraint == "both" and self.iterations is None

    def score(self, points: Points) -> Tensor:
        problems = self.problems(points)
        couplings = [self.log_coupling(problem.logits) for problem in problems]
        values = self.left(problems, couplings).view(points.anchors.shape[:2])
        loss = mean(values, self.kept(points))
        if self.uniformity:
            penalties = [self.divergence(log_P, x.negative) for log_P, x in zip(couplings, problems)]
            loss = loss + self.uniformity * torch.stack(penalties).mean()
        return loss

    def values(self, points: Points) -> Tensor:
        if self.uniformity:
            return super().values(points)
        problems = self.problems(points)
        couplings = [self.log_coupling(problem.logits) for problem in problems]
        return self.left(problems, couplings).view(points.anchors.shape[:2])

    def left(self, problems: list[TransportProblem], couplings: list[Tensor]) -> Tensor:
        """Mean of −log nP over the positives of each row, (V·N,)."""
        rows = []
        for (logits, positive, _), log_P in zip(problems, couplings):
            surprise = torch.where(positive, -(log_P + math.log(len(logits))), 0)
            rows.append(surprise.sum(-1) / positive.sum(-1).clamp(min=1))
        return torch.cat(rows)

    def solution(self, points: Points) -> Tensor:
        logits = [problem.logits for problem in self.problems(points)]
        nP = [len(x) * self.log_coupling(x).exp() for x in logits]
        if points.memory is None:
            return nP[0]
        N = len(nP[0])
        for v in range(points.own_views):
            nP[v] = torch.cat([nP[v][:, : v * N], nP[v].new_zeros(N, N), nP[v][:, v * N :]], dim=1)
        return torch.cat(nP)

    def problems(self, points: Points) -> list[TransportProblem]:
        """One problem for all points, or with memory one for each view of the anchors."""
        if points.memory is not None:
            return self.problems_with_memory(points, points.memory)
        positive, negative = (mask.flatten(0, 1) for mask in points.pairs()[:2])
        logits = self.logits(points.anchors.flatten(0, 1), points.candidates.flatten(0, 1))
        if points.own_views:
            itself = torch.zeros_like(positive).fill_diagonal_(True)
            logits = logits.masked_fill(itself, -torch.inf)
        return [TransportProblem(logits, positive, negative)]

    def problems_with_memory(self, points: Points, memory: Tensor) -> list[TransportProblem]:
        candidates = points.candidates
        if points.labelled:
            raise ValueError(
                "labels and positives must be None for IOT with memory: it forbids pairs of different images"
            )
        if self.constraint == "both" and self.iterations is None:
            raise ValueError(
                "iterations must be a number with memory, got None: a converged coupling gives each in-batch "
                "column, which holds the positive alone, its prescribed mass, so the loss would be constant"
            )
        problems = []
        for v, view in enumerate(points.anchors):
            own = v < points.own_views
            others = torch.cat([candidates[:v], candidates[v + 1 :]]) if own else candidates
            same = torch.eye(len(view), dtype=torch.bool, device=view.device).repeat(1, len(others))
            positive = F.pad(same, (0, len(memory)))
            negative = F.pad(torch.zeros_like(same), (0, len(memory)), value=True)
            logits = self.logits(view, torch.cat([others.flatten(0, 1), memory]))
            logits = logits.masked_fill(~(positive | negative), -torch.inf)
            problems.append(TransportProblem(logits, positive, negative))
        return problems

    def logits(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Logits −C/ε (n, m) of n rows and m columns."""
        return (rows @ columns.T - 1) / in_use("epsilon", self.epsilon)

    def log_coupling(self, logits: Tensor) -> Tensor:
        """log P, of mass 1, for logits (..., n, m)."""
        if self.constraint == "total":
            return logits - logits.logsumexp((-2, -1), keepdim=True)
        if self.constraint == "rows":
            return logits.log_softmax(-1) - math.log(logits.shape[-2])
        return log_coupling(logits, self.iterations)

    def divergence(self, log_P: Tensor, negative: Tensor) -> Tensor:
        """Divergence KL(Q̄ ‖ P), to which only the negatives contribute."""
        log_P = once(log_P, "the target of uniformity is held constant; take uniformity=0")
        masses = log_P.detach().masked_fill(~negative, -torch.inf)
        if self.uniform_target == "max":
            log_q = masses.max()
        else:
            log_q = masses.logsumexp((0, 1)) - negative.sum().to(log_P).log()
        return torch.where(negative, log_q.exp() * (log_q - log_P), 0).sum()

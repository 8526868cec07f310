"""Losses that score positive pairs against the anchor's negatives: InfoNCE, NTLogistic and Triplet."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import choice, integer, number
from setclr.losses.base import Points, SetLoss, check_positive_views, positive_weights


class InfoNCE(SetLoss):
    r"""Each anchor picks its positive out of the negatives by a softmax (van den Oord 2018; GroCo, eq. 11).

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e^{s_{ap}/\tau}}{e^{s_{ap}/\tau} + \sum_n
        e^{s_{an}/\tau}}

    with s the cosine similarity; the mean runs over the anchor's positives, then over anchors. Other
    positives are not in the denominator. For two views it is NT-Xent (Chen et al. 2020).

    The inner problem is the choice of one candidate; the temperature smooths its maximum. `assignment`: the
    mean over positives of the softmax over that positive and the negatives; rows sum to 1.

    Args:
        temperature: τ > 0. The papers use 0.05 to 0.5; towards 0 only the hardest negative counts.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    takes = frozenset({"keys", "memory"})

    def __init__(self, temperature: float = 0.5, positive_views: int | None = None):
        super().__init__()
        self.temperature = number("temperature", temperature, above=0, hint="the papers use 0.05 to 0.5")
        self.positive_views = check_positive_views(positive_views)

    def score(self, points: Points) -> Tensor:
        positives, negatives = logits(points, self.temperature)
        loss = F.softplus(self.mass(positives, negatives) - positives)  # −log of the fraction above
        return mean_over_positives(loss, self.positive_views)

    def solution(self, points: Points) -> Tensor:
        positives, negatives = logits(points, self.temperature)
        lead = positives - self.mass(positives, negatives)
        weights = positive_weights(len(lead), self.positive_views, lead).unsqueeze(-1)
        left = (weights * (-lead).sigmoid()).sum(1)  # (V, N): what the negatives get
        assignment = left.unsqueeze(-1) * self.shares(torch.cat(negatives, dim=-1))
        same_image(assignment).copy_(weights * lead.sigmoid())
        return assignment.flatten(0, 1)

    def mass(self, positives: Tensor, negatives: list[Tensor]) -> Tensor:
        """Logarithm of what the negatives weigh together, (V, 1, N), or against each positive, (V, V, N)."""
        return logsumexp(negatives).unsqueeze(1)

    def shares(self, negatives: Tensor) -> Tensor:
        """Each candidate's share of that mass, (V, N, V·N + Q), from the logits of all; sums to 1."""
        return negatives.softmax(-1)


class NTLogistic(SetLoss):
    r"""Every pair on its own: is it one image or two? (Mikolov et al. 2013; Chen et al. 2020, table 2)

    .. math::
        L = \operatorname{mean}_{\text{positive pairs}} \log(1 + e^{-s/\tau}) +
        \operatorname{mean}_{\text{negative pairs}} \log(1 + e^{s/\tau})

    The inner problem decides each pair without looking at the others: nothing makes a row sum to 1.
    `assignment`: the probability σ(s/τ) that the pair is a positive one, for every candidate but the anchor
    itself.

    Args:
        temperature: τ > 0; QARe's experiments use 0.05.

    Raises:
        ValueError: the temperature is out of range.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    def __init__(self, temperature: float = 0.05):
        super().__init__()
        self.temperature = number("temperature", temperature, above=0, hint="the papers use 0.05 to 0.5")

    def score(self, points: Points) -> Tensor:
        positives, (negatives,) = logits(points, self.temperature)
        V, _, N = positives.shape
        apart = F.softplus(negatives).sum() / (V * N * V * (N - 1))
        return mean_over_positives(F.softplus(-positives)) + apart

    def solution(self, points: Points) -> Tensor:
        x = points.anchors.flatten(0, 1)
        return (x @ x.T / self.temperature).sigmoid().fill_diagonal_(0)


class Triplet(SetLoss):
    r"""The positive nearer than the hardest negatives, by a margin (Schroff 2015; GroCo, eq. 8).

    .. math::
        L = \operatorname{mean}_a \operatorname{mean}_{p, n}\; \max(0,\; d_{ap} - d_{an} + m)

    with p the anchor's chosen positives and n its nearest negatives, as in Hermans et al. 2017. Without the
    hinge (m = ∞ in GroCo's table 7) it is the mean of d⁺ − d⁻.

    The inner problem is the search for the nearest negatives. `assignment`: equal weights for them that sum
    to 1.

    Args:
        margin: m ≥ 0, in units of the distance; None leaves the hinge out. QARe's experiments use 0.5,
            GroCo's table 7 has 0.8, 1.6 and None.
        positives: "hardest": the farthest positive (batch-hard, as in QARe's experiments); "all": every one
            (as in GroCo's table 7).
        negatives: how many of the nearest negatives, ≥ 1; fewer where the batch has fewer. Batch-hard takes
            1, GroCo's table 7 takes 10.
        distance: "euclidean", ‖x − y‖ of unit vectors, with gradient 0 where they are equal; "cosine", 1 − s,
            as in GroCo.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time and O(M²) memory, M = V·N; only the chosen pairs get a gradient.
    """

    takes = frozenset({"keys", "memory"})

    def __init__(
        self,
        margin: float | None = 0.5,
        positives: str = "hardest",
        negatives: int = 1,
        distance: str = "euclidean",
        positive_views: int | None = None,
    ):
        super().__init__()
        hint = "None leaves the hinge out, the papers use 0.5 to 1.6"
        self.margin = None if margin is None else number("margin", margin, least=0, hint=hint)
        self.positives = choice("positives", positives, ("hardest", "all"))
        self.negatives = integer("negatives", negatives, least=1, hint="the papers use 1 and 10")
        self.distance = choice("distance", distance, ("euclidean", "cosine"))
        self.positive_views = check_positive_views(positive_views)

    def score(self, points: Points) -> Tensor:
        V, N, _ = points.anchors.shape
        view, image = (torch.arange(n, device=points.anchors.device) for n in (V, N))
        other = (view[:, None] + view[1:]) % V  # (V, V − 1)
        weights = positive_weights(V, self.positive_views, points.anchors).gather(1, other).unsqueeze(1)
        positive = self.distances(points, N * other.unsqueeze(1) + image.unsqueeze(-1))
        if self.positives == "hardest":
            positive = positive.masked_fill(weights == 0, -torch.inf).amax(-1, keepdim=True)
            weights = 1
        negative = self.distances(points, self.hardest(points))
        gap = positive.unsqueeze(-1) - negative.unsqueeze(-2)
        if self.margin is not None:
            gap = F.relu(gap + self.margin)
        return (weights * gap.mean(-1)).sum() / (V * N)

    def solution(self, points: Points) -> Tensor:
        column = self.hardest(points).flatten(0, 1)
        assignment = points.anchors.new_zeros(len(column), len(all_candidates(points)))
        return assignment.scatter_(1, column, 1 / column.shape[1])

    @torch.no_grad()
    def hardest(self, points: Points) -> Tensor:
        """Columns of every anchor's most similar negatives, (V, N, n): both distances fall as s grows."""
        _, negatives = logits(points, temperature=1)
        n = min(self.negatives, count(negatives))
        return torch.cat(negatives, dim=-1).topk(n, sorted=False).indices

    def distances(self, points: Points, column: Tensor) -> Tensor:
        """From every anchor to the candidates in its row of `column` (V, N, n), of that shape.

        A Euclidean distance is the norm of the difference: √(2 − 2s) would lose half the digits. The
        differences are stored unless they are many times more numbers than the similarities.
        """
        x, y = points.anchors, all_candidates(points)
        if column.shape[-1] * x.shape[-1] > 8 * len(y):
            exact = "donot_use_mm_for_euclid_dist"
            every = 1 - x @ y.T if self.distance == "cosine" else torch.cdist(x, y, compute_mode=exact)
            return every.gather(-1, column)
        x, y = x.unsqueeze(2), y[column]
        return 1 - (x * y).sum(-1) if self.distance == "cosine" else (x - y).norm(dim=-1)


def logits(points: Points, temperature: float) -> tuple[Tensor, list[Tensor]]:
    """s/τ of positives and of negatives, these in parts, since joining them would copy a long memory.

    Returns:
        (V, V, N): anchor (v, i) and view u of its own image; a list of (V, N, V·N), −inf where the image is
        the anchor's own, and with memory (V, N, Q).
    """
    anchors = points.anchors / temperature
    positives = torch.einsum("vie,uie->vui", anchors, points.candidates)
    negatives = anchors @ points.candidates.flatten(0, 1).T
    same_image(negatives).fill_(-torch.inf)
    return positives, [negatives] if points.memory is None else [negatives, anchors @ points.memory.T]


def logsumexp(negatives: list[Tensor]) -> Tensor:
    """log Σ_n e^x_n over the columns of all parts, (V, N)."""
    return torch.stack([x.logsumexp(-1) for x in negatives]).logsumexp(0)


def count(negatives: list[Tensor]) -> int:
    """How many negatives an anchor has: the columns of all parts without its own image's V."""
    return sum(x.shape[-1] for x in negatives) - len(negatives[0])


def all_candidates(points: Points) -> Tensor:
    """(V·N + Q, E): the candidates, view-major, then the memory."""
    candidates = points.candidates.flatten(0, 1)
    return candidates if points.memory is None else torch.cat([candidates, points.memory])


def same_image(x: Tensor) -> Tensor:
    """A view on the entries of x (V, N, V·N or more) that compare anchor (v, i) with view u of its own image,
    (V, V, N)."""
    V, N, _ = x.shape
    return x[..., : V * N].view(V, N, V, N).diagonal(dim1=1, dim2=3)


def mean_over_positives(x: Tensor, positive_views: int | None = None) -> Tensor:
    """Mean of x (V, V, N) over the positives u of each anchor (v, i), then over anchors."""
    V, _, N = x.shape
    return torch.einsum("vu,vui->", positive_weights(V, positive_views, x), x) / (V * N)

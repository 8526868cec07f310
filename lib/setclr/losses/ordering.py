"""GroCo: the batch as a list to be sorted (Shvetsova et al. 2023).

For every anchor, positives and hardest negatives stand in one list of similarities. A differentiable sorting
network says with which probability each of them lands among the places that belong to positives; the true
answer is: the positives certainly, the negatives never.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import boolean, choice, integer, number
from setclr.inner.sorting import top_probability
from setclr.losses.base import Points, SetLoss, check_positive_views

SMALLEST = math.exp(-100)  # as torch's BCELoss clamps the logarithm; a NaN passes


class SortList(NamedTuple):
    """What is sorted for some of the anchors: n negatives, then K positives, ascending similarities in each
    group."""

    similarity: Tensor  # (A, n + K)
    column: Tensor  # (A, n + K): which candidate it is
    positives: int  # K
    anchors: slice  # which of the V·N anchors these A are


class GroCo(SetLoss):
    r"""Group ordering constraints: every positive before every negative (GroCo, eq. 5 and 6).

    .. math::
        L = \operatorname{mean}_a \tfrac{1}{n+K} \sum_{i} \operatorname{BCE}(p_i, [i \text{ is a positive}])

    with p_i the probability that element i lands among the K top places (the two sums of eq. 6 are equal,
    since the columns of P sum to 1). The list holds similarities in ascending order and the network compares
    places (0, 1) first, as in the authors' program: the main text's network for an even number of elements,
    with soft swaps the supplement's for an odd one (GroCo, algorithm 1).

    `assignment`: p_i at the candidates in the anchor's list, 0 elsewhere; rows sum to K. Without a batch norm
    as the
    last layer of the projection head the loss collapses: see `models.head`.

    Args:
        beta: inverse temperature of a swap, > 0. Table 8a's best pairs of (negatives, beta): (1, .125), (5,
            .25), (10, 1), (20, 8).
        negatives: how many of the hardest negatives enter the list, ≥ 1; fewer where the batch has fewer.
        pool: "all": negatives from every view (the paper's text); "view": from the anchor's own view (the
            authors' program, with which the published numbers were made).
        preorder: sort positives and negatives among themselves first; otherwise they stand in view and index
            order.
        stop_gradient: only the anchor gets a gradient; the candidates are constants.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E + M (n+K)²) time, O(M² + M (n+K)²) memory, M = V·N.
    """

    takes = frozenset({"keys"})

    def __init__(
        self,
        beta: float = 1.0,
        negatives: int = 10,
        pool: str = "all",
        preorder: bool = True,
        stop_gradient: bool = True,
        positive_views: int | None = None,
    ):
        super().__init__()
        self.beta = number("beta", beta, above=0, hint="table 8a uses 0.125 to 8")
        self.negatives = integer("negatives", negatives, least=1, hint="the paper uses 1 to 20")
        self.pool = choice("pool", pool, ("all", "view"))
        self.preorder = boolean("preorder", preorder)
        self.stop_gradient = boolean("stop_gradient", stop_gradient)
        self.positive_views = check_positive_views(positive_views)

    def score(self, points: Points) -> Tensor:
        total = 0.0
        for x in self.lists(points):
            p = top_probability(x.similarity, x.positives, self.beta)
            right = torch.cat([1 - p[:, : -x.positives], p[:, -x.positives :]], dim=1)
            total = total - right.clamp(min=SMALLEST).log().sum() / p.shape[1]
        V, N, _ = points.anchors.shape
        return total / (V * N)

    def solution(self, points: Points) -> Tensor:
        M = points.anchors.shape[0] * points.anchors.shape[1]
        assignment = points.anchors.new_zeros(M, M)
        for x in self.lists(points):
            p = top_probability(x.similarity, x.positives, self.beta)
            assignment[x.anchors].scatter_(1, x.column, p)
        return assignment

    def lists(self, points: Points) -> list[SortList]:
        """The lists of all anchors, together where they have the same number of positives."""
        anchors, candidates, _ = points
        check_positive_views(self.positive_views, len(anchors))
        if self.stop_gradient:
            candidates = candidates.detach()
        V, N, _ = anchors.shape
        negative_similarity, negative_column = self.hardest(anchors, candidates)
        positive_similarity = torch.einsum("vie,uie->viu", anchors, candidates)

        lists = []
        G = V if self.positive_views is None else self.positive_views
        for views, K in [(range(G), G - 1)] + ([(range(G, V), G)] if G < V else []):
            v = torch.arange(views.start, views.stop, device=anchors.device).view(-1, 1, 1)
            positive = torch.arange(K, device=anchors.device).expand(len(views), N, K)
            positive = positive + (positive >= v)  # the first G views, without the anchor's own
            here = slice(views.start, views.stop)
            similarity = positive_similarity[here].gather(-1, positive)
            if self.preorder:
                similarity, order = similarity.sort(dim=-1)
                positive = positive.gather(-1, order)
            column = N * positive + torch.arange(N, device=anchors.device).unsqueeze(1)
            lists.append(
                SortList(
                    torch.cat([negative_similarity[here], similarity], dim=-1).flatten(0, 1),
                    torch.cat([negative_column[here], column], dim=-1).flatten(0, 1),
                    K,
                    slice(N * views.start, N * views.stop),
                )
            )
        return lists

    def hardest(self, anchors: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Similarity and column of every anchor's most similar negatives, (V, N, n) each."""
        V, N, _ = anchors.shape
        own = torch.eye(N, dtype=torch.bool, device=anchors.device)
        if self.pool == "all":
            similarity = (anchors @ candidates.flatten(0, 1).T).masked_fill(own.repeat(1, V), -torch.inf)
            first_column = 0
        else:
            similarity = (anchors @ candidates.mT).masked_fill(own, -torch.inf)
            first_column = N * torch.arange(V, device=anchors.device).view(V, 1, 1)
        n = min(self.negatives, similarity.shape[-1] // N * (N - 1))
        similarity, column = similarity.topk(n, dim=-1)
        if self.preorder:
            return similarity.flip(-1), first_column + column.flip(-1)
        column, order = column.sort(dim=-1)
        return similarity.gather(-1, order), first_column + column

"""GroCo: group ordering constraints by differentiable sorting (Shvetsova et al. 2023).

For every anchor, positives and hardest negatives form one list of similarities. A differentiable sorting
network gives the probability that each lands among the top places. It should be 1 for the positives and 0 for
the negatives.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import boolean, choice, integer, setting
from setclr.inner.sorting import top_probability
from setclr.losses.base import SetLoss
from setclr.losses.points import Points, check_positive_views

SMALLEST = math.exp(-100)  # torch's BCELoss clamps the logarithm at −100, too; NaN stays NaN


class SortList(NamedTuple):
    """Lists to be sorted for A of the anchors: n negatives, then K positives, each group ascending."""

    similarity: Tensor  # (A, n + K)
    column: Tensor  # (A, n + K): index of the candidate
    positives: int  # K
    anchors: slice  # which of the V·N anchors these A are


class GroCo(SetLoss):
    r"""Group ordering constraints: every positive nearer than every negative (GroCo, eq. 5 and 6).

    .. math::
        L = \operatorname{mean}_a \tfrac{1}{n+K} \sum_{i} \operatorname{BCE}(p_i, [i \text{ is a positive}])

    p_i is the probability that element i lands among the K top places. The two sums of eq. 6 are equal, since
    the columns of P sum to 1. The list holds similarities in ascending order, and the network compares places
    (0, 1) first, as in the authors' program. With soft swaps this is the main text's network for an even
    number of elements and the supplement's for an odd number (GroCo, algorithm 1).

    With labels the positives are all points of the class, and all classes must have equally many images.

    `assignment`: p_i at the candidates in the anchor's list, 0 elsewhere; rows sum to K. Without a batch norm
    as the last layer of the projection head all embeddings become equal: see `models.head`.

    Args:
        beta: inverse temperature of a swap, > 0. Table 8a's best pairs of (negatives, beta): (1, .125), (5,
            .25), (10, 1), (20, 8).
        negatives: how many of the hardest negatives enter the list, ≥ 1. If the batch has fewer, all enter,
            with a warning.
        pool: "all": negatives from every view (the paper's text); "view": from the anchor's own view (the
            authors' program, with which the published numbers were made).
        preorder: sort positives and negatives among themselves first; else they stay in view and index order.
        stop_gradient: only the anchor gets a gradient; the candidates are constants.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.
        random: take as many negatives that follow the anchor in the batch instead of the hardest ones, as in
            GroCo's table 9e. The order of a batch is random.

    Raises ValueError: in `forward`, positive_views > U, classes of unequal size, or pool="view" if keys and z
    differ in their number of views.
    Cost: O(M² E + M (n+K)²) time, O(M² + M (n+K)²) space, M = V·N. With labels a GPU waits for the
    class sizes.
    """

    takes = frozenset({"views", "keys", "labels"})

    def __init__(
        self, beta: float = 1.0, negatives: int = 10, pool: str = "all", preorder: bool = True,
        stop_gradient: bool = True, positive_views: int | None = None, random: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.beta = setting("beta", beta, above=0, hint="table 8a uses 0.125 to 8")
        self.negatives = integer("negatives", negatives, least=1, hint="the paper uses 1 to 20")
        self.pool = choice("pool", pool, ("all", "view"))
        self.preorder = boolean("preorder", preorder)
        self.stop_gradient = boolean("stop_gradient", stop_gradient)
        self.positive_views = check_positive_views(positive_views)
        self.random = boolean("random", random)

    def values(self, points: Points) -> Tensor:
        V, N, _ = points.anchors.shape
        found = []
        for x in self.lists(points):
            p = top_probability(x.similarity, x.positives, self.beta)
            negative, positive = p.split([p.shape[1] - x.positives, x.positives], dim=1)
            right = torch.cat([1 - negative, positive], dim=1)
            found.append(right.clamp(min=SMALLEST).log().sum(1) / -p.shape[1])
        return torch.cat(found).view(V, N)

    def solution(self, points: Points) -> Tensor:
        M, columns = (x.shape[0] * x.shape[1] for x in (points.anchors, points.candidates))
        assignment = points.anchors.new_zeros(M, columns)
        for x in self.lists(points):
            p = top_probability(x.similarity, x.positives, self.beta)
            assignment[x.anchors].scatter_(1, x.column, p)
        return assignment

    def lists(self, points: Points) -> list[SortList]:
        """The lists of all anchors, grouped by their number of positives."""
        check_positive_views(self.positive_views, len(points.candidates))
        if self.stop_gradient:
            points = points.without_other_side()
        V, N, _ = points.anchors.shape
        members, pool = self.class_members(points), self.similarities(points)
        negatives = self.negative_columns(pool.detach(), points.same_class(), members.shape[1])
        G = len(points.candidates) if self.positive_views is None else self.positive_views
        own = min(G, points.own_views())  # the anchors of the first `own` views are in the G views
        lists = []
        for views in (range(own), range(own, V)):
            if len(views):
                here = slice(views.start, views.stop)
                positives = positive_columns(members, views, G, views.stop <= own)
                column = torch.cat([negatives[here], positives], dim=-1)
                near = pool if len(views) == V else pool[here]  # a slice's gradient is one more matrix
                if self.pool == "all":
                    similarity = near.gather(-1, column)
                else:
                    near = near.gather(-1, negatives[here] % N)
                    similarity = torch.cat([near, similarity_at(points, here, positives)], dim=-1)
                K = positives.shape[-1]
                if self.preorder and K > 1:
                    negative, positive = similarity.split([column.shape[-1] - K, K], dim=-1)
                    positive, order = positive.sort(dim=-1)
                    similarity = torch.cat([negative, positive], dim=-1)
                    column = torch.cat([negatives[here], positives.gather(-1, order)], dim=-1)
                anchors = slice(N * views.start, N * views.stop)
                lists.append(SortList(similarity.flatten(0, 1), column.flatten(0, 1), K, anchors))
        return lists

    def similarities(self, points: Points) -> Tensor:
        """Similarities of every anchor to its pool: (V, N, U·N), or for the pool "view" (V, N, N)."""
        V, U = len(points.anchors), len(points.candidates)
        if self.pool == "all":
            return points.anchors @ points.candidates.flatten(0, 1).T
        if U != V:
            raise ValueError(
                f"keys must have the {V} views of z for pool='view', got {U}: negatives are of one view"
            )
        return points.anchors @ points.candidates.mT

    def class_members(self, points: Points) -> Tensor:
        """The images of each image's class, the image itself first, (N, c)."""
        image = torch.arange(points.anchors.shape[1], device=points.anchors.device)
        if points.labels is None:
            return image.unsqueeze(1)
        same = points.same_class()
        sizes = same.sum(1)
        smallest, largest = sizes.aminmax()
        if bool(smallest < largest):
            raise ValueError(
                f"labels must name classes of one size for GroCo, got {int(smallest)} to {int(largest)} "
                "images: its lists need equally many positives; draw as many images of each class"
            )
        same = same.int().fill_diagonal_(2)
        return same.sort(descending=True, stable=True).indices[:, : int(largest)]

    def negative_columns(self, pool: Tensor, same: Tensor, c: int) -> Tensor:
        """Candidate columns (V, N, n) of the negatives in every anchor's list; a class has c images."""
        V, N, columns = pool.shape
        available = columns // N * (N - c)
        if available < self.negatives:
            self.warn_once(f"negatives={self.negatives} in GroCo, {available} at hand: all are taken")
        first = -cyclic_distance(pool) if self.random else pool
        others = first.masked_fill(same.repeat(1, columns // N), -torch.inf)
        column = others.topk(min(self.negatives, available), dim=-1).indices
        if not self.preorder:
            column = column.sort(dim=-1).values
        elif self.random:
            column = column.gather(-1, pool.gather(-1, column).argsort(-1))
        else:
            column = column.flip(-1)
        if self.pool == "all":
            return column
        return column + N * torch.arange(V, device=column.device).view(V, 1, 1)


def cyclic_distance(pool: Tensor) -> Tensor:
    """The cyclic distance in the batch from each anchor to each candidate of the pool (V, N, columns)."""
    V, N, columns = pool.shape
    anchor = torch.arange(V * N, device=pool.device).view(V, N, 1)
    return ((torch.arange(columns, device=pool.device) - anchor) % columns).to(pool)


def positive_columns(members: Tensor, views: range, G: int, without_own: bool) -> Tensor:
    """Candidate columns (views, N, K) of these views' positives, which are in the first G views."""
    N, c = members.shape
    place = torch.arange(G * c - without_own, device=members.device).expand(len(views), 1, -1)
    if without_own:  # leave out the anchor (v, i), at place c·v
        v = torch.arange(views.start, views.stop, device=members.device).view(-1, 1, 1)
        place = place + (place >= c * v)
    return N * (place // c) + members[:, place % c].squeeze(2).transpose(0, 1)


def similarity_at(points: Points, views: slice, column: Tensor) -> Tensor:
    """Similarities (views, N, K) of the anchors of these views to the candidates in `column`."""
    anchors, candidates = points.anchors[views], points.candidates
    if points.labels is not None:
        return (anchors @ candidates.flatten(0, 1).T).gather(-1, column)
    return torch.einsum("vie,uie->viu", anchors, candidates).gather(-1, column // column.shape[1])

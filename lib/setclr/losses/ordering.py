"""GroCo: group ordering constraints by differentiable sorting (Shvetsova et al. 2023).

For every anchor, positives and hardest negatives form one list of similarities. A differentiable sorting
network gives the probability that each lands among the top places. It should be 1 for the positives and 0 for
the negatives.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import boolean, choice, integer, setting
from setclr.inner.sorting import top_probability
from setclr.losses.base import SetLoss
from setclr.losses.points import Points, check_key_gradient, check_positive_views

SMALLEST = math.exp(-100)  # torch's BCELoss clamps the logarithm at −100, too; NaN stays NaN


class SortList(NamedTuple):
    """Lists to be sorted for A of the anchors: n negatives, then K positives, each group ascending."""

    similarity: Tensor  # (A, n + K)
    column: Tensor  # (A, n + K): index of the candidate
    positives: int  # K
    anchors: Tensor | slice  # which of the V·N anchors these A are


class GroCo(SetLoss):
    r"""Group ordering constraints: every positive nearer than every negative (GroCo, eq. 5 and 6).

    .. math::
        L = \operatorname{mean}_a \tfrac{1}{n+K} \sum_{i} \operatorname{BCE}(p_i, [i \text{ is a positive}])

    p_i is the probability that element i lands among the K top places. The two sums of eq. 6 are equal, since
    the columns of P sum to 1. The list holds similarities in ascending order, and the network compares places
    (0, 1) first, as in the authors' program. With soft swaps this is the main text's network for an even
    number of elements and the supplement's for an odd number (GroCo, algorithm 1).

    With labels the positives are all points of the class; lists of one length are sorted together.

    `assignment`: p_i at the candidates in the anchor's list, 0 elsewhere; rows sum to K. Without a batch norm
    as the last layer of the projection head all embeddings become equal: see `models.head`.

    >>> import torch
    >>> from setclr import GroCo
    >>> z = torch.eye(4).repeat(2, 1, 1)
    >>> GroCo(beta=100.0, negatives=3).assignment(z)[0].round().tolist()  # its partner lands on top
    [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]

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
        key_gradient: as in InfoNCE.

    Raises ValueError: in `forward`, positive_views > U, or pool="view" if keys and z differ in their number
    of views.
    Cost: O(M² E + M (n+K)²) time, O(M² + M (n+K)²) space, M = V·N. With labels a GPU waits for the
    class sizes.
    """

    takes = frozenset({"views", "keys", "labels"})

    def __init__(
        self, beta: float = 1.0, negatives: int = 10, pool: str = "all", preorder: bool = True,
        stop_gradient: bool = True, positive_views: int | None = None, random: bool = False,
        key_gradient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.beta = setting("beta", beta, above=0, hint="table 8a uses 0.125 to 8")
        self.negatives = integer("negatives", negatives, least=1, hint="the paper uses 1 to 20")
        self.pool = choice("pool", pool, ("all", "view"))
        self.preorder = boolean("preorder", preorder)
        self.stop_gradient = boolean("stop_gradient", stop_gradient)
        self.positive_views = check_positive_views(positive_views)
        self.random = boolean("random", random)
        self.key_gradient = check_key_gradient(key_gradient, stop_gradient)

    def values(self, points: Points) -> Tensor:
        V, N, _ = points.anchors.shape
        values = 0 * points.anchors.flatten(0, 1).sum(1)  # of an anchor without a list; in the graph
        for x in self.lists(points):
            p = top_probability(x.similarity, x.positives, self.beta)
            negative, positive = p.split([p.shape[1] - x.positives, x.positives], dim=1)
            right = torch.cat([1 - negative, positive], dim=1)
            values[x.anchors] = right.clamp(min=SMALLEST).log().sum(1) / -p.shape[1]
        return values.view(V, N)

    def solution(self, points: Points) -> Tensor:
        M, columns = (x.shape[0] * x.shape[1] for x in (points.anchors, points.candidates))
        assignment = points.anchors.new_zeros(M, columns)
        for x in self.lists(points):
            p = top_probability(x.similarity, x.positives, self.beta)
            rows = torch.arange(M, device=p.device)[x.anchors].unsqueeze(1)
            assignment[rows, x.column] = p
        return assignment

    def lists(self, points: Points) -> list[SortList]:
        """The lists of all anchors, grouped by their numbers of positives and of negatives."""
        V, N, _ = points.anchors.shape
        if self.stop_gradient:
            points = points.without_other_side()
        pool, lists = self.similarities(points), []
        for anchors, positives, negative, n in self.groups(points):
            near = pool if len(positives) == len(pool) else pool[anchors]  # a slice's gradient is a matrix
            place = torch.arange(V * N, device=near.device)[anchors]
            column = self.chosen_negatives(near.detach(), negative, n, place)
            K = positives.shape[1]
            if self.pool == "all":
                column = torch.cat([column, positives], dim=1)
                similarity = near.gather(1, column)
            else:
                similarity = torch.cat([near.gather(1, column), similarity_at(points, place, positives)], 1)
                own_view = place.unsqueeze(1) // N * points.candidates.shape[1]
                column = torch.cat([column + own_view, positives], dim=1)
            if self.preorder and K > 1:
                order = similarity.detach()[:, n:].argsort(1)
                order = torch.cat([torch.arange(n, device=order.device).expand(len(order), n), n + order], 1)
                similarity, column = similarity.gather(1, order), column.gather(1, order)
            lists.append(SortList(similarity, column, K, anchors))
        return lists

    def similarities(self, points: Points) -> Tensor:
        """Similarities of every anchor to its pool, (V·N, U·C), or for the pool "view" (V·N, C)."""
        V, U = len(points.anchors), len(points.candidates)
        if self.pool == "all":
            return points.anchors.flatten(0, 1) @ points.candidates.flatten(0, 1).T
        if U != V:
            raise ValueError(
                f"keys must have the {V} views of z for pool='view', got {U}: negatives are of one view"
            )
        return (points.anchors @ points.candidates.mT).flatten(0, 1)

    def groups(self, points: Points) -> Iterator[tuple[Tensor | slice, Tensor, Tensor, int]]:
        """Anchors whose lists are equally long, A at a time.

        Yields which they are, the columns (A, K) of their positives, which candidates (A, columns) of their
        pool are negatives, and how many of these are chosen.
        """
        V, N, _ = points.anchors.shape
        U, C, _ = points.candidates.shape
        if points.labelled:
            positive, negative, _ = points.pairs(self.positive_views)
            if self.pool == "view":
                view = torch.arange(V, device=negative.device)
                negative = negative.unflatten(-1, (U, C))[view, :, view]
            positive, negative = positive.flatten(0, 1), negative.flatten(0, 1)
            counts = torch.stack([positive.sum(1), negative.sum(1).clamp(max=self.negatives)], dim=1)
            for count in counts.unique(dim=0):
                if count.all():
                    anchors = (counts == count).all(1).nonzero().squeeze(1)
                    positives = positive[anchors].nonzero()[:, 1].view(len(anchors), -1)
                    yield anchors, positives, negative[anchors], int(count[1])
            return
        check_positive_views(self.positive_views, U)
        G = U if self.positive_views is None else self.positive_views
        own = min(G, points.own_views)  # the anchors of the first `own` views are in the G views
        image = torch.arange(N, device=points.anchors.device)
        others = ~torch.eye(N, dtype=torch.bool, device=image.device)
        columns = 1 if self.pool == "view" else U
        for views, without_own in ((range(own), True), (range(own, V), False)):
            if views:
                own_view = torch.arange(views.start, views.stop, device=image.device).unsqueeze(1)
                view = torch.arange(G - without_own, device=image.device).expand(len(views), -1)
                view = view + (view >= own_view) if without_own else view
                positives = (C * view.unsqueeze(1) + image.unsqueeze(1)).flatten(0, 1)
                anchors = slice(N * views.start, N * views.stop)
                n = min(self.negatives, columns * (N - 1))
                yield anchors, positives, others.repeat(len(views), columns), n

    def chosen_negatives(self, near: Tensor, negative: Tensor, n: int, place: Tensor) -> Tensor:
        """Columns (A, n) of the n negatives in the lists of the anchors at these places (A,) of the batch."""
        if n < self.negatives:
            self.warn_once(f"negatives={self.negatives} in GroCo, {n} at hand: all are taken")
        first = near
        if self.random:  # those that follow the anchor
            columns = near.shape[1]
            first = -((torch.arange(columns, device=near.device) - place.unsqueeze(1)) % columns).to(near)
        column = first.masked_fill(~negative, -torch.inf).topk(n, dim=-1).indices
        if not self.preorder:
            return column.sort(dim=-1).values
        return column.gather(-1, near.gather(-1, column).argsort(-1)) if self.random else column.flip(-1)


def similarity_at(points: Points, place: Tensor, column: Tensor) -> Tensor:
    """Similarities (A, K) of the anchors at these places (A,) of the batch to the candidates in `column`."""
    if points.labelled:
        return (points.anchors.flatten(0, 1)[place] @ points.candidates.flatten(0, 1).T).gather(1, column)
    of_image = torch.einsum("vie,uie->viu", points.anchors, points.candidates).flatten(0, 1)
    return of_image[place].gather(1, column // points.candidates.shape[1])

"""GroCo: group ordering constraints by differentiable sorting (Shvetsova et al. 2023).

For every anchor, positives and hardest negatives form one list of similarities. A differentiable sorting
network gives the probability that each lands among the top places. It should be 1 for the positives and 0 for
the negatives.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from setclr.inner.sorting import top_probability
from setclr.losses.base import SetLoss
from setclr.losses.contrast import VIEWS
from setclr.losses.table import Batch, Table
from setclr.settings import flag, one_of, positive, whole

SMALLEST = math.exp(-100)  # torch's BCELoss clamps the logarithm at −100, too; NaN stays NaN
Rows = Tensor | slice  # of the table


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
    beta: float = positive(1.0, "table 8a uses 0.125 to 8")
    negatives: int = whole(10, 1, hint="the paper uses 1 to 20")
    pool: str = one_of("all", ("all", "view"))
    preorder: bool = flag(True)
    stop_gradient: bool = flag(True)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    random: bool = flag(False)
    key_gradient: bool = flag(False)

    def values(self, batch: Batch) -> Tensor:
        parts = [(anchors, self.each(similarity, K)) for anchors, similarity, _, K in self.lists(batch)]
        if len(parts) == 1 and len(parts[0][1]) == len(batch.rows()):
            return parts[0][1]
        values = 0 * batch.rows().sum(1)  # of an anchor without a list; in the graph
        for anchors, each in parts:
            values[anchors] = each
        return values

    def each(self, similarity: Tensor, K: int) -> Tensor:
        """The value (A,) of each list (A, n + K)."""
        p = top_probability(similarity, K, self.beta)
        right = torch.cat([1 - p[:, :-K], p[:, -K:]], dim=1)
        return right.clamp(min=SMALLEST).log().sum(1) / -p.shape[1]

    def solution(self, batch: Batch) -> Tensor:
        rows = torch.arange(len(batch.rows()), device=batch.anchors.device)
        assignment = batch.anchors.new_zeros(len(rows), len(batch.columns()))
        for anchors, similarity, column, K in self.lists(batch):
            assignment[rows[anchors].unsqueeze(1), column] = top_probability(similarity, K, self.beta)
        return assignment

    def lists(self, batch: Batch) -> Iterator[tuple[Rows, Tensor, Tensor, int]]:
        """The lists of all anchors, n negatives and then K positives, those of one length together.

        Yields which anchors these A are, the similarities and columns (A, n + K) of their lists, and K.
        """
        (t, s), N = self.table(batch), batch.anchors.shape[1]
        rows = torch.arange(len(t.far), device=t.far.device)
        for anchors, K, n in self.lengths(batch, t):
            near, positive, far = t.near, t.positive, t.far
            if not isinstance(anchors, slice) or anchors.stop - anchors.start < len(rows):
                near, positive, far = near[anchors], positive[anchors], far[anchors]
            if near.shape[1] > K:
                order = t.true[anchors].byte().topk(K).indices
                near, positive = near.gather(1, order), positive.gather(1, order)
            if K > 1:
                order = (near.detach() if self.preorder else positive).argsort(1)
                near, positive = near.gather(1, order), positive.gather(1, order)
            negative = place = self.chosen_negatives(far.detach(), n, rows[anchors])
            if self.pool == "view":  # its first column is of the anchor's view
                negative = negative + far.shape[1] * (rows[anchors] // N).unsqueeze(1)
            column = torch.cat([negative, positive], dim=1)
            if s is None:
                yield anchors, torch.cat([far.gather(1, place), near], dim=1), column, K
            else:
                yield anchors, (s if len(column) == len(s) else s[anchors]).gather(1, column), column, K

    def table(self, batch: Batch) -> tuple[Table, Tensor | None]:
        """The table, whose `far` for pool="view" has the C candidates of the anchor's own view alone.

        With labels the table chooses, without a gradient, among all similarities (M, U·C), which come beside.
        """
        (V, N, _), (U, C, _) = batch.anchors.shape, batch.candidates.shape
        if self.pool == "view" and U != V:
            raise ValueError(
                f"keys must have the {V} views of z for pool='view', got {U}: negatives are of one view"
            )
        labelled = batch.negative is not None
        if labelled or self.pool == "all":
            s = batch.rows() @ batch.columns().T
            t = batch.by_masks(s.detach()) if labelled else batch.by_arithmetic(s.detach().clone())
            if self.pool == "view":
                view = torch.arange(V, device=t.far.device)
                t = t._replace(far=t.far.view(V, N, U, C)[view, :, view].flatten(0, 1))
            return t, s
        positive, true = batch.positives()
        of_image = torch.einsum("vie,uie->viu", batch.anchors, batch.candidates).flatten(0, 1)
        far = batch.anchors @ batch.candidates.mT
        far.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        return Table(of_image.gather(1, positive // C), true, positive, far.flatten(0, 1), N - 1), None

    def lengths(self, batch: Batch, t: Table) -> Iterator[tuple[Rows, int, int]]:
        """Which anchors have lists of one length, their number K of positives and n of negatives."""
        if batch.positive is None:
            N, G = batch.anchors.shape[1], self.positive_views or len(batch.candidates)
            own = N * min(G, batch.own_views)  # these anchors are of the G views themselves
            for anchors, K in ((slice(0, own), G - 1), (slice(own, len(t.far)), G)):
                if anchors.start < anchors.stop:
                    yield anchors, K, min(self.negatives, t.most)
            return
        negatives = (t.far > -torch.inf).sum(1).clamp(max=self.negatives)
        counts = torch.stack([t.true.sum(1), negatives], dim=1)
        if batch.complete is not None:
            counts = counts * batch.complete.unsqueeze(1)
        for count in counts.unique(dim=0):
            if count.all():
                anchors = (counts == count).all(1).nonzero().squeeze(1)
                whole = len(anchors) == len(counts)
                yield slice(0, len(counts)) if whole else anchors, int(count[0]), int(count[1])

    def chosen_negatives(self, far: Tensor, n: int, row: Tensor) -> Tensor:
        """Columns (A, n) of the n negatives in the lists of these rows (A,), in the order of the list."""
        if n < self.negatives:
            self.warn_once(f"negatives={self.negatives} in GroCo, {n} at hand: all are taken")
        first = far
        if self.random:  # those that follow the anchor
            columns = torch.arange(far.shape[1], device=far.device)
            after = (columns - row.unsqueeze(1)) % len(columns)
            first = (-after.to(far)).masked_fill(far == -torch.inf, -torch.inf)
        column = first.topk(n, dim=-1).indices
        if not self.preorder:
            return column.sort(dim=-1).values
        return column.gather(-1, far.gather(-1, column).argsort(-1)) if self.random else column.flip(-1)

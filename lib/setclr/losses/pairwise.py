"""Losses that score positive pairs against the anchor's negatives: InfoNCE, SupCon, NTLogistic, Triplet."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import boolean, choice, integer, setting, values_readable
from setclr.losses.base import Extra, SetLoss
from setclr.losses.contrast import Contrast, all_candidates, contrast, products
from setclr.losses.points import Points, check_key_gradient, check_positive_views, distances, length
from setclr.losses.temperature import Temperature, checked_temperature, in_use

PAPERS_USE = "the papers use 0.05 to 0.5"


class InfoNCE(SetLoss):
    r"""Each anchor picks its positive out of the negatives by a softmax (van den Oord 2018; GroCo, eq. 11).

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e^{s_{ap}/\tau}}{e^{s_{ap}/\tau} + \sum_n
        e^{s_{an}/\tau}}

    with s the cosine similarity. The mean runs over the anchor's positives, then over anchors. The other
    positives are not in the denominator, not even with labels; in `SupCon` they are. For two views it is
    NT-Xent (Chen et al. 2020); with candidates="other view" it is CLIP's loss (Radford et al. 2021).

    The inner problem is the choice of one candidate; τ smooths the maximum. `assignment`: the mean over
    positives of the softmax over that positive and the negatives; rows sum to 1.

    >>> import torch
    >>> from setclr import InfoNCE
    >>> z1, z2 = torch.eye(4), torch.eye(4)  # two views of four images, each pair at one place
    >>> round(InfoNCE(0.1)(z1, z2).item(), 3)
    0.0
    >>> InfoNCE(0.1).assignment(z1, z2).argmax(1).tolist()  # each point takes its partner
    [4, 5, 6, 7, 0, 1, 2, 3]

    Args:
        temperature: τ > 0, or `learnable(0.07)`. The papers use 0.05 to 0.5; towards 0 only
            the hardest negative counts.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.
        candidates: "other view": of two views, an anchor's candidates are in the other one alone; "memory":
            the memory holds all negatives, as in MoCo (He et al. 2020). None: all.
        stop_gradient: only the anchor gets a gradient; the candidates are constants, as in GroCo's table 9a.
        average: "probabilities": the loss is −log of the anchors' mean e^(−ℓ), ℓ the anchor's value, as for
            SimCLR in QARe's program. Anchors that are right already then count more. None: the mean of ℓ.
        clamped: negative cosines count as 0, as for SimCLR+QARe in QARe's program.
        key_gradient: the keys get a gradient, as those of a second encoder that learns, too.

    Raises ValueError: in `forward`, positive_views > U, "other view" unless z and keys have two views, or
    "memory" without memory; `weight` or "none" with average="probabilities".
    Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    takes = frozenset({"views", "keys", "memory", "labels"})

    def __init__(
        self, temperature: Temperature = 0.5, positive_views: int | None = None,
        candidates: str | None = None, stop_gradient: bool = False, average: str | None = None,
        clamped: bool = False, key_gradient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.temperature = checked_temperature("temperature", temperature, PAPERS_USE)
        self.positive_views = check_positive_views(positive_views)
        self.stop_gradient = boolean("stop_gradient", stop_gradient)
        self.key_gradient = check_key_gradient(key_gradient, stop_gradient)
        self.clamped = boolean("clamped", clamped)
        self.average = average
        if average is not None:
            choice("average", average, ("probabilities",), hint="None takes the mean of their logarithms")
        self.candidates = candidates
        if candidates is not None:
            choice("candidates", candidates, ("other view", "memory"), hint="None takes those of all views")
        if candidates == "other view":
            self.takes = self.takes - {"views"}

    def contrast(self, points: Points) -> Contrast:
        views = len(points.anchors), len(points.candidates)
        if self.candidates == "other view" and views != (2, 2):
            raise ValueError(f"z and keys must hold two views each for {self}, got {views[0]} and {views[1]}")
        if self.candidates == "memory" and points.memory is None:
            raise ValueError(f"memory must be given for {self}, got None; it holds all negatives")
        if self.stop_gradient:
            points = points.without_other_side()
        tau = in_use("temperature", self.temperature)
        return contrast(points, tau, self.positive_views, self.candidates, self.clamped)

    def score(self, points: Points) -> Tensor:
        if self.average is None:
            return super().score(points)
        if self.kept(points) is not None:
            raise ValueError(f"z must have two views or more for {self}; average=None takes a flat batch")
        values = self.values(points)
        return math.log(values.numel()) - (-values).logsumexp((0, 1))

    def _reduced(self, z: Tensor, extra: Extra, weight: Tensor | None, reduction: str) -> Tensor:
        if self.average is not None and (weight is not None or reduction != "mean"):
            raise ValueError(f"reduction must be 'mean' and weight None for {self}; average=None takes both")
        return super()._reduced(z, extra, weight, reduction)

    def values(self, points: Points) -> Tensor:
        c = self.contrast(points)
        return c.over_positives(F.softplus(self.log_mass(c) - c.positives))  # −log of the fraction in L

    def solution(self, points: Points) -> Tensor:
        c = self.contrast(points)
        lead = c.positives - self.log_mass(c)
        rest = c.over_positives((-lead).sigmoid()).unsqueeze(-1)  # the negatives' share
        return c.assignment(rest * self.shares(c), c.weights * lead.sigmoid())

    def log_mass(self, c: Contrast) -> Tensor:
        """log of the negatives' mass, (V, N, 1), or (V, N, K) if it depends on the positive."""
        return c.log_mass().unsqueeze(-1)

    def shares(self, c: Contrast) -> Tensor:
        """Each candidate's share of the negatives' mass, (V, N, U·N + Q); sums to 1."""
        return c.matrix().softmax(-1)


class SupCon(SetLoss):
    r"""Supervised contrast: points of a class are positives of each other (Khosla et al. 2020).

    .. math::
        L_{out} = \operatorname{mean}_a \operatorname{mean}_p\; -\log \frac{e^{s_{ap}/\tau}}{\sum_{c \neq a}
        e^{s_{ac}/\tau}}, \qquad
        L_{in} = \operatorname{mean}_a\; -\log \frac{\operatorname{mean}_p e^{s_{ap}/\tau}}{\sum_{c \neq a}
        e^{s_{ac}/\tau}}

    These are its eq. 2 and 3. Every candidate but the anchor is in the denominator, the other positives too.
    So for more than one positive this is not InfoNCE with labels. Without labels the positives are the
    image's other views.

    The inner problem is the choice of one candidate. `assignment`: the softmax over all but the anchor.

    >>> import torch
    >>> from setclr import SupCon
    >>> x, y = torch.randn(6, 16), torch.tensor([0, 0, 1, 1, 1, 2])  # a flat batch; the last is left out
    >>> SupCon(0.1)(x, labels=y, reduction="none").shape
    torch.Size([6])

    Args:
        temperature: τ > 0, or `learnable(0.07)`; the paper uses 0.1.
        average: "inside": L_in, the mean over positives inside the logarithm. None: L_out, which the paper
            prefers.
        key_gradient: as in InfoNCE.

    Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    takes = frozenset({"views", "keys", "memory", "labels"})
    supervised = True

    def __init__(
        self, temperature: Temperature = 0.1, average: str | None = None, key_gradient: bool = False
    ) -> None:
        super().__init__()
        self.temperature = checked_temperature("temperature", temperature, PAPERS_USE)
        self.average = average
        if average is not None:
            choice("average", average, ("inside",), hint="None takes the mean of the logarithms")
        self.key_gradient = check_key_gradient(key_gradient)

    def values(self, points: Points) -> Tensor:
        if points.labelled:
            every, positive = self.similarities(points)
            near = every.log_softmax(-1)  # of all that is used; fewer passes than their total by itself
        else:
            c = contrast(points, in_use("temperature", self.temperature))
            positive = c.weights > 0
            own = c.positives.masked_fill(~positive, -torch.inf).logsumexp(-1)
            near = c.positives - torch.logaddexp(c.log_mass(), own).unsqueeze(-1)
        if self.average is None:
            return near.masked_fill(~positive, 0).sum(-1) / -positive.sum(-1)
        return positive.sum(-1).log() - near.masked_fill(~positive, -torch.inf).logsumexp(-1)

    def solution(self, points: Points) -> Tensor:
        return self.similarities(points)[0].softmax(-1).flatten(0, 1)

    def similarities(self, points: Points) -> tuple[Tensor, Tensor]:
        """s/τ (V, N, U·C + Q), −inf at the anchor itself, and which of them are of positives."""
        every = products(points.anchors / in_use("temperature", self.temperature), all_candidates(points))
        positive, negative, _ = points.pairs().filled()
        return every.masked_fill(~(positive | negative), -torch.inf), positive


class NTLogistic(SetLoss):
    r"""Logistic loss of each pair by itself (Mikolov et al. 2013; Chen et al. 2020, table 2).

    .. math::
        L = \operatorname{mean}_a \Big[ \operatorname{mean}_p \log(1 + e^{-s_{ap}/\tau}) +
        \operatorname{mean}_n \log(1 + e^{s_{an}/\tau}) \Big]

    The inner problem decides whether a pair is a positive one, without the other pairs. So a row need not sum
    to 1.
    `assignment`: the probability σ(s/τ) that the pair is a positive one, for every candidate but the anchor.

    >>> import torch
    >>> from setclr import NTLogistic
    >>> z1, z2 = torch.eye(3), torch.eye(3)
    >>> round(NTLogistic(0.05)(z1, z2).item(), 3)  # log 2, of negatives at a right angle
    0.693

    Args:
        temperature: τ > 0, or `learnable(0.07)`; QARe's experiments use 0.05.

    Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    takes = frozenset({"views", "labels"})

    def __init__(self, temperature: Temperature = 0.05) -> None:
        super().__init__()
        self.temperature = checked_temperature("temperature", temperature, PAPERS_USE)

    def values(self, points: Points) -> Tensor:
        c = contrast(points, in_use("temperature", self.temperature))
        (negatives,) = c.negatives
        return c.over_positives(F.softplus(-c.positives)) + F.softplus(negatives).sum(-1) / c.counts

    def solution(self, points: Points) -> Tensor:
        x = points.anchors.flatten(0, 1)
        return (x @ x.T / in_use("temperature", self.temperature)).sigmoid().fill_diagonal_(0)


class Triplet(SetLoss):
    r"""Positives must be nearer than the hardest negatives by a margin (Schroff 2015; GroCo, eq. 8).

    .. math::
        L = \operatorname{mean}_a \operatorname{mean}_{p, n}\; \max(0,\; d_{ap} - d_{an} + m)

    with p the anchor's chosen positives and n its nearest negatives, as in Hermans et al. 2017. Without the
    hinge (m = ∞ in GroCo's table 7) it is the mean of d⁺ − d⁻. With all positives, all negatives and cosines
    it is the hinge of MMCL's preliminaries. Labels make the class's points positives.

    The inner problem is the search for the nearest negatives. `assignment`: equal weights for them, which sum
    to 1.

    >>> import torch
    >>> from setclr import Triplet
    >>> x, y = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0, 1, 1])
    >>> Triplet(margin=0.5)(x, labels=y).item()  # a negative is √2 away, the positive 0
    0.0

    Args:
        margin: m ≥ 0, in units of the distance; None leaves the hinge out. QARe's experiments use 0.5,
            GroCo's table 7 has 0.8, 1.6 and None.
        positives: "hardest": the farthest (batch-hard, QARe's experiments); "all", as in GroCo's table 7.
        negatives: how many of the nearest negatives, ≥ 1; all if the batch has fewer. Batch-hard takes 1,
            GroCo's table 7 takes 10.
        distance: "euclidean", ‖x − y‖ of unit vectors, gradient 0 at 0; "cosine", 1 − s, as in GroCo.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.
        stop_gradient: only the anchor gets a gradient; the candidates are constants, as in GroCo's runs.
        key_gradient: as in InfoNCE.

    Raises ValueError: in `forward`, positive_views > U.
    Cost: O(M² E) time and O(M²) space, M = V·N; only the chosen pairs get a gradient. With labels and all
    positives O(M² n) space for n negatives.
    """

    takes = frozenset({"views", "keys", "memory", "labels"})

    def __init__(
        self, margin: float | None = 0.5, positives: str = "hardest", negatives: int = 1,
        distance: str = "euclidean", positive_views: int | None = None, stop_gradient: bool = False,
        key_gradient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        hint = "None leaves the hinge out, the papers use 0.5 to 1.6"
        self.margin = None if margin is None else setting("margin", margin, least=0, hint=hint)
        self.positives = choice("positives", positives, ("hardest", "all"))
        self.negatives = integer("negatives", negatives, least=1, hint="the papers use 1 and 10")
        self.distance = choice("distance", distance, ("euclidean", "cosine"))
        self.positive_views = check_positive_views(positive_views)
        self.stop_gradient = boolean("stop_gradient", stop_gradient)
        self.key_gradient = check_key_gradient(key_gradient, stop_gradient)

    def values(self, points: Points) -> Tensor:
        if self.stop_gradient:
            points = points.without_other_side()
        with torch.no_grad():
            c = contrast(points, positive_views=self.positive_views)
            column, share = self.hardest(c)
            own, weights = self.own(c)
        positive = self.distances(points, own)
        if self.positives == "hardest":
            positive = positive.masked_fill(weights == 0, -torch.inf).amax(-1, keepdim=True)
            weights = torch.ones_like(positive)
        gap = positive.unsqueeze(-1) - self.distances(points, column).unsqueeze(-2)
        if self.margin is not None:
            gap = F.relu(gap + self.margin)
        return (weights * (gap * share.unsqueeze(-2)).sum(-1)).sum(-1)

    def solution(self, points: Points) -> Tensor:
        column, share = self.hardest(contrast(points))
        assignment = column.new_zeros(column.shape[0] * column.shape[1], len(all_candidates(points)))
        return assignment.to(share).scatter_(1, column.flatten(0, 1), share.flatten(0, 1))

    def hardest(self, c: Contrast) -> tuple[Tensor, Tensor]:
        """Columns and shares, both (V, N, n), of every anchor's most similar negatives; shares sum to 1."""
        negatives = c.matrix()
        most = negatives.shape[-1] - (0 if c.labelled else c.positives.shape[-1])
        similarity, column = negatives.topk(min(self.negatives, most), sorted=False)
        found = (similarity > -torch.inf).to(similarity)
        return column, found / found.sum(-1, keepdim=True)

    def own(self, c: Contrast) -> tuple[Tensor, Tensor]:
        """Columns of the positives, both (V, N, K), and their weights, 0 at columns that are none.

        For "hardest" and labels these are only the positives whose similarity is the least, or larger by no
        more than its rounding. Where values cannot be read, these are the least four.
        """
        V, N, K = c.positives.shape
        column, weights = torch.arange(K, device=c.positives.device), c.weights.expand(V, N, K)
        if not c.labelled:
            return (N * column + torch.arange(N, device=column.device).unsqueeze(1)).expand(V, N, K), weights
        if self.positives == "all":
            return column.expand(V, N, K), weights
        near = c.positives.masked_fill(weights == 0, torch.inf)
        k = 4
        if values_readable(near):
            least = near.amin(-1, keepdim=True) + 128 * torch.finfo(near.dtype).eps
            k = int((near <= least).sum(-1).max())
        found = near.topk(min(k, K), largest=False, sorted=False).indices
        return found, weights.gather(-1, found)

    def distances(self, points: Points, column: Tensor) -> Tensor:
        """Distances (V, N, n) from every anchor to the candidates in its row of `column` (V, N, n).

        A Euclidean distance is the norm of the difference: √(2 − 2s) would lose half the digits. The
        differences are stored unless they take more than 8 times the space of the similarities.
        """
        x, y = points.anchors, all_candidates(points)
        if column.shape[-1] * x.shape[-1] > 8 * len(y):
            every = 1 - x @ y.T if self.distance == "cosine" else distances(x, y)
            return every.gather(-1, column)
        x, y = x.unsqueeze(2), y[column]
        return 1 - (x * y).sum(-1) if self.distance == "cosine" else length(x - y)

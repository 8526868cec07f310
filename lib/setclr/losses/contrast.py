"""Losses that contrast an anchor's positives with its negatives: InfoNCE, SupCon, NTLogistic, SigLIP."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.losses.base import SetLoss
from setclr.losses.table import Batch, Table
from setclr.losses.temperature import Learnable, Temperature, current, learnt, tau
from setclr.settings import flag, one_of, whole

VIEWS = "None makes every view a positive; multi-crop has 2 global views"


class Softmax(SetLoss):
    """InfoNCE and its relatives: each positive against a mass of the negatives."""

    takes = frozenset({"views", "keys", "memory", "labels"})

    def values(self, batch: Batch) -> Tensor:
        t = self.table(batch)
        return t.mean(F.softplus(self.mass(t) - t.near))  # −log of the positive's share

    def solution(self, batch: Batch) -> Tensor:
        t = self.table(batch).joined()
        lead = t.near - self.mass(t)
        rest = t.mean((-lead).sigmoid()).unsqueeze(1)  # the negatives' share
        return t.assignment(lead.sigmoid(), rest * self.shares(t))

    def table(self, batch: Batch) -> Table:
        return batch.table(1 / current(self.temperature), self.clamped)

    def mass(self, t: Table) -> Tensor:
        """log of the negatives' mass, (M, 1), or (M, K) if it depends on the positive."""
        return t.mass()

    def shares(self, t: Table) -> Tensor:
        """Each candidate's share of the negatives' mass, (M, C); sums to 1."""
        return t.far.softmax(-1)


class InfoNCE(Softmax):
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

    temperature: Temperature = tau(0.5)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    candidates: str | None = one_of(None, ("other view", "memory"), "None takes those of all views")
    stop_gradient: bool = flag(False)
    average: str | None = one_of(None, ("probabilities",), "None takes the mean of their logarithms")
    clamped: bool = flag(False)
    key_gradient: bool = flag(False)

    def table(self, batch: Batch) -> Table:
        views = len(batch.anchors), len(batch.candidates)
        if self.candidates == "other view" and views != (2, 2):
            raise ValueError(f"z and keys must hold two views each for {self}, got {views[0]} and {views[1]}")
        if self.candidates == "memory" and batch.memory is None:
            raise ValueError(f"memory must be given for {self}, got None; it holds all negatives")
        return super().table(batch)

    def check(self) -> None:
        super().check()
        self.takes = type(self).takes - ({"views"} if self.candidates == "other view" else set())

    def values(self, batch: Batch) -> Tensor:
        return super().values(batch) if self.average is None else SetLoss.values(self, batch)

    def score(self, batch: Batch) -> Tensor:
        if self.average is None:
            return super().score(batch)
        values = super().values(batch)
        if batch.complete is None:
            return math.log(len(values)) - (-values).logsumexp(0)
        total = (-values.masked_fill(~batch.complete, torch.inf)).logsumexp(0)
        return torch.where(batch.complete.any(), batch.complete.sum().clamp(min=1).log() - total, 0)


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

    `positives` may be weights w ≥ 0 of the candidates, whose sum is above 0 in each row, as of smoothed
    labels, of X-CLR's similarities (Sobal et al. 2024) or of a target plan. The loss is then the
    cross-entropy

    .. math::
        L = \operatorname{mean}_a\; -\sum_{c \neq a} \frac{w_{ac}}{\sum_{c \neq a} w_{ac}} \log
        \frac{e^{s_{ac}/\tau}}{\sum_{c \neq a} e^{s_{ac}/\tau}}

    Weights that are equal at the positives and 0 elsewhere give L_out.

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

    takes = frozenset({"views", "keys", "memory", "labels", "soft positives"})
    supervised = True
    temperature: Temperature = tau(0.1)
    average: str | None = one_of(None, ("inside",), "None takes the mean of the logarithms")
    key_gradient: bool = flag(False)

    def values(self, batch: Batch) -> Tensor:
        t = batch.table(1 / current(self.temperature), every=True).joined()
        shares = t.far.log_softmax(-1)
        if batch.weights is not None:
            if self.average:
                raise ValueError(f"average must be None with weights as positives, got {self.average!r}")
            return -(batch.weights * shares.masked_fill(t.far.isneginf(), 0)).sum(-1)
        near = t.at_positives(shares)
        if self.average is None:
            return -t.mean(near)
        return t.true.sum(-1).to(near).log() - near.masked_fill(~t.true, -torch.inf).logsumexp(-1)

    def solution(self, batch: Batch) -> Tensor:
        return batch.table(1 / current(self.temperature), every=True).joined().far.softmax(-1)


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
    temperature: Temperature = tau(0.05)

    def values(self, batch: Batch) -> Tensor:
        t = batch.table(1 / current(self.temperature))
        return t.mean(F.softplus(-t.near)) + F.softplus(t.far).sum(-1) / t.size().squeeze(1)

    def solution(self, batch: Batch) -> Tensor:
        x = batch.rows()
        return (x @ x.T / current(self.temperature)).sigmoid().fill_diagonal_(0)


class SigLIP(SetLoss):
    r"""Logistic loss of each pair of the two views, with a learnt scale and bias (Zhai et al. 2023).

    .. math::
        L = \frac{1}{N} \sum_{i, j} \log(1 + e^{-y_{ij} (s_{ij} / \tau + b)}), \qquad y_{ii} = 1, \quad
        y_{ij} = -1

    over all pairs of an image i of one view and an image j of the other. A pair counts by itself, as in
    `NTLogistic`; the bias b begins low, since N − 1 of N pairs are negatives. It is open_clip's SigLipLoss
    with logit_scale = 1/τ; there the scale has no upper limit, here it is `learnable`, 1 to 100.

    The inner problem decides whether a pair is a positive one. `assignment`: the probability that it is,
    σ(s/τ + b), for every point of the other view.

    >>> import torch
    >>> from setclr import SigLIP
    >>> loss = SigLIP()
    >>> round(loss(torch.eye(4), torch.eye(4)).item(), 3), len(list(loss.parameters()))
    (0.693, 2)

    Args:
        temperature: τ, learnt, with a start of 0.01 to 1; the paper's is 0.1.
        bias: the start of b, which is learnt; the paper's is -10.

    Cost: O(N² E) time and O(N²) space.
    """

    temperature: Learnable = learnt(0.1)
    bias: Learnable = learnt(-10.0, offset=True)
    candidates = "other view"

    def values(self, batch: Batch) -> Tensor:
        t = batch.table(1 / self.temperature())
        return F.softplus(-self.bias() - t.near).sum(-1) + F.softplus(self.bias() + t.far).sum(-1)

    def solution(self, batch: Batch) -> Tensor:
        t = batch.table(1 / self.temperature())
        return t.assignment((t.near + self.bias()).sigmoid(), (t.far + self.bias()).sigmoid())

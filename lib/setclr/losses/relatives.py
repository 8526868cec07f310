"""Relatives of InfoNCE that the papers compare with: other ways to spread the negatives, or to weigh them.

AlignUniform and InvaSpread have one term that draws positives together and one that spreads all points.
HardNegatives, DebiasedInfoNCE, HCL and DecoupledInfoNCE are InfoNCE with another mass of the negatives.
"""

import math

import torch
from torch import Tensor

from setclr.losses.base import SetLoss
from setclr.losses.contrast import VIEWS, Softmax
from setclr.losses.table import Batch, Table, length
from setclr.losses.temperature import Temperature, current, tau
from setclr.settings import flag, moderate, positive, whole


class AlignUniform(SetLoss):
    r"""Alignment of positives and uniformity of each view on the sphere (Wang & Isola 2020).

    .. math::
        L = \operatorname{mean}_{a, p} \|x_a - x_p\|^\alpha + w \operatorname{mean}_v \log
        \operatorname{mean}_{i \neq j}\, e^{-t \|x_{vi} - x_{vj}\|^2}

    The inner problem is in the second term: it weighs the points of the view as an anchor's neighbours, by a
    Gaussian kernel. `assignment`: e^{−t‖x_i − x_j‖²} within the anchor's view, rows scaled to sum to 1. The
    logarithm of a mean over pairs has no value for each anchor. IOT-CL's eq. 7 writes sums instead of means
    and pairs z_i with all z'_j of the other view, so its gradient has another direction.

    >>> import torch
    >>> from setclr import AlignUniform
    >>> z = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).repeat(2, 1, 1)
    >>> AlignUniform()(z).item()  # pairs are equal, and images 2 apart: the logarithm of e^(−2·2²)
    -8.0

    Args:
        alpha: exponent of the positives' distance, > 0 and ≤ 64; the paper uses 1 and 2. The gradient at
            distance 0 is 0.
        t: sharpness of the kernel, > 0; the paper uses 2.
        weight: w ≥ 0, the weight of uniformity beside alignment; IOT-CL's comparison uses 1.

    Cost: O(M N E + M V E) time and O(M N + M V E) space, M = V·N.
    """

    takes = frozenset({"views"})
    alpha: float = positive(2.0, "the paper uses 1 and 2", most=64)
    t: float = positive(2.0, "the paper uses 2")
    weight: float = moderate(1.0, "0 leaves alignment alone", least=0)

    def score(self, batch: Batch) -> Tensor:
        x = batch.anchors
        V, N, _ = x.shape
        one, other = torch.triu_indices(V, V, offset=1, device=x.device)
        distance = length(x[one] - x[other])
        equal = distance == 0
        align = distance.masked_fill(equal, 1).pow(self.alpha).masked_fill(equal, 0).mean()
        uniform = self.exponents(x).flatten(1).logsumexp(-1).mean() - math.log(N * (N - 1))
        return align + self.weight * uniform

    def solution(self, batch: Batch) -> Tensor:
        return torch.block_diag(*self.exponents(batch.anchors).softmax(-1))

    def exponents(self, x: Tensor) -> Tensor:
        """−t‖x_i − x_j‖² = 2t(s − 1) within each view, (V, N, N), −inf on the diagonal."""
        exponents = 2 * self.t * (x @ x.mT - 1)
        exponents.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        return exponents


class InvaSpread(SetLoss):
    r"""Every image is a class of its own: its views attract, other images repel (Ye et al. 2019).

    .. math::
        L = \operatorname{mean}_{v \neq u} \operatorname{mean}_i \Big[ -\log P_v(i \mid x_{ui}) - \sum_{j \neq
        i} \log\big(1 - P_v(i \mid x_{vj})\big) \Big], \qquad P_v(i \mid x) = \frac{e^{x_{vi} \cdot x /
        \tau}}{\sum_k e^{x_{vk} \cdot x / \tau}}

    The softmax runs over the images of one view. If x is of that view, x itself is among them. Every other
    image then has P(i|x) ≤ ½, so 1 − P(i|x) keeps its digits.

    The inner problem is the classification of a point among another view's images. `assignment`: P_v(· | x)
    for every other view v, divided by the number of these views; rows sum to 1.

    The value of the anchor (v, i) is the mean of −log P_u(i | x_vi) over the other views u, plus
    −Σ_j log(1 − P_v(i | x_vj)) over the other images j of its view.

    >>> import torch
    >>> from setclr import InvaSpread
    >>> round(InvaSpread(0.1)(torch.eye(3), torch.eye(3)).item(), 3)
    0.0

    Args:
        temperature: τ > 0, or `learnable(0.07)`; the paper uses 0.1.

    Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    takes = frozenset({"views"})
    temperature: Temperature = tau(0.1, "the paper uses 0.1")

    def values(self, batch: Batch) -> Tensor:
        log_probability = self.logits(batch).log_softmax(-1)
        V, N, _, _ = log_probability.shape
        within = log_probability.diagonal(dim1=0, dim2=2)  # (N, N, V): x_vj, the image i and the view v
        own = torch.eye(N, dtype=torch.bool, device=within.device).unsqueeze(-1)
        spread = -within.exp().masked_fill(own, 0).neg().log1p().sum(0).T
        near = -log_probability.diagonal(dim1=1, dim2=3)  # (V, V, N): x_vi among the images of view u
        same = torch.eye(V, dtype=torch.bool, device=near.device).unsqueeze(-1)
        return spread + near.masked_fill(same, 0).sum(1) / (V - 1)

    def solution(self, batch: Batch) -> Tensor:
        probability = self.logits(batch).softmax(-1)
        probability.diagonal(dim1=0, dim2=2).fill_(0)
        return (probability / (len(probability) - 1)).flatten(2).flatten(0, 1)

    def logits(self, batch: Batch) -> Tensor:
        """Similarities s/τ of every point (u, j) to the images i of every view v, (V, N, V, N)."""
        x, shape = batch.rows(), batch.anchors.shape[:2]
        return (x / current(self.temperature) @ x.T).view(*shape, *shape)


class HardNegatives(Softmax):
    r"""InfoNCE against the hardest of the negatives only (Wang & Liu 2021; IOT-CL, eq. 26).

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e^{s_{ap}/\tau}}{e^{s_{ap}/\tau} + \sum_{n \in H_a}
        e^{s_{an}/\tau}}

    with H_a the fraction `keep` of the anchor's negatives that are most similar to it.

    The inner problem is InfoNCE's with fewer candidates. `assignment`: as InfoNCE's, 0 at the negatives left
    out.

    >>> import torch
    >>> from setclr import HardNegatives
    >>> A = HardNegatives(0.5, keep=0.25).assignment(torch.randn(2, 5, 16))
    >>> (A > 0).sum(1).tolist() == 10 * [3]  # a quarter of the 8 negatives, and the positive
    True

    Args:
        temperature, positive_views, stop_gradient, key_gradient: as in InfoNCE.
        keep: fraction of the negatives kept, in (0, 1], rounded to a whole number ≥ 1. keep=1 is InfoNCE.

    Raises ValueError: in `forward`, positive_views > U. Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    temperature: Temperature = tau(0.5)
    keep: float = positive(0.1, "it is the fraction of negatives kept", most=1)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    stop_gradient: bool = flag(False)
    key_gradient: bool = flag(False)

    def mass(self, t: Table) -> Tensor:
        return self.hardest(t)[0].logsumexp(-1, keepdim=True)

    def shares(self, t: Table) -> Tensor:
        logits, columns = self.hardest(t)
        return torch.zeros_like(t.far).scatter_(-1, columns, logits.softmax(-1))

    def hardest(self, t: Table) -> tuple[Tensor, Tensor]:
        """Similarities and columns of the kept negatives, (M, k); −inf where an anchor keeps fewer."""
        k = max(1, round(self.keep * t.most))
        similarity, column = t.joined().far.topk(k, sorted=t.counted is not None)
        if t.counted is None:
            return similarity, column
        allowed = (self.keep * t.size().double()).round().clamp(min=1)
        rank = torch.arange(column.shape[-1], device=column.device)
        return similarity.masked_fill(rank >= allowed, -torch.inf), column


class DebiasedInfoNCE(Softmax):
    r"""InfoNCE corrected for false negatives, which show the anchor's own class.

    This is debiased contrastive learning (Chuang et al. 2020), DCL in its paper. A fraction ρ of the n
    negatives is expected to be like the positive. Then

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e_{ap}}{e_{ap} + g_{ap}}, \qquad e = e^{s/\tau}, \qquad
        g_{ap} = \max\Big( \frac{\sum_n e_{an} - n \rho\, e_{ap}}{1 - \rho},\; n e^{-1/\tau} \Big)

    where the bound n e^(−1/τ) is the least mass of n negatives. Everything is computed from logarithms.

    The inner problem is InfoNCE's with the negatives' mass corrected. `assignment`: the mean over positives
    of e_ap / (e_ap + g) at the positive, the rest among the negatives in proportion to e_an; rows sum to 1.

    >>> import torch
    >>> from setclr import DebiasedInfoNCE, InfoNCE
    >>> z = torch.randn(2, 8, 16)
    >>> torch.equal(DebiasedInfoNCE(0.5, prior=0.0)(z), InfoNCE(0.5)(z))  # no negative is a false one
    True

    Args:
        temperature: τ > 0, or `learnable(0.07)`; the paper uses 0.5.
        prior: ρ, the probability that a negative is a false one, 0 to 0.99; the paper uses 0.05 and 0.1.
            prior=0 is InfoNCE.
        positive_views, key_gradient: as in InfoNCE.

    Raises ValueError: in `forward`, positive_views > U. Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    temperature: Temperature = tau(0.5)
    prior: float = moderate(0.1, "1/classes where they are balanced", least=0, most=0.99)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    key_gradient: bool = flag(False)

    def mass(self, t: Table) -> Tensor:
        return debiased(t, t.mass(), self.prior, 1 / current(self.temperature))


class HCL(Softmax):
    r"""DebiasedInfoNCE in which hard negatives weigh more (Robinson et al. 2021).

    Its :math:`\sum_n e_{an}` becomes :math:`\sum_n w_n e_{an} / \operatorname{mean}_n w_n` with importance
    :math:`w_n = e_{an}^h`, h the hardness. The weighted mean lies between the mean of the negatives and
    their maximum.

    The inner problem is DebiasedInfoNCE's with these weights. `assignment`: as there, but the negatives have
    shares in proportion to w_n e_an.

    >>> import torch
    >>> from setclr import HCL, DebiasedInfoNCE
    >>> z = torch.randn(2, 8, 16)
    >>> HCL(0.5, hardness=1.0)(z) > DebiasedInfoNCE(0.5)(z)  # hard negatives weigh more
    tensor(True)

    Args:
        temperature, prior, positive_views, key_gradient: as in DebiasedInfoNCE.
        hardness: h, 1e-9 to 1e9, or 0, which is DebiasedInfoNCE; the authors' program uses 1.

    Raises ValueError: in `forward`, positive_views > U. Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    temperature: Temperature = tau(0.5)
    prior: float = moderate(0.1, "1/classes where they are balanced", least=0, most=0.99)
    hardness: float = moderate(1.0, "the authors' code uses 1", least=0, or_zero=True)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    key_gradient: bool = flag(False)

    def mass(self, t: Table) -> Tensor:
        h = self.hardness
        total = t.mass(1 + h) - t.mass(h) + t.size().log() if h else t.mass()
        return debiased(t, total, self.prior, 1 / current(self.temperature))

    def shares(self, t: Table) -> Tensor:
        return ((1 + self.hardness) * t.far).softmax(-1)


class DecoupledInfoNCE(Softmax):
    r"""InfoNCE without the positive in the denominator: decoupled contrastive learning (Yeh et al. 2022).

    .. math::
        L = \operatorname{mean}_{a, p} \Big[ -\frac{s_{ap}}{\tau} + \log \sum_n e^{s_{an}/\tau} \Big]

    A positive that is near no longer weakens the push on the negatives. The paper and lightly call it DCL;
    DebiasedInfoNCE is another loss of that name. It can be below 0.

    The inner problem is the choice of the hardest negative. `assignment`: the softmax over the negatives.

    >>> import torch
    >>> from setclr import DecoupledInfoNCE
    >>> z = torch.eye(3).repeat(2, 1, 1)
    >>> round(DecoupledInfoNCE(0.1)(z).item(), 3)  # log 4 of the negatives − 10 of the positive
    -8.614

    Args:
        temperature: τ > 0, or `learnable(0.07)`; the paper uses 0.1.
        positive_views, key_gradient: as in InfoNCE.

    Raises ValueError: in `forward`, positive_views > U. Cost: O(M² E) time and O(M²) space, M = V·N.
    """

    temperature: Temperature = tau(0.1)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    key_gradient: bool = flag(False)

    def values(self, batch: Batch) -> Tensor:
        t = self.table(batch)
        return t.mean(t.mass() - t.near)

    def solution(self, batch: Batch) -> Tensor:
        return self.shares(self.table(batch).joined())


def debiased(t: Table, total: Tensor, prior: float, scale: float | Tensor) -> Tensor:
    """log g_ap (M, K), from log Σ e_an (M, 1), the prior and 1/τ; all from logarithms."""
    if prior == 0:
        return total
    log_n = t.size().log()
    false = t.near + log_n + math.log(prior) - total  # log of the false negatives' share
    none_true, least = false >= 0, log_n - scale
    true = (-false.masked_fill(none_true, -1).expm1()).log() + total - math.log1p(-prior)
    return torch.where(none_true, least, torch.maximum(true, least))

"""Relatives of InfoNCE that the papers compare with: other ways to spread the negatives, or to weigh them.

AlignUniform and InvaSpread keep the two wishes apart, positives near and everything else spread out.
HardNegatives, DCL and HCL are InfoNCE with another account of what the negatives weigh.
"""

import math

import torch
from torch import Tensor

from setclr.checks import number
from setclr.losses.base import Points, SetLoss, positive_weights
from setclr.losses.pairwise import InfoNCE, count, logsumexp, mean_over_positives


class AlignUniform(SetLoss):
    r"""Alignment of positives and uniformity of each view on the sphere (Wang & Isola 2020).

    .. math::
        L = \operatorname{mean}_{a, p} \|x_a - x_p\|^\alpha + w \operatorname{mean}_v \log
        \operatorname{mean}_{i \neq j}\, e^{-t \|x_{vi} - x_{vj}\|^2}

    The inner problem is the second term's: which points of the view are an anchor's neighbours, by a Gaussian
    kernel. `assignment`: e^{−t‖x_i − x_j‖²} within the anchor's view, rows scaled to sum to 1.

    Args:
        alpha: exponent of the positives' distance, > 0; the paper uses 1 and 2. Where two positives are equal
            its gradient is 0.
        t: sharpness of the kernel, > 0; the paper uses 2.
        weight: w ≥ 0, of uniformity against alignment; IOT-CL's comparison uses 1.

    Raises:
        ValueError: an argument is out of range.

    Cost: O(M N E + M V E) time and O(M N + M V E) memory, M = V·N.
    """

    def __init__(self, alpha: float = 2.0, t: float = 2.0, weight: float = 1.0):
        super().__init__()
        self.alpha = number("alpha", alpha, above=0, hint="the paper uses 1 and 2")
        self.t = number("t", t, above=0, hint="the paper uses 2")
        self.weight = number("weight", weight, least=0, hint="0 leaves alignment alone")

    def score(self, points: Points) -> Tensor:
        x = points.anchors
        V, N, _ = x.shape
        one, other = torch.triu_indices(V, V, offset=1, device=x.device)
        distance = (x[one] - x[other]).norm(dim=-1)
        equal = distance == 0
        align = distance.masked_fill(equal, 1).pow(self.alpha).masked_fill(equal, 0).mean()
        uniform = self.exponents(x).flatten(1).logsumexp(-1).mean() - math.log(N * (N - 1))
        return align + self.weight * uniform

    def solution(self, points: Points) -> Tensor:
        return torch.block_diag(*self.exponents(points.anchors).softmax(-1))

    def exponents(self, x: Tensor) -> Tensor:
        """−t‖x_i − x_j‖² = 2t(s − 1) within each view, (V, N, N), −inf on the diagonal."""
        exponents = 2 * self.t * (x @ x.mT - 1)
        exponents.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        return exponents


class InvaSpread(SetLoss):
    r"""Every image a class of its own: invariant to the view, spread among the images (Ye et al. 2019).

    .. math::
        L = \operatorname{mean}_{v \neq u} \operatorname{mean}_i \Big[ -\log P_v(i \mid x_{ui}) - \sum_{j \neq
        i} \log\big(1 - P_v(i \mid x_{vj})\big) \Big], \qquad P_v(i \mid x) = \frac{e^{x_{vi} \cdot x /
        \tau}}{\sum_k e^{x_{vk} \cdot x / \tau}}

    Unlike elsewhere the softmax runs over one view's images only. Where x is of that view, x itself is among
    them, so every other image has P(i|x) ≤ ½ and the complement keeps its digits.

    The inner problem is the classification of a point among another view's images. `assignment`: P_v(·|x) in
    every other view, divided by their number; rows sum to 1.

    Args:
        temperature: τ > 0; the paper uses 0.1.

    Raises:
        ValueError: the temperature is out of range.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    def __init__(self, temperature: float = 0.1):
        super().__init__()
        self.temperature = number("temperature", temperature, above=0, hint="the paper uses 0.1")

    def score(self, points: Points) -> Tensor:
        log_probability = self.logits(points).log_softmax(-1)
        V, N, _, _ = log_probability.shape
        within = log_probability.diagonal(dim1=0, dim2=2)  # (N, N, V)
        own = torch.eye(N, dtype=torch.bool, device=within.device).unsqueeze(-1)
        spread = -within.exp().masked_fill(own, 0).neg().log1p().sum() / (V * N)
        return spread - mean_over_positives(log_probability.diagonal(dim1=1, dim2=3))

    def solution(self, points: Points) -> Tensor:
        probability = self.logits(points).softmax(-1)
        weights = positive_weights(len(probability), None, probability)
        return (weights[:, None, :, None] * probability).flatten(2).flatten(0, 1)

    def logits(self, points: Points) -> Tensor:
        """s/τ of every point (u, j) to the images i of every view v, (V, N, V, N)."""
        x = points.anchors.flatten(0, 1)
        return (x / self.temperature @ x.T).view(*points.anchors.shape[:2], *points.anchors.shape[:2])


class HardNegatives(InfoNCE):
    r"""InfoNCE against the hardest of the negatives only (Wang & Liu 2021; IOT-CL, eq. 26).

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e^{s_{ap}/\tau}}{e^{s_{ap}/\tau} + \sum_{n \in H_a}
        e^{s_{an}/\tau}}

    with H_a the fraction `keep` of the anchor's negatives that are most similar to it.

    The inner problem is InfoNCE's with fewer candidates. `assignment`: as InfoNCE's, 0 at the negatives left
    out; rows sum to 1.

    Args:
        temperature: τ > 0.
        keep: fraction of the negatives kept, rounded to a whole number and at least one; in (0, 1]. With 1 it
            is InfoNCE.
        positive_views: as in InfoNCE.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    def __init__(self, temperature: float = 0.5, keep: float = 0.1, positive_views: int | None = None):
        super().__init__(temperature, positive_views)
        self.keep = number("keep", keep, above=0, most=1, hint="it is the fraction of negatives kept")

    def mass(self, positives: Tensor, negatives: list[Tensor]) -> Tensor:
        return self.hardest(torch.cat(negatives, dim=-1)).values.logsumexp(-1).unsqueeze(1)

    def shares(self, negatives: Tensor) -> Tensor:
        logits, columns = self.hardest(negatives)
        return torch.zeros_like(negatives).scatter_(-1, columns, logits.softmax(-1))

    def hardest(self, negatives: Tensor) -> torch.return_types.topk:
        return negatives.topk(max(1, round(self.keep * count([negatives]))), sorted=False)


class DCL(InfoNCE):
    r"""InfoNCE without what false negatives add: a share of the negatives shows the anchor's own class.

    Debiased contrastive learning (Chuang et al. 2020): with n negatives, of which a fraction ρ is expected to
    be like the positive,

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e_{ap}}{e_{ap} + g_{ap}}, \qquad e = e^{s/\tau}, \qquad
        g_{ap} = \max\Big( \frac{\sum_n e_{an} - n \rho\, e_{ap}}{1 - \rho},\; n e^{-1/\tau} \Big)

    where the bound is the least that n negatives can weigh. Everything is computed from logarithms.

    The inner problem is InfoNCE's with the negatives' mass corrected. `assignment`: the mean over positives
    of e_ap / (e_ap + g) at the positive, the rest among the negatives in proportion to e_an; rows sum to 1.

    Args:
        temperature: τ > 0; the paper uses 0.5.
        prior: ρ, the probability that a negative is a false one, 0 to 0.99; the paper uses 0.05 and 0.1. With
            0 it is InfoNCE.
        positive_views: as in InfoNCE.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    def __init__(self, temperature: float = 0.5, prior: float = 0.1, positive_views: int | None = None):
        super().__init__(temperature, positive_views)
        self.prior = number("prior", prior, least=0, most=0.99, hint="1/classes where they are balanced")

    def mass(self, positives: Tensor, negatives: list[Tensor]) -> Tensor:
        total = self.total(negatives).unsqueeze(1)
        if self.prior == 0:
            return total
        n = count(negatives)
        false = positives + math.log(n * self.prior) - total  # log of the false negatives' share of the total
        none_true = false >= 0
        least = math.log(n) - 1 / self.temperature
        true = (-false.masked_fill(none_true, -1).expm1()).log() + total - math.log1p(-self.prior)
        return true.masked_fill(none_true, least).clamp(min=least)

    def total(self, negatives: list[Tensor]) -> Tensor:
        """log Σ e_an, (V, N)."""
        return logsumexp(negatives)


class HCL(DCL):
    r"""DCL with the negatives drawn the more often the harder they are (Robinson et al. 2021).

    DCL's :math:`\sum_n e_{an}` becomes :math:`\sum_n w_n e_{an} / \operatorname{mean}_n w_n` with importance
    :math:`w_n = e_{an}^h`, h the hardness: between the mean of the negatives and their maximum.

    The inner problem is DCL's under that weighting. `assignment`: as DCL's, with the negatives' part in
    proportion to w_n e_an; rows sum to 1.

    Args:
        temperature: τ > 0; the paper uses 0.5.
        prior: ρ, as in DCL.
        hardness: h ≥ 0; the authors' program uses 1. With 0 it is DCL.
        positive_views: as in InfoNCE.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    def __init__(
        self,
        temperature: float = 0.5,
        prior: float = 0.1,
        hardness: float = 1.0,
        positive_views: int | None = None,
    ):
        super().__init__(temperature, prior, positive_views)
        self.hardness = number("hardness", hardness, least=0, hint="the authors' program uses 1")

    def total(self, negatives: list[Tensor]) -> Tensor:
        if self.hardness == 0:
            return super().total(negatives)
        weighted = logsumexp([(1 + self.hardness) * x for x in negatives])
        weights = logsumexp([self.hardness * x for x in negatives])
        return weighted - weights + math.log(count(negatives))

    def shares(self, negatives: Tensor) -> Tensor:
        return super().shares((1 + self.hardness) * negatives)

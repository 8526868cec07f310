"""The linear probe: a linear classifier trained on a frozen encoder's features, which are computed once.

Its Adam is written out by hand: the features stay on their device, and torch's Adam and autograd take three
times as long for so small a layer.
"""

import math

import torch
from torch import Tensor

from setclr.checks import boolean, default_device, integer, number
from setclr.evaluation.neighbours import FAR, check_features, in_parts
from setclr.seeding import generator_of

VALUES = 2**25  # scaled or squared at once


@torch.no_grad()
def linear_probe(
    bank: Tensor, bank_labels: Tensor, queries: Tensor,
    epochs: int = 100, batch: int = 128, lr: float = 1e-3, seed: int = 0, raw: bool = False,
    weight_decay: float = 0.0, cosine: bool = False,
) -> Tensor:  # fmt: skip
    """The label of each query, by a linear classifier trained on the bank, as it is after the last epoch.

    Adam minimises the cross-entropy, without augmentation. All features are divided by their root mean
    square in the bank, so that lr means the same for every encoder. All weights begin at 0. With `raw` the
    features are not scaled, and weights and bias begin uniform in ± 1/√D, as in torch's Linear. That is the
    protocol of the QARe paper's program. `weight_decay` is Adam's, of weights and bias; with `cosine` the
    rate falls to 0 as half a cosine, a step an epoch.

    The bank (N, D) holds the training images' features and bank_labels (N,) their labels, integers ≥ 0.
    The seed decides their order and, with `raw`, the initial weights. Returns labels (Q,) of the queries
    (Q, D). Features of K encoders may be given together, (K, N, D) and (K, Q, D). Each gets the classifier
    that it would get alone, up to rounding, and labels (K, Q) are returned. Eight of them take a third to
    a half of the time. Raises ValueError where an argument is not as above. Cost: O(epochs N D C) time.
    The bank is not copied: each batch is scaled when it is used.

    >>> import torch
    >>> from setclr.evaluation import linear_probe
    >>> bank, labels = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), torch.tensor([0, 0, 1])
    >>> linear_probe(bank, labels, torch.tensor([[2.0, 0.0], [0.0, 2.0]]), lr=0.1)
    tensor([0, 1])
    """
    default_device()
    banks, asked = (x if x.ndim == 3 else x[None] for x in (bank, queries))
    if (bank.ndim, len(banks)) != (queries.ndim, len(asked)):
        got = f"{tuple(bank.shape)} and {tuple(queries.shape)}"
        raise ValueError(f"bank and queries must be of as many encoders, got {got}")
    for own, other in zip(banks, asked):
        check_features("bank_labels", bank_labels, bank=own, queries=other)
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=1)
    number("lr", lr, above=0)
    number("weight_decay", weight_decay, least=0)
    boolean("cosine", cosine)
    K, _, D = banks.shape
    raw, classes = boolean("raw", raw), int(bank_labels.max()) + 1
    if not raw:
        largest = torch.maximum(banks.amax((1, 2), keepdim=True), -banks.amin((1, 2), keepdim=True))
        exponent = largest.double().frexp().exponent
        if bool((far := exponent.abs() > FAR).any()):
            banks, asked = (x.double().ldexp(-exponent * far).float() for x in (banks, asked))
    generator = generator_of(integer("seed", seed, least=0))
    unit = torch.stack([(x.new_ones(()) if raw else 1 / root_mean_square(x)).float() for x in banks])
    unit = unit.clamp(max=1e12)[:, None, None]
    shape = K, D + 1, classes  # the bias is the last row
    weight, exp_avg, exp_avg_sq, gradient, root = (unit.new_zeros(shape) for _ in range(5))
    if raw:
        weight.copy_(torch.empty(classes, D + 1).uniform_(-1, 1, generator=generator).T / D**0.5)
    step, minus, y = 0, -unit.new_ones(K, batch, 1), bank_labels.long()[None, :, None].expand(K, -1, 1)
    for epoch in range(epochs):
        rate = lr * (1 + math.cos(math.pi * epoch / epochs)) / 2 if cosine else lr
        for index in torch.randperm(len(bank_labels), generator=generator).to(bank.device).split(batch):
            x, step = banks.index_select(1, index).float(), step + 1
            error = scores(x, weight, unit).softmax(2)
            error.scatter_add_(2, y.index_select(1, index), minus[:, : len(index)])
            torch.mul(x.mT @ error, unit / len(index), out=gradient[:, :-1])
            torch.mean(error, 1, keepdim=True, out=gradient[:, -1:])
            if weight_decay:
                gradient.add_(weight, alpha=weight_decay)
            exp_avg.lerp_(gradient, 0.1)
            exp_avg_sq.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            torch.sqrt(exp_avg_sq, out=root).div_((1 - 0.999**step) ** 0.5).add_(1e-8)
            weight.addcdiv_(exp_avg, root, value=-rate / (1 - 0.9**step))
    parts = asked.split(max(1, VALUES // (K * D)), dim=1)
    labels = torch.cat([scores(x.float(), weight, unit).argmax(2) for x in parts], dim=1)
    return labels if bank.ndim == 3 else labels[0]


def scores(x: Tensor, weight: Tensor, unit: Tensor) -> Tensor:
    """Those of the classes, (K, n, C), for features x (K, n, D) in `unit` (K, 1, 1): inputs are x · unit."""
    return torch.baddbmm(weight[:, -1:], x, weight[:, :-1] * unit)


def root_mean_square(x: Tensor) -> Tensor:
    """The root mean square of all values of (N, D), in float32."""
    parts = in_parts(x, VALUES)
    squares = [part.float().square().mean().double() * (part.numel() / x.numel()) for part in parts]
    return torch.stack(squares).sum().float().sqrt()

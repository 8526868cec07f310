"""Linear probes: linear classifiers trained on a frozen encoder's features.

`linear_probe` trains on features that are computed once. Its Adam is written out by hand: the features
stay on their device, and torch's Adam and autograd take three times as long for so small a layer.
`probe_on_views` trains on views that are new in every epoch, with the `Trainer`.
"""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setclr.checks import boolean, choice, integer, number
from setclr.data import ImageSet
from setclr.evaluation.frozen import features
from setclr.evaluation.neighbours import check_bank, in_parts
from setclr.evaluation.protocols import OnViews
from setclr.losses.supervised import Supervised
from setclr.training.devices import Machine
from setclr.training.distributed import world
from setclr.training.optimisers import LRSchedule, make_optimiser
from setclr.training.source import ImageViews
from setclr.training.trainer import Trainer

VALUES = 2**25  # scaled or squared at once


@torch.no_grad()
def linear_probe(
    bank: Tensor, bank_labels: Tensor, queries: Tensor,
    epochs: int = 100, batch: int = 128, lr: float = 1e-3, seed: int = 0, raw: bool = False,
) -> Tensor:  # fmt: skip
    """The label of each query, by a linear classifier trained on the bank, as it is after the last epoch.

    Adam minimises the cross-entropy, without augmentation and weight decay. All features are divided by
    their root mean square in the bank, so that lr means the same for every encoder. All weights begin at
    0. With `raw` the features are not scaled, and weights and bias begin uniform in ± 1/√D, as in torch's
    Linear. That is the protocol of the QARe paper's program.

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
    banks, asked = (x if x.ndim == 3 else x[None] for x in (bank, queries))
    if (bank.ndim, len(banks)) != (queries.ndim, len(asked)):
        got = f"{tuple(bank.shape)} and {tuple(queries.shape)}"
        raise ValueError(f"bank and queries must be of as many encoders, got {got}")
    for own, other in zip(banks, asked):
        check_bank(own, bank_labels, other)
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=1)
    number("lr", lr, above=0)
    K, _, D = banks.shape
    raw, classes = boolean("raw", raw), int(bank_labels.max()) + 1
    generator = torch.Generator().manual_seed(integer("seed", seed, least=0))
    unit = torch.stack([(x.new_ones(()) if raw else 1 / root_mean_square(x)).float() for x in banks])
    unit = unit.clamp(max=1e12)[:, None, None]
    shape = K, D + 1, classes  # the bias is the last row
    weight, exp_avg, exp_avg_sq, gradient, root = (unit.new_zeros(shape) for _ in range(5))
    if raw:
        weight.copy_(torch.empty(classes, D + 1).uniform_(-1, 1, generator=generator).T / D**0.5)
    step, minus, y = 0, -unit.new_ones(K, batch, 1), bank_labels.long()[None, :, None].expand(K, -1, 1)
    for _ in range(epochs):
        for index in torch.randperm(len(bank_labels), generator=generator).to(bank.device).split(batch):
            x, step = banks.index_select(1, index).float(), step + 1
            error = scores(x, weight, unit).softmax(2)
            error.scatter_add_(2, y.index_select(1, index), minus[:, : len(index)])
            torch.mul(x.mT @ error, unit / len(index), out=gradient[:, :-1])
            torch.mean(error, 1, keepdim=True, out=gradient[:, -1:])
            exp_avg.lerp_(gradient, 0.1)
            exp_avg_sq.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            torch.sqrt(exp_avg_sq, out=root).div_((1 - 0.999**step) ** 0.5).add_(1e-8)
            weight.addcdiv_(exp_avg, root, value=-lr / (1 - 0.9**step))
    parts = asked.split(max(1, VALUES // (K * D)), dim=1)
    found = torch.cat([scores(x.float(), weight, unit).argmax(2) for x in parts], dim=1)
    return found if bank.ndim == 3 else found[0]


def scores(x: Tensor, weight: Tensor, unit: Tensor) -> Tensor:
    """Those of the classes, (K, n, C), for features x (K, n, D) in `unit` (K, 1, 1): inputs are x · unit."""
    return torch.baddbmm(weight[:, -1:], x, weight[:, :-1] * unit)


def root_mean_square(x: Tensor) -> Tensor:
    """The root mean square of all values of (N, D), in float32."""
    parts = in_parts(x, VALUES)
    squares = [part.float().square().mean().double() * (part.numel() / x.numel()) for part in parts]
    return torch.stack(squares).sum().float().sqrt()


@torch.enable_grad()
def probe_on_views(
    encoder: nn.Module, train: ImageSet, test: ImageSet, how: OnViews, seed: int = 0
) -> Tensor:  # fmt: skip
    """The likeliest classes of each test image, by a linear classifier on the frozen encoder.

    Every epoch sees each training image once, in a new view. The view has the side of the test images,
    unless it has a `size` of its own. An incomplete last batch is left out. A set smaller than a batch is
    one batch, with a learning rate smaller in proportion. SGD and LARS have momentum 0.9. The seed
    decides the initial weights, the order of the images and their views. The encoder is in eval mode and
    not changed.

    Returns classes (Q, min(5, C)), the likeliest first, on the CPU. Raises what `Trainer` raises,
    including FloatingPointError where the loss becomes NaN. Cost: a forward pass of the encoder for each
    image and epoch.
    """
    device = next(encoder.parameters()).device
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(integer("seed", seed, least=0))
        layer = nn.Linear(features(encoder, test.images[:1]).shape[1], len(train.classes))
        if how.spread is not None:
            nn.init.normal_(layer.weight, std=how.spread)
            nn.init.zeros_(layer.bias)
    layer, loss, batch = layer.to(device), Supervised(), min(how.batch, len(train) // world() * world())
    lr = how.lr * batch / how.batch
    optimiser = make_optimiser(how.optimiser, layer, loss, lr, weight_decay=how.weight_decay)
    more: dict = dict(epochs=how.epochs, batch=batch, seed=seed, lr_schedule=Falling(how.schedule))
    source, machine = ImageViews(train, (how.view,)), Machine(device, "float32")
    Trainer(source, Frozen(encoder), layer, loss, optimiser, device=machine, **more).fit()
    scores = features(nn.Sequential(encoder, layer), test.images).cpu()
    return scores.topk(min(5, scores.shape[1]), dim=1).indices


class Frozen(nn.Module):
    """A copy of the encoder that stays in eval mode and whose parameters get no gradient."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = copy.deepcopy(encoder).requires_grad_(False).eval()

    def train(self, mode: bool = True) -> "Frozen":
        return super().train(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


@dataclass(frozen=True)
class Falling(LRSchedule):
    """Learning-rate schedules of a probe, as fractions of the peak: "constant"; "cosine", by the epoch
    (SimSiam's); "linear" to 0, by the step; "tenths", a tenth after 60 % of the epochs and a hundredth
    after 80 % (MoCo's)."""

    def __post_init__(self) -> None:
        choice("schedule", self.shape, ("constant", "cosine", "linear", "tenths"))

    def factor(self, step: int, steps: int, epochs: int) -> float:
        done = step // steps / epochs
        if self.shape == "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        if self.shape == "linear":
            return 1 - step / (steps * epochs)
        return 0.1 ** ((done >= 0.6) + (done >= 0.8)) if self.shape == "tenths" else 1.0

"""Linear classifiers trained on views that are new in every epoch, as GroCo, IOT-CL and MMCL measure."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setclr.checks import integer
from setclr.data import ImageSet
from setclr.evaluation.frozen import features
from setclr.settings import one_of
from setclr.training.devices import Machine
from setclr.training.distributed import world
from setclr.training.optimisers import LRSchedule, make_optimiser
from setclr.training.source import ImageViews
from setclr.training.trainer import Trainer
from setclr_course.papers.protocols import OnViews
from setclr_course.papers.supervised import Supervised


@torch.enable_grad()
def probe_on_views(
    encoder: nn.Module, train: ImageSet, test: ImageSet, how: OnViews, seed: int = 0
) -> Tensor:
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
    more: dict = dict(epochs=how.epochs, batch=batch, seed=seed, lr_schedule=ProbeSchedule(how.schedule))
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
class ProbeSchedule(LRSchedule):
    """Learning-rate schedules of a probe, as fractions of the peak: "constant"; "cosine", by the epoch
    (SimSiam's); "linear" to 0, by the step; "tenths", a tenth after 60 % of the epochs and a hundredth
    after 80 % (MoCo's)."""

    shape: str = one_of("cosine", ("constant", "cosine", "linear", "tenths"))

    def factor(self, step: int, steps: int, epochs: int) -> float:
        done = step // steps / epochs
        if self.shape == "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        if self.shape == "linear":
            return 1 - step / (steps * epochs)
        return 0.1 ** ((done >= 0.6) + (done >= 0.8)) if self.shape == "tenths" else 1.0

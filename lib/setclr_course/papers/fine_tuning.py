"""Fine-tuning: train a pretrained encoder further with labels (the many-shot columns of MMCL's table 1)."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from setclr import views
from setclr.checks import integer, number
from setclr.data import ImageSet
from setclr.data.sets import held_out_mask
from setclr.evaluation.frozen import features
from setclr.experiments.kinds.image import check_classes
from setclr.losses.supervised import Supervised
from setclr.training.devices import Machine
from setclr.training.source import ImageViews
from setclr.training.trainer import Trainer

RATES, DECAYS = (1e-4, 1e-3, 1e-2, 1e-1), (0.0, 1e-6, 1e-5, 1e-4, 1e-3)  # the grid; decays are divided by lr
CROP = (views.View(jitter_p=0.0, grey=0.0),)  # a crop of 8 % to 100 % of the area, and a flip


@torch.enable_grad()
def fine_tune(
    encoder: nn.Module, train: ImageSet, test: ImageSet,
    epochs: int = 30, lr: float | None = 0.01, batch: int = 64, weight_decay: float = 0.0, seed: int = 0,
    precision: str = "auto",
) -> Tensor:  # fmt: skip
    """The label of each test image, by a copy of the encoder and a linear classifier trained on `train`.

    The training is that of the program of Ericsson et al. 2021, which made the MMCL paper's table:
    cross-entropy, SGD with Nesterov momentum 0.9, a learning rate that falls from lr to 0 as half a
    cosine, crops and flips, and the weights after the last step. That program takes 5,000 steps of 64
    images. It chooses the lr (1e-4 to 1e-1) and the weight decay (0, 1e-6 / lr to 1e-3 / lr) that do best
    on validation images. lr=None chooses likewise, with a fifth of each class of `train` held out, then
    trains on all of it. `test` has no part in the choice.

    Both sets hold images of one shape, which the encoder takes; photographs are cropped at full
    resolution. An incomplete last batch of an epoch is left out. The seed decides the classifier's
    initial weights, the order of images and their crops. Equal arguments give equal labels on the same
    CPU with the same number of threads. The precision is the trainer's.

    Returns (N,) labels of the test images, on the CPU. Raises ValueError where an argument is not as
    above, and FloatingPointError where the loss or the weights become NaN or inf. Cost: that of three
    forward passes of the encoder for each image and epoch; 17 times as much with lr=None.
    """
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=2, most=len(train), hint=f"train has {len(train)} images")
    number("lr", 1.0 if lr is None else lr, above=0)
    number("weight_decay", weight_decay, least=0)
    integer("seed", seed, least=0)
    check_pair(train, test)
    if lr is None:
        how: dict = dict(epochs=epochs, batch=batch, precision=precision)
        lr, weight_decay = searched(encoder, train, seed, **how)
    device = next(encoder.parameters()).device
    size = features(encoder, train.images[:1]).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = nn.Sequential(copy.deepcopy(encoder), nn.Linear(size, len(train.classes))).to(device)
    model.requires_grad_(True)
    sgd = torch.optim.SGD(model.parameters(), lr, momentum=0.9, nesterov=True, weight_decay=weight_decay)
    more: dict = dict(epochs=epochs, batch=batch, seed=seed, device=Machine(device, precision))
    Trainer(ImageViews(train, CROP), model[0], model[1], Supervised(), sgd, **more).fit()
    logits = features(model, test.images).cpu()
    if not logits.isfinite().all():
        raise FloatingPointError(f"the weights became NaN or inf; lower lr, now {lr}")
    return logits.argmax(1)


def searched(encoder: nn.Module, train: ImageSet, seed: int, **how: Any) -> tuple[float, float]:
    """The learning rate and weight decay of the grid that do best on a held-out fifth of each class of
    `train`. Of equally good settings the first is taken; a setting that diverges is the worst. Raises
    what `fine_tune` does."""
    held = held_out_mask(train.labels, seed)
    part, validation = train.subset(~held), train.subset(held)

    def right(lr: float, decay: float) -> int:
        try:
            found = fine_tune(encoder, part, validation, lr=lr, weight_decay=decay, seed=seed, **how)
        except FloatingPointError:
            return -1
        return int((found == validation.labels).sum())

    grid = [(lr, decay / lr) for lr in RATES for decay in DECAYS]
    return max(grid, key=lambda setting: right(*setting))


def check_pair(train: ImageSet, test: ImageSet) -> None:
    """Raises ValueError as `check_classes` does, and unless both sets have images of one shape."""
    check_classes(train, test)
    wanted, got = tuple(train.images.shape[1:]), tuple(test.images.shape[1:])
    if wanted != got:
        raise ValueError(f"test must have images of the shape of train, {wanted}, got {got}; use one size=")

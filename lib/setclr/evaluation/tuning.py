"""Fine-tuning: a pretrained encoder trained on with labels (the many-shot columns of MMCL's table 1)."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

from setclr import views
from setclr.checks import integer, number
from setclr.data import ImageSet
from setclr.evaluation.frozen import features
from setclr.training.seeding import seeded

CROP = (views.View(jitter_p=0.0, grey=0.0),)  # a crop of 8 % to all of the area, and a flip


@torch.enable_grad()
def fine_tune(
    encoder: nn.Module, train: ImageSet, test: ImageSet,
    epochs: int = 30, lr: float = 0.01, batch: int = 64, weight_decay: float = 0.0, seed: int = 0,
) -> Tensor:  # fmt: skip
    """The label of each test image by a linear classifier on a copy of the encoder, both trained.

    As in the program of Ericsson et al. 2021, which made the MMCL paper's table: cross-entropy, SGD with
    Nesterov momentum 0.9, half a cosine from lr to 0, crops and flips, the last weights kept. That program
    takes 5,000 steps of 64 images, and the lr (1e-4 to 1e-1) and weight decay (0, 1e-6 / lr to 1e-3 / lr)
    that do best on validation images. Search likewise, and never on `test`.

    Both sets hold images of one shape, which the encoder takes; photographs are cropped at full resolution.
    Each epoch leaves an incomplete last batch out. The seed makes the classifier's first weights, the order
    of images and their crops; equal arguments give equal labels on one CPU and number of threads.

    Returns (N,) labels of the test images, on the CPU. Raises ValueError where an argument is not as above,
    and FloatingPointError where the loss became NaN or inf.
    Cost: three forward passes of the encoder for each image and epoch.
    """
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=2, most=len(train), hint=f"train has {len(train)} images")
    number("lr", lr, above=0)
    number("weight_decay", weight_decay, least=0)
    integer("seed", seed, least=0)
    check_pair(train, test)
    device = next(encoder.parameters()).device
    size = features(encoder, train.images[:1]).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = nn.Sequential(copy.deepcopy(encoder), nn.Linear(size, len(train.classes))).to(device)
        model.requires_grad_(True).train()
        _train(model, train, epochs, lr, batch, weight_decay, seed, device)
    logits = features(model, test.images).cpu()
    if not logits.isfinite().all():
        raise FloatingPointError(f"the weights became NaN or inf; lower lr, now {lr}")
    return logits.argmax(1)


def check_classes(train: ImageSet, test: ImageSet) -> None:
    """Raises ValueError unless both sets have the same classes, and train has images of all those in test."""
    if train.classes != test.classes:
        differ = sorted(set(train.classes) ^ set(test.classes)) or ["their order"]
        more = f" and {len(differ) - 3} more" if len(differ) > 3 else ""
        remedy = "Add images, or compare views with matching_accuracy, which needs no labels"
        found = f"they differ in {', '.join(differ[:3])}{more}"
        raise ValueError(f"test must have the classes of train; {found}. {remedy}")
    shown = train.labels.bincount(minlength=len(train.classes))
    if lacking := [train.classes[label] for label in test.labels.unique().tolist() if not shown[label]]:
        remedy = "add them, or take the class out of test"
        raise ValueError(f"train must have images of {lacking[0]!r}, got none, and test has some; {remedy}")


def check_pair(train: ImageSet, test: ImageSet) -> None:
    """Raises ValueError as `check_classes` does, and unless both sets have images of one shape."""
    check_classes(train, test)
    wanted, got = tuple(train.images.shape[1:]), tuple(test.images.shape[1:])
    if wanted != got:
        raise ValueError(f"test must have images of the shape of train, {wanted}, got {got}; use one size=")


def _train(
    model: nn.Module, train: ImageSet, epochs: int, lr: float, batch: int, weight_decay: float, seed: int,
    device: torch.device,
) -> None:  # fmt: skip
    steps = len(train) // batch
    total, decay = epochs * steps, weight_decay
    optimiser = torch.optim.SGD(model.parameters(), lr, momentum=0.9, nesterov=True, weight_decay=decay)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, total)
    draws = (views.draw(CROP, batch, seeded(seed, *divmod(step, steps))) for step in range(total))
    wanted = zip(_order(len(train), epochs, batch, seed), draws)
    crops = zip(train.source.view_batches(CROP, wanted, 0, device), _order(len(train), epochs, batch, seed))
    for step, ((x,), index) in enumerate(tqdm(crops, "fine-tune", total, unit="step")):
        y = train.labels[index].to(device)
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x[0]), y)
        loss.backward()
        optimiser.step()
        cosine.step()
        if (step + 1) % steps == 0 and not loss.isfinite():  # once an epoch: reading a value makes a GPU wait
            raise FloatingPointError(f"the loss became {loss.item()} in step {step}; lower lr, now {lr}")


def _order(count: int, epochs: int, batch: int, seed: int) -> Iterator[Tensor]:
    """The indices (batch,) of every step of all epochs."""
    for epoch in range(epochs):
        yield from torch.randperm(count, generator=seeded(seed, epoch)).split(batch)[: count // batch]

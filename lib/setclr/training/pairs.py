"""Training on real pairs: two images of each thing, to be matched one to one (QARe paper, section 5.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr import models, views
from setclr.checks import boolean, choice, integer, number
from setclr.data import ImageSet
from setclr.data.reading import Batch
from setclr.data.sources import InMemory, Views
from setclr.losses import SetLoss
from setclr.training.devices import choose_device
from setclr.training.optimisers import make_optimiser
from setclr.training.seeding import seeded
from setclr.training.trainer import Trainer
from setclr.views import View, apply_all
from setclr.views.chance import NUMBERS

FLIP = sum(list(NUMBERS.values())[: list(NUMBERS).index("flip")])  # its column in the draws
PAIRS = "(2, n, C, H, W) uint8, two views of n >= 2 things, C = 1 or 3; two_views makes them"


def two_views(images: ImageSet, seed: int = 0, size: int | None = None) -> Tensor:
    """Two images of each thing, where the labels say which thing an image shows.

    Of a thing's two images the first is view 0; in "stereo-patches" that is the left camera's patch. Of more
    than two the seed draws two, which keep their order. A thing with one image is left out.

    Returns (2, n, C, H, W) uint8, resized to side `size` in pixels, antialiased, if given: image i of both
    views shows the same thing, and things come in the order of their labels. Raises ValueError where fewer
    than two things have two images.
    """
    shuffled = torch.randperm(len(images), generator=seeded(integer("seed", seed, least=0)))
    shuffled = shuffled[images.labels[shuffled].argsort(stable=True)]
    drawn = [some[:2].sort().values for some in shuffled.split(images.labels.bincount().tolist())]
    drawn = [pair for pair in drawn if len(pair) == 2]
    if len(drawn) < 2:
        remedy = "give both images of a thing the same label (in a folder: put them into one class)"
        raise ValueError(f"images must show at least 2 things twice, got {len(drawn)} in {images}; {remedy}")
    pairs = images.images[torch.stack(drawn, dim=1)]
    if size is None:
        return pairs
    side = (integer("size", size, least=1),) * 2
    small = F.interpolate(pairs.flatten(0, 1).float(), side, mode="bilinear", antialias=True)
    return small.round().clamp(0, 255).byte().unflatten(0, pairs.shape[:2])


def train_on_pairs(
    pairs: Tensor, loss: SetLoss, *,
    encoder: str = "conv4", embedding: int = 64,
    epochs: int = 20, batch: int = 128, lr: float = 0.01, seed: int = 0,
    mirror: str = "together", standardise: bool = True, device: str | None = None, precision: str = "auto",
) -> nn.Module:  # fmt: skip
    """Train an encoder to bring the two views of each thing together.

    As in the paper: a linear layer as the head, Adam with a cosine to 0, both views jittered by 0.1 and
    mirrored with probability one half. Unlike there, the last epoch's weights are returned, not the best
    epoch's. First weights, data order and augmentation are functions of the seed, the same for every loss.

    Args:
        pairs: (2, n, C, H, W) uint8, for example from `two_views`.
        loss: of embeddings z (2, batch, embedding), which it normalises itself. Its own parameters, if it has
            any, are trained in place.
        encoder, embedding: a key of setclr.models.ENCODERS; E, the head's outputs.
        epochs, batch, lr, seed: as in a Recipe; a batch counts pairs, and an incomplete one is left out.
        mirror: "together": both views of a thing or neither; "apart": each with its own coin, which teaches
            the encoder that a thing and its mirror image are the same.
        standardise: begin with an instance norm: every channel of every image gets mean 0 and deviation 1,
            which removes its tint and contrast.
        device, precision: as in `Trainer`.

    Returns the network, images (N, C, H, W) in [0, 1] to embeddings (N, E), in eval mode. Raises ValueError
    where an argument cannot be used, and FloatingPointError, which names the step, where embeddings, loss or
    weights become NaN or inf.
    """
    n, channels = _check_pairs(pairs)
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=2, most=n, hint=f"there are {n} pairs")
    integer("embedding", embedding, least=1)
    integer("seed", seed, least=0)
    number("lr", lr, above=0)
    choice("mirror", mirror, ("together", "apart"))
    boolean("standardise", standardise)
    where = choose_device(device)
    model = network(encoder, embedding, channels, standardise, seed).to(where)
    trainer = Trainer(
        Pairs(pairs[0], torch.arange(n), ("thing",) * n, pairs, mirror), model[:2], model[2],
        views.preset("matching"), loss, make_optimiser("adam", model, loss, lr), precision,
        epochs=epochs, batch=batch, seed=seed, device=where,
    )  # fmt: skip
    trainer.fit()
    return model.eval()


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(ImageSet):
    """Two images of each of n things, (2, n, C, H, W) uint8: the first view is of the first image."""

    pairs: Tensor
    mirror: str

    @property
    def source(self) -> "InPairs":
        return InPairs(self.pairs, self.mirror)


class InPairs(InMemory):
    """Pairs (2, n, C, H, W) on any device, each view of its own image."""

    def __init__(self, pairs: Tensor, mirror: str):
        super().__init__(pairs[0])
        self.pairs, self.mirror = pairs, mirror

    def to(self, device: torch.device) -> "InPairs":
        return InPairs(self.pairs.to(device), self.mirror)

    def view_batches(
        self, views: Sequence[View], batches: Iterable[Batch], workers: int, device: torch.device,
        compiled: bool = False,
    ) -> Views:  # fmt: skip
        for index, draws in batches:
            numbers = draws.transpose(0, 1).clone()
            if self.mirror == "together":
                numbers[1, :, FLIP] = numbers[0, :, FLIP]
            x = self.pairs[:, index.to(self.pairs.device)].flatten(0, 1)
            (made,) = apply_all(x, views[:1], numbers.flatten(0, 1).unsqueeze(1), compiled)
            yield [made.unflatten(1, (2, -1))[0]]


def _check_pairs(pairs: Tensor) -> tuple[int, int]:
    """The numbers of things and channels. Raises ValueError unless pairs are as PAIRS says."""
    if not isinstance(pairs, Tensor) or pairs.dtype != torch.uint8 or pairs.ndim != 5 or len(pairs) != 2:
        got = f"{tuple(pairs.shape)} {pairs.dtype}" if isinstance(pairs, Tensor) else repr(pairs)
        raise ValueError(f"pairs must be {PAIRS}, got {got}")
    return pairs.shape[1], pairs.shape[2]


def network(encoder: str, embedding: int, channels: int, standardise: bool, seed: int) -> nn.Sequential:
    """Instance norm or nothing, encoder, linear head, with weights that are a function of the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        net, features = models.encoder(encoder, channels)
        first = nn.InstanceNorm2d(channels) if standardise else nn.Identity()
        return nn.Sequential(first, net, nn.Linear(features, embedding))

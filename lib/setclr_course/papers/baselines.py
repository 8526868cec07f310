"""Baselines of the papers' tables without a matching: rotation and Deep InfoMax (DeepCluster: `clusters`).

They take a batch as z (V, N, E), as the losses do, but do not normalise it: z is the output of a classifier
of E classes, or the features of an image and of its parts. They have no assignment.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.losses import Objective
from setclr.models.encoders import normalise
from setclr.settings import whole
from setclr.training.grad_cache import at_least_float32
from setclr.training.task import Task
from setclr.training.trainer import Trainer
from setclr_course.papers.supervised import check_outputs


class Rotation(Objective):
    """Cross-entropy of an image's quarter turns (Gidaris et al. 2018; RotationNet in QARe's table 2).

    Every image is shown in all four rotations; E is 4.
    """

    def task(self, trainer: Trainer) -> Task:
        return QuarterTurns(trainer)

    def forward(self, z: Tensor) -> Tensor:
        check_outputs(z)
        if z.shape[0] != 4 or z.shape[2] != 4:
            raise ValueError(f"z must be (4, N, 4), got {tuple(z.shape)}; the recipe needs embedding=4")
        turns = torch.arange(4, device=z.device).repeat_interleave(z.shape[1])
        with torch.autocast(z.device.type, enabled=False):
            return F.cross_entropy(at_least_float32(z).flatten(0, 1), turns)


class QuarterTurns(Task):
    """Shows the encoder every image in all four rotations."""

    def prepare(self, views: list) -> list:
        """(1, N, C, S, S) → (4, N, C, S, S), turned counter-clockwise by 0, 90, 180 and 270 degrees.

        Raises ValueError for views that cannot be turned.
        """
        if others := [x for x in views if not isinstance(x, Tensor)]:
            raise ValueError(f"views must be of images for Rotation(), got {type(others[0]).__name__}")
        return [torch.cat([x.rot90(turns, (-2, -1)) for turns in range(4)]) for x in views]


class DeepInfoMax(Objective):
    r"""Decide if an image and a part belong together (Hjelm et al. 2019; Deep InfoMax in QARe's table 2).

    .. math::
        L = \operatorname{mean}_{i, l}\, \operatorname{sp}(-T(g_i, c_{il}))
          + \operatorname{mean}_{i, l}\, \operatorname{sp}(T(g_i, c_{i+1, l}))
          + \tfrac{1}{10} \operatorname{mean}_i\, [\operatorname{sp}(-P(u_i)) + \operatorname{sp}(P(g_i))]

    g_i are the D features of image i. c_il are the C channels at location l of its first feature map, which
    has L locations. Image N + 1 is the first image. u is uniform in [0, 1]^D, sp is the softplus. T and P are
    discriminators trained with the encoder: D + C → 256 → 256 → 1 and D → 512 → 128 → 1, with ReLU between.

    This is as in QARe's program. The first two terms are Hjelm's local objective, except for the constant
    2 log 2. The global objective is left out. Hjelm's prior is adversarial; here the encoder minimises the
    last term, too.

    z is (1, N, D + L·C), the output of `LocalFeatures`. u and the locations come from torch's global
    generator. Cost: 2 N passes through T for each location, in autocast's precision.

    Args:
        features: D, the number of the encoder's features.
        channels: C, the channels of its first layer: 8 in "conv4", 16 in "resnet32", 64 in other ResNets.
        locations: how many of the L locations are used, drawn anew for every batch. None: all.
    """

    headless = True
    features: int = whole(64, 1, 2**16)
    channels: int = whole(8, 1, 2**16)
    locations: int | None = whole(None, 1)

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self.pair = nn.Linear(self.channels + self.features, 256)
        self.judge = nn.Sequential(nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
        self.prior = nn.Sequential(
            nn.Linear(self.features, 512), nn.ReLU(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    @property
    def reads_values(self) -> bool:
        return True  # it reads none, but compiled discriminators take nearly twice as long on a CPU

    def task(self, trainer: Trainer) -> Task:
        task = Task(trainer)
        task.encoder = LocalFeatures(trainer.encoder, self.features, self.channels)
        return task

    def forward(self, z: Tensor) -> Tensor:
        check_outputs(z)
        z = at_least_float32(z)
        V, N, E = z.shape
        D, C = self.features, self.channels
        if V != 1 or N < 2 or E <= D or (E - D) % C:
            wanted, got = f"(1, N, {D} + L * {C}) with L >= 1 and N >= 2 for {self}", tuple(z.shape)
            raise ValueError(f"z must be {wanted}, got {got}; LocalFeatures makes it")
        image, parts = z[0, :, :D], z[0, :, D:].unflatten(1, (-1, C))
        if self.locations is not None:
            parts = parts[:, torch.randperm(parts.shape[1], device=z.device)[: self.locations]]
        of_parts, of_image = self.pair.weight.split([C, D], dim=1)  # each part passes this layer once
        seen, whole = parts @ of_parts.T, F.linear(image, of_image, self.pair.bias).unsqueeze(1)
        own, others = (self.judge(whole + x).to(z) for x in (seen, seen.roll(-1, 0)))
        of_uniform, of_images = (self.prior(x).to(z) for x in (torch.rand_like(image), image))
        local = F.softplus(-own).mean() + F.softplus(others).mean()
        return local + 0.1 * (F.softplus(-of_uniform).mean() + F.softplus(of_images).mean())


class LocalFeatures(nn.Module):
    """An encoder that also gives the map of its first layer, as in QARe's program.

    Images → (N, D + L·C). First come the D features, averaged over the last map. Then come the C channels
    of each of the L locations of the map after the first ReLU. A linear layer after the average is skipped
    and does not learn. For "conv4" and ResNets. Raises ValueError for another encoder; `forward` raises it
    if D and C are not `features` and `channels`.
    """

    def __init__(self, encoder: nn.Module, features: int, channels: int) -> None:
        super().__init__()
        layers = list(encoder.children())
        first = [at for at, layer in enumerate(layers, start=1) if isinstance(layer, nn.ReLU)][:1]
        if not first or type(encoder).__name__ not in ("Sequential", "ResNet"):
            wanted, got = "(conv4, resnet32, resnet18, resnet50)", type(encoder).__name__
            raise ValueError(f"encoder must begin with a map and a ReLU for DeepInfoMax {wanted}, got {got}")
        self.encoder, self.until, self.sizes = encoder, first[0], (features, channels)

    def forward(self, x: Tensor) -> Tensor:
        layers = list(self.encoder.children())
        (x,) = normalise(self.encoder, (x,))
        for layer in layers[: self.until]:
            x = layer(x)
        parts = x.flatten(2).mT
        for layer in layers[self.until :]:
            x = x if isinstance(layer, nn.Linear) else layer(x)
        x = x.flatten(1)
        if (x.shape[1], parts.shape[2]) != self.sizes:
            here = f"{x.shape[1]} and {parts.shape[2]} of the encoder"
            raise ValueError(f"features and channels must be {here}, got {self.sizes[0]} and {self.sizes[1]}")
        return torch.cat([x, parts.flatten(1)], dim=1)

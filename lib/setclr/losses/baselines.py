"""Baselines of the papers' tables without a matching: supervised, DeepCluster, rotation, Deep InfoMax.

They take a batch as z (V, N, E), as the losses do, but do not normalise it: z is the output of a classifier
of E classes, or the features of an image and of its parts. They have no assignment.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import dense, integer, values_readable
from setclr.losses.base import Objective


class Baseline(Objective):
    """Base class of the baselines: a loss of the outputs z, for some with a target for each image.

    >>> import torch
    >>> from setclr.losses import parse
    >>> classifier = parse("Supervised()")
    >>> z, labels = torch.tensor([[[9.0, 0.0], [0.0, 9.0]]]), torch.tensor([0, 1])  # one view, two classes
    >>> round(classifier(z, labels).item(), 3)
    0.0
    """

    def forward(self, z: Tensor, targets: Tensor | None = None, weight: Tensor | None = None) -> Tensor:
        """The loss, a 0-d tensor, in float32 or wider.

        Args:
            z: (V, N, E) floating.
            targets: (N,) integers in 0 … E − 1 if the baseline's `targets` is set, else None.
            weight: (E,) weights of the targets in the mean; None: all 1.

        Raises ValueError: z or targets are not as above.
        """
        if not isinstance(z, Tensor) or z.ndim != 3 or not z.is_floating_point() or 0 in z.shape:
            got = f"{tuple(z.shape)} {z.dtype}" if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(f"z must be (V, N, E), floating and not empty, got {got}")
        dense("z", z)
        if values_readable(z) and not (finite := z.detach().isfinite()).all():
            where = (~finite).nonzero()[0].tolist()
            raise ValueError(f"z{where} must be finite, got NaN or inf; look for a diverged step")
        if (targets is not None) != (self.targets is not None):
            raise ValueError(f"targets must be {self.targets or 'None'} for {self}, got {targets!r}")
        if targets is not None:
            check_targets(targets, z)
        mixed = self.local is not None and torch.is_autocast_enabled(z.device.type)
        with torch.autocast(z.device.type, enabled=mixed):
            z = z.to(torch.promote_types(z.dtype, torch.float32))
            return self.score(z, targets, None if weight is None else weight.to(z.dtype))

    def score(self, z: Tensor, targets: Tensor | None, weight: Tensor | None) -> Tensor:
        """Cross-entropy of the targets, which are the same for every view."""
        assert targets is not None  # `forward` has checked it
        return F.cross_entropy(z.flatten(0, 1), targets.repeat(len(z)), weight)


class Supervised(Baseline):
    """Cross-entropy of the labels of E classes: supervised learning, the first row of QARe's table 2."""

    targets = "labels"


class DeepCluster(Baseline):
    """Cross-entropy of E clusters of the encoder's own features (Caron et al. 2018).

    Every epoch begins with new clusters and a new last layer (`training.targets`). An image's weight is 1
    minus its cluster's share of all images, as in QARe's program. Caron et al. draw clusters uniformly
    instead.
    """

    targets = "clusters"


class Rotation(Baseline):
    """Cross-entropy of an image's quarter turns (Gidaris et al. 2018; RotationNet in QARe's table 2).

    Every image is shown in all four rotations; E is 4.
    """

    def prepare(self, views: list) -> list:
        """(1, N, C, S, S) → (4, N, C, S, S), turned counter-clockwise by 0, 90, 180 and 270 degrees.

        Raises ValueError for views that cannot be turned.
        """
        if others := [x for x in views if not isinstance(x, Tensor)]:
            raise ValueError(f"views must be of images for {self}, got {type(others[0]).__name__}")
        return [torch.cat([x.rot90(turns, (-2, -1)) for turns in range(4)]) for x in views]

    def score(self, z: Tensor, targets: Tensor | None, weight: Tensor | None) -> Tensor:
        if z.shape[0] != 4 or z.shape[2] != 4:
            raise ValueError(f"z must be (4, N, 4), got {tuple(z.shape)}; the recipe needs embedding=4")
        turns = torch.arange(4, device=z.device).repeat_interleave(z.shape[1])
        return F.cross_entropy(z.flatten(0, 1), turns)


class DeepInfoMax(Baseline):
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

    z is (1, N, D + L·C), the output of `models.LocalFeatures`. u and the locations come from torch's global
    generator. Cost: 2 N passes through T for each location, in autocast's precision.

    Args:
        features: D, the number of the encoder's features.
        channels: C, the channels of its first layer: 8 in "conv4", 16 in "resnet32", 64 in other ResNets.
        locations: how many of the L locations are used, drawn anew for every batch. None: all.
    """

    def __init__(self, features: int = 64, channels: int = 8, locations: int | None = None) -> None:
        super().__init__()
        self.features = integer("features", features, least=1, most=2**16)
        self.channels = integer("channels", channels, least=1, most=2**16)
        self.locations = None if locations is None else integer("locations", locations, least=1)
        self.local = features, channels
        self.pair = nn.Linear(channels + features, 256)
        self.judge = nn.Sequential(nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
        self.prior = nn.Sequential(
            nn.Linear(features, 512), nn.ReLU(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    @property
    def reads_values(self) -> bool:
        return True  # it reads none, but compiled discriminators take nearly twice as long on a CPU

    def score(self, z: Tensor, targets: Tensor | None, weight: Tensor | None) -> Tensor:
        V, N, E = z.shape
        D, C = self.features, self.channels
        if V != 1 or N < 2 or E <= D or (E - D) % C:
            wanted, got = f"(1, N, {D} + L * {C}) with L >= 1 and N >= 2 for {self}", tuple(z.shape)
            raise ValueError(f"z must be {wanted}, got {got}; models.LocalFeatures makes it")
        image, parts = z[0, :, :D], z[0, :, D:].unflatten(1, (-1, C))
        if self.locations is not None:
            parts = parts[:, torch.randperm(parts.shape[1], device=z.device)[: self.locations]]
        of_parts, of_image = self.pair.weight.split([C, D], dim=1)  # each part passes this layer once
        seen, whole = parts @ of_parts.T, F.linear(image, of_image, self.pair.bias).unsqueeze(1)
        own, others = (self.judge(whole + x).to(z) for x in (seen, seen.roll(-1, 0)))
        drawn, found = (self.prior(x).to(z) for x in (torch.rand_like(image), image))
        local = F.softplus(-own).mean() + F.softplus(others).mean()
        return local + 0.1 * (F.softplus(-drawn).mean() + F.softplus(found).mean())


def check_targets(targets: Tensor, z: Tensor) -> None:
    """Raise ValueError unless targets are (N,) integers in 0 … E − 1."""
    wanted = f"targets must be a tensor of {z.shape[1]} integers on {z.device}"
    if not isinstance(targets, Tensor):
        raise ValueError(f"{wanted}, got {type(targets).__name__}; use torch.tensor(targets)")
    dense("targets", targets)
    counts = not (targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool)
    if targets.shape != z.shape[1:2] or not counts or targets.device != z.device:
        raise ValueError(f"{wanted}, got {targets.dtype} {tuple(targets.shape)} on {targets.device}")
    if values_readable(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < z.shape[2]:
        raise ValueError(
            f"targets must be in 0 to {z.shape[2] - 1}, one of E = {z.shape[2]} outputs, got "
            f"{int(targets.min())} to {int(targets.max())}; the recipe's embedding is the number of classes"
        )


BASELINES: dict[str, type[Objective]] = {
    kind.__name__: kind for kind in (Supervised, DeepCluster, Rotation, DeepInfoMax)
}

"""Baselines of the papers' tables that match nothing: labels, rotations, clusters, an image and its parts.

They see a batch as z (V, N, E), as the losses do, but use the raw outputs: those of a classifier of E
classes, or of DeepInfoMax's two heads. They have no assignment.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import values_readable
from setclr.losses.base import Objective


class Baseline(Objective):
    """Scores the outputs z of a batch, some baselines with a target for each image."""

    def forward(self, z: Tensor, targets: Tensor | None = None, weight: Tensor | None = None) -> Tensor:
        """The loss, a 0-d tensor, in float32 or wider.

        Args:
            z: (V, N, E) floating.
            targets: (N,) integers in 0 … E − 1, where the baseline has `targets`.
            weight: (E,) weights of the targets in the mean; None: all 1.

        Raises ValueError: z or targets are not as above.
        """
        if not isinstance(z, Tensor) or z.ndim != 3 or not z.is_floating_point() or 0 in z.shape:
            got = f"{tuple(z.shape)} {z.dtype}" if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(f"z must be (V, N, E), floating and not empty, got {got}")
        if (targets is not None) != (self.targets is not None):
            raise ValueError(f"targets must be {self.targets or 'None'} for {self}, got {targets!r}")
        if targets is not None:
            check_targets(targets, z)
        with torch.autocast(z.device.type, enabled=False):
            z = z.to(torch.promote_types(z.dtype, torch.float32))
            return self.score(z, targets, None if weight is None else weight.to(z.dtype))

    def score(self, z: Tensor, targets: Tensor | None, weight: Tensor | None) -> Tensor:
        """Cross-entropy of the targets, the same for every view."""
        assert targets is not None  # `forward` has seen to it
        return F.cross_entropy(z.flatten(0, 1), targets.repeat(len(z)), weight)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Supervised(Baseline):
    """Cross-entropy of the labels of E classes: supervised learning, the first row of QARe's table 2."""

    targets = "labels"


class DeepCluster(Baseline):
    """Cross-entropy of the clusters of the encoder's own features (Caron et al. 2018). E is their number.

    Every epoch begins with new clusters and a new last layer (`training.clusters`). An image's weight is one
    over the size of its cluster, as if clusters were drawn uniformly; otherwise one would take all images.
    """

    targets = "clusters"


class Rotation(Baseline):
    """How many quarter turns (Gidaris et al. 2018; RotationNet in QARe's table 2)? All are shown; E is 4."""

    def prepare(self, views: list[Tensor]) -> list[Tensor]:
        """(1, N, C, S, S) → (4, N, C, S, S), turned counter-clockwise by 0, 90, 180 and 270 degrees."""
        return [torch.cat([x.rot90(turns, (-2, -1)) for turns in range(4)]) for x in views]

    def score(self, z: Tensor, targets: Tensor | None, weight: Tensor | None) -> Tensor:
        if z.shape[0] != 4 or z.shape[2] != 4:
            raise ValueError(f"z must be (4, N, 4), got {tuple(z.shape)}; the recipe needs embedding=4")
        turns = torch.arange(4, device=z.device).repeat_interleave(z.shape[1])
        return F.cross_entropy(z.flatten(0, 1), turns)


class DeepInfoMax(Baseline):
    r"""Does this part belong to that image? The local objective of Hjelm et al. 2019.

    .. math::
        L = \operatorname{mean}_{i, l}\, \operatorname{sp}(-\langle g_i, c_{il}\rangle)
          + \operatorname{mean}_{i \ne j, l}\, \operatorname{sp}(\langle g_i, c_{jl}\rangle) - 2 \log 2

    with g the image's embedding, c those of its locations, sp the softplus: minus the Jensen-Shannon estimate
    of the information between an image and its parts. It is 0 for embeddings that are all 0 and stays above
    −2 log 2. That paper's global objective and its prior are left out.

    z is (1 + L, N, E): of the whole image, and of its L locations. Cost: O(L N² E) time, O(L N²) memory.
    """

    local = True

    def score(self, z: Tensor, targets: Tensor | None, weight: Tensor | None) -> Tensor:
        P, N, _ = z.shape
        if P < 2 or N < 2:
            raise ValueError(f"z must be (1 + L, N, E) with L >= 1 and N >= 2, got {tuple(z.shape)}")
        products = torch.einsum("ie,lje->lij", z[0], z[1:])
        own = products.diagonal(dim1=1, dim2=2)
        of_others = (F.softplus(products).sum() - F.softplus(own).sum()) / ((P - 1) * N * (N - 1))
        return F.softplus(-own).mean() + of_others - 2 * math.log(2)


def check_targets(targets: Tensor, z: Tensor) -> None:
    """Raises ValueError unless targets are (N,) integers that E outputs can name."""
    if targets.shape != z.shape[1:2] or targets.is_floating_point():
        raise ValueError(f"targets must be {z.shape[1]} integers, got {targets.dtype} {tuple(targets.shape)}")
    if values_readable(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < z.shape[2]:
        raise ValueError(
            f"targets must be in 0 to {z.shape[2] - 1}, one of E = {z.shape[2]} outputs, got "
            f"{int(targets.min())} to {int(targets.max())}; the recipe's embedding is the number of classes"
        )


BASELINES: dict[str, type[Objective]] = {
    kind.__name__: kind for kind in (Supervised, DeepCluster, Rotation, DeepInfoMax)
}

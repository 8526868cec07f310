"""Real pairs: two images of each thing, to be matched one to one (QARe paper, section 5.1).

"pairs:PATH" reads them from the folders of two cameras (`folders.two_cameras`). The authors of CUHK-03 send
it on request; it has up to five pictures of an identity by each of two cameras. Save the first one of each
as PATH/1/IDENTITY.png and PATH/2/IDENTITY.png, and load "pairs:PATH" with size=256.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import choice, integer
from setclr.data.folders import FOR_TEST
from setclr.data.sets import Batch, ImageSet, Views
from setclr.seeding import generator_of
from setclr.views import View, recolour
from setclr.views.numbers import NUMBERS

FLIP = sum(list(NUMBERS.values())[: list(NUMBERS).index("flip")])  # the flip's column in the draws
VALIDATION = FOR_TEST / (1 - FOR_TEST)  # share of the things outside the test split
SHAPE = "(2, n, C, H, W) uint8, two views of n >= 2 things, C = 1 or 3; two_views makes them"


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(ImageSet):
    """Two images of each of n things; each view shows its own image whole, mirrored and recoloured.

    `paired` makes a `Pairs` of pairs (2, n, C, H, W) uint8. `images` are the first views, and each thing is
    a class. `mirror` "apart" draws for each view whether it is mirrored. "together" draws once for both
    views of a thing.
    """

    pairs: Tensor
    mirror: str

    def view_batches(
        self, views: Sequence[View], batches: Iterable[Batch], workers: int, device: torch.device,
        compiled: bool = False,
    ) -> Views:  # fmt: skip
        """The views of each batch, (2, n, C, H, W). Raises ValueError unless there are two equal views."""
        if len(views) != 2 or views[0] != views[1]:
            raise ValueError(f"views must be two equal ones for pairs, got {len(views)}; 'matching' has them")
        pairs = self.pairs.to(device)
        for index, draws in batches:
            numbers = draws.transpose(0, 1).clone()
            if self.mirror == "together":
                numbers[1, :, FLIP] = numbers[0, :, FLIP]
            x = pairs[:, index.to(device)].flatten(0, 1)
            made = recolour(x, views[0], numbers.flatten(0, 1).unsqueeze(1), compiled)
            yield [made.unflatten(0, (2, -1))]

    def subset(self, index: Tensor) -> "Pairs":
        """Both images of the things where `index` (n,) bool is True, or of those of these numbers."""
        return paired(self.pairs[:, index], self.mirror)


def paired(pairs: Tensor, mirror: str = "apart") -> Pairs:
    """Pairs (2, n, C, H, W) uint8 as an image set to train on. Raises ValueError for anything else."""
    if not isinstance(pairs, Tensor) or pairs.dtype != torch.uint8 or pairs.ndim != 5 or len(pairs) != 2:
        got = f"{tuple(pairs.shape)} {pairs.dtype}" if isinstance(pairs, Tensor) else repr(pairs)
        raise ValueError(f"pairs must be {SHAPE}, got {got}")
    n = pairs.shape[1]
    choice("mirror", mirror, ("apart", "together"))
    return Pairs(pairs[0], torch.arange(n), tuple(map(str, range(n))), pairs, mirror)


def two_views(images: ImageSet, seed: int = 0, size: int | None = None) -> Tensor:
    """Two images of each thing, from images whose labels say which thing they show.

    The first of a thing's two images is view 0; in "stereo-patches" it is the left camera's patch. If a
    thing has more than two, the seed draws two, which keep their order. A thing with one image is left out,
    and so are images without a label (-1).

    Returns (2, n, C, H, W) uint8, resized with antialiasing to side `size` in pixels, if given. Image i of
    both views shows the same thing, and things come in the order of their labels. Raises ValueError if
    fewer than two things have two images.
    """
    generator = generator_of(integer("seed", seed, least=0))
    shuffled = torch.randperm(len(images), generator=generator)
    shuffled = shuffled[images.labels[shuffled].argsort(stable=True)]
    labels = images.labels[shuffled]
    counts = labels[labels >= 0].bincount().tolist()
    drawn = [some[:2].sort().values for some in shuffled[labels >= 0].split(counts)]
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


def split_pairs(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Split the pairs (2, n, ...) of a training split: those to train on, and the last 15/85 for validation.

    The order of "pairs:PATH" is random. The order of "stereo-patches" is from the top of the picture down,
    so validation patches overlap with training patches only at the boundary between the two.
    """
    first = pairs.shape[1] - round(VALIDATION * pairs.shape[1])
    return pairs[:, :first], pairs[:, first:]

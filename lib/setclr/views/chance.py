"""The random numbers of views, one row for each image, and the parameters made from them.

A view depends on its image's row alone. A process that holds images [a, b) of a batch therefore draws only
their rows, and gets the same numbers as a process that draws the whole batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setclr import checks
from setclr.views.view import View, check_views

DRAWS = 2
"""Version of the draws that a seed gives. Raise it when they change; a checkpoint stores it."""

# The columns of the draws: how many uniform numbers a view takes for each operation.
NUMBERS = dict(area=10, ratio=10, corner=2, flip=1, jitter=5, order=4, grey=1, blur=2, solarise=1)
COLUMNS = sum(NUMBERS.values())


def draw(views: Sequence[View], n: int, generator: torch.Generator, first: int = 0) -> Tensor:
    """Everything random in V views of `n` images: (n, V, 36) float32, uniform in [0, 1), on the CPU.

    Columns are as in NUMBERS. `first` is the place of the first image in its batch. The numbers come from a
    counter-based generator (Philox, Salmon et al. 2011). Its counter is the image's place; its key is drawn
    from `generator`, which advances by the same amount for any arguments. So draw(views, n, generator)[a:b]
    and draw(views, b - a, generator, a) from the same state are the same bits, on every machine. Raises
    ValueError for a number out of range or a generator that is not on the CPU.
    """
    check_views(views)
    checks.integer("n", n, least=1, hint="it is the number of images")
    checks.integer("first", first, least=0, hint="it is the place of the first image in its batch")
    if not isinstance(generator, torch.Generator) or generator.device.type != "cpu":
        got, hint = getattr(generator, "device", generator), "torch.Generator().manual_seed(seed) is one"
        raise ValueError(f"generator must be a CPU torch.Generator, got {got!r}; {hint}")
    low, high = torch.randint(2**32, (2,), generator=generator).tolist()
    row = len(views) * COLUMNS  # numbers of 64 bits an image; one step of the counter makes four
    bits = np.random.Philox(key=low + (high << 32), counter=first * row // 4).random_raw(n * row)
    return torch.from_numpy((bits >> np.uint64(40)).astype(np.float32)).mul_(2**-24).view(n, len(views), -1)


def check_draws(draws: object, n: int, V: int) -> None:
    """Raises ValueError unless these are draws of V views of n images."""
    wanted = (n, V, COLUMNS)
    if not isinstance(draws, Tensor) or draws.shape != wanted or draws.device.type != "cpu":
        got = f"{tuple(draws.shape)} on {draws.device}" if isinstance(draws, Tensor) else repr(draws)
        hint = "take draw(views, n, generator), sliced as the images are"
        raise ValueError(f"draws must be {wanted} (images, views, numbers) on the CPU, got {got}; {hint}")


class Parameters(NamedTuple):
    """What each of V views does to each of N images, on the CPU; masks are (V, N) bool."""

    box: Tensor  # (V, N, 4) top, left, height, width of the crop: whole pixels, float64
    flip: Tensor  # mask
    factors: Tensor  # (V, N, 4) brightness, contrast and saturation factors, hue's turn
    order: Tensor  # (V, N, 4) indices of the four factors, in the order of their use
    grey: Tensor  # mask
    blur: Tensor  # mask
    sigma: Tensor  # (V, N) output pixels
    solarise: Tensor  # mask


def parameters(views: Sequence[View], draws: Tensor, H: int, W: int) -> Parameters:
    """The parameters of V views of N images of H x W pixels, from their draws (N, V, 36)."""
    u = dict(zip(NUMBERS, draws.transpose(0, 1).split(list(NUMBERS.values()), dim=2)))
    strength, neutral = _of_each(views, "jitter")[:, None], torch.tensor([1.0, 1, 1, 0])
    low = torch.maximum(neutral - strength, torch.tensor([0.0, 0, 0, -1]))
    factors = low + (neutral + strength - low) * u["jitter"][..., 1:]
    jittered = u["jitter"][..., :1] < _of_each(views, "jitter_p")[:, None, None]
    small, large = _of_each(views, "blur_sigma").T[..., None]
    happens = {
        name: u[name][..., 0] < _of_each(views, name)[:, None]
        for name in ("flip", "grey", "blur", "solarise")
    }
    return Parameters(
        box=boxes(views, draws, H, W), factors=torch.where(jittered, factors, neutral),
        order=u["order"].argsort(dim=2), sigma=small + (large - small) * u["blur"][..., 1], **happens,
    )  # fmt: skip


def boxes(views: Sequence[View], draws: Tensor, H: int | Tensor, W: int | Tensor) -> Tensor:
    """The crops of V views, (V, N, 4) top, left, height, width, for their draws (N, V, 36).

    `H` and `W` are the images' height and width in pixels: one number for all, or a tensor (N,). A crop is
    the first of ten tries that fits into the image. If none fits, it is the largest central box within the
    view's ratios. torchvision's `RandomResizedCrop.get_params` does the same. The crop may reach beyond the
    image, into the border that `View.padding` adds.
    """
    area, ratio, corner, _ = draws.transpose(0, 1).double().split([10, 10, 2, COLUMNS - 22], dim=2)
    H, W = (torch.as_tensor(side, dtype=torch.float64).reshape(-1, 1) for side in (H, W))
    ranges = [(*view.scale, *view.ratio) for view in views]
    small, large, narrow, wide = torch.tensor(ranges, dtype=torch.float64).T[..., None, None]
    area, ratio = H * W * (small + (large - small) * area), narrow * (wide / narrow) ** ratio
    tries, image = torch.stack([area / ratio, area * ratio], dim=3).sqrt().round(), torch.cat([H, W], dim=1)
    fits = ((tries > 0) & (tries <= image[:, None])).all(3)
    first = fits.int().argmax(2)[..., None, None].expand(-1, -1, 1, 2)
    widest = torch.stack([W / narrow, H * wide], dim=3)[:, :, 0].round().clamp(min=1)
    fitting = fits.any(2, keepdim=True)
    size = torch.where(fitting, tries.gather(2, first)[:, :, 0], torch.minimum(image, widest))
    padding = torch.tensor([view.padding for view in views], dtype=torch.float64)
    border = (padding[:, None, None] * H).round()
    room = image - size + 2 * border
    return torch.cat([torch.where(fitting, corner * (room + 1), room / 2).floor() - border, size], dim=2)


def _of_each(views: Sequence[View], name: str) -> Tensor:
    return torch.tensor([getattr(view, name) for view in views])

"""The random numbers of views, one row for each image, and the tensors made from them.

A view depends on its image's row alone. A process that holds images [a, b) of a batch therefore draws only
their rows, and gets the same numbers as a process that draws the whole batch.

`draw` gives the numbers, `parameters` what they mean, `cropping` and `colours` the tensors, by name, with
which `setclr.views.pixels` computes. These are made on the CPU and sent to the images' device as one tensor.
An operation that no view of a group has gets none. B = V * N images, view after view.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setclr import checks
from setclr.views.pixels import LUMA
from setclr.views.view import View, check_views

DRAWS = 3
"""Version of the draws that a seed gives. Raise it when they change; a checkpoint stores it."""

# The columns of the draws: how many uniform numbers a view takes for each operation.
NUMBERS = dict(area=10, ratio=10, corner=2, flip=1, jitter=5, order=4, grey=1, blur=2, solarise=1)
COLUMNS = sum(NUMBERS.values())
CONTRAST, SATURATION, HUE = 1, 2, 3  # columns of the factors, after brightness
FAR = 1e9  # distance to a pixel outside the crop, where its weight is 0


def draw(views: Sequence[View], n: int, generator: torch.Generator, first: int = 0) -> Tensor:
    """Everything random in V views of `n` images: (n, V, 36) float32, uniform in [0, 1), on the CPU.

    Columns are as in NUMBERS. `first` is the place of the first image in its batch. The numbers come from a
    counter-based generator (Philox, Salmon et al. 2011). Its counter is the image's place; its key is drawn
    from `generator`, which advances by the same amount for any arguments. So draw(views, n, generator)[a:b]
    and draw(views, b - a, generator, a) from the same state are the same bits, on every machine. Raises
    ValueError for a number out of range or a generator that is not on the CPU.
    """
    checks.default_device()
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
    vertical: Tensor  # mask
    turn: Tensor  # mask


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
    bits = u["flip"][..., 0]  # of its 24 the first eight say enough about the flip
    happens["vertical"] = bits * 2**8 % 1 < _of_each(views, "vertical")[:, None]
    happens["turn"] = bits * 2**16 % 1 < _of_each(views, "turn")[:, None]
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


def cropping(views: Sequence[View], p: Parameters, H: int, W: int, S: int) -> dict[str, Tensor]:
    """The tensors of `pixels.crop`, for images of H x W pixels and crops of S x S.

    They are ordered image after image, with V views of each. "pixels" and "centres" are the positions of an
    image's pixels and of an output's, in rows and columns, (2, N * V, ...). Their unit is the triangle's
    reach, so that a weight is 1 - distance. Pixels outside of the box are far away. Pixels of the border come
    before and after the image's. If there is a bicubic view, "cubic" is 1 for its crops and 0 for others.
    """
    border, N = round(max(view.padding for view in views) * H), p.box.shape[1]
    top, left, height, width = p.box.transpose(0, 1).flatten(0, 1).float().T
    flip = p.flip.T.flatten()
    left, width = left + width * flip, width * (1 - 2.0 * flip)  # a mirrored box is read backwards
    start = torch.stack([top, left])[..., None, None]
    length = torch.stack([height, width])[..., None, None]
    reach = (length / S).abs().clamp(min=1)
    pixel, output = torch.arange(-border, max(H, W) + border) + 0.5, torch.arange(S)[:, None] + 0.5
    along = (pixel - start) / length
    outside = (along - 0.5).abs() > 0.5
    made = {"pixels": pixel / reach + FAR * outside, "centres": (start + length / S * output) / reach}
    cubic = [float(view.interpolation == "bicubic") for view in views]
    if any(cubic):
        made["cubic"] = torch.tensor(cubic).repeat(N)[:, None, None]
    return made


def colours(views: Sequence[View], p: Parameters, C: int, S: int) -> dict[str, Tensor]:
    """The tensors of `pixels.recolour`, for images of C channels and S x S pixels."""
    made: dict[str, Tensor] = {}
    jitters = [view.jitter for view in views if view.jitter_p]
    if any(map(any, jitters)):
        hue = C == 3 and any(strength[HUE] for strength in jitters)
        made |= jittering(p.factors.flatten(0, 1), p.order.flatten(0, 1), C, hue)
    if C == 3 and any(view.grey for view in views):
        lost = _each(p.grey)[..., None]
        made["greys"] = torch.eye(3) + lost * (torch.tensor(LUMA) - torch.eye(3))
    if any(view.blur for view in views):
        made |= blurring(_each(p.sigma), _each(p.blur), S)
    if any(view.solarise for view in views):
        made["tops"] = 2 - _each(p.solarise)[..., None, None]
    for name in ("vertical", "turn"):
        if any(getattr(view, name) for view in views):
            made[name] = _each(getattr(p, name))[..., None, None]
    return made


def _each(values: Tensor) -> Tensor:
    """Numbers of each view and image, (V, N), as floats (B, 1)."""
    return values.float().reshape(-1, 1)


def jittering(factors: Tensor, order: Tensor, C: int, hue: bool) -> dict[str, Tensor]:
    """The tensors of the jitter by `factors` in `order`, both (B, 4).

    They are those of three blends; with `hue`, those of three blends, a turn of the hue and three
    more blends.

    A blend moves a pixel by a share towards a reference: black, the image's mean grey or the pixel's own
    grey. Each image has its own place for the turn among its three blends. The blends before the turn are
    in the first three, the others in the last three. A share of 0 changes nothing.
    """
    place = torch.arange(3)
    turned = (order == HUE).int().argmax(1, keepdim=True)
    kind = order.gather(1, place + (place >= turned))
    share = 1 - factors.gather(1, kind)
    if hue:
        share = torch.cat([share * (place < turned), share * (place >= turned)], dim=1)
        kind = kind.repeat(1, 2)
    share, kind = share.T[..., None, None], kind.T[..., None, None]
    luma = torch.tensor(LUMA if C == 3 else (1.0,))
    blends = (1 - share) * torch.eye(C) + share * (kind == SATURATION) * luma
    made = {"blends": blends, "contrasts": share * (kind == CONTRAST) * luma}
    if hue:
        turn = factors[:, HUE:] - torch.tensor([3.0, -1, 1]) / 6  # from hues of least red, green, blue
        made["turns"] = (6 * (turn - turn.round()))[..., None]
        made["hexagon"] = torch.tensor([[[-1.0, 1, 1], [0, 1, -1]]])
    return made


def blurring(sigma: Tensor, blurred: Tensor, S: int) -> dict[str, Tensor]:
    """The tensors of `pixels.blur`, for Gaussians of deviation `sigma` in pixels, cut off at S / 20.

    They blur images where `blurred` is 1 and keep the others. `sigma` and `blurred` are (B, 1).
    """
    radius = max(1, S // 20)
    offset = torch.arange(-radius, radius + 1)
    still, bell = (offset == 0).float(), (-(offset / sigma).square() / 2).exp()
    taps = still + blurred * (bell / bell.sum(1, keepdim=True) - still)
    place = torch.arange(-radius, S + radius)
    source = (S - 1 - (S - 1 - place.abs()).abs()).clamp(min=0)
    return {"taps": taps, "reflections": (source[:, None] == torch.arange(S)).float()}


Layout = tuple[tuple[str, tuple[int, ...]], ...]  # names and shapes of the packed tensors


def packed(numbers: dict[str, Tensor], device: torch.device) -> tuple[Tensor, Layout]:
    """All these tensors joined into one on the device, with their names and shapes."""
    together = torch.cat([x.flatten().float() for x in numbers.values()])  # whatever the default dtype
    return sent(together, device), tuple((name, tuple(x.shape)) for name, x in numbers.items())


def sent(x: Tensor, device: torch.device) -> Tensor:
    """A CPU tensor on the device; the copy does not block the CPU."""
    if device.type == "cuda":
        x = x.pin_memory()
    return x.to(device, non_blocking=True)


def unpacked(together: Tensor, layout: Layout) -> dict[str, Tensor]:
    parts = together.split([prod(shape) for _, shape in layout])
    return {name: part.view(shape) for part, (name, shape) in zip(parts, layout)}

"""The tensors that `setclr.views.pixels` computes with, made from the parameters of views.

They are made on the CPU and sent to the images' device as one tensor. An operation that no view of a group
has gets no tensors. Each function returns a dict of tensors by name. B = V * N images, view after view.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from setclr.views.chance import Parameters
from setclr.views.pixels import LUMA
from setclr.views.view import View

CONTRAST, SATURATION, HUE = 1, 2, 3  # columns of the factors, after brightness
FAR = 1e9  # distance to a pixel outside the crop, where its weight is 0


def cropping(views: Sequence[View], p: Parameters, H: int, W: int, S: int) -> dict[str, Tensor]:
    """The tensors of `pixels.crop`, for images of H x W pixels and crops of S x S.

    They are ordered image after image, with V views of each. "pixels" and "centres" are the positions of an
    image's pixels and of an output's, in rows and columns, (2, N * V, ...). Their unit is the triangle's
    reach, so that a weight is 1 - distance. Pixels outside of the box are far away. Pixels of the border come
    before and after the image's. If there is a bicubic view, "cubic" is 1 for its crops and 0 for others.
    """
    border, N = max(view.border(H) for view in views), p.box.shape[1]
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


def mirroring(p: Parameters) -> dict[str, Tensor]:
    """The tensor of `pixels.mirror`."""
    return {"flips": _each(p.flip)[..., None, None]}


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

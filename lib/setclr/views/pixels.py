"""The arithmetic of the views: every image resized, jittered, greyed, blurred by its own amount.

B = V * N images, all views of a size at once, are a list of float32 tensors (B, c, P) of P pixels in [0, 1]:
one with all channels where every operation is a launch of its own, one for each channel where torch.compile
fuses them, so that its loops run over the pixels of one image after another. Nothing here is random or looks
at a value: what an operation does to each image stands in `numbers` (setclr.views.numbers), and an operation
that no view has is not there. torch.where is slow on a CPU; masks are numbers that leave an image as it is.
"""

from functools import reduce

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)
Channels = list[Tensor]


def crop(images: Tensor, numbers: dict[str, Tensor], V: int) -> Tensor:
    """Boxes of images (N, C, H, W) uint8, resized with antialiasing: (V * N, C, S, S), view after view.

    An output pixel is a mean under a triangle that reaches one input or output pixel (the larger) to either
    side within the box, or under Keys' cubic, which reaches two: torch's antialiased bilinear and bicubic
    interpolation. The border is black.
    """
    N, C, H, W = images.shape
    distance = (numbers["pixels"] - numbers["centres"]).abs_()
    weight = torch.rsub(distance, 1).clamp_(min=0)
    if "cubic" in numbers:
        weight = torch.lerp(weight, keys(distance, weight), numbers["cubic"])
    weight.div_(weight.sum(3, keepdim=True))
    S, border = weight.shape[2], (weight.shape[3] - max(H, W)) // 2
    rows, columns = (weight[i, :, :, border : border + side] for i, side in enumerate((H, W)))
    lines = images.transpose(1, 2).to(torch.float32, memory_format=torch.contiguous_format)
    x = torch.bmm(rows.view(N, V * S, H), lines.view(N, H, C * W))
    x = torch.bmm(x.view(N * V, S * C, W), columns.mT).view(N, V, S, C, S).permute(1, 0, 3, 2, 4)
    x = x.reshape(V * N, C, S, S).div_(255)
    return x.clamp_(0, 1) if "cubic" in numbers else x  # which overshoots


def keys(distance: Tensor, triangle: Tensor) -> Tensor:
    """Twice Keys' cubic with a = -1/2 at these distances: of its two pieces the outer one, and what the inner
    one is above it. `triangle` is 1 - distance, or 0 beyond 1, where there is only the outer one."""
    wide = torch.rsub(distance, 2).clamp_(min=0)
    outer = (wide - 1).mul_(wide).mul_(wide)
    return outer.addcmul_(triangle.square(), torch.rsub(triangle, 1, alpha=2), value=2)


def recolour(x: Tensor, numbers: dict[str, Tensor], apart: bool) -> Tensor:
    """All that a view does to images (B, C, S, S) after cropping; `apart` keeps channels apart."""
    shape = x.shape
    channels = list(x.flatten(2).split(1 if apart else shape[1], dim=1))
    if "blends" not in numbers:
        channels = [y.clamp_(0, 1) for y in channels]  # what crops lie outside by rounding
    else:
        for place, (matrix, contrast) in enumerate(zip(numbers["blends"], numbers["contrasts"])):
            if place == 3:
                channels = turn_hue(channels, numbers["turns"], numbers["hexagon"])
            channels = blend(channels, matrix, contrast)
    if "greys" in numbers:
        channels = mix(numbers["greys"], channels)
    x = (torch.cat(channels, dim=1) if apart else channels[0]).view(shape)
    if "taps" in numbers:
        x = blur(x, numbers["taps"], numbers["reflections"])
    return solarise(x, numbers["tops"]) if "tops" in numbers else x


def mix(matrix: Tensor, x: Channels, offset: Tensor | None = None) -> Channels:
    """matrix (B, c, C) @ channels + offset (B, 1, 1)."""
    if len(x) == 1:
        return [torch.bmm(matrix, x[0]) if offset is None else torch.baddbmm(offset, matrix, x[0])]
    rows = [row.split(1, dim=2) for row in matrix.split(1, dim=1)]
    mixed = [reduce(torch.add, map(torch.mul, row, x)) for row in rows]
    return mixed if offset is None else [y + offset for y in mixed]


def blend(x: Channels, matrix: Tensor, contrast: Tensor) -> Channels:
    """A step of the jitter: matrix (B, C, C) @ pixel + contrast (B, 1, C) @ mean pixel, in [0, 1]."""
    (offset,) = mix(contrast, [y.mean(2, keepdim=True) for y in x])
    return [y.clamp_(0, 1) for y in mix(matrix, x, offset)]


def turn_hue(x: Channels, turn: Tensor, hexagon: Tensor) -> Channels:
    """Colours with the hue moved, HSV's saturation and value kept.

    The hue in sixths of a turn is ± (2 + (green + blue - red - highest) / chroma), with the sign of green -
    blue; `hexagon` (1, 2, 3) makes both of these of the channels. Of the sixths a channel spends two at its
    highest, one falling, two at its lowest, one rising. `turn` (B, 3, 1) counts from the middle of its
    lowest: 2 less the distance from there is how far it has fallen.
    """
    high = reduce(torch.maximum, [y.amax(1, keepdim=True) for y in x])
    low = reduce(torch.minimum, [y.amin(1, keepdim=True) for y in x])
    chroma = (high - low).clamp_(min=1e-30)
    size, side = (y for ys in mix(hexagon.expand(len(turn), 2, 3), x) for y in ys.split(1, dim=1))
    hue = size.sub_(high).div_(chroma).add_(2).copysign_(side)
    fallen = [(hue + t).abs_().sub_(3).abs_().sub_(1).clamp_(0, 1) for t in turn.split(3 // len(x), dim=1)]
    return [torch.addcmul(high, chroma, y, value=-1) for y in fallen]


def grey(x: Tensor) -> Tensor:
    """The luma (N, 1, H, W) of colours (N, 3, H, W); one channel is its own."""
    if x.shape[1] == 1:
        return x
    red, green, blue = x.split(1, dim=1)
    return (LUMA[0] * red).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])


def blur(x: Tensor, taps: Tensor, reflections: Tensor) -> Tensor:
    """Images (B, C, S, S) filtered along both axes by `taps` (B, K), reflected at borders.

    `reflections` (S + K - 1, S) tells which pixel stands for each of S + K - 1, K // 2 beyond either border.
    """
    B, C, S, _ = x.shape
    shifts = reflections.as_strided((taps.shape[1], S * S), (S, 1))  # K overlapping (S, S)
    matrix = (taps @ shifts).view(B, S, S)
    y = torch.bmm(matrix, x.view(B, C * S, S).mT)  # columns, channels, rows
    y = torch.bmm(y.view(B, S * C, S), matrix.mT).view(B, S, C, S).permute(0, 2, 3, 1)
    return y.contiguous().clamp_(0, 1)


def solarise(x: Tensor, top: Tensor) -> Tensor:
    """Every value v replaced by top - v where that is less: `top` (B, 1, 1, 1) is 1, or 2 to keep all."""
    return torch.minimum(x, top - x)


def mirror(x: Tensor, flip: Tensor) -> Tensor:
    """Images (B, C, H, W), left and right exchanged where `flip` (B, 1, 1, 1) is 1 and not 0."""
    return x.lerp_(x.flip(-1), flip)

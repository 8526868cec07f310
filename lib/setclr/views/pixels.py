"""The arithmetic of the views: every image is resized, jittered, greyed and blurred by its own amount.

B = V * N images, all views of a size at once, are a list of float32 tensors (B, c, P) of P pixels in
[0, 1]. Without torch.compile, every operation is a kernel launch of its own, and the list has one tensor
with all channels. torch.compile fuses the operations, and the list then has one tensor for each channel:
the loops run over the pixels of one image after another. Nothing here is random or looks at a value:
`numbers` (setclr.views.numbers) says what an operation does to each image, and an operation that no view
has is skipped. torch.where is slow on a CPU. So masks are numbers, some of which leave an image as it is.
"""

from functools import reduce

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)
Channels = list[Tensor]


def crop(images: Tensor, numbers: dict[str, Tensor], V: int) -> Tensor:
    """Boxes of images (N, C, H, W) uint8, resized with antialiasing: (V * N, C, S, S), view after view.

    An output pixel is a weighted mean of the pixels in its box. The weight is a triangle that reaches one
    pixel to either side, or Keys' cubic, which reaches two. A pixel is here the larger of an input and an
    output pixel. These are torch's antialiased bilinear and bicubic interpolation. The border is black.
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
    return x.clamp_(0, 1) if "cubic" in numbers else x  # the cubic overshoots


def keys(distance: Tensor, triangle: Tensor) -> Tensor:
    """Twice Keys' cubic with a = -1/2 at these distances.

    It is the sum of its outer piece and of the inner piece's difference from the outer one. `triangle` is 1
    - distance, or 0 beyond a distance of 1, where there is only the outer piece.
    """
    wide = torch.rsub(distance, 2).clamp_(min=0)
    outer = (wide - 1).mul_(wide).mul_(wide)
    return outer.addcmul_(triangle.square(), torch.rsub(triangle, 1, alpha=2), value=2)


def recolour(x: Tensor, numbers: dict[str, Tensor], apart: bool) -> Tensor:
    """Everything that a view does to images (B, C, S, S) after cropping and mirroring.

    `apart` keeps the channels in separate tensors.
    """
    shape = x.shape
    if "vertical" in numbers:
        x = torch.lerp(x, x.flip(2), numbers["vertical"])
    if "turn" in numbers:
        x = torch.lerp(x, x.mT, numbers["turn"])
    channels = list(x.flatten(2).split(1 if apart else shape[1], dim=1))
    if "blends" not in numbers:
        channels = [y.clamp_(0, 1) for y in channels]  # rounding puts some values just outside
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
    """A step of the jitter: matrix (B, C, C) @ pixel + contrast (B, 1, C) @ mean pixel, clamped to [0, 1]."""
    (offset,) = mix(contrast, [y.mean(2, keepdim=True) for y in x])
    return [y.clamp_(0, 1) for y in mix(matrix, x, offset)]


def turn_hue(x: Channels, turn: Tensor, hexagon: Tensor) -> Channels:
    """Colours with the hue turned; HSV's saturation and value stay the same.

    The hue in sixths of a turn is ± (2 + (green + blue - red - highest) / chroma), with the sign of
    green - blue. `hexagon` (1, 2, 3) computes green + blue - red and green - blue from the channels. In a
    full turn a channel is at its highest for two sixths, falls for one, is at its lowest for two and rises
    for one. `turn` (B, 3, 1), added to the hue, counts it from the middle of the channel's lowest two
    sixths. 2 minus the distance from there, within [0, 1], is how far the channel has fallen.
    """
    high = reduce(torch.maximum, [y.amax(1, keepdim=True) for y in x])
    low = reduce(torch.minimum, [y.amin(1, keepdim=True) for y in x])
    chroma = (high - low).clamp_(min=1e-30)
    size, side = (y for ys in mix(hexagon.expand(len(turn), 2, 3), x) for y in ys.split(1, dim=1))
    hue = size.sub_(high).div_(chroma).add_(2).copysign_(side)
    fallen = [(hue + t).abs_().sub_(3).abs_().sub_(1).clamp_(0, 1) for t in turn.split(3 // len(x), dim=1)]
    return [torch.addcmul(high, chroma, y, value=-1) for y in fallen]


def grey(x: Tensor) -> Tensor:
    """The luma (N, 1, H, W) of colours (N, 3, H, W); an image of one channel stays as it is."""
    if x.shape[1] == 1:
        return x
    red, green, blue = x.split(1, dim=1)
    return (LUMA[0] * red).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])


def blur(x: Tensor, taps: Tensor, reflections: Tensor) -> Tensor:
    """Images (B, C, S, S) filtered along both axes by `taps` (B, K), reflected at the borders.

    `reflections` (S + K - 1, S) has a row for each place from K // 2 before the image to K // 2 after it.
    The row is 1 at the pixel whose value that place gets, and 0 elsewhere.
    """
    B, C, S, _ = x.shape
    shifts = reflections.as_strided((taps.shape[1], S * S), (S, 1))  # K overlapping windows (S, S)
    matrix = (taps @ shifts).view(B, S, S)
    y = torch.bmm(matrix, x.view(B, C * S, S).mT)  # columns, channels, rows
    y = torch.bmm(y.view(B, S * C, S), matrix.mT).view(B, S, C, S).permute(0, 2, 3, 1)
    return y.contiguous().clamp_(0, 1)


def solarise(x: Tensor, top: Tensor) -> Tensor:
    """Every value v replaced by top - v where that is smaller.

    `top` (B, 1, 1, 1) is 1, or 2 to keep all values.
    """
    return torch.minimum(x, top - x)


def mirror(x: Tensor, flip: Tensor) -> Tensor:
    """Images (B, C, H, W), mirrored left to right where `flip` (B, 1, 1, 1) is 1, unchanged where it is 0."""
    return x.lerp_(x.flip(-1), flip)

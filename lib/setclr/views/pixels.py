"""The arithmetic of the views: every image of a batch resized, jittered, greyed, blurred by its own amount.

Images are float32 in [0, 1], on any device. Nothing here is random or waits for a GPU: masks and factors come
from the CPU, and the work is done where the images are.
"""

from collections.abc import Callable

import torch
from torch import Tensor

CONTRAST, SATURATION, HUE = 1, 2, 3  # columns of the factors, after brightness


def apply_where(x: Tensor, mask: Tensor, change: Callable[..., Tensor], *values: Tensor) -> None:
    """Replace the images where `mask` (N,) is True by change(images, their values), in place."""
    index = mask.nonzero()[:, 0]
    if len(index):
        chosen = [value[index].to(x.device, non_blocking=True) for value in values]
        index = index.to(x.device, non_blocking=True)
        x.index_copy_(0, index, change(x.index_select(0, index), *chosen))


def crop(x: Tensor, S: int, box: Tensor, flip: Tensor) -> Tensor:
    """Boxes (N, 4) of images (N, C, H, W), resized to S x S with antialiasing, mirrored where `flip` (N,)."""
    top, left, height, width = box.unbind(1)
    left, width = torch.where(flip, left + width, left), torch.where(flip, -width, width)
    top, height, left, width = torch.stack([top, height, left, width]).float().to(x.device, non_blocking=True)
    return both_axes(x, resizing(top, height, S, x.shape[2]), resizing(left, width, S, x.shape[3]))


def both_axes(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """rows (N, S, H) @ images (N, C, H, W) @ columns (N, S, W) transposed, in [0, 1]."""
    wide = (x.flatten(1, 2) @ columns.mT).unflatten(1, x.shape[1:3])
    return (rows[:, None] @ wide).clamp_(0, 1)


def resizing(start: Tensor, length: Tensor, S: int, H: int) -> Tensor:
    """Matrices (N, S, H) that resize the pixels from `start` over `length`, both (N,), of H in a line to S.

    An output pixel is a mean under a triangle that reaches one input or output pixel (the larger) to either
    side within the span: torch's antialiased bilinear interpolation. A negative length reads backwards.
    """
    start, length = start[:, None], length[:, None]
    pixel = torch.arange(H, device=start.device) + 0.5
    centre = start + length / S * (torch.arange(S, device=start.device) + 0.5)
    reach = (length / S).abs().clamp(min=1)
    along = (pixel - start) / length
    inside = (along > 0) & (along < 1)
    distance = ((pixel / reach)[:, None, :] - (centre / reach)[:, :, None]).abs_()
    weight = distance.neg_().add_(1).clamp_(min=0).mul_(inside[:, None, :])
    return weight.div_(weight.sum(2, keepdim=True))


def jitter(x: Tensor, factors: Tensor, order: Tensor) -> None:
    """Jitter images (N, C, S, S) in place by the factors and in the order of their Parameters.

    Three of the four blend a pixel with a reference: black, the image's mean grey, the pixel's own grey.
    """
    share = torch.where(order == HUE, 0.0, 1 - factors.gather(1, order))
    blends = torch.stack([share, order == CONTRAST, order == SATURATION]).to(x.device, non_blocking=True)
    for slot in range(4):
        share, contrast, saturation = blends[:, :, slot, None, None, None]
        own = grey(x)
        x.lerp_(contrast * own.mean((2, 3), keepdim=True) + saturation * own, share).clamp_(0, 1)
        if x.shape[1] == 3:
            apply_where(x, (order[:, slot] == HUE) & (factors[:, HUE] != 0), turn_hue, factors[:, HUE])


def grey(x: Tensor) -> Tensor:
    """The luma (N, 1, H, W) of colours (N, 3, H, W); one channel is its own."""
    if x.shape[1] == 1:
        return x
    red, green, blue = x.split(1, dim=1)
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114)


def turn_hue(x: Tensor, turn: Tensor) -> Tensor:
    """Colours (N, 3, H, W) with the hue moved by `turn` (N,) full turns, HSV's saturation and value kept."""
    red, green, blue = x.unbind(1)
    high = x.amax(1)
    chroma = high - x.amin(1)
    from_green = torch.where(high == green, 2 * chroma + blue - red, 4 * chroma + red - green)
    hue = torch.where(high == red, green - blue, from_green) / chroma.clamp(min=1e-30)
    hue = (hue + 6 * turn[:, None, None]) % 6
    # Of six sectors of hue a channel spends two at the maximum, one falling, two at the minimum, one rising.
    fall = torch.stack([2 - (hue - 3).abs(), (hue - 2).abs() - 1, (hue - 4).abs() - 1], dim=1)
    return high[:, None] - chroma[:, None] * fall.clamp_(0, 1)


def blur(x: Tensor, sigma: Tensor) -> Tensor:
    """Images (N, C, S, S) under Gaussians of `sigma` (N,) pixels, cut off at S / 20, reflected at borders."""
    S = x.shape[-1]
    radius, pixel = max(1, S // 20), torch.arange(S, device=x.device)
    offset = torch.arange(-radius, radius + 1, device=x.device)
    source = (S - 1 - (S - 1 - (pixel[:, None] + offset).abs()).abs()).clamp(min=0)
    taps = (-(offset / sigma[:, None]).square() / 2).softmax(1)
    matrix = torch.einsum("nk,iks->nis", taps, (source[:, :, None] == pixel).float())
    return both_axes(x, matrix, matrix)


def solarise(x: Tensor) -> Tensor:
    """Images with every value above 0.5 inverted."""
    return torch.minimum(x, 1 - x)


def mirror(x: Tensor, mask: Tensor) -> Tensor:
    """Images (N, C, H, W), left and right exchanged where `mask` (N,) is True."""
    return torch.where(mask.to(x.device, non_blocking=True)[:, None, None, None], x.flip(-1), x)

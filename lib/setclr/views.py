"""Random views of every image of a batch at once, on any device.

Chance is apart from arithmetic: `draw` takes uniform numbers for a whole batch, a row an image, from a CPU
generator; `apply` turns them into crops and colours. A view depends on its image's row alone: a process that
holds images [a:b) of the batch applies draws[a:b) and gets what one process would get.

Distributions and arithmetic are those of torchvision's v2 transforms of float images (RandomResizedCrop with
antialiasing, flip, ColorJitter, grey, blur, solarise, in this order). Different are: parameters for every
image, not once a batch; no rounding to 1/255 on the way; the blur's kernel, SimCLR's tenth of the side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from setclr import checks

# The columns of the draws: what a view of an image takes uniform numbers for, and how many.
NUMBERS = dict(area=10, ratio=10, corner=2, flip=1, jitter=5, order=4, grey=1, blur=2, solarise=1)
CONTRAST, SATURATION, HUE = 1, 2, 3  # columns of the factors, after brightness


def _numbers(name: str, values, count: int, **bounds) -> tuple[float, ...]:
    """`values` as `count` floats within the bounds of checks.number. Raises ValueError otherwise."""
    if not isinstance(values, tuple | list) or len(values) != count:
        raise ValueError(f"{name} must be {count} numbers, got {values!r}")
    return tuple(checks.number(f"{name}[{i}]", value, **bounds) for i, value in enumerate(values))


@dataclass(frozen=True)
class View:
    """What one view does to an image. A value out of its range raises ValueError.

    Args:
        size: side of the output in pixels; None is the input's, which must then be square.
        scale: range of the crop's area as a fraction of the image's.
        ratio: range of the crop's width / height. An image that cannot hold such a crop gives its largest
            central one: scale (1, 1) and ratio (1, 1) keep a square image whole, and the middle of others.
        flip: probability of mirroring left and right.
        jitter: brightness, contrast and saturation factors are uniform in 1 ± these (at least 0), the hue's
            turn in ± the last, in full turns, <= 0.5. Every image draws the order of the four.
        jitter_p: probability of jittering at all.
        grey: probability of losing all colour.
        blur: probability of a Gaussian blur, of a deviation uniform in `blur_sigma`, in output pixels.
        solarise: probability of inverting all values above 0.5.
    """

    size: int | None = None
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    jitter: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 0.2)
    jitter_p: float = 0.8
    grey: float = 0.2
    blur: float = 0.0
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    solarise: float = 0.0

    def __post_init__(self):
        if self.size is not None:
            checks.integer("size", self.size, least=1, hint="it is the output's side; None keeps the input's")
        for name in ("flip", "jitter_p", "grey", "blur", "solarise"):
            checks.number(name, getattr(self, name), least=0, most=1, hint="it is a probability")
        for name, most in (("scale", 1), ("ratio", None), ("blur_sigma", None)):
            low, high = _numbers(name, getattr(self, name), 2, above=0, most=most)
            if low > high:
                raise ValueError(f"{name} must be (lowest, highest), got {(low, high)}; swap them")
            object.__setattr__(self, name, (low, high))
        object.__setattr__(self, "jitter", _numbers("jitter", self.jitter, 4, least=0))
        checks.number("jitter[3]", self.jitter[3], most=0.5, hint="half a turn reaches every hue")


SIMCLR = (View(blur=0.5),) * 2
DINO = View(scale=(0.14, 1), jitter=(0.4, 0.4, 0.2, 0.1), blur=1.0)  # the first of its two global views
PRESETS: dict[str, tuple[View, ...]] = {
    "simclr": SIMCLR,
    "qare": (View(),) * 2,
    "groco": (DINO, replace(DINO, blur=0.1, solarise=0.2)),
    "iot-cl": SIMCLR,  # Shi et al. 2023 follow SimCLR, blur included
    "mmcl": (View(jitter=(0.4, 0.4, 0.4, 0.1), blur=0.5),) * 2,
    # The QARe paper's matching of people; "U[0, 0.1]" there is taken for a ColorJitter of 0.1.
    "matching": (View(scale=(1, 1), ratio=(1, 1), jitter=(0.1,) * 4, jitter_p=1, grey=0),) * 2,
    # No paper's: for small patches whose colour casts mean nothing.
    "photo": (View(scale=(0.2, 1), jitter=(0.4, 0.4, 0.8, 0.5), jitter_p=0.5, grey=0.7),) * 2,
}


def preset(name: str, size: int | None = None, count: int | None = None) -> tuple[View, ...]:
    """The views `name` of PRESETS with output side `size`; `count` of them, in turn, if given."""
    views = PRESETS[checks.choice("name", name, PRESETS)]
    count = len(views) if count is None else checks.integer("count", count, least=1)
    return tuple(replace(views[v % len(views)], size=size) for v in range(count))


def augment(images: Tensor, views: Sequence[View], generator: torch.Generator) -> Tensor:
    """`draw` and `apply` in one: (N, C, H, W) uint8 -> (V, N, C, S, S) float32 in [0, 1]."""
    _output_side(images, views)  # before n is taken from what may be no images
    return apply(images, views, draw(views, len(images), generator))


def draw(views: Sequence[View], n: int, generator: torch.Generator) -> Tensor:
    """All that is random in V views of n images of any shape: (n, V, 36) uniform numbers on the CPU.

    Columns as in NUMBERS; draws[a:b] belong to images[a:b]. Raises ValueError for a generator elsewhere.
    """
    _check_views(views)
    checks.integer("n", n, least=1, hint="it is the number of images in the whole batch")
    if not isinstance(generator, torch.Generator) or generator.device.type != "cpu":
        got, hint = getattr(generator, "device", generator), "torch.Generator().manual_seed(seed) is one"
        raise ValueError(f"generator must be a CPU torch.Generator, got {got!r}; {hint}")
    return torch.rand(n, len(views), sum(NUMBERS.values()), generator=generator)


def apply(images: Tensor, views: Sequence[View], draws: Tensor) -> Tensor:
    """The views that the draws describe. Nothing here is random, and nothing waits for a GPU.

    Args:
        images: (N, C, H, W) uint8, C = 1 or 3, on any device.
        views: V of them, with the same `size`.
        draws: (N, V, 36), from `draw`.

    Returns:
        (V, N, C, S, S) float32 in [0, 1] on the images' device; autocast changes nothing, TF32 some 1e-3.

    Raises ValueError for other images, for views of two sizes and for draws of other images or views.
    """
    S = _output_side(images, views)
    wanted = (len(images), len(views), sum(NUMBERS.values()))
    if not isinstance(draws, Tensor) or draws.shape != wanted or draws.device.type != "cpu":
        got = f"{tuple(draws.shape)} on {draws.device}" if isinstance(draws, Tensor) else repr(draws)
        hint = "take draw(views, n, generator), sliced as the images are"
        raise ValueError(f"draws must be {wanted} (images, views, numbers) on the CPU, got {got}; {hint}")
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        pixels = images.float().div_(255)
        drawn = [parameters(view, draws[:, v], *images.shape[2:]) for v, view in enumerate(views)]
        return torch.stack([_one_view(pixels, S, p) for p in drawn])


def _one_view(pixels: Tensor, S: int, p: "Parameters") -> Tensor:
    """The view (N, C, S, S) of images (N, C, H, W)."""
    x = crop(pixels, S, p.box, p.flip)
    jitter(x, p.factors, p.order)
    _change(x, p.grey, lambda some: grey(some).expand_as(some))
    _change(x, p.blur, blur, p.sigma)
    _change(x, p.solarise, lambda some: torch.minimum(some, 1 - some))
    return x


def _change(x: Tensor, which: Tensor, how: Callable[..., Tensor], *values: Tensor) -> None:
    """Replace the images where `which` (N,) is True by how(images, their values), in place."""
    index = which.nonzero()[:, 0]
    if len(index):
        values = [value[index].to(x.device, non_blocking=True) for value in values]
        index = index.to(x.device, non_blocking=True)
        x.index_copy_(0, index, how(x.index_select(0, index), *values))


class Parameters(NamedTuple):
    """What one view does to each of N images, on the CPU. Masks are (N,) bool."""

    box: Tensor  # (N, 4) top, left, height, width of the crop: whole pixels, float64
    flip: Tensor  # mask
    factors: Tensor  # (N, 4) brightness, contrast and saturation factors, hue's turn
    order: Tensor  # (N, 4) which of the four is first, second, third, fourth
    grey: Tensor  # mask
    blur: Tensor  # mask
    sigma: Tensor  # (N,) output pixels
    solarise: Tensor  # mask


def parameters(view: View, uniform: Tensor, H: int, W: int) -> Parameters:
    """The parameters of a view of N images of H x W pixels, from its uniform numbers (N, 36)."""
    u = dict(zip(NUMBERS, uniform.split(list(NUMBERS.values()), dim=1)))
    box = crop_boxes(view, u["area"].double(), u["ratio"].double(), u["corner"].double(), H, W)
    strength, neutral, lowest = torch.tensor([view.jitter, (1, 1, 1, 0), (0, 0, 0, -1)])
    low = torch.maximum(neutral - strength, lowest)
    factors = low + (neutral + strength - low) * u["jitter"][:, 1:]
    factors = torch.where(u["jitter"][:, :1] < view.jitter_p, factors, neutral)
    sigma = view.blur_sigma[0] + (view.blur_sigma[1] - view.blur_sigma[0]) * u["blur"][:, 1]
    happens = {name: u[name][:, 0] < getattr(view, name) for name in ("flip", "grey", "blur", "solarise")}
    return Parameters(box=box, factors=factors, order=u["order"].argsort(dim=1), sigma=sigma, **happens)


def crop_boxes(view: View, area: Tensor, ratio: Tensor, corner: Tensor, H: int, W: int) -> Tensor:
    """Random crops (N, 4), top, left, height, width, from uniform numbers (N, 10), (N, 10) and (N, 2).

    The first of ten tries that fits, anywhere in the image, or else the largest central box of these ratios:
    the distribution of torchvision's `RandomResizedCrop.get_params`.
    """
    small, large, narrow, wide = *view.scale, *view.ratio
    area, ratio = H * W * (small + (large - small) * area), narrow * (wide / narrow) ** ratio
    image = torch.tensor([H, W], dtype=torch.float64)
    tries = torch.stack([area / ratio, area * ratio], dim=2).sqrt().round()
    fits = ((tries > 0) & (tries <= image)).all(2)
    first = tries[torch.arange(len(tries)), fits.int().argmax(1)]
    found = fits.any(1, keepdim=True)
    central = torch.tensor([min(H, max(1, round(W / narrow))), min(W, max(1, round(H * wide)))])
    size = torch.where(found, first, central)
    room = image - size
    return torch.cat([torch.where(found, corner * (room + 1), room / 2).floor(), size], dim=1)


def crop(x: Tensor, S: int, box: Tensor, flip: Tensor) -> Tensor:
    """Boxes (N, 4) of images (N, C, H, W), resized to S x S with antialiasing, mirrored where `flip` (N,)."""
    top, left, height, width = box.T
    left, width = torch.where(flip, left + width, left), torch.where(flip, -width, width)
    spans = torch.stack([top, height, left, width]).float().to(x.device, non_blocking=True)
    return _both_axes(x, resizing(*spans[:2], S, x.shape[2]), resizing(*spans[2:], S, x.shape[3]))


def _both_axes(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
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
            _change(x, (order[:, slot] == HUE) & (factors[:, HUE] != 0), turn_hue, factors[:, HUE])


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
    radius, place = max(1, S // 20), torch.arange(S, device=x.device)
    offset = torch.arange(-radius, radius + 1, device=x.device)
    source = (S - 1 - (S - 1 - (place[:, None] + offset).abs()).abs()).clamp(min=0)
    taps = (-(offset / sigma[:, None]).square() / 2).softmax(1)
    matrix = torch.einsum("nk,iks->nis", taps, (source[:, :, None] == place).float())
    return _both_axes(x, matrix, matrix)


def _check_views(views) -> None:
    if not isinstance(views, tuple | list) or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(f"views must be a tuple of View, got {views!r}; preset('simclr') is one")
    if len(sizes := {view.size for view in views}) > 1:
        raise ValueError(f"views must share one size, got {sizes}; call once for each size")


def _output_side(images, views) -> int:
    """The output's side. Raises ValueError if these images have no such views."""
    _check_views(views)
    shape, dtype = tuple(getattr(images, "shape", ())), getattr(images, "dtype", type(images))
    if dtype != torch.uint8 or len(shape) != 4 or shape[1] not in (1, 3) or 0 in shape:
        wanted = "(N, C, H, W) uint8, not empty, C = 1 or 3; floats in [0, 1]: (255 * images).round().byte()"
        raise ValueError(f"images must be {wanted}, got {shape} {dtype}")
    if views[0].size is None and shape[2] != shape[3]:
        raise ValueError(f"images must be square for views without a size, got {shape}; give View(size=...)")
    return views[0].size or shape[2]

"""Random views of every image of a batch at once, on any device.

`draw` takes uniform numbers for a whole batch from a CPU generator, a row for each image; `apply` turns them
into crops and colours. A view depends on its image's row alone: a process that holds images [a:b) of the
batch applies draws[a:b) and gets what one process would get.

Kept by hand because torchvision's v2 transforms draw once for a whole batch. Distributions and arithmetic are
theirs, for float images: RandomResizedCrop with antialiasing, flip, ColorJitter, grey, blur and solarise, in
this order. Two things differ: nothing is rounded to 1/255 on the way, and the blur's kernel is SimCLR's, a
tenth of the side. Photographs are cropped where they are decoded (setclr.data.photographs).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from setclr import checks
from setclr.views.pixels import apply_where, blur, crop, grey, jitter, mirror, solarise
from setclr.views.view import View, by_size, check_views

# The columns of the draws: what a view takes uniform numbers for, and how many.
NUMBERS = dict(area=10, ratio=10, corner=2, flip=1, jitter=5, order=4, grey=1, blur=2, solarise=1)


def augment(images: Tensor, views: Sequence[View], generator: torch.Generator) -> Tensor:
    """`draw`, then `apply`: (N, C, H, W) uint8 -> (V, N, C, S, S) float32 in [0, 1]."""
    _output_side(images, views)  # refuses what has no length
    return apply(images, views, draw(views, len(images), generator))


def draw(views: Sequence[View], n: int, generator: torch.Generator) -> Tensor:
    """All that is random in V views of n images: (n, V, 36) uniform numbers on the CPU.

    Columns as in NUMBERS; draws[a:b] belong to images[a:b]. Raises ValueError for a generator elsewhere.
    """
    check_views(views)
    checks.integer("n", n, least=1, hint="it is the number of images in the whole batch")
    if not isinstance(generator, torch.Generator) or generator.device.type != "cpu":
        got, hint = getattr(generator, "device", generator), "torch.Generator().manual_seed(seed) is one"
        raise ValueError(f"generator must be a CPU torch.Generator, got {got!r}; {hint}")
    return torch.rand(n, len(views), sum(NUMBERS.values()), generator=generator)


def apply(images: Tensor, views: Sequence[View], draws: Tensor) -> Tensor:
    """The views that the draws describe, (V, N, C, S, S) float32 in [0, 1] on the images' device.

    `images` (N, C, H, W) uint8, C = 1 or 3; V views of one `size`; draws (N, V, 36), from `draw`. Autocast
    changes nothing, TF32 about 1e-3. Raises ValueError for other images, views of two sizes, others' draws.
    """
    S = _output_side(images, views)
    check_draws(draws, len(images), len(views))
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        pixels = images.float().div_(255)
        drawn = [parameters(view, draws[:, v], *images.shape[2:]) for v, view in enumerate(views)]
        return torch.stack([_recolour(crop(pixels, S, p.box, p.flip), p) for p in drawn])


def apply_all(images: Tensor, views: Sequence[View], draws: Tensor) -> list[Tensor]:
    """`apply` for views of several sizes: (V_g, N, C, S_g, S_g) for each group of `by_size`, in its order."""
    groups = by_size(views)
    check_draws(draws, len(images), len(views))
    return [apply(images, [views[v] for v in group], draws[:, group]) for group in groups]


def finish(crops: Sequence[Tensor], views: Sequence[View], draws: Tensor) -> list[Tensor]:
    """What `apply_all` does after cropping: flips, colours, blur, for crops of `Photographs.crops`.

    Takes (V_g, N, C, S_g, S_g) uint8 for each group of `by_size`, on any device, and the draws (N, V, 36)
    they were made with. Gives the views of `apply_all` there, up to the crops' rounding to grey levels.
    Raises ValueError for crops or draws of other views or images.
    """
    groups = [(group, [views[v] for v in group]) for group in by_size(views)]
    shapes = [tuple(getattr(x, "shape", ())) for x in crops] if isinstance(crops, tuple | list) else crops
    if not isinstance(shapes, list) or list(map(len, shapes)) != [5] * len(groups):
        raise ValueError(f"crops must be {len(groups)} tensors (V, N, C, S, S), one a size, got {shapes}")
    out = []
    for x, (group, some) in zip(crops, groups):
        side, (V, _, _, height, width) = _output_side(x.flatten(0, 1), some), x.shape
        if (V, height, width) != (len(group), side, side):
            raise ValueError(f"crops must be {len(group)} views of {side} x {side} px, got {tuple(x.shape)}")
        check_draws(draws, x.shape[1], len(views))
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            drawn = [parameters(view, draws[:, v], side, side) for v, view in zip(group, some)]
            ready = [_recolour(mirror(y.float().div_(255), p.flip), p) for y, p in zip(x, drawn)]
            out.append(torch.stack(ready))
    return out


def _recolour(x: Tensor, p: "Parameters") -> Tensor:
    """All that a view does to an image after cropping: `x` (N, C, S, S), in place."""
    jitter(x, p.factors, p.order)
    apply_where(x, p.grey, lambda some: grey(some).expand_as(some))
    apply_where(x, p.blur, blur, p.sigma)
    apply_where(x, p.solarise, solarise)
    return x


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
    box = boxes(view, uniform, H, W)
    strength, neutral, lowest = torch.tensor([view.jitter, (1, 1, 1, 0), (0, 0, 0, -1)])
    low = torch.maximum(neutral - strength, lowest)
    factors = low + (neutral + strength - low) * u["jitter"][:, 1:]
    factors = torch.where(u["jitter"][:, :1] < view.jitter_p, factors, neutral)
    sigma = view.blur_sigma[0] + (view.blur_sigma[1] - view.blur_sigma[0]) * u["blur"][:, 1]
    happens = {name: u[name][:, 0] < getattr(view, name) for name in ("flip", "grey", "blur", "solarise")}
    return Parameters(box=box, factors=factors, order=u["order"].argsort(dim=1), sigma=sigma, **happens)


def boxes(view: View, uniform: Tensor, H: int | Tensor, W: int | Tensor) -> Tensor:
    """The crops of a view, (N, 4) top, left, height, width, for its uniform numbers (N, 36).

    Images have H x W pixels, all the same or each its own, (N,). A crop is the first of ten tries that fits,
    or else the largest central box of these ratios: as by torchvision's `RandomResizedCrop.get_params`.
    """
    area, ratio, corner, _ = uniform.double().split([10, 10, 2, uniform.shape[1] - 22], dim=1)
    small, large, narrow, wide = *view.scale, *view.ratio
    H, W = (torch.as_tensor(side, dtype=torch.float64).expand(len(area)) for side in (H, W))
    image = torch.stack([H, W], dim=1)
    area, ratio = (H * W)[:, None] * (small + (large - small) * area), narrow * (wide / narrow) ** ratio
    tries = torch.stack([area / ratio, area * ratio], dim=2).sqrt().round()
    fits = ((tries > 0) & (tries <= image[:, None])).all(2)
    found = fits.any(1, keepdim=True)
    central = torch.minimum(image, torch.stack([W / narrow, H * wide], dim=1).round().clamp(min=1))
    size = torch.where(found, tries[torch.arange(len(tries)), fits.int().argmax(1)], central)
    room = image - size
    return torch.cat([torch.where(found, corner * (room + 1), room / 2).floor(), size], dim=1)


def check_draws(draws: object, n: int, V: int) -> None:
    """Raises ValueError if these are no draws of V views of n images."""
    wanted = (n, V, sum(NUMBERS.values()))
    if not isinstance(draws, Tensor) or draws.shape != wanted or draws.device.type != "cpu":
        got = f"{tuple(draws.shape)} on {draws.device}" if isinstance(draws, Tensor) else repr(draws)
        hint = "take draw(views, n, generator), sliced as the images are"
        raise ValueError(f"draws must be {wanted} (images, views, numbers) on the CPU, got {got}; {hint}")


def _output_side(images: Tensor, views: Sequence[View]) -> int:
    """The output's side. Raises ValueError if these images have no such views."""
    check_views(views)
    if len(sizes := {view.size for view in views}) > 1:
        raise ValueError(f"views must share one size, got {sizes}; apply_all gives one tensor for each size")
    shape, dtype = tuple(getattr(images, "shape", ())), getattr(images, "dtype", type(images))
    if dtype != torch.uint8 or len(shape) != 4 or shape[1] not in (1, 3) or 0 in shape:
        wanted = "(N, C, H, W) uint8, not empty, C = 1 or 3; floats in [0, 1]: (255 * images).round().byte()"
        raise ValueError(f"images must be {wanted}, got {shape} {dtype}")
    if views[0].size is None and shape[2] != shape[3]:
        raise ValueError(f"images must be square for views without a size, got {shape}; give View(size=...)")
    return views[0].size or shape[2]

"""Random views of every image of a batch at once, on any device.

`draw` takes uniform numbers for a batch from a CPU generator, one row for each image. `apply` turns them
into crops and colours.

torchvision's v2 transforms use one draw for a whole batch, so the views have their own code here.
Distributions and arithmetic are torchvision's for float images: RandomResizedCrop with antialiasing, flip,
ColorJitter, grey, blur and solarise, in this order. Two things differ: values are not rounded to 1/255
between operations, and the blur's kernel is SimCLR's, a tenth of the side. Photographs are cropped while
they are decoded (setclr.data.photographs).
"""

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from setclr.views import numbers, pixels
from setclr.views.numbers import check_draws, draw, parameters
from setclr.views.view import View, by_size, check_views

SHAPES = 64  # most shapes of images and views that one process compiles


def augment(images: Tensor, views: Sequence[View], generator: torch.Generator) -> Tensor:
    """`draw`, then `apply`: (N, C, H, W) uint8 -> (V, N, C, S, S) float32 in [0, 1]."""
    _output_side(images, views)  # checks the images before their length is taken
    return apply(images, views, draw(views, len(images), generator))


def apply(images: Tensor, views: Sequence[View], draws: Tensor, compiled: bool = False) -> Tensor:
    """The views that the draws describe, (V, N, C, S, S) float32 in [0, 1] on the images' device.

    `images` are (N, C, H, W) uint8 with C = 1 or 3. The V views share one `size`. `draws` (N, V, 36) come
    from `draw`. With `compiled`, torch.compile compiles the work on the device, once for every shape: the
    results are equal up to rounding, and a CPU takes less than half the time. Autocast changes nothing;
    TF32 changes values by about 1e-3. Raises ValueError for other images, views of two sizes, or draws of
    other views or images.
    """
    S = _output_side(images, views)
    check_draws(draws, len(images), len(views))
    N, C, H, W = images.shape
    p = parameters(views, draws, H, W)
    needed = numbers.cropping(views, p, H, W, S) | numbers.colours(views, p, C, S)
    return _run(images, len(views), needed, compiled).unflatten(0, (len(views), N))


def apply_all(images: Tensor, views: Sequence[View], draws: Tensor, compiled: bool = False) -> list[Tensor]:
    """`apply` for views of several sizes: (V_g, N, C, S_g, S_g) for each group of `by_size`, in its order."""
    groups = by_size(views)
    check_draws(draws, len(images), len(views))
    return [apply(images, [views[v] for v in group], draws[:, group], compiled) for group in groups]


def finish(
    crops: Sequence[Tensor], views: Sequence[View], draws: Tensor, compiled: bool = False
) -> list[Tensor]:
    """Flip, recolour and blur the crops of `Photographs.crops`, as `apply_all` does after cropping.

    Takes (V_g, N, C, S_g, S_g) uint8 for each group of `by_size`, on any device, and the draws (N, V, 36)
    that made them. Gives the views of `apply_all` on that device, up to the rounding of the crops to grey
    levels. Raises ValueError for crops or draws of other views or images.
    """
    groups, finished = by_size(views), []
    dims = [getattr(x, "ndim", 0) for x in crops] if isinstance(crops, tuple | list) else None
    if dims != [5] * len(groups):
        wanted = f"{len(groups)} tensors (V, N, C, S, S), one for each size"
        raise ValueError(f"crops must be {wanted}, got {type(crops).__name__} of dimensions {dims}")
    for x, group in zip(crops, groups):
        alike, (V, N, _, height, width) = [views[v] for v in group], x.shape
        side = _output_side(x.flatten(0, 1), alike)
        if (V, height, width) != (len(group), side, side):
            raise ValueError(f"crops must be {len(group)} views of {side} x {side} px, got {tuple(x.shape)}")
        check_draws(draws, N, len(views))
        finished.append(_uncropped(x.flatten(0, 1), alike, draws[:, group], compiled).view(x.shape))
    return finished


def recolour(images: Tensor, view: View, draws: Tensor, compiled: bool = False) -> Tensor:
    """`apply` for a view that does not crop: (N, C, H, W) uint8 of any sides -> (N, C, H, W) float32.

    Draws are (N, 1, 36). Raises ValueError if the view crops, blurs, turns or has a size.
    """
    if (view.size, view.scale, view.ratio, view.padding, view.blur, view.turn) != (
        None,
        (1, 1),
        (1, 1),
        0,
        0,
        0,
    ):
        raise ValueError(f"view must keep images whole and sharp, got {view}; use preset('matching')")
    check_draws(draws, len(images), 1)
    return _uncropped(images, [view], draws, compiled)


def _uncropped(x: Tensor, views: Sequence[View], draws: Tensor, compiled: bool) -> Tensor:
    """Mirror, recolour and blur (V * N, C, H, W) uint8, view after view."""
    p = parameters(views, draws, *x.shape[2:])
    needed = {"flips": p.flip.float().reshape(-1, 1, 1, 1)} | numbers.colours(views, p, *x.shape[1:3])
    return _run(x, len(views), needed, compiled)


def _run(x: Tensor, V: int, needed: dict[str, Tensor], compiled: bool) -> Tensor:
    """`_work` on the pixels `x` of V views, on their device, with the numbers it needs."""
    with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
        there = numbers.packed(needed, x.device)
        if not compiled:
            return _work(x, V, *there, apart=False)
        with torch._dynamo.config.patch(recompile_limit=SHAPES):
            return _compiled()(x, V, *there, apart=True)


def _work(x: Tensor, V: int, together: Tensor, layout: numbers.Layout, apart: bool) -> Tensor:
    needed = numbers.unpacked(together, layout)
    x = pixels.mirror(x / 255, needed["flips"]) if "flips" in needed else pixels.crop(x, needed, V)
    return pixels.recolour(x, needed, apart)


@cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(_work, fullgraph=True, dynamic=False)


def _output_side(images: Tensor, views: Sequence[View]) -> int:
    """The output's side in pixels. Raises ValueError if the images or the views do not fit."""
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

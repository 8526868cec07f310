"""`View`, the settings of one random view, and named sets of views, most of them from papers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from setclr import checks
from setclr.settings import Setting, one_of, real, whole


def _numbers(name: str, values: object, most: Sequence[float | None], **bounds: Any) -> tuple[float, ...]:
    """`values` as floats, one for each limit in `most`, within the bounds of checks.number. Raises ValueError
    otherwise, and where the first of two is the larger."""
    if not isinstance(values, tuple | list) or len(values) != len(most):
        raise ValueError(f"{name} must be {len(most)} numbers, got {values!r}")
    limits = enumerate(zip(values, most))
    floats = tuple(checks.number(f"{name}[{i}]", value, most=limit, **bounds) for i, (value, limit) in limits)
    if len(floats) == 2 and floats[0] > floats[1]:
        raise ValueError(f"{name} must be (lowest, highest), got {floats}; swap them")
    return floats


def several(default: tuple[float, ...], *most: float | None, **bounds: Any) -> Any:
    """As many numbers as there are limits."""
    return Setting(default, _numbers, most=most, **bounds)


def probability(default: float) -> Any:
    return real(default, "it is a probability", least=0, most=1)


@dataclass(frozen=True)
class View:
    """The settings of one random view. A value out of its range raises ValueError.

    Args:
        size: side of the output in pixels; None takes the input's side, and the input must then be square.
        scale: range of the crop's area as a fraction of the image's.
        ratio: range of the crop's width / height. If no such crop fits, the largest central one is taken:
            scale (1, 1) and ratio (1, 1) keep a square image whole, and the central square of others.
        interpolation: how the crop is resized: "bilinear" or "bicubic", both antialiased.
        padding: width of a black border that is added before cropping, as a share of the image's height.
        flip, jitter_p, grey, solarise: probabilities of mirroring left to right, of any jitter, of losing
            all colour, of inverting all values above 0.5.
        jitter: four strengths. The factors of brightness, contrast and saturation are uniform in 1 ± the
            first three (at least 0). The hue's turn is uniform in ± the last, in full turns, <= 0.5. Every
            image draws the order of the four.
        blur: probability of a Gaussian blur. Its deviation is uniform in `blur_sigma`, in output pixels.
        vertical, turn: probabilities of mirroring top to bottom, and then of exchanging rows and columns, for
            images that have no upright, as of satellites and tissue. With 0.5 for these and flip, all eight
            positions of a square are alike.
    """

    size: int | None = whole(None, 1, hint="it is the output's side; None keeps the input's")
    scale: tuple[float, float] = several((0.08, 1.0), 1, 1, above=0)
    ratio: tuple[float, float] = several((3 / 4, 4 / 3), None, None, above=0)
    interpolation: str = one_of("bilinear", ("bilinear", "bicubic"))
    padding: float = real(0.0, "4 px of 32 are 1/8", least=0, most=1)
    flip: float = probability(0.5)
    jitter: tuple[float, float, float, float] = several((0.8, 0.8, 0.8, 0.2), None, None, None, 0.5, least=0)
    jitter_p: float = probability(0.8)
    grey: float = probability(0.2)
    blur: float = probability(0.0)
    blur_sigma: tuple[float, float] = several((0.1, 2.0), None, None, above=0)
    solarise: float = probability(0.0)
    vertical: float = probability(0.0)
    turn: float = probability(0.0)


SIMCLR = (View(blur=0.5),) * 2
FLIP = View(scale=(1, 1), ratio=(1, 1), jitter=(0,) * 4, grey=0)  # the whole image
LOCAL_SCALE = (0.05, 0.14)  # range of a small crop's area; the full views of "groco" begin at 0.14
DINO = View(scale=(0.14, 1), jitter=(0.4, 0.4, 0.2, 0.1), blur=1.0)  # the first of its two global views
SECOND = replace(DINO, blur=0.1, solarise=0.2)
PRESETS: dict[str, tuple[View, ...]] = {
    "simclr": SIMCLR,
    "qare": (View(),) * 2,
    "groco": tuple(replace(view, interpolation="bicubic") for view in (DINO, SECOND)),
    "iot-cl": SIMCLR,  # Shi et al. 2023 follow SimCLR, blur included
    "mmcl": (View(jitter=(0.4, 0.4, 0.4, 0.1), blur=0.5),) * 2,
    # The QARe paper's matching of people; its "U[0, 0.1]" is read as a ColorJitter of 0.1.
    "matching": (View(scale=(1, 1), ratio=(1, 1), jitter=(0.1,) * 4, jitter_p=1, grey=0),) * 2,
    "moco-v3": tuple(replace(view, scale=(0.08, 1)) for view in (DINO, SECOND)),
    # Of the public program dkobak/simclr-cifar10.
    "simclr-cifar10": (View(scale=(0.2, 1), jitter=(0.4, 0.4, 0.4, 0.1), grey=0.1),) * 2,
    # For QARe's baselines: "flip" for Deep InfoMax, "padded" for labels, rotations and clusters.
    "flip": (FLIP,) * 2,
    "padded": (replace(FLIP, padding=1 / 8),) * 2,
    # From no paper: for small patches whose colour casts carry no information.
    "photo": (View(scale=(0.2, 1), jitter=(0.4, 0.4, 0.8, 0.5), jitter_p=0.5, grey=0.7),) * 2,
}


def preset(name: str, size: int | None = None, count: int | None = None) -> tuple[View, ...]:
    """The views of the preset `name`, with output side `size`; with `count`, that many, repeated in turn."""
    views = PRESETS[checks.choice("name", name, PRESETS)]
    count = len(views) if count is None else checks.integer("count", count, least=1)
    return tuple(replace(views[v % len(views)], size=size) for v in range(count))


def multi_crop(
    name: str, full: int = 2, local: int = 6, size: int | None = None, local_size: int | None = None
) -> tuple[View, ...]:
    """`full` views of the preset `name`, in turn, and then `local` small crops of LOCAL_SCALE of the area.

    GroCo's 2 x 224 + 6 x 96 px is multi_crop("groco", 2, 6, 224). In all else, small crops are DINO's
    (Caron et al. 2021): colours and flip of the first full view, blur with probability 0.5, no
    solarisation. Sides are in pixels. `size` None is the images' own side; `local_size` None is 3/7 of
    `size`, as 96 is of 224. Raises ValueError for an argument out of its range, or for small crops if
    neither side is given.
    """
    large = preset(name, size, checks.integer("full", full, least=1))
    if checks.integer("local", local, least=0) == 0:
        return large
    if local_size is None:
        if size is None:
            raise ValueError("local_size must be given where size is None, got None; size=224 gives 96")
        local_size = max(1, round(3 / 7 * size))
    return large + (replace(large[0], size=local_size, scale=LOCAL_SCALE, blur=0.5, solarise=0.0),) * local


def by_size(views: Sequence[View]) -> list[list[int]]:
    """The indices of the views, grouped by size; sizes come in the order of their first view."""
    check_views(views)
    groups: dict[int | None, list[int]] = {}
    for v, view in enumerate(views):
        groups.setdefault(view.size, []).append(v)
    return list(groups.values())


def check_views(views: object) -> None:
    """Raises ValueError unless these are a non-empty tuple or list of View."""
    if not isinstance(views, tuple | list) or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(f"views must be a tuple of View, got {views!r}; preset('simclr') is one")

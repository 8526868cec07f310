"""What a view does to an image, and the named sets of views of the papers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from setclr import checks

INTERPOLATIONS = ("bilinear", "bicubic")


def _numbers(name: str, values: object, count: int, **bounds: Any) -> tuple[float, ...]:
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
        interpolation: of the crop's pixels, "bilinear" or "bicubic", both antialiased.
        padding: width of a black border that an image gets before it is cropped, as a share of its height.
        flip, jitter_p, grey, solarise: probability of mirroring left and right, of jittering at all, of
            losing all colour, of inverting all values above 0.5.
        jitter: brightness, contrast and saturation factors are uniform in 1 ± these (at least 0), the hue's
            turn in ± the last, in full turns, <= 0.5. Every image draws the order of the four.
        blur: probability of a Gaussian blur, of a deviation uniform in `blur_sigma`, in output pixels.
    """

    size: int | None = None
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: str = "bilinear"
    padding: float = 0.0
    flip: float = 0.5
    jitter: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 0.2)
    jitter_p: float = 0.8
    grey: float = 0.2
    blur: float = 0.0
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    solarise: float = 0.0

    def __post_init__(self) -> None:
        if self.size is not None:
            checks.integer("size", self.size, least=1, hint="it is the output's side; None keeps the input's")
        checks.choice("interpolation", self.interpolation, INTERPOLATIONS)
        checks.number("padding", self.padding, least=0, most=1, hint="4 px of 32 are 1/8")
        for name in ("flip", "jitter_p", "grey", "blur", "solarise"):
            checks.number(name, getattr(self, name), least=0, most=1, hint="it is a probability")
        for name, most in (("scale", 1), ("ratio", None), ("blur_sigma", None)):
            low, high = _numbers(name, getattr(self, name), 2, above=0, most=most)
            if low > high:
                raise ValueError(f"{name} must be (lowest, highest), got {(low, high)}; swap them")
            object.__setattr__(self, name, (low, high))
        object.__setattr__(self, "jitter", _numbers("jitter", self.jitter, 4, least=0))
        checks.number("jitter[3]", self.jitter[3], most=0.5, hint="half a turn reaches every hue")

    def border(self, height: int) -> int:
        """The width in pixels of the border of an image of that height."""
        return round(self.padding * height)


SIMCLR = (View(blur=0.5),) * 2
FLIP = View(scale=(1, 1), ratio=(1, 1), jitter=(0,) * 4, grey=0)  # the whole image
LOCAL_SCALE = (0.05, 0.14)  # of a small crop's area; a full view of "groco" begins where it ends
DINO = View(scale=(0.14, 1), jitter=(0.4, 0.4, 0.2, 0.1), blur=1.0)  # the first of its two global views
SECOND = replace(DINO, blur=0.1, solarise=0.2)
PRESETS: dict[str, tuple[View, ...]] = {
    "simclr": SIMCLR,
    "qare": (View(),) * 2,
    "groco": tuple(replace(view, interpolation="bicubic") for view in (DINO, SECOND)),
    "iot-cl": SIMCLR,  # Shi et al. 2023 follow SimCLR, blur included
    "mmcl": (View(jitter=(0.4, 0.4, 0.4, 0.1), blur=0.5),) * 2,
    # The QARe paper's matching of people; "U[0, 0.1]" there is taken for a ColorJitter of 0.1.
    "matching": (View(scale=(1, 1), ratio=(1, 1), jitter=(0.1,) * 4, jitter_p=1, grey=0),) * 2,
    "moco-v3": tuple(replace(view, scale=(0.08, 1)) for view in (DINO, SECOND)),
    # Those of QARe's baselines: of Deep InfoMax, and of labels, rotations and clusters.
    "flip": (FLIP,) * 2,
    "padded": (replace(FLIP, padding=1 / 8),) * 2,
    # No paper's: for small patches whose colour casts mean nothing.
    "photo": (View(scale=(0.2, 1), jitter=(0.4, 0.4, 0.8, 0.5), jitter_p=0.5, grey=0.7),) * 2,
}


def preset(name: str, size: int | None = None, count: int | None = None) -> tuple[View, ...]:
    """The views `name` of PRESETS with output side `size`; with `count`, that many, in turn."""
    views = PRESETS[checks.choice("name", name, PRESETS)]
    count = len(views) if count is None else checks.integer("count", count, least=1)
    return tuple(replace(views[v % len(views)], size=size) for v in range(count))


def multi_crop(
    name: str, full: int = 2, local: int = 6, size: int | None = None, local_size: int | None = None
) -> tuple[View, ...]:
    """`full` views of the preset `name`, in turn, and then `local` small crops of LOCAL_SCALE of the area.

    GroCo's 2 x 224 + 6 x 96 px is multi_crop("groco", 2, 6, 224). Small crops are otherwise DINO's (Caron
    et al. 2021): colours and flip of the first full view, blur with probability 0.5, no solarisation.
    Sides are in pixels; `size` None is the images' own, `local_size` None is 3/7 of `size`, as 96 is of 224.
    Raises ValueError for an argument out of its range, or small crops with neither side given.
    """
    whole = preset(name, size, checks.integer("full", full, least=1))
    if checks.integer("local", local, least=0) == 0:
        return whole
    if local_size is None:
        if size is None:
            raise ValueError("local_size must be given where size is None, got None; size=224 gives 96")
        local_size = max(1, round(3 / 7 * size))
    return whole + (replace(whole[0], size=local_size, scale=LOCAL_SCALE, blur=0.5, solarise=0.0),) * local


def by_size(views: Sequence[View]) -> list[list[int]]:
    """The indices of the views of each size; sizes in the order of their first view."""
    check_views(views)
    groups: dict[int | None, list[int]] = {}
    for v, view in enumerate(views):
        groups.setdefault(view.size, []).append(v)
    return list(groups.values())


def check_views(views: object) -> None:
    """Raises ValueError unless these are a tuple or list of View, not empty."""
    if not isinstance(views, tuple | list) or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(f"views must be a tuple of View, got {views!r}; preset('simclr') is one")

"""Draws of GroCo's multi-crop from one photograph: where crops are cut, and what the encoder gets."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

    from setclr.views import View

FULL, LOCAL, SIDES, DRAWS = 2, 6, (224, 96), 8
AREAS = {"14 % (GroCo)": 0.14, "30 %": 0.3, "100 %": 1.0}  # the most that a small crop shows
SEEN: dict[str, dict[str, Any]] = {
    "as the encoder sees them": {},
    "as they were cut": {"jitter_p": 0.0, "grey": 0.0, "blur": 0.0, "solarise": 0.0},
}


class Crops(NamedTuple):
    """All draws of one choice of area and colours."""

    boxes: np.ndarray  # (DRAWS, 8, 4): top, left, height, width
    pixels: list[np.ndarray]  # of the full views and of the small crops: (V_g, DRAWS, S_g, S_g, 3) uint8


@lru_cache
def cat() -> "Tensor":
    import torch

    from setclr.data.patches import PHOTOGRAPHS

    return torch.from_numpy(PHOTOGRAPHS["cat"]().copy()).permute(2, 0, 1)


def views_of(area: str, colours: str) -> "tuple[View, ...]":
    """GroCo's 2 x 224 + 6 x 96 px, the small crops up to that area, with or without colours changed."""
    from setclr import views

    made = views.multi_crop("groco", FULL, LOCAL, *SIDES)
    small = replace(made[-1], scale=(views.LOCAL_SCALE[0], AREAS[area]))
    return tuple(replace(view, **SEEN[colours]) for view in (*made[:FULL], *[small] * LOCAL))


@lru_cache(maxsize=16)
def crops(photograph: "Tensor", area: str, colours: str) -> Crops:
    """All draws of the photograph's views; draw number k is that of generator seeded(k)."""
    import torch

    from setclr import views
    from setclr.seeding import seeded

    wanted = views_of(area, colours)
    draws = torch.cat([views.draw(wanted, 1, seeded(k)) for k in range(DRAWS)])
    boxes = views.boxes(wanted, draws, *photograph.shape[1:]).transpose(0, 1)
    groups = views.apply_all(photograph.expand(DRAWS, -1, -1, -1), wanted, draws)
    pixels = [(255 * x).round().byte().permute(0, 1, 3, 4, 2).numpy() for x in groups]
    return Crops(boxes.numpy(), pixels)

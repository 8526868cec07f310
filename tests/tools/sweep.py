"""What readers do to handles, and what a scene shows."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image

from setclr_course import panels
from setclr_course.kit.panel import Panel

# The panels without a point that can be dragged; test_every_panel.py holds the list to them.
STILL = {"anchor_list", "coupled_patches", "family_matrices", "graph_column", "matching_pools",
         "matching_rates", "multi_crop", "pair_curves", "step_shares", "video_column"}  # fmt: skip
TOUCHABLE = [name for name in panels.__all__ if name not in STILL]


def drag(panel: Panel, name: str, x: float, y: float) -> None:
    """A handle is dragged there."""
    panel.on_event({"event": "", "handle": name, "x": float(x), "y": float(y)})


def marks(shown: Any, plot: str, kind: str) -> list[dict]:
    """The marks of that kind in one of the plots of a panel, or of what `Panel.seen` gave."""
    (found,) = (one for one in shown.scene["plots"] if one["name"] == plot)
    return [mark for mark in found["marks"] if mark["kind"] == kind]


def points(mark: dict) -> np.ndarray:
    """(n, 2): where the pieces of a mark are."""
    return np.array([mark["x"], mark["y"]], float).T


def opened(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def slope(of: Callable[[torch.Tensor], torch.Tensor], at: Any) -> np.ndarray:
    """The gradient there of a function of the library, of a number for each row or of one for all."""
    x = torch.tensor(np.asarray(at), dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(of(x).sum(), x)[0].numpy()

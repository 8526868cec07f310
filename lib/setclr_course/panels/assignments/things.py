"""Things in a plane that sliders move, and things that two encoders see."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from setclr_course.kit.controls import Knob, slider

if TYPE_CHECKING:
    from torch import Tensor

    Features = dict[str, tuple[Tensor, Tensor]]  # by name: (n, D) of view 1 and (n, D) of view 2


def distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """From each of the points (n, 2) to each of those (m, 2)."""
    return np.hypot(*(one[:, None] - other).transpose(2, 0, 1))


def places(what: str, starts: Mapping[str, Sequence[float]], wide: float, tall: float) -> dict[str, Knob]:
    """Controls "cat x" and "cat y" for each thing, from −wide to wide and from −tall to tall; `what` has {}
    for its name."""
    found: dict[str, Knob] = {}
    for name, (x, y) in starts.items():
        found[f"{name} x"] = slider(f"{what.format(name)}, to the right", x, -wide, wide, 0.05)
        found[f"{name} y"] = slider(f"{what.format(name)}, up", y, -tall, tall, 0.05)
    return found


def placed(values: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    """(n, 2): where `places` are."""
    return np.array([(values[f"{name} x"], values[f"{name} y"]) for name in names])


def cosines(a: "Tensor", b: "Tensor") -> np.ndarray:
    """Of features (n, D) and (m, D): (n, m)."""
    one, two = (x.double().numpy(force=True) for x in (a, b))
    one, two = (x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12) for x in (one, two))
    return one @ two.T


def given(
    features: "Features | None", patches: "Tensor | None", least: int, side: int
) -> "tuple[Features, np.ndarray]":
    """Features and pictures (2, n, side, side, 3) of things seen twice, made up where there are none.

    Raises ValueError where there are fewer than `least`.
    """
    from setclr_course.kit.tiles import thumbnails

    if features is None or patches is None:
        features, patches = drawn_example()
    if patches.shape[1] < least:
        raise ValueError(f"patches must show {least} things or more, got {patches.shape[1]}")
    return features, np.stack([thumbnails(view, side) for view in patches])


def drawn_example(n: int = 256) -> "tuple[Features, Tensor]":
    """Things of 12 numbers each, seen twice with noise: as patches of colour and by two encoders."""
    import torch
    from torch.nn.functional import interpolate

    chance = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=chance)

    things = normal(n, 12)
    views = {"noisy encoder": 0.75, "better encoder": 0.5}
    features = {name: (things + s * normal(n, 12), things + s * normal(n, 12)) for name, s in views.items()}
    tint = 1 + 0.25 * normal(2, n, 3, 1, 1)
    blobs = interpolate(things.view(n, 3, 2, 2), (32, 32), mode="bicubic")
    return features, (128 + 50 * tint * blobs).clamp(0, 255).byte()

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
    """Features and pictures (2, n, side, side, 3) of things seen twice; without them, of a hundred patches
    as their pixels and an untrained network see them.

    Raises ValueError where there are fewer than `least`.
    """
    from setclr_course.kit.few_patches import augmented_pair, few_patches, unlearned
    from setclr_course.kit.tiles import thumbnails

    if features is None or patches is None:
        patches = augmented_pair(few_patches().images[:])
        seen = unlearned(patches.flatten(0, 1))
        features = {name: (x[: len(x) // 2], x[len(x) // 2 :]) for name, x in seen.items()}
    if patches.shape[1] < least:
        raise ValueError(f"patches must show {least} things or more, got {patches.shape[1]}")
    return features, np.stack([thumbnails(view, side) for view in patches])

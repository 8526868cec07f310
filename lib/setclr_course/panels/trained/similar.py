"""Which patch an encoder finds most like another."""

import numpy as np
from numpy.typing import ArrayLike

ALLOWED = ("all", "without overlap")


def nearest_patches(features: ArrayLike, shared: np.ndarray) -> dict[str, np.ndarray]:
    """The most similar other patch of each, of all and of those that share no pixel with it."""
    x = np.asarray(features, np.float32)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2)
    return {name: (similarity - taken).argmax(1) for name, taken in zip(ALLOWED, (0, 3 * (shared > 0)))}

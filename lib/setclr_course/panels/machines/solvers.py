"""The ways to a machine's weights (MMCL, proposition 1)."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from setclr_course.kit.inner import dual


def delta(K: np.ndarray, ridge: float) -> np.ndarray:
    """Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ (n, n) of a kernel (n + 1, n + 1), the positive first."""
    k = K[1:, 0]
    return K[0, 0] + K[1:, 1:] + ridge * np.eye(len(k)) - k[:, None] - k


def weights(K: np.ndarray, C: float, ridge: float, solver: str) -> np.ndarray:
    """The weights (n,) of the negatives; pgd stops where it comes to rest."""
    if solver == "exact":
        return dual(K, C, ridge)
    D = delta(K, ridge)
    if solver == "inv":
        return np.linalg.solve(D, np.full(len(D), 2.0)).clip(0, C)
    path = descent(D, C, 1 / np.abs(np.linalg.eigvalsh(D)).max(), momentum=True)
    for _, (old, new) in zip(range(1000), pairwise(path)):
        if np.abs(new - old).max() < 1e-8 * (1 + new.max()):
            break
    return new[0]


def descent(D: np.ndarray, C: np.ndarray | float, step: float, momentum: bool) -> Iterator[np.ndarray]:
    """α ← clip(α − η (Δα − 2), 0, C) from 0, round by round: (B, n) for bounds C (B, 1).

    With momentum it steps from a point ahead, and forgets the momentum where that points uphill.
    """
    C = np.reshape(C, (-1, 1))
    alpha = ahead = np.zeros((len(C), len(D)))
    t = np.ones_like(C, float)
    while True:
        new = np.clip(ahead - step * (ahead @ D - 2), 0, C)
        change = new - alpha
        uphill = ((ahead - new) * change).sum(1, keepdims=True) > 0
        t_next = np.where(uphill, 1, (1 + np.sqrt(1 + 4 * t * t)) / 2)
        ahead = new + np.where(uphill, 0, (t - 1) / t_next) * change if momentum else new
        alpha, t = new, t_next
        yield alpha

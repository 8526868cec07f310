"""What the ways to a machine's weights have in common (MMCL, proposition 1)."""

import numpy as np


def delta(K: np.ndarray, ridge: float) -> np.ndarray:
    """Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ (n, n) of a kernel (n + 1, n + 1), the positive first."""
    k = K[1:, 0]
    return K[0, 0] + K[1:, 1:] + ridge * np.eye(len(k)) - k[:, None] - k


def objective(D: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """g(α) = ½ αᵀΔα − 2·1ᵀα of α (..., n): smaller is better, and 0 is what weights of 0 get."""
    return ((0.5 * alpha @ D - 2) * alpha).sum(-1)


def unbounded(D: np.ndarray) -> np.ndarray:
    """The weights (n,) that minimise g where they may be anything."""
    return np.linalg.solve(D, np.full(len(D), 2.0))

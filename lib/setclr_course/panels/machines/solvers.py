"""What the ways to a machine's weights have in common (MMCL, proposition 1)."""

import numpy as np


def objective(D: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """g(α) = ½ αᵀΔα − 2·1ᵀα of α (..., n): smaller is better, and 0 is what weights of 0 get."""
    return ((0.5 * alpha @ D - 2) * alpha).sum(-1)


def unbounded(D: np.ndarray) -> np.ndarray:
    """The weights (n,) that minimise g where they may be anything."""
    return np.linalg.solve(D, np.full(len(D), 2.0))

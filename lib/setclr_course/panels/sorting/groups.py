"""One anchor's negatives and two positives under GroCo and InfoNCE: losses, and where they push."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import top_probability

K = 2  # positives, the last of all similarities
STEP = 1e-6  # of the central differences


class Sorting(NamedTuple):
    """What GroCo makes of one anchor's list of N negatives and K positives."""

    chance: np.ndarray  # (N + K,): of each to get one of the top K places
    loss: float
    push: np.ndarray  # (N + K,): −∂loss/∂similarity


def groco(s: np.ndarray, beta: float, preorder: bool) -> Sorting:
    """GroCo of the similarities s, the negatives first (GroCo, eq. 6)."""
    points = np.arange(len(s))  # which similarity stands at each place of the list
    if preorder:
        points = np.lexsort([s, points >= len(s) - K])
    aside = STEP * np.eye(len(s))
    higher, lower = cross_entropy(s[points] + np.stack([aside, -aside]), beta)
    places = points.argsort()
    chance = top_probability(s[points], K, beta)[places]
    return Sorting(chance, float(cross_entropy(s[points], beta)), ((lower - higher) / (2 * STEP))[places])


def cross_entropy(x: np.ndarray, beta: float) -> np.ndarray:
    """Between p and the truth of lists x (..., n), which is that the last K are at the top."""
    p = top_probability(x, K, beta)
    right = np.concatenate([1 - p[..., :-K], p[..., -K:]], -1)
    return -np.log(right.clip(1e-12, 1)).mean(-1)


def info_nce(s: np.ndarray, temperature: float) -> np.ndarray:
    """Where InfoNCE pushes the similarities, its mean over the positives (GroCo, eq. 11): −∂loss/∂s."""
    powers = np.exp((s - s.max()) / temperature)
    whole = powers[:-K].sum() + powers[-K:]  # (K,): of each positive and all negatives
    return np.concatenate([-powers[:-K] * (1 / whole).sum(), 1 - powers[-K:] / whole]) / (K * temperature)

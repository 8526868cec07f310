"""One anchor's negatives and two positives under GroCo and InfoNCE: losses, and where they push."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import sort_softly, top_probability

K = 2  # positives, the last of all similarities
STEP = 1e-6  # of the central differences


class Sorting(NamedTuple):
    """What GroCo makes of one anchor's list of N negatives and K positives, in the list's order."""

    points: np.ndarray  # (N + K,): which similarities are in the list
    P: np.ndarray  # (N + K, N + K), and
    p: np.ndarray  # (N + K,), the sums of its last K rows
    loss: float
    push: np.ndarray  # −∂loss/∂similarity of every point, 0 outside the list


def groco(s: np.ndarray, beta: float, preorder: bool, negatives: int | None = None) -> Sorting:
    """GroCo of the similarities s, with so many of the hardest negatives (GroCo, eq. 6)."""
    hardest = s[:-K].argsort(kind="stable")[-(negatives or len(s)) :]
    positives = s[-K:].argsort(kind="stable") + len(s) - K
    points = np.concatenate([hardest, positives] if preorder else [np.sort(hardest), np.sort(positives)])
    aside = STEP * np.eye(len(points))
    higher, lower = cross_entropy(s[points] + np.stack([aside, -aside]), beta)
    push = np.zeros(len(s))
    push[points] = (lower - higher) / (2 * STEP)
    P = sort_softly(s[points], beta)[1]
    return Sorting(points, P, P[-K:].sum(0), float(cross_entropy(s[points], beta)), push)


def cross_entropy(x: np.ndarray, beta: float) -> np.ndarray:
    """Between p and the truth of lists x (..., n), which is that the last K are at the top."""
    p = top_probability(x, K, beta)
    right = np.concatenate([1 - p[..., :-K], p[..., -K:]], -1)
    return -np.log(right.clip(1e-12, 1)).mean(-1)


def info_nce(s: np.ndarray, temperature: float) -> tuple[float, np.ndarray]:
    """InfoNCE of the similarities, the mean over the positives (GroCo, eq. 11), and −∂loss/∂similarity."""
    powers = np.exp((s - s.max()) / temperature)
    whole = powers[:-K].sum() + powers[-K:]  # (K,): of each positive and all negatives
    push = np.concatenate([-powers[:-K] * (1 / whole).sum(), 1 - powers[-K:] / whole]) / (K * temperature)
    return float(np.log(whole / powers[-K:]).mean()), push

"""Descent on InfoNCE + β·QARe for points on a circle, for all weights at once (QARe, eq. 7 and 17)."""

from functools import cache
from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import softmax

STEPS, RATE, TEMPERATURE, GRID = 80, 0.5, 0.5, 0.125
BETAS = np.arange(0, 4 + GRID, GRID)  # the paper's grid, which ends at 1.875, and on
START = [  # radians (2, N): things crowded on one side of the circle, their two views mixed up
    [3.003644, 2.517443, 1.17073, 2.512439, 1.708577, 2.438901],
    [2.436634, 2.635604, 1.012361, 2.74916, 1.72222, 2.524886],
]
N = len(START[0])


class Path(NamedTuple):
    """The descents for all weights, step by step."""

    angles: np.ndarray  # (STEPS + 1, β, 2, N)
    within: np.ndarray  # (STEPS + 1, β): the mean cosine within a view


def info_nce_slope(angles: np.ndarray) -> np.ndarray:
    """The slope of InfoNCE(0.5) of each batch by its angles (..., 2, N)."""
    flat = angles.reshape(*angles.shape[:-2], -1)
    apart, every = flat[..., :, None] - flat[..., None, :], np.arange(flat.shape[-1])
    own = np.eye(len(every))
    shares = softmax(np.where(own, -np.inf, np.cos(apart)), TEMPERATURE)
    pull = shares - own[np.roll(every, len(every) // 2)]
    slope = -((pull + pull.swapaxes(-1, -2)) * np.sin(apart)).sum(-1) / TEMPERATURE / len(every)
    return slope.reshape(angles.shape)


def qare_slope(angles: np.ndarray, similarity: str) -> np.ndarray:
    """That of QARe. Two points are 2·|sin(half their angle)| apart."""
    apart = angles[..., :, None] - angles[..., None, :]
    if similarity == "cosine":
        tables, slopes, sign = 1 + np.cos(apart), -np.sin(apart), 1
    else:
        half = np.sin(apart / 2)
        tables, slopes, sign = 2 * abs(half), np.sign(half) * np.cos(apart / 2), -1
    values, vectors = np.linalg.eigh(tables)
    other = sign * values[..., ::-1, ::sign]  # of the other view, which multiply these
    pull = (vectors * other[..., None, :]) @ vectors.swapaxes(-1, -2)
    return 2 * (pull * slopes).sum(-1) / N**2


@cache
def path(similarity: str) -> Path:
    angles = [np.broadcast_to(START, (len(BETAS), 2, N))]
    for _ in range(STEPS):
        slope = info_nce_slope(angles[-1]) + BETAS[:, None, None] * qare_slope(angles[-1], similarity)
        angles.append(angles[-1] - RATE * slope)
    found = np.stack(angles)
    sums = np.abs(np.exp(1j * found).sum(-1)) ** 2  # N + the cosines between different points
    return Path(found, ((sums - N) / (N * (N - 1))).mean(-1))

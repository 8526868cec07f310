"""Ten losses of two views in numpy: what each gives every pair, and its slope.

Each takes the cosines S (M, M) of all points, view 1 first, and one parameter. A test holds them to the
library's losses, which need torch.
"""

from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import dual, softmax, sparsemax, top_probability

SMALL = 1e-5  # by how much a cosine is moved to find a slope


class Answer(NamedTuple):
    shares: np.ndarray  # (M, M): the assignment, a row for each anchor
    slope: np.ndarray  # (M, M): of the loss by the cosine of anchor (row) and candidate (column)
    held: bool = False  # the candidates are constants: only the anchor feels the slope


def gradient(answer: Answer, x: np.ndarray) -> np.ndarray:
    """The loss's gradient (M, E) by points x (M, E) of the unit sphere, along the sphere."""
    slope = answer.slope if answer.held else answer.slope + answer.slope.T
    found = slope @ x
    return found - (found * x).sum(1, keepdims=True) * x


def partners(S: np.ndarray) -> np.ndarray:
    """(M, M): 1 where anchor and candidate are views of one image."""
    M = len(S)
    return np.eye(M, k=M // 2) + np.eye(M, k=-M // 2)


def others(S: np.ndarray) -> np.ndarray:
    """The cosines, with −∞ for the point itself."""
    return np.where(np.eye(len(S)) == 1, -np.inf, S)


def info_nce(S: np.ndarray, tau: float) -> Answer:
    shares = softmax(others(S), tau)
    return Answer(shares, (shares - partners(S)) / (tau * len(S)))


def sparse_clr(S: np.ndarray, margin: float) -> Answer:
    shares = sparsemax(others(S) - margin * partners(S))
    return Answer(shares, (shares - partners(S)) / len(S))


def nt_logistic(S: np.ndarray, tau: float) -> Answer:
    chances = (1 - np.eye(len(S))) / (1 + np.exp(-S / tau))
    slope = np.where(partners(S), chances - 1, chances / (len(S) - 2))
    return Answer(chances, slope / (tau * len(S)))


def triplet(S: np.ndarray, margin: float) -> Answer:
    true, far = partners(S), np.sqrt((2 - 2 * S).clip(0))
    hardest = np.eye(len(S))[np.where(true, -np.inf, others(S)).argmax(1)]
    wrong = (true * far).sum(1) - (hardest * far).sum(1) + margin > 0
    slope = wrong[:, None] * (hardest - true) / np.where(far > 0, far, np.inf)
    return Answer(hardest, slope / len(S))


def groco(S: np.ndarray, beta: float, negatives: int) -> Answer:
    """The hardest negatives in ascending order, then the positive, are sorted by soft swaps. Of two that are
    as near, the first counts as nearer; in the library rounding decides."""
    true = partners(S)
    first = np.where(true, np.inf, -others(S)).round(9).argsort(1, kind="stable")[:, :negatives]
    listed = np.column_stack([first[:, ::-1], true.argmax(1)])
    x, moved = np.take_along_axis(S, listed, 1), SMALL * np.eye(negatives + 1)
    above, below = np.split(wrong_order(x[:, None] + np.concatenate([moved, -moved]), beta), 2, axis=1)
    shares, slope = np.zeros_like(S), np.zeros_like(S)
    np.put_along_axis(shares, listed, top_probability(x, 1, beta), 1)
    np.put_along_axis(slope, listed, (above - below) / (2 * SMALL * len(S)), 1)
    return Answer(shares, slope, held=True)


def wrong_order(x: np.ndarray, beta: float) -> np.ndarray:
    """How surprised the network is, on average over a list x (..., n), that the last does not come first."""
    chance = top_probability(x, 1, beta)
    chance[..., :-1] = 1 - chance[..., :-1]
    return -np.log(chance).mean(-1)


def iot_both(S: np.ndarray, epsilon: float, rounds: int) -> Answer:
    """Sinkhorn's rounds: columns sum to 1, then rows. The slope goes back through all of them."""
    T, steps = np.exp((others(S) - 1) / epsilon), []
    for _ in range(rounds):
        columns = T / T.sum(0)
        T = columns / columns.sum(1, keepdims=True)
        steps.append((columns, T))
    slope, row, column = -partners(S), -np.ones(len(S)), -np.ones(len(S))
    for columns, rows in reversed(steps):
        slope = slope - rows * row[:, None]
        column = column - (rows * row[:, None]).sum(0)
        slope = slope - columns * column
        row, column = -(columns * column).sum(1), np.zeros(len(S))
    return Answer(T, slope / (epsilon * len(S)))


def iot_total(S: np.ndarray, epsilon: float) -> Answer:
    shares = len(S) * softmax(others(S).ravel(), epsilon).reshape(S.shape)
    return Answer(shares, (shares - partners(S)) / (epsilon * len(S)))


def linear_assignment(S: np.ndarray, tau: float) -> Answer:
    """All matchings of view 1 with view 2, weighed by how near their pairs are."""
    n = len(S) // 2
    every = matchings(n)
    block = (softmax(every @ S[:n, n:].ravel(), tau) @ every).reshape(n, n)
    nobody = np.zeros((n, n))
    shares = np.block([[nobody, block], [block.T, nobody]])
    return Answer(shares, (shares - partners(S)) / len(S))


@cache
def matchings(n: int) -> np.ndarray:
    """(n!, n²): every one-to-one matching, as a flat table of 0 and 1."""
    return np.eye(n)[list(permutations(range(n)))].reshape(-1, n * n)


def mmcl(S: np.ndarray, bandwidth: float) -> Answer:
    """A machine for each point, against all but its image. The weights are constants."""
    K, true, alpha = np.exp((S - 1) / bandwidth), partners(S), np.zeros_like(S)
    negatives = np.nonzero(true + np.eye(len(S)) == 0)[1].reshape(len(S), -1)
    pools = np.column_stack([range(len(S)), negatives])
    np.put_along_axis(alpha, negatives, dual(K[pools[:, :, None], pools[:, None]], C=100), 1)
    weight = true @ alpha - true * (true @ alpha).sum(1, keepdims=True)
    return Answer(alpha, weight * K / (bandwidth * len(S)))


def qare(S: np.ndarray, _: float) -> Answer:
    """The eigenvalues of both views' tables 1 + S, multiplied in order. It matches nobody."""
    n, slope = len(S) // 2, np.zeros_like(S)
    values, vectors = np.linalg.eigh(1 + np.stack([S[:n, :n], S[n:, n:]]))
    for view, part in enumerate((slope[:n, :n], slope[n:, n:])):
        part[:] = vectors[view] * values[1 - view] @ vectors[view].T / n**2
    return Answer(np.zeros_like(S), slope)

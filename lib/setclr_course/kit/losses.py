"""Eleven losses in numpy: their values, what each gives every pair, and its slope.

Each takes the cosines S (M, M) of all points, view by view, and `true` (M, M), 1 where one is another's
positive; then its parameters. A test holds them to the library's losses, which need torch.
"""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import dual, softmax, sparsemax, top_probability

SMALL = 1e-30  # by how much a cosine is moved to find a slope, into the imaginary: nothing is rounded away


class Answer(NamedTuple):
    shares: np.ndarray  # (M, M): the assignment, a row for each anchor
    slope: np.ndarray  # (M, M): of the loss by the cosine of anchor (row) and candidate (column)
    value: float = np.nan
    held: bool = False  # the candidates are constants: only the anchor feels the slope


def gradient(answer: Answer, x: np.ndarray) -> np.ndarray:
    """The loss's gradient (M, E) by points x (M, E) of the unit sphere, along the sphere."""
    slope = answer.slope if answer.held else answer.slope + answer.slope.T
    found = slope @ x
    return found - (found * x).sum(1, keepdims=True) * x


def partners(S: np.ndarray, views: int = 2) -> np.ndarray:
    """(M, M): 1 where anchor and candidate are views of one image."""
    return np.tile(np.eye(len(S) // views), (views, views)) - np.eye(len(S))


def others(S: np.ndarray) -> np.ndarray:
    """The cosines, with −∞ for the point itself."""
    return np.where(np.eye(len(S)) == 1, -np.inf, S)


def chosen(S: np.ndarray, true: np.ndarray, by: float, margin: float, choice: Callable) -> Answer:
    """Each positive, less the margin, stands alone among the anchor's negatives: `choice` gives shares and a
    value to such lists (M, K, M), divided `by`."""
    own = np.argsort(-true, 1, kind="stable")[:, : int(true[0].sum())]
    lists = np.repeat(np.where(true == 1, -np.inf, others(S))[:, None], own.shape[1], 1)
    near = np.take_along_axis(S, own, 1) - margin
    np.put_along_axis(lists, own[..., None], near[..., None], 2)
    shares, most = choice(lists / by)
    mean = shares.mean(1)
    return Answer(mean, (mean - true / own.shape[1]) / (by * len(S)), float((most - near / by).mean()))


def info_nce(S: np.ndarray, true: np.ndarray, tau: float) -> Answer:
    return chosen(S, true, tau, 0, lambda x: (softmax(x), np.logaddexp.reduce(x, -1)))


def sparse_clr(S: np.ndarray, true: np.ndarray, margin: float) -> Answer:
    def choice(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = sparsemax(x)
        return p, (np.where(p > 0, x, 0) * p - p * p / 2).sum(-1) + 0.5

    return chosen(S, true, 1, margin, choice)


def sup_con(S: np.ndarray, true: np.ndarray, tau: float) -> Answer:
    """All positives stay among the candidates."""
    aim, x = true / true.sum(1, keepdims=True), others(S) / tau
    shares = softmax(x)
    value = np.logaddexp.reduce(x, 1).mean() - (aim * S).sum(1).mean() / tau
    return Answer(shares, (shares - aim) / (tau * len(S)), float(value))


def nt_logistic(S: np.ndarray, true: np.ndarray, tau: float) -> Answer:
    own = true.sum(1, keepdims=True)
    weight = np.where(true, 1 / own, (1 - np.eye(len(S))) / (len(S) - 1 - own)) / len(S)
    chances = (1 - np.eye(len(S))) / (1 + np.exp(-S / tau))
    value = (weight * np.logaddexp(0, np.where(true, -S, S) / tau)).sum()
    return Answer(chances, weight * (chances - true) / tau, float(value))


def triplet(S: np.ndarray, true: np.ndarray, margin: float) -> Answer:
    """The farthest positive and the nearest negative."""
    far = np.sqrt((2 - 2 * S).clip(0))
    hardest = np.eye(len(S))[np.where(true, -np.inf, others(S)).argmax(1)]
    own = np.eye(len(S))[np.where(true, S, np.inf).argmin(1)]
    gap = ((own - hardest) * far).sum(1) + margin
    slope = (gap > 0)[:, None] * (hardest - own) / np.where(far > 0, far, np.inf)
    return Answer(hardest, slope / len(S), float(gap.clip(0).mean()))


def groco(S: np.ndarray, true: np.ndarray, beta: float, negatives: int) -> Answer:
    """The hardest negatives in ascending order, then the positives, are sorted by soft swaps. Of two that are
    as near, the first counts as nearer; in the library rounding decides."""
    M, top = len(S), int(true[0].sum())
    first = np.where(true + np.eye(M), np.inf, -S).round(9).argsort(1, kind="stable")
    own = np.where(true, S, np.inf).round(9).argsort(1, kind="stable")[:, :top]
    listed = np.column_stack([first[:, : min(negatives, M - 1 - top)][:, ::-1], own])
    x, moved = np.take_along_axis(S, listed, 1), 1j * SMALL * np.eye(listed.shape[1])
    surprise = wrong_order(x[:, None] + moved, beta, top)
    shares, slope = np.zeros_like(S), np.zeros_like(S)
    np.put_along_axis(shares, listed, top_probability(x, top, beta), 1)
    np.put_along_axis(slope, listed, surprise.imag / (SMALL * M), 1)
    return Answer(shares, slope, float(surprise.real[:, 0].mean()), held=True)


def wrong_order(x: np.ndarray, beta: float, top: int) -> np.ndarray:
    """How surprised the network is, on average over a list x (..., n), that the last do not come first."""
    chance = top_probability(x, top, beta)
    chance[..., :-top] = 1 - chance[..., :-top]
    return -np.log(chance).mean(-1)


def iot_both(S: np.ndarray, true: np.ndarray, epsilon: float, rounds: int) -> Answer:
    """Sinkhorn's rounds: columns sum to 1, then rows. The slope goes back through all of them."""
    aim = true / true.sum(1, keepdims=True)
    T, steps = np.exp((others(S) - 1) / epsilon), []
    for _ in range(rounds):
        columns = T / T.sum(0)
        T = columns / columns.sum(1, keepdims=True)
        steps.append((columns, T))
    slope, row, column = -aim, -np.ones(len(S)), -aim.sum(0)
    for columns, rows in reversed(steps):
        slope = slope - rows * row[:, None]
        column = column - (rows * row[:, None]).sum(0)
        slope = slope - columns * column
        row, column = -(columns * column).sum(1), np.zeros(len(S))
    value = -(aim * np.log(np.where(true, T, 1))).sum(1).mean()
    return Answer(T, slope / (epsilon * len(S)), float(value))


def iot_total(S: np.ndarray, true: np.ndarray, epsilon: float) -> Answer:
    shares = len(S) * softmax(others(S).ravel(), epsilon).reshape(S.shape)
    return Answer(shares, (shares - true) / (epsilon * len(S)))


def linear_assignment(S: np.ndarray, true: np.ndarray, tau: float) -> Answer:
    """All matchings of view 1 with view 2, weighed by how near their pairs are."""
    n = len(S) // 2
    every = matchings(n)
    return matched(true, (softmax(every @ S[:n, n:].ravel(), tau) @ every).reshape(n, n))


def cheapest_assignment(S: np.ndarray, true: np.ndarray, margin: float) -> Answer:
    """The shortest matching of view 1 with view 2 alone, where true pairs are farther by the margin."""
    from scipy.optimize import linear_sum_assignment  # here, so that other panels need not wait for it

    n = len(S) // 2
    cost = margin * np.eye(n) - S[:n, n:]
    row, column = linear_sum_assignment(cost)
    value = (np.trace(cost) - cost[row, column].sum()) / n
    return matched(true, np.eye(n)[column])._replace(value=float(value))


def matched(true: np.ndarray, block: np.ndarray) -> Answer:
    """The shares (n, n) that view 1 gives to view 2, against the true matching."""
    nobody = np.zeros_like(block)
    shares = np.block([[nobody, block], [block.T, nobody]])
    return Answer(shares, (shares - true) / len(true))


@cache
def matchings(n: int) -> np.ndarray:
    """(n!, n²): every one-to-one matching, as a flat table of 0 and 1."""
    return np.eye(n)[list(permutations(range(n)))].reshape(-1, n * n)


def mmcl(S: np.ndarray, true: np.ndarray, bandwidth: float, C: float = 100, kernel: str = "rbf") -> Answer:
    """A machine for each point of two views, against all but its image. The weights are constants."""
    K, alpha = S if kernel == "linear" else np.exp((S - 1) / bandwidth), np.zeros_like(S)
    negatives = np.nonzero(true + np.eye(len(S)) == 0)[1].reshape(len(S), -1)
    pools = np.column_stack([range(len(S)), negatives])
    np.put_along_axis(alpha, negatives, dual(K[pools[:, :, None], pools[:, None]], C=C), 1)
    weight = (true @ alpha - true * alpha.sum(1)) / len(S)
    return Answer(alpha, weight if kernel == "linear" else weight * K / bandwidth, float((weight * K).sum()))


def qare(S: np.ndarray, true: np.ndarray, _: float = 0) -> Answer:
    """The eigenvalues of the views' tables 1 + S, multiplied in order. It matches nobody."""
    views, slope = 1 + int(true[0].sum()), np.zeros_like(S)
    n = len(S) // views
    parts = [slice(n * view, n * view + n) for view in range(views)]
    values, vectors = np.linalg.eigh(1 + np.stack([S[part, part] for part in parts]))
    rest, by = values.sum(0) - values, n**2 * views * (views - 1) / 2
    for part, each, of in zip(parts, rest, vectors):
        slope[part, part] = of * each @ of.T / by
    return Answer(np.zeros_like(S), slope, float((values * rest).sum() / (2 * by)))

"""The inner problems in a few lines of numpy, for what a panel computes while it is dragged.

The library's own forms (`setclr.inner`) are batched, differentiable and need torch; a test holds these to
them.
"""

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike


def softmax(x: ArrayLike, temperature: float = 1.0, axis: int = -1) -> np.ndarray:
    """Shares exp(x / τ), divided by their sum; −inf gets nothing."""
    x = np.asarray(x, float) / temperature
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def level(x: ArrayLike, total: float = 1.0) -> np.ndarray:
    """The level t (...) above which the parts max(0, x − t) of x (..., n) add up to `total`."""
    ordered = -np.sort(-np.asarray(x, float), axis=-1)
    return ((ordered.cumsum(-1) - total) / np.arange(1, ordered.shape[-1] + 1)).max(-1)


def sparsemax(x: ArrayLike) -> np.ndarray:
    """The point of the simplex nearest to x (..., n): what stands above the level (QARe, eq. 15)."""
    x = np.asarray(x, float)
    return (x - level(x)[..., None]).clip(0)


def swapped(excess: ArrayLike) -> np.ndarray:
    """The probability of a swap where the first is larger by so much (GroCo, eq. 3)."""
    return np.arctan(excess) / np.pi + 0.5


def sort_softly(x: ArrayLike, beta: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """The odd-even network on x (..., n): sorted values and P (..., n, n), values = P x (GroCo, eq. 2)."""
    x = np.asarray(x) * 1.0  # also of complex numbers, which losses.groco has
    n = x.shape[-1]
    P = np.broadcast_to(np.eye(n), (*x.shape, n))
    both = np.concatenate([x[..., None], P], -1)  # the values, then P: each wire is a row
    for layer in range(n):
        upper, lower = both[..., layer % 2 : n - 1 : 2, :], both[..., layer % 2 + 1 :: 2, :]
        moved = swapped(beta * (upper[..., :1] - lower[..., :1])) * (lower - upper)
        upper += moved
        lower -= moved
    return both[..., 0], both[..., 1:]


def top_probability(x: ArrayLike, top: int, beta: float = 1.0) -> np.ndarray:
    """How likely each of x (..., n) lands among the `top` largest (GroCo, eq. 6)."""
    return sort_softly(x, beta)[1][..., -top:, :].sum(-2)


def scaled(cost: ArrayLike, epsilon: float, presses: int, first: str = "columns") -> np.ndarray:
    """Shares exp(−cost / ε) (n, m) whose total is right, then scaled in turn so often: each press makes the
    rows, or the columns, sum to 1 (IOT-CL, eq. 21 and 22)."""
    T = -np.asarray(cost, float) / epsilon
    T = T - np.logaddexp.reduce(T, None) + np.log(len(T))
    turn = ("columns", "rows").index(first)
    for press in range(presses):
        T = T - np.logaddexp.reduce(T, (turn + press) % 2, keepdims=True)
    return np.exp(T)


def delta(K: ArrayLike, ridge: float) -> np.ndarray:
    """Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ (..., n, n) of kernels (..., n + 1, n + 1), the positive
    first."""
    K = np.asarray(K, float)
    k, same = K[..., 1:, :1], K[..., :1, :1]
    return same + K[..., 1:, 1:] + ridge * np.eye(k.shape[-2]) - k - k.swapaxes(-1, -2)


def dual(K: ArrayLike, C: float = np.inf, ridge: float = 0.1) -> np.ndarray:
    """The weights (..., n) of n negatives in the machine of one positive, exactly (MMCL, proposition 1).

    K (..., n + 1, n + 1) are the kernels of one or more machines, the positive first. The weights minimise
    ½ αᵀΔα − 2·1ᵀα over 0 ≤ α ≤ C; by block pivoting, of all machines at once.
    """
    D = delta(K, ridge)
    n = D.shape[-1]
    at = np.full(D.shape[:-1], -1)  # its end: −1 at 0, 1 at C, 0 between them
    fewest = np.full((*at.shape[:-1], 1), n + 1)
    patience = np.full_like(fewest, 3)
    while True:
        free = at == 0
        ends = np.where(at == 1, C if np.isfinite(C) else 0.0, 0.0)
        rows = np.where(free[..., None], D * free[..., None, :], np.eye(n))  # what is at an end stays there
        known = np.where(free, 2 - (D @ ends[..., None])[..., 0], ends)
        alpha = np.linalg.solve(rows, known[..., None])
        slope = (D @ alpha)[..., 0] - 2
        alpha = alpha[..., 0]
        wrong = np.where(free, (alpha < 0) | (alpha > C), at * slope > 1e-12)
        if not wrong.any():
            return alpha
        count = wrong.sum(-1, keepdims=True)
        patience = np.where(count < fewest, 3, patience - 1)
        fewest = np.minimum(fewest, count)
        last = n - 1 - wrong[..., ::-1].argmax(-1, keepdims=True)
        wrong &= (patience >= 0) | (np.arange(n) == last)  # one at a time ends, always
        at = np.where(wrong, free * np.where(alpha < 0, -1, 1), at)


def rbf(x: ArrayLike, y: ArrayLike, bandwidth: float = 1.0) -> np.ndarray:
    """exp(−|x − y|² / (2σ²)) of points (n, D) and (m, D): (n, m)."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    return np.exp(-np.square(x[:, None] - y).sum(-1) / (2 * bandwidth))


def assignment(cost: np.ndarray) -> np.ndarray:
    """The column of each row in the cheapest one-to-one matching of a small table (n, n), n ≤ 7.

    Among equally cheap ones it takes one in a fixed random order, so that ties match nobody with itself.
    """
    every = np.random.default_rng(0).permutation(list(permutations(range(len(cost)))))
    return every[cost[np.arange(len(cost)), every].sum(1).argmin()]


def largest(shares: np.ndarray) -> np.ndarray:
    """The column of the largest in each row of (n, m); of equal ones any, but always the same."""
    tied = shares == shares.max(1, keepdims=True)
    return (tied * np.random.default_rng(0).random(shares.shape)).argmax(1)


def tv_l1(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The flow (2, H, W), to the right and down, between grey images (H, W) float32 from 0 to 1, H, W ≤ 32.

    The method of `setclr.video.tv_l1`, both directions at once: a quarter of the time. Larger images would
    need a pyramid.
    """
    from scipy.ndimage import map_coordinates  # here, so that other panels need not wait for it

    attachment, tightness = 15.0, 0.3  # as scikit-image has them
    flow, dual = np.zeros((2, *one.shape), np.float32), np.zeros((2, 2, *one.shape), np.float32)
    edges, grid, most = np.zeros_like(dual), np.indices(one.shape, np.float32), attachment * tightness
    for _ in range(5):
        moved = map_coordinates(two, grid + flow, order=1, mode="nearest")
        slope = np.stack(np.gradient(moved))
        steep = np.square(slope).sum(0)
        steep[steep == 0] = 1
        share = slope / steep
        rest, first = (moved - one) / steep - (share * flow).sum(0), None
        for _ in range(10):
            off = rest + share[0] * flow[0] + share[1] * flow[1]
            flow = nearer = flow - slope * off.clip(-most, most)  # towards equal grey values
            first = nearer if first is None else first
            for _ in range(2):  # towards an even flow
                edges[0, :, :-1] = flow[:, 1:] - flow[:, :-1]
                edges[1, :, :, :-1] = flow[:, :, 1:] - flow[:, :, :-1]
                squares = edges * edges
                dual -= edges / 4
                dual /= 1 + np.sqrt(squares[0] + squares[1]) / (4 * tightness)
                flow = nearer - dual[0] - dual[1]
                flow[:, 1:] += dual[0, :, :-1]
                flow[:, :, 1:] += dual[1, :, :, :-1]
        if np.square(first - flow).sum() < 1e-4 * one.size:
            break
    return flow[::-1]

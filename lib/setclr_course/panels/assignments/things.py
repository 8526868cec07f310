"""Things in a plane, each seen twice, and how softly they are matched; and things that two encoders see."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from setclr_course.kit.controls import Slider, slider
from setclr_course.kit.inner import softmax
from setclr_course.kit.palette import OF_LOSS
from setclr_course.kit.scene import Mark, Page

if TYPE_CHECKING:
    from torch import Tensor

    Features = dict[str, tuple[Tensor, Tensor]]  # by name: (n, D) of view 1 and (n, D) of view 2

REACH, INNER = np.array([[1.5, 0.9], [1.35, 0.8]])  # half widths and heights
WAYS = {"one-to-one": "one to one", "batch-hard": "each row alone"}
COLOURS = dict(zip(WAYS, (OF_LOSS["LinearAssignment"], OF_LOSS["InfoNCE"])))


def random_things(seed: int, n: int, spread: float = 0.3) -> np.ndarray:
    """(2, n, 2): n points well apart from each other, and the same points displaced."""
    chance = np.random.RandomState(seed)

    def uniform(*shape: int) -> np.ndarray:
        """Between 0 and 1, as torch.rand draws them from that seed."""
        words = chance.randint(0, 2**32, (*shape, 2), dtype=np.uint32).astype(np.uint64)
        return ((words[..., 0] << np.uint64(32) | words[..., 1]) & np.uint64(2**53 - 1)) * 2.0**-53

    points = INNER * (2 * uniform(1, 2) - 1)
    while len(points) < n:
        candidates = INNER * (2 * uniform(12, 2) - 1)
        farthest = distances(candidates, points).min(1).argmax()
        points = np.concatenate([points, candidates[farthest, None]])
    length, angle = spread * (0.5 + uniform(n)), 2 * np.pi * uniform(n)
    displaced = points + np.stack([length * np.cos(angle), length * np.sin(angle)], 1)
    return np.stack([points, displaced.clip(-REACH, REACH)])


def distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """From each of the points (n, 2) to each of those (m, 2)."""
    return np.hypot(*(one[:, None] - other).transpose(2, 0, 1))


def draw_shares(page: Page, way: str, shares: np.ndarray, names: Sequence[str]) -> Mark:
    """A table of shares (n, n), a row for each ●, the truth framed, the sums of the columns below."""
    n, beside = len(shares), {} if page.row else dict(enumerate([*(f"{name} ●" for name in names), "sum"]))
    table = page.plane(way, (-0.5, n - 0.5), (n + 0.5, -0.5), yticks=beside, room=(0, 20, 0, 0))
    table.text(0, 1, WAYS[way], COLOURS[way], anchor="start", rise="bottom", up=3, bold=True, within=True)
    cells = table.cells(shares)
    table.frames([(i, i) for i in range(n)], width=1.6)
    table.text(range(n), n, [f"{total:.1f}" for total in shares.sum(0)], size="small")
    return cells


def places(what: str, starts: Mapping[str, Sequence[float]], wide: float, tall: float) -> dict[str, Slider]:
    """Controls "cat x" and "cat y" for each thing, from −wide to wide and from −tall to tall; `what` has {}
    for its name."""
    found = {}
    for name, (x, y) in starts.items():
        found[f"{name} x"] = slider(f"{what.format(name)}, to the right", x, -wide, wide, 0.05)
        found[f"{name} y"] = slider(f"{what.format(name)}, up", y, -tall, tall, 0.05)
    return found


def placed(values: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    """(n, 2): where `places` are."""
    return np.array([(values[f"{name} x"], values[f"{name} y"]) for name in names])


@cache
def matchings(n: int) -> np.ndarray:
    """(n!, n, n): all of them, as tables of 0 and 1."""
    return np.eye(n)[list(permutations(range(n)))]


def choices(cost: np.ndarray, way: str) -> np.ndarray:
    """What may be chosen, by minus its cost: (n, n) each row alone, (1, n!) one to one."""
    return -cost if way == "batch-hard" else -np.tensordot(matchings(len(cost)), cost, 2)[None]


def soft_matching(cost: np.ndarray, temperature: float, way: str) -> np.ndarray:
    """(n, n): the mean of all that may be chosen; rows sum to 1."""
    shares = softmax(choices(cost, way), temperature)
    return shares if way == "batch-hard" else np.tensordot(shares[0], matchings(len(cost)), 1)


def soft_losses(cost: np.ndarray, temperatures: ArrayLike, way: str) -> np.ndarray:
    """(T,) for each thing: what the true pairs cost more than the soft minimum (QARe, eq. 4 and 13)."""
    T = np.reshape(temperatures, (-1, 1))
    least = -T * logsumexp(choices(cost, way) / T[:, :, None], axis=-1)
    return (cost.trace() - least.sum(1)) / len(cost)


class Solved(NamedTuple):
    """For each way."""

    shares: dict[str, np.ndarray]  # (n, n), rows sum to 1
    loss: dict[str, float]  # for each thing


def softly(cost: np.ndarray, temperature: float) -> Solved:
    """Both soft matchings of a table (n, n), and both losses."""
    return Solved(
        {way: soft_matching(cost, temperature, way) for way in WAYS},
        {way: max(soft_losses(cost, temperature, way).item(), 0.0) for way in WAYS},
    )


def cosines(a: "Tensor", b: "Tensor") -> np.ndarray:
    """Of features (n, D) and (m, D): (n, m)."""
    one, two = (x.double().numpy(force=True) for x in (a, b))
    one, two = (x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12) for x in (one, two))
    return one @ two.T


def given(
    features: "Features | None", patches: "Tensor | None", least: int, side: int
) -> "tuple[Features, np.ndarray]":
    """Features and pictures (2, n, side, side, 3) of things seen twice, made up where there are none.

    Raises ValueError where there are fewer than `least`.
    """
    from setclr_course.kit.tiles import thumbnails

    if features is None or patches is None:
        features, patches = drawn_example()
    if patches.shape[1] < least:
        raise ValueError(f"patches must show {least} things or more, got {patches.shape[1]}")
    return features, np.stack([thumbnails(view, side) for view in patches])


def drawn_example(n: int = 256) -> "tuple[Features, Tensor]":
    """Things of 12 numbers each, seen twice with noise: as patches of colour and by two encoders."""
    import torch
    from torch.nn.functional import interpolate

    chance = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=chance)

    things = normal(n, 12)
    views = {"noisy encoder": 0.75, "better encoder": 0.5}
    features = {name: (things + s * normal(n, 12), things + s * normal(n, 12)) for name, s in views.items()}
    tint = 1 + 0.25 * normal(2, n, 3, 1, 1)
    blobs = interpolate(things.view(n, 3, 2, 2), (32, 32), mode="bicubic")
    return features, (128 + 50 * tint * blobs).clamp(0, 255).byte()

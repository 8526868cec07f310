"""Exercises whose answer is a function: what is right, what is likely, and the inputs on which it is tried.

The files of the pages name these functions. The students' pack is without them: `seal` keeps what they give.
"""

import json
import tomllib
import zlib
from base64 import b64encode
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, normalize

from setclr.evaluation import knn, matching_accuracy
from setclr.inner import kernel, linear_assignment, sinkhorn, sorting_network, sparsemax
from setclr.losses import MMCL, InfoNCE, QARe
from setclr_course.search.statistics import holm, paired
from setclr_course.teach.functions import numbers, told

infonce, bound, water, adjusted = InfoNCE(0.5), QARe(), sparsemax, holm
equal_weights = MMCL("rbf", 1.0, 0.001, 0.1, "exact")  # all at the bound C = 0.001
voted = partial(knn, k=10, temperature=0.1)


def across(z: Tensor, tau: float = 0.2, unit: bool = True, of: int = 1) -> Tensor:
    """InfoNCE from view 1 to view 2: the shares `of` the rows, 1, or of the columns, 0."""
    one, two = normalize(z, dim=-1) if unit else z
    return -(one @ two.T / tau).log_softmax(of).diagonal().mean()


def of_all(z: Tensor, tau: float = 0.5, unit: bool = True, itself: bool = False) -> Tensor:
    """InfoNCE; whether an anchor is a candidate of `itself`, too."""
    x = (normalize(z, dim=-1) if unit else z).flatten(0, 1)
    scores = x @ x.T / tau
    others = scores if itself else scores.masked_fill(torch.eye(len(x)) > 0, -torch.inf)
    return (others.logsumexp(1) - scores.roll(len(x) // 2, dims=1).diagonal()).mean()


def greedy(tables: Tensor, in_turn: bool = False, twice: bool = False) -> tuple[Tensor, Tensor]:
    """How long matchings are that take the shortest pair first, then the next that is free; and the share of
    the shortest among them. Or ● by ● takes its nearest, `in_turn`, or a ■ may be taken `twice`."""
    lengths = torch.zeros(len(tables)).double()
    for i, left in enumerate(tables.clone()):
        for k in range(len(left)):
            row = k if in_turn else int(left.argmin()) // len(left)
            column = int(left[row].argmin())
            lengths[i] += left[row, column]
            left[row] = torch.inf
            left[:, column] += 0 if twice else torch.inf
    return lengths, torch.isclose(lengths, linear_assignment(tables).value).double().mean()


def softened(S: Tensor, temperature: float = 1.0) -> Tensor:
    return (S / temperature).softmax(1)


def one_level(S: Tensor) -> Tensor:
    level = (S - sparsemax(S)).amax(1).max()  # of the row where the water stands highest
    return (S - level).clamp(min=0)


def small_bound(z: Tensor, unit: bool = True, ones: bool = True, power: int = 2) -> Tensor:
    x = normalize(z, dim=-1) if unit else z
    Z = torch.cat([x, torch.ones_like(x[..., :1])], -1) if ones else x
    first, second = torch.linalg.eigvalsh(Z.mT @ Z)
    return first @ second / z.shape[1] ** power


def both_halves(x: Tensor, turned: bool = False, parts: int = 2) -> Tensor:
    P = sorting_network(x, 1.0).P.T if turned else sorting_network(x, 1.0).P
    truth = (torch.arange(len(x)) < 2).to(x)
    first = binary_cross_entropy(P[:2].sum(0).clamp(0, 1), truth)
    return (first + binary_cross_entropy(P[2:].sum(0).clamp(0, 1), 1 - truth)) / parts


def transported(d: Tensor, rows: float = 0, columns: float = 0) -> Tensor:
    """The plan, times n to the power `rows` and m to the power `columns`."""
    return len(d) ** rows * d.shape[1] ** columns * sinkhorn(d, 0.2, iterations=50).P


def pushed_alike(z: Tensor, unit: bool = True, views: int = 2, C: float = 0.001) -> Tensor:
    """The loss of page 07 with all weights C: the mean over the anchors of one view or two."""
    x, N = (normalize(z, dim=-1) if unit else z).flatten(0, 1), z.shape[1]
    k = kernel(x, x, "rbf", 1.0)
    near = k.roll(N, 1).diagonal()
    return (C * (k.sum(1) - 1 - near - 2 * (N - 1) * near))[: views * N].mean()


def in_rounds(s: Tensor, total: bool = False) -> Tensor:
    """IOT's assignment on points of these cosines, or its plan, 1 in `total`."""
    return (1 if total else len(s)) * sinkhorn(-s, 0.5, iterations=10).P


def matched(ab: Tensor, distance: str = "euclidean") -> float:
    return matching_accuracy(ab[0], ab[1], distance)


def as_long(ab: Tensor) -> Tensor:
    """The share of right partners of a matching of rows as they are, not scaled to length 1."""
    return linear_assignment(torch.cdist(ab[0], ab[1])).matrix.diagonal().mean()


def times_m(p: np.ndarray) -> np.ndarray:
    return (len(p) * p).clip(max=1)


def each_by_rank(p: np.ndarray) -> np.ndarray:
    return ((len(p) - p.argsort().argsort()) * p).clip(max=1)


def interval(a: Any, b: Any, t: float = 0, ddof: int = 1) -> list[float]:
    """Its ends; by hand where another `t` is given, or where the deviation divides by n − `ddof`."""
    found, n = paired(a, b), len(a)
    error = (a - b).std(ddof=1) / n**0.5
    half = t * error if t else (found.high - found.difference) * ((n - 1) / (n - ddof)) ** 0.5
    return [found.difference - half, found.difference + half]


def nearest_mean(shown: Tensor, asked: Tensor) -> Tensor:
    return (asked[:, None] - shown.mean(1)).square().sum(2).argmin(1)


def by_cosine(shown: Tensor, asked: Tensor) -> Tensor:
    return (normalize(asked, dim=1) @ normalize(shown.mean(1), dim=1).T).argmax(1)


def nearest_shot(shown: Tensor, asked: Tensor) -> Tensor:
    return torch.cdist(asked, shown.flatten(0, 1)).argmin(1) // shown.shape[1]


@cache
def crossing(encoder: str, power: float = 1) -> float:
    """The batch N at which InfoNCE does as many flops as that encoder, a·N = b·N²; to some power."""
    from setclr_course import costs

    if power != 1:
        return crossing(encoder) ** power
    of_loss = costs.work(lambda: infonce(costs.points(256, 64)).backward()).flops
    return 256 * costs.encoder_cost(encoder, 256)[0] / of_loss


def dropped(x: Tensor, edges: Tensor, keep: Tensor, first: int = 0) -> tuple[Tensor, Tensor]:
    rows, bonds = old_numbers(x, edges, keep)
    return rows, (keep.cumsum(0) - 1 + first)[bonds]


def old_numbers(x: Tensor, edges: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    return x[keep], edges[:, keep[edges].all(0)]


def mirrored(flow: Tensor, dim: int = -1, right: int = -1, down: int = 1) -> Tensor:
    """With the columns in reverse order, or those of another `dim`, and `right` and `down` times so much."""
    turned = flow.flip(dim) if dim else flow
    return turned * torch.tensor([right, down]).view(2, 1, 1, 1)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def uniform(*shape: int) -> Tensor:
    return torch.rand(shape, dtype=torch.float64)


def points(V: int, N: int, E: int) -> Tensor:
    """Views (V, N, E), each point of another length, from 0.1 to 10."""
    return normal(V, N, E) * 10 ** (2 * uniform(V, N, 1) - 1)


def cosines(N: int) -> Tensor:
    """Of 2N points, with minus infinity on the diagonal."""
    x = normalize(normal(2 * N, 3), dim=1)
    return (x @ x.T).fill_diagonal_(-torch.inf)


def noisy_pair(N: int) -> Tensor:
    """Two views of N things, of other lengths."""
    return (normal(N, 6) + 1.2 * normal(2, N, 6)) * uniform(2, N, 1).add(0.1)


def around_centres(N: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """A bank of N points, their labels, and as many queries; those of a class lie around one point."""
    labels = torch.arange(N) % classes
    bank, queries = normal(classes, 6)[labels] + 1.5 * normal(2, N, 6)
    return bank * uniform(N, 1).add(0.1), labels, queries


def shots(ways: int, number: int) -> tuple[Tensor, Tensor]:
    """So many shots for each way, with means at several distances from 0, so that cosines choose others."""
    return torch.logspace(-1, 2, ways, 2)[:, None, None] * (1 + normal(ways, number, 6)), 2 * normal(60, 6)


def molecule(atoms: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of atoms in a ring, their bonds in both directions, and which atoms stay: never the second."""
    ring = torch.stack([torch.arange(atoms), torch.arange(atoms).roll(1)])
    keep = (torch.rand(atoms) < 0.8).index_fill(0, torch.tensor([0, 1, 2, 3]), True)
    return normal(atoms, 2), torch.cat([ring, ring.flip(0)], 1), keep & (torch.arange(atoms) != 1)


def inputs(seed: int = 0) -> dict[str, list]:
    """By an exercise's name what its functions are tried on: one argument each time, or a tuple of them.

    Batches of several sizes, lengths and scales. The tables of 02.3 add up without rounding, so that two sums
    may be compared.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {
            "00.3": [points(2, 6, 8), points(2, 4, 3), points(2, 9, 2)],
            "01.3": [points(2, 5, 3), points(2, 30, 8), points(2, 2, 2)],
            "02.3": [uniform(M, N, N).mul(2**30).round() / 2**20 for M, N in ((40, 4), (30, 6), (20, 3))],
            "03.3": [normal(4, 3), 9 * normal(60, 9), 0.1 * normal(2, 30)],
            "04.3": [points(2, 9, 3), points(2, 60, 4), points(2, 30, 2)],
            "05.3": [2 * normal(12), 0.2 * normal(12), uniform(12)],
            "06.3": [uniform(5, 9), 2 * uniform(7, 4), uniform(6, 6)],
            "07.3": [points(2, 5, 3), points(2, 12, 8), points(2, 2, 2)],
            "08.3": [cosines(6), 4 * cosines(4), 4 * cosines(9)],
            "09.3": [noisy_pair(N) for N in (90, 60, 120, 75, 110, 100)],
            "10.3": [around_centres(150, 5), around_centres(99, 3), around_centres(200, 8)],
            "11.3": [uniform(20).pow(3).numpy(), np.array([0.03, 0.01, 0.01, 0.9, 0.04])],
            "12.3": [tuple(normal(2, n).numpy() * n) for n in (3, 6, 12)],
            "13.3": [shots(4, 20), shots(7, 3), shots(3, 5)],
            "14.3": ["conv4", "resnet18"],
            "15.3": [molecule(6), molecule(9), molecule(12)],
            "16.3": [normal(2, 3, 4, 5), normal(2, 2, 6, 6)],
        }


def filled_in(name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of an exercise, with what its functions return in place of their names."""
    listed = [one if isinstance(one, tuple) else (one,) for one in inputs()[name]]

    def returned(entry: Mapping[str, Any]) -> list:
        function = partial(globals()[entry["function"]], **entry.get("with", {}))
        outputs = [function(*one) for one in listed]
        several = [output if isinstance(output, tuple) else (output,) for output in outputs]
        return [[numbers(one).tolist() for one in some] for some in several]

    mistakes = [{"reason": one["reason"], "answer": returned(one)} for one in asked.get("mistakes", ())]
    tried = {"inputs": [list(map(told, one)) for one in listed], "right": returned(asked)}
    kept = {key: value for key, value in asked.items() if key != "function"}
    return {"tolerance": 1e-4, **kept, **tried, "mistakes": mistakes}


def seal(teach: Path) -> None:
    """Encode the pages of a copy of this package, for a students' pack, and remove this module from it."""
    for page in (teach / "pages").glob("*.toml"):
        content = tomllib.loads(page.read_text(encoding="utf-8"))
        for number, asked in content["exercises"].items():
            if "function" in asked:
                content["exercises"][number] = filled_in(f"{page.stem}.{number}", asked)
        page.with_suffix(".sealed").write_bytes(b64encode(zlib.compress(json.dumps(content).encode())))
        page.unlink()
    (teach / "computed.py").unlink()

"""Exercises whose answer is a function: what is right, what is likely, and the inputs on which it is tried.

The files of the pages name these functions. The students' pack is without them: `seal` keeps what they give.
"""

import json
import tomllib
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, normalize

from setclr.evaluation import knn, matching_accuracy
from setclr.inner import sinkhorn, sorting_network, sparsemax
from setclr.losses import MMCL, InfoNCE, LinearAssignment, QARe
from setclr_course.search.statistics import holm, paired
from setclr_course.teach.functions import numbers, told

infonce, bound, water, adjusted = InfoNCE(0.5), QARe(), sparsemax, holm
equal_weights = MMCL("rbf", 1.0, 0.001, 0.1, "exact")  # all at the bound C = 0.001
softened = torch.nn.Softmax(-1)


def one_direction(z: Tensor) -> Tensor:
    """InfoNCE from view 1 to view 2 at τ = 0.2: the row-wise assignment loss, divided by its temperature."""
    return LinearAssignment(temperature=0.2, mining="batch-hard")(z) / 0.2


def asked_by_squares(z: Tensor) -> Tensor:
    return one_direction(z.flip(0))


def with_itself(z: Tensor) -> Tensor:
    """InfoNCE where the anchor is a candidate, too."""
    x = normalize(z, dim=-1).flatten(0, 1)
    scores = x @ x.T / 0.5
    return (scores.logsumexp(1) - scores.roll(len(x) // 2, dims=1).diagonal()).mean()


def greedy(distance: Tensor) -> float:
    """The length of the matching that takes the shortest pair first, then the next that is free."""
    left, length = distance.clone(), 0.0
    for _ in range(len(left)):
        row, column = divmod(int(left.argmin()), len(left))
        length += float(distance[row, column])
        left[row], left[:, column] = torch.inf, torch.inf
    return length


def each_nearest(distance: Tensor) -> Tensor:
    return distance.amin(1).sum()


def without_ones(z: Tensor) -> Tensor:
    unit = normalize(z, dim=-1)
    first, second = torch.linalg.eigvalsh(unit.mT @ unit)
    return first @ second / z.shape[1] ** 2


def both_halves(x: Tensor) -> Tensor:
    P = sorting_network(x, 1.0).P
    truth = (torch.arange(12) < 2).to(x)
    first = binary_cross_entropy(P[:2].sum(0).clamp(0, 1), truth)
    return (first + binary_cross_entropy(P[2:].sum(0).clamp(0, 1), 1 - truth)) / 2


def transported(d: Tensor) -> Tensor:
    return sinkhorn(d, 0.2, iterations=50).P


def in_rounds(s: Tensor) -> Tensor:
    """IOT's assignment on points of these cosines."""
    return len(s) * sinkhorn(-s, 0.5, iterations=10).P


def matched(ab: Tensor) -> float:
    return matching_accuracy(ab[0], ab[1], "euclidean")


def voted(bank: Tensor, labels: Tensor, queries: Tensor) -> Tensor:
    return knn(bank, labels, queries, k=10, temperature=0.1)


def times_m(p: np.ndarray) -> np.ndarray:
    return (len(p) * p).clip(max=1)


def interval(a: Sequence[float], b: Sequence[float]) -> list[float]:
    found = paired(a, b)
    return [found.low, found.high]


def nearest_mean(shown: Tensor, asked: Tensor) -> Tensor:
    return (asked[:, None] - shown.mean(1)).square().sum(2).argmin(1)


def by_cosine(shown: Tensor, asked: Tensor) -> Tensor:
    return (normalize(asked, dim=1) @ normalize(shown.mean(1), dim=1).T).argmax(1)


def crossing(encoder: str) -> float:
    """The batch N at which InfoNCE does as many flops as that encoder: where a·N = b·N²."""
    from setclr_course import costs

    N = 256
    of_loss = costs.work(lambda: infonce(costs.points(N, 64)).backward()).flops
    return N * costs.encoder_cost(encoder, N)[0] / of_loss


def dropped(x: Tensor, edges: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    rows, bonds = old_numbers(x, edges, keep)
    return rows, (keep.cumsum(0) - 1)[bonds]


def old_numbers(x: Tensor, edges: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    return x[keep], edges[:, keep[edges].all(0)]


def mirrored(flow: Tensor) -> Tensor:
    return not_turned(not_moved(flow))


def not_turned(flow: Tensor) -> Tensor:
    return flow.flip(-1)


def not_moved(flow: Tensor) -> Tensor:
    return torch.stack([-flow[0], flow[1]])


def normal(seed: int, *shapes: tuple, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def unit(seed: int, *shapes: tuple) -> list[Tensor]:
    return [normalize(z, dim=-1) for z in normal(seed, *shapes)]


def uniform(seed: int, *shapes: tuple) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def cosines(z: Tensor) -> Tensor:
    """Of all points, with minus infinity on the diagonal."""
    x = z.flatten(0, 1)
    return (x @ x.T).fill_diagonal_(-torch.inf)


def noisy_pair(seed: int, things: int) -> Tensor:
    """Two views (2, N, 6) of so many things."""
    thing, noise = normal(seed, (things, 6), (2, things, 6))
    return thing + 0.8 * noise


def around_centres() -> tuple[Tensor, Tensor, Tensor]:
    """A bank of 60 points of five classes, their labels, and as many queries."""
    centres, *noise = normal(4, (5, 6), (60, 6), (60, 6), dtype=torch.float32)
    labels = torch.arange(5).repeat(12)
    bank, queries = (centres[labels] + some for some in noise)
    return bank, labels, queries


def shots() -> tuple[Tensor, Tensor]:
    """Shots of four ways, with means at several distances from 0, so that cosines would choose another."""
    noise, asked = normal(4, (4, 20, 6), (60, 6), dtype=torch.float32)
    return torch.tensor([0.5, 1, 2, 4])[:, None, None] * (1 + noise), 2 * asked


def some_p() -> list[np.ndarray]:
    """Lists of p-values, one with equal ones."""
    return [np.random.default_rng(5).beta(0.3, 3, 20), np.array([0.03, 0.01, 0.01, 0.9, 0.04])]


def molecule() -> tuple[Tensor, Tensor, Tensor]:
    """Rows of six atoms, their bonds in both directions, and which atoms stay."""
    bonds = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5, 0, 5], [1, 0, 2, 1, 4, 3, 5, 4, 5, 0]])
    return torch.arange(12.0).view(6, 2), bonds, torch.tensor([True, False, True, True, True, False])


def inputs() -> dict[str, list]:
    """By an exercise's name what its functions are tried on: one argument each time, or a tuple of them."""
    flow = torch.arange(2.0 * 3 * 4 * 5).view(2, 3, 4, 5)
    return {
        "00.3": unit(5, (2, 4, 3)),
        "01.3": unit(1, (2, 5, 3), (2, 3, 3)),
        "02.3": uniform(2, (4, 4), (6, 6)),
        "03.3": normal(3, (4, 3), (2, 9)),
        "04.3": normal(4, (2, 9, 3), (2, 30, 4)),
        "05.3": list(2 * uniform(5, (10, 12))[0] - 1),
        "06.3": uniform(6, (5, 9)),
        "07.3": unit(7, (2, 5, 3)),
        "08.3": list(map(cosines, [*unit(1, (2, 6, 3)), *unit(2, (2, 6, 3))])),
        "09.3": [noisy_pair(3, 40), noisy_pair(3, 25)],
        "10.3": [around_centres()],
        "11.3": some_p(),
        "12.3": [tuple(np.random.default_rng(2).normal(size=(2, n))) for n in (3, 6)],
        "13.3": [shots()],
        "14.3": ["conv4", "resnet18"],
        "15.3": [molecule()],
        "16.3": [flow],
    }


def filled_in(name: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of an exercise, with what its functions return in place of their names."""
    listed = [one if isinstance(one, tuple) else (one,) for one in inputs()[name]]

    def returned(entry: Mapping[str, Any]) -> list:
        outputs = [globals()[entry["function"]](*one) for one in listed]
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

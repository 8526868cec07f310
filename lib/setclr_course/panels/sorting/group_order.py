"""One anchor with two positives and eight negatives: how GroCo and InfoNCE pull, and GroCo's way from
similarities to a loss (GroCo, figures 1 and 2, eq. 1, 5 and 6)."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import Annulus, Circle
from torch import Tensor
from torch.nn import functional as F

from setclr.inner import sorting_network
from setclr_course.kit.palette import BLUE, ORANGE, VERMILION
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.outlines import ink, written
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import SHADES, Part, bare

NEGATIVES = (0.0, 0.5, -0.4, 0.25, -0.15, 0.38, -0.65, 0.12)  # similarities, in index order
POSITIVE = 0.6  # of a, which stays; b moves
K = 2
NAMES = [*(str(1 + sum(other > s for other in NEGATIVES)) for s in NEGATIVES), "a", "b"]  # 1: the hardest
DEGREES = np.deg2rad((175, 305, 140, 25, 335, 215, 50, 265, 70, 105))  # where they stand round the anchor
OUTWARD = np.stack([np.cos(DEGREES), np.sin(DEGREES)], axis=-1)
TURN = np.linspace(0, 2 * np.pi, 25)
CIRCLE = 0.46 * np.stack([np.cos(TURN), np.sin(TURN)], axis=-1)
SQUARE = 0.42 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]).repeat(5, axis=0)
COLOURS = np.array([VERMILION] * len(NEGATIVES) + [BLUE] * K)


class Sorting(NamedTuple):
    """What GroCo makes of one anchor's list of N negatives and K positives, in the list's order."""

    points: list[int]  # indices of NAMES
    P: np.ndarray  # (N + K, N + K), and
    p: np.ndarray  # (N + K,), the sums of its last K rows
    loss: float
    push: np.ndarray  # (10,): −∂loss/∂similarity of every point, 0 outside the list


def group_order(**initial) -> Panel:
    """An anchor and its neighbours under both losses, with sliders for what these depend on."""
    controls = {
        "positive": slider("similarity of positive b", 0.2, -0.8, 0.95, 0.05),
        "beta": log_slider("inverse temperature β", 1, 0.1, 100, 0.1, {1: "paper 1", 8: "8"}),
        "negatives": slider("negatives in the list", 8, 1, 8, 1),
        "preorder": options("pre-ordering", ["on", "off"]),
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, 0.1, {0.5: "SimCLR .5", 0.1: ".1"}),
    }
    return Panel(build, controls, (9, 4.1), initial, 3.9)


def similarities(positive: float) -> Tensor:
    """(10,): the negatives in index order, then the two positives in view order: a, and b, which moves."""
    return torch.tensor([*NEGATIVES, POSITIVE, positive], dtype=torch.float64, requires_grad=True)


def sort_groups(positive: float, beta: float, negatives: int, preorder: bool) -> Sorting:
    """GroCo on the anchor's list: P, and the mean binary cross-entropy of p and the truth (GroCo, eq. 6)."""
    s = similarities(positive)
    groups = [s[:-K].argsort()[-negatives:], s[-K:].argsort() + len(NEGATIVES)]
    points = torch.cat(groups if preorder else [group.sort().values for group in groups])
    P = sorting_network(s[points], beta).P
    truth = (points >= len(NEGATIVES)).to(s)
    loss = F.binary_cross_entropy(P[-K:].sum(0).clamp(0, 1), truth)
    (slope,) = torch.autograd.grad(loss, s)
    shares = P.detach().numpy()
    return Sorting(points.tolist(), shares, shares[-K:].sum(0), loss.item(), -slope.numpy())


def info_nce(positive: float, temperature: float) -> tuple[float, np.ndarray]:
    """InfoNCE of the anchor against all eight negatives (GroCo, eq. 11), and −∂loss/∂similarity."""
    s = similarities(positive)
    logits = s / temperature
    others = logits[:-K].logsumexp(0)
    loss = (torch.logaddexp(others, logits[-K:]) - logits[-K:]).mean()
    (slope,) = torch.autograd.grad(loss, s)
    return loss.item(), -slope.numpy()


def build(figure, compact: bool) -> Drawing:
    if compact:
        upper, lower = figure.subfigures(2, 1, height_ratios=[1.2, 1])
        axes = [*upper.subplots(1, 2), lower.subplots()]
    else:
        axes = figure.subplots(1, 3, width_ratios=[1.1, 1.1, 1])
    discs = [draw_disc(axis, compact) for axis in axes[:2]]
    groups = draw_list(axes[2], compact)

    def update(values: dict) -> str:
        positive, beta, tau = values["positive"], values["beta"], values["temperature"]
        s = similarities(positive).detach().numpy()
        sorting = sort_groups(positive, beta, values["negatives"], values["preorder"] == "on")
        loss, push = info_nce(positive, tau)
        groups.move(sorting)
        words = [
            discs[0].move(s, push, f"InfoNCE, τ = {tau:.3g}", loss),
            discs[1].move(s, sorting.push, f"GroCo, β = {beta:.3g}", sorting.loss),
        ]
        p = dict(zip((NAMES[i] for i in sorting.points), sorting.p))
        return (
            f"Positive b at similarity {positive:.2f}: {(s[:-K] > s[-K:].min()).sum()} of 8 negatives are "
            f"nearer than the farther positive. {'; '.join(words)}. With {values['negatives']} of the "
            f"negatives in the list and pre-ordering {values['preorder']}, the two top places get a with "
            f"probability {p['a']:.2f}, b with {p['b']:.2f} and the hardest negative with {p['1']:.2f}."
        )

    return Drawing([artist for part in (*discs, groups) for artist in part.artists], update)


def markers(centres, points, size: float = 1) -> np.ndarray:
    """Outlines (m, 25, 2): a square for each negative among the points, a disc for each positive."""
    shapes = np.where(np.reshape(points, (-1, 1, 1)) < len(NEGATIVES), SQUARE, CIRCLE)
    return np.reshape(centres, (-1, 1, 2)) + size * shapes


def draw_disc(axis, compact: bool) -> Part:
    """The anchor in the middle, the others at their distance 1 − s from it, and where a loss pushes them.

    Moved by the similarities s (10,), the pushes (10,), the loss's name and its value; returns a clause.
    """
    bare(axis, (-1.95, 1.95))
    for distance in (0.5, 1, 1.5):
        axis.add_patch(Circle((0, 0), distance, fill=False, color="#e0e0e0", linewidth=0.8, zorder=0))
    axis.plot(0, 0, marker="*", color="black", markersize=6 if compact else 10)
    overlap = axis.add_patch(Annulus((0, 0), 1, 0.5, color=ORANGE, alpha=0.3, linewidth=0))
    spots = axis.add_collection(PolyCollection([], linewidths=0.8, edgecolors="white", zorder=3))
    arrows = axis.quiver(*np.zeros((4, 10)), angles="xy", scale_units="xy", scale=1, width=0.012, zorder=4)
    pen = ink(axis, "white")
    size, font = (0.36, 8) if compact else (0.27, 10)
    title = axis.text(0, 1.98, "", ha="center", va="bottom", size=font + 1, weight="bold", in_layout=False)
    below = axis.text(0, -1.95, "", ha="center", va="top", size=font, linespacing=1.4, in_layout=False)

    def move(s: np.ndarray, push: np.ndarray, name: str, loss: float) -> str:
        distance, longest = 1 - s, np.abs(push).max()
        near, far = distance[:-K].min(), distance[-K:].max()
        overlap.set_visible(far > near)
        overlap.set_radii(max(far, near))
        overlap.set_width(abs(far - near))
        share = np.abs(push[(distance >= near) & (distance <= far)]).sum() / np.abs(push).sum()

        centres = OUTWARD * distance[:, None]
        spots.set_verts(markers(centres, range(10), size))
        spots.set_facecolor(np.where(push == 0, "#b5b5b5", COLOURS))
        step = -push[:, None] / longest * OUTWARD
        arrows.set_offsets(centres + 0.5 * size * np.sign(-push)[:, None] * OUTWARD)
        arrows.set_UVC(*np.ma.masked_where(np.abs(np.stack([push, push])) < 0.03 * longest, 0.5 * step.T))
        pen.set_path(written(NAMES, centres, 0 if compact else 0.2))
        inside = f"{share:.0%} " + ("in overlap" if compact else "of the push in the overlap")
        pushed = inside if far > near else "no overlap"
        wrong = int((push[:-K] > 0.03 * longest).sum())
        title.set_text(name)
        below.set_text(pushed if compact else f"{pushed}\nloss {loss:.3f}, longest arrow {longest:.3g}")
        return f"{name}: loss {loss:.3f}, {pushed}, {wrong} of the negatives pulled nearer"

    return Part([overlap, spots, arrows, pen, title, below], move)


def draw_list(axis, compact: bool) -> Part:
    """GroCo's list, its matrix P with the last K rows framed, and their sum p; moved by a `Sorting`."""
    n, high = len(NAMES), 3.5  # how long a bar of certainty is
    base = n + high + 0.6
    bare(axis, (-0.7, n - 0.3), (base + 1.8, n - 1.7 if compact else -2.6))
    cell = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]])
    mesh = PolyCollection([], cmap=SHADES, clim=(0, 1), linewidths=0, antialiaseds=False)
    frame, truth = LineCollection([], colors=BLUE, linewidths=2.2), LineCollection([], colors="black")
    bars, heads = PolyCollection([]), PolyCollection([])
    for artist in (mesh, bars, truth, frame, heads):
        axis.add_collection(artist)
    white, black = ink(axis, "white"), ink(axis, "black")
    axis.text(n - K - 0.7, base - high, "truth", ha="right", va="center", fontsize=9)
    words = "p: share of the top places" if compact else "p: sum of the framed rows"
    axis.text(n - 0.5, base + 1.1, words, ha="right", va="top", fontsize=9)
    title = axis.text(n - 0.5, 0, "" if compact else "GroCo's list, and P below it", ha="right", fontsize=9)

    def move(sorting: Sorting) -> None:
        points = np.array(sorting.points)
        columns = np.arange(n - len(points), n)
        rows = np.stack(np.meshgrid(columns, columns), axis=-1).reshape(-1, 1, 2)
        if not compact:
            mesh.set_verts(list(rows + cell))
            mesh.set_array(sorting.P.ravel())
            title.set_y(columns[0] - 2)
            frame.set_segments([(cell + 0.5) * [len(points), K] + [columns[0] - 0.5, n - K - 0.5]])
        at = np.stack([columns, np.full(len(points), n - 0.8 if compact else columns[0] - 1.15)], axis=-1)
        heads.set_verts(list(markers(at, points)))
        heads.set_facecolor(COLOURS[points])
        bars.set_verts(
            [[c - 0.36, base] + (cell + [0.5, -0.5]) * [0.72, p * high] for c, p in zip(columns, sorting.p)]
        )
        bars.set_facecolor(COLOURS[points])
        goal = base - high * (points >= len(NEGATIVES))
        truth.set_segments([[(c - 0.45, y), (c + 0.45, y)] for c, y in zip(columns, goal)])
        white.set_path(written([NAMES[i] for i in points], at, 0.6, down=True))
        numbers = [f"{p:.2f}".lstrip("0") for p in sorting.p]
        black.set_path(written(numbers, [(c, base + 0.5) for c in columns], 0.44, down=True))

    return Part([mesh, bars, truth, frame, heads, white, black, title], move)

"""One anchor, its positive and six negatives on a circle: whom InfoNCE and SparseCLR give weight as one of
the negatives is dragged away (QARe, section 4.2)."""

import numpy as np
import torch
from matplotlib.collections import LineCollection
from torch import Tensor

from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr_course.kit.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, VERMILION
from setclr_course.panels.sparse.words import brief
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

ANGLES = (-25, 60, -55, -80, -110, -140, -170)  # degrees from the anchor: positive, dragged one, the others
LOSSES = {"InfoNCE": (VERMILION, "s", "■ InfoNCE", "all get some"),
          "SparseCLR": (BLUE, "o", "● SparseCLR", "hollow: exactly nothing")}  # fmt: skip
SIZES = {"s": 11, "o": 8}  # so that a disc on a square hides none of the two
ROLES = [GREEN, ORANGE] + [GREY] * 5
ROUND = np.arange(181.0)


def support_drag(**initial) -> Panel:
    """The weights that both losses give seven candidates, with sliders for one of their angles, SparseCLR's
    margin and InfoNCE's temperature."""
    controls = {
        "angle": slider("angle from the anchor", 60, 0, 180, 2, {0: "on it", 90: "90°", 180: "opposite"}),
        "margin": slider("margin m", 1.0, 0.0, 2.0, 0.1, {0: "0", 1: "authors' program 1"}),
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, marks={0.06: "QARe .05", 0.5: "SimCLR .5"}),
    }
    return Panel(build, controls, (9.6, 4.1), initial, 4.4)


def lists(angle, margin: float) -> tuple[Tensor, Tensor]:
    """The cosines (..., 7) of positive, dragged and other negatives with the anchor, for angles (...); and
    the same with the margin taken off the positive, as SparseCLR has them."""
    degrees = np.tile(np.array(ANGLES, float), (*np.shape(angle), 1))
    degrees[..., 1] = angle
    cosines = torch.from_numpy(np.cos(np.radians(degrees)))
    return cosines, cosines - margin * (torch.arange(len(ANGLES)) == 0)


def solve(angle, margin: float, temperature: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each loss the weights (..., 7) of the candidates, and what the anchor adds to the loss (...)."""
    cosines, handicapped = lists(angle, margin)
    cosines = cosines / temperature
    return {
        "InfoNCE": (cosines.softmax(-1).numpy(), (cosines.logsumexp(-1) - cosines[..., 0]).numpy()),
        "SparseCLR": (
            sparsemax(handicapped).numpy(), (sparse_maximum(handicapped) - handicapped[..., 0]).numpy()
        ),
    }  # fmt: skip


def let_go(margin: float) -> float:
    """The angle from which SparseCLR gives the dragged negative nothing: where its cosine is the level of the
    sparsemax of the other six."""
    _, handicapped = lists(0, margin)
    others = handicapped[[0, *range(2, len(ANGLES))]]
    level = others.max() - sparsemax(others).max()
    return float(level.clamp(-1, 1).arccos().rad2deg())


def clock(angle) -> np.ndarray:
    """Points (..., 2) of the circle at these angles, clockwise from the anchor, which is on top."""
    radians = np.radians(np.asarray(angle, float))
    return np.stack([np.sin(radians), np.cos(radians)], axis=-1)


def build(figure, compact: bool) -> Drawing:
    if compact:
        axes = figure.subplot_mosaic([[*LOSSES], ["curve", "curve"]], height_ratios=[1, 1.1])
    else:
        axes = figure.subplot_mosaic([[*LOSSES, "curve"], [*LOSSES, "count"]],
                                     height_ratios=[2.4, 1], width_ratios=[1, 1, 0.8])  # fmt: skip
    circles = {name: draw_circle(axes[name], name, compact) for name in LOSSES}
    curves = draw_curves(axes["curve"], axes.get("count"), compact)

    def update(values: dict) -> str:
        angle, margin, temperature = (values[name] for name in ("angle", "margin", "temperature"))
        now = solve(angle, margin, temperature)
        for name, circle in circles.items():
            circle.move(angle, *now[name])
        curves.move(angle, now, solve(ROUND, margin, temperature), let_go(margin))
        (soft, _), (sparse, _) = now.values()
        return (
            f"Dragged negative at {angle}°. InfoNCE, temperature {temperature:.2g}, gives it {soft[1]:.2g} "
            f"and every negative {soft[1:].min():.2g} or more. SparseCLR, margin {margin:.1f}, gives it "
            f"{sparse[1]:.2g} and the positive {sparse[0]:.2g}, has {(sparse[1:] > 0).sum()} of 6 negatives "
            f"in its support, and lets this one go at {let_go(margin):.0f}°."
        )

    parts = (*circles.values(), curves)
    return Drawing([artist for part in parts for artist in part.artists], update)


def draw_circle(axis, name: str, compact: bool) -> Part:
    """The anchor and its seven candidates; moved by the dragged one's angle, the weights and the loss."""
    size, wide, dot = (7, 7, 30) if compact else (9, 12, 70)
    colour, _, title, below = LOSSES[name]
    bare(axis, (-1.55, 1.55), (-1.65, 1.9 if compact else 2.15))
    axis.text(0, 1.7, title if compact else f"{title}\n{below}", color=colour, fontsize=size + 2, ha="center")
    axis.plot(*clock(np.arange(361)).T, color=GREY, linewidth=0.6, zorder=0)
    rays = axis.add_collection(LineCollection([], colors=colour, zorder=1))
    marks = [axis.scatter([0] * n, [0] * n, s=dot, marker=marker, zorder=3, linewidths=1.5)
             for n, marker in ((1, "s"), (6, "o"))]  # fmt: skip
    for mark, roles in zip(marks, (ROLES[:1], ROLES[1:])):
        mark.set_edgecolors(roles)
    anchor = axis.scatter(*clock(0), s=1.3 * dot, marker="D", color="black", zorder=2)
    numbers = [axis.text(0, 0, "", fontsize=size, ha="center", va="center") for _ in ANGLES]
    total = axis.text(0, -1.58, "", fontsize=size, ha="center", va="center")
    words, distance = [""] * len(ANGLES), 1.35
    if not compact:
        words[:2], distance = ["positive ", "dragged\n"], 1.27
        axis.text(0, 1.55, "anchor", fontsize=size, ha="center", va="center", weight="bold")
        numbers[0].set(ha="right", color=GREEN, weight="bold")
        numbers[1].set(ha="left", color=OCHRE, weight="bold")

    def move(angle: float, weights: np.ndarray, loss: float) -> None:
        ends = clock([ANGLES[0], angle, *ANGLES[2:]])
        rays.set_segments([[clock(0), end] for end in ends])
        rays.set_linewidths(np.where(weights > 0, 0.5 + wide * weights, 0))
        faces = [role if p > 0 else "white" for role, p in zip(ROLES, weights)]
        for mark, part in zip(marks, (slice(0, 1), slice(1, None))):
            mark.set_offsets(ends[part])
            mark.set_facecolors(faces[part])
        for text, word, end, p in zip(numbers, words, distance * ends, weights):
            text.set_text(word + brief(p))
            text.set_position(end)
        numbers[1].set_x(distance * ends[1, 0] + 0.06)
        total.set_text(f"{(weights[1:] > 0).sum()} of 6 negatives, loss {loss:.2g}")

    return Part([rays, anchor, *marks, *numbers, total], move)


def draw_curves(axis, below, compact: bool) -> Part:
    """The dragged negative's weight by its angle, and how many negatives have any.

    Moved by the angle, what the losses give now and at all angles of ROUND, and the angle of `let_go`.
    """
    degrees = {"xlim": (0, 180), "xticks": (0, 45, 90, 135, 180)}
    axis.set(ylim=(0, 1), yticks=(0, 0.5, 1), **degrees)
    axis.set_title("weight of the dragged one", fontsize=(9 if compact else 10))
    (below or axis).set_xlabel("its angle from the anchor", fontsize=(8 if compact else 10))
    gone = axis.plot([], [], color=BLUE, linewidth=1, linestyle=":")[0]
    word = axis.text(0, 0.9, "", color=BLUE, fontsize=(7 if compact else 9))
    moving = [gone, word]

    def line_and_dot(where, colour, marker):
        line = where.plot([], [], color=colour, clip_on=False)[0]
        (dot,) = where.plot([], [], marker, color=colour, markersize=SIZES[marker], markeredgecolor="white",
                            clip_on=False)  # fmt: skip
        moving.extend([line, dot])
        return line, dot

    styles = [style[:2] for style in LOSSES.values()]
    weight = [line_and_dot(axis, *style) for style in styles]
    count = []
    if below is not None:
        axis.tick_params(labelbottom=False)
        below.set(ylim=(0, 6.6), yticks=(0, 3, 6), **degrees)
        below.set_title("negatives with any weight", fontsize=10)
        count = [line_and_dot(below, *style) for style in styles]
        for line, _ in count:
            line.set_drawstyle("steps-mid")

    def move(angle: float, now: dict, course: dict, end: float) -> None:
        def draw(pairs, y):
            for (line, dot), name in zip(pairs, LOSSES):
                line.set_data(ROUND, y(course[name][0]))
                dot.set_data([angle], [y(now[name][0])])

        draw(weight, lambda weights: weights[..., 1])
        draw(count, lambda weights: (weights[..., 1:] > 0).sum(-1))
        gone.set_data([end, end], [0, 0.87])
        word.set_text(f"nothing from {end:.0f}°")
        word.set_x(end - 4)

    return Part(moving, move)

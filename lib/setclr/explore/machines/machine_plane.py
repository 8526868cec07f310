"""One machine in the plane: a positive, twelve negatives, the street between them, and a second view that is
scored (MMCL, figures 1 and 2, eq. 8 and 9)."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from contourpy import contour_generator
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from torch import Tensor

from setclr.explore.kit.panel import Drawing, Panel, log_slider, options, slider
from setclr.explore.kit.parts import bare
from setclr.inner import kernel, svm_dual
from setclr.palette import BLACK, BLUE, FIELD, GREY, ORANGE, PURPLE, VERMILION

NEGATIVES = torch.tensor(
    [[0.1, 0.1], [-0.2, 0.9], [0.3, -0.8], [-0.6, -0.2], [-0.9, 0.5], [-0.5, -1.1], [-1.3, -0.4],
     [-1.1, 1.3], [-1.6, 0.4], [-1.2, -1.5], [0.8, -1.6], [-1.9, -1.0]],
    dtype=torch.float64,
)  # fmt: skip
SIDE = 2.2  # the plane is drawn from −SIDE to SIDE
GRID = np.linspace(-SIDE, SIDE, 60)
PLACES = torch.tensor(np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2))
BANDS = dict(zip([(-1e9, -1), (-1, 0), (0, 1), (1, 1e9)], FIELD))
DASHES = {-1: (0, (4, 2)), 0: "solid", 1: (0, (4, 2))}
SHOWN = (-4, 2)  # decision values; those beyond are drawn at the ends
SOLVED = {
    "exact": "solved exactly",
    "pgd": "found by pgd (tanh is not positive definite)",
    "inv": "clipped least squares",
}


class Machine(NamedTuple):
    """A solved machine, and what it says of the places that were asked for."""

    alpha: Tensor  # (n,): the weights of the negatives
    score: Tensor  # (m,): w(z) = Σ α_j (k(z⁺, z) − k(y_j, z)) (eq. 8)
    offset: float  # b: the decision value is f = w + b, and f(z⁺) = 1


def machine(
    positive: Tensor, negatives: Tensor, places: Tensor, kind: str, bandwidth: float, **how
) -> Machine:
    """The machine of z⁺ (2,) against negatives (n, 2) by `svm_dual(..., **how)`, and its score at places
    (m, 2).

    The weight of z⁺ has no bound, so f(z⁺) = 1 gives the offset. The ridge belongs to the machine's negatives
    alone: their own places do not feel it.
    """
    pool = torch.cat([positive[None], negatives])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tanh has no optimum to arrive at
        alpha = svm_dual(kernel(pool, pool, kind, bandwidth), rounds=200, **how).alpha
    signed = torch.cat([alpha.sum()[None], -alpha[1:]])
    score = kernel(torch.cat([positive[None], places]), pool, kind, bandwidth) @ signed
    return Machine(alpha[1:], score[1:], 1 - score[0].item())


def machine_plane(**initial) -> Panel:
    """The machine of one positive in the plane, with sliders for all that decides it."""
    controls = {
        "C": log_slider("bound C", 100, 0.1, 1000, 0.1, {1: "1", 100: "paper 100"}),
        "bandwidth": log_slider("bandwidth σ²", 1, 0.1, 10, 0.1, {1: "STL-10: 1", 5: "ImageNet: 5"}),
        "ridge": log_slider("ridge ρ", 0.1, 1e-3, 1, 0.1, {0.001: "hard", 0.1: "paper 0.1"}),
        "x": slider("z⁺ to the right", 1.0, -2.0, 2.0, 0.1, {-0.7: "among the negatives", 1: "beside"}),
        "y": slider("z⁺ up", 0.5, -2.0, 2.0, 0.1),
        "toward": slider("second view z", 0.3, 0.0, 1.0, 0.05, {0: "at z⁺", 1: "amid the negatives"}),
        "kernel": options("kernel", ("rbf", "linear", "tanh")),
        "weights": options("weights", ("exact", "clipped")),
    }
    return Panel(build, controls, (9, 4.3), initial, 3.9)


def build(figure, compact: bool) -> Drawing:
    """Plane and law; or, compact, the plane."""
    plane, *curve = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1, 1.05))
    bare(plane, (-SIDE, SIDE))
    if not compact:
        plane.set_title("the street between z⁺ and the negatives ■")
    bands = plane.add_collection(PathCollection([], facecolors=list(BANDS.values()), linewidths=0))
    street = plane.add_collection(LineCollection([], colors=BLACK))
    squares = marks(plane)
    push = plane.quiver([0], [0], [0], [0], color=PURPLE, angles="xy", scale_units="xy", scale=1, width=0.012)
    dots = [
        plane.plot([], [], marker, color=colour, markersize=size, markeredgecolor="white")[0]
        for marker, colour, size in (("P", BLUE, 14), ("o", PURPLE, 9))
    ]
    names = [
        plane.text(0, 0, name, color=colour, fontsize=11, ha="center", va="center")
        for name, colour in (("z⁺", BLUE), ("z", PURPLE))
    ]
    numbers = [plane.text(0, 0, "", ha="center", va="top", fontsize=8) for _ in range(5)]
    for text in names + numbers:
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
    on_curve = law(curve[0]) if curve else ()

    def update(values: dict) -> str:
        C, ridge, kind = values["C"], values["ridge"], values["kernel"]
        solver = "inv" if values["weights"] == "clipped" else "pgd" if kind == "tanh" else "exact"
        z_plus = torch.tensor([values["x"], values["y"]], dtype=torch.float64)
        z = (z_plus + values["toward"] * (NEGATIVES.mean(0) - z_plus)).requires_grad_()
        asked = torch.cat([z[None], NEGATIVES, PLACES])
        how = {"solver": solver, "C": C, "ridge": ridge}
        alpha, score, b = machine(z_plus, NEGATIVES, asked, kind, values["bandwidth"], **how)
        (uphill,) = torch.autograd.grad(score[0], z)
        alpha, at, view = alpha.numpy(), NEGATIVES.numpy(), z.detach().numpy()
        w, f, field = np.split(score.detach().numpy(), [1, 1 + len(alpha)])
        f, field = f + b, (field + b).reshape(60, 60)

        paths, lines, levels = contours(field)
        bands.set_paths(paths)
        street.set(segments=lines, linewidths=[2.4 if level == 0 else 1.2 for level in levels])
        street.set_linestyles([DASHES[level] for level in levels])
        move(squares, at, alpha, C, 40 + 260 * alpha / alpha.max(initial=1e-9))
        way = (uphill / uphill.norm().clamp(min=1e-12)).numpy()
        push.set_offsets(view[None])
        push.set_UVC(*0.5 * way[:, None])
        beside = 0.22 * np.where(z_plus > 1.7, -1, 1), 0.24 * way[::-1] * (1, -1)
        for place, dot, name, shift in zip((z_plus.numpy(), view), dots, names, beside):
            dot.set_data(place[:1], place[1:])
            name.set_position(place + shift)
        for text, j in zip(numbers, np.argsort(-alpha)):
            text.set(position=at[j] - (0, 0.15), text=f"{alpha[j]:.2g}" if alpha[j] > 0 else "")
        if curve:
            line, bound, word, *squares_there = on_curve
            line.set_ydata(np.clip((1 + line.get_xdata()) / ridge, 0, C))
            bound.set_ydata([C, C])
            word.set_y(1.1 * C)
            move(squares_there, np.stack([f.clip(*SHOWN), alpha], axis=1), alpha, C, 60)
        towards = way @ (z_plus.numpy() - view)
        pushed = "on" if towards == 0 else "towards z⁺" if towards > 0 else "away from z⁺"
        off = np.abs(alpha - np.clip((1 + f) / ridge, 0, C)) > 0.01 * (1 + alpha)
        return (
            f"C {C:.4g}, ρ {ridge:.3g}, {kind} kernel of parameter {values['bandwidth']:.3g}, "
            f"{SOLVED[solver]}, z⁺ at ({values['x']:.1f}, {values['y']:.1f}): {(alpha > 0).sum()} of "
            f"{len(alpha)} negatives weigh more than 0, {(alpha >= C).sum()} of them the bound C, the "
            f"largest {alpha.max():.3g}; {off.sum()} stand off the blue line. z, {values['toward']:.0%} of "
            f"the way to the middle of the negatives, has f = {w[0] + b:.2f} and the loss {-w[0]:.3g}, "
            f"which pushes it {pushed}."
        )

    return Drawing([bands, street, *squares, push, *dots, *names, *numbers, *on_curve], update)


def marks(axis) -> tuple[PathCollection, PathCollection]:
    """Squares for negatives, and crosses over those at the bound; `move` places them."""
    squares = axis.scatter(*[[0] * len(NEGATIVES)] * 2, marker="s", edgecolors=VERMILION, clip_on=False)
    return squares, axis.scatter([], [], marker="x", s=45, linewidths=2, color=BLACK, clip_on=False)


def move(pair: tuple, places: np.ndarray, alpha: np.ndarray, C: float, sizes: np.ndarray | float) -> None:
    """Squares filled where α > 0, hollow where it is 0, with a cross where it is C."""
    squares, crosses = pair
    squares.set(offsets=places, facecolors=[ORANGE if a > 0 else "white" for a in alpha])
    squares.set_sizes(np.broadcast_to(sizes, len(alpha)))
    crosses.set_offsets(places[alpha >= C])


def law(axis) -> tuple:
    """The still part of the right half; returns the line of the exact weights, the bound with its name, and
    marks for the negatives."""
    axis.set_title("exact weights stand on α = clip((1 + f) / ρ, 0, C)", color=BLUE)
    axis.set(
        xlim=SHOWN,
        xlabel="decision value f of the negative (at −4, 2: or beyond)",
        ylabel="weight α, logarithmic from 0.1 on",
    )
    axis.set_yscale("symlog", linthresh=0.1, linscale=0.6)
    axis.set_yticks([0, 0.1, 1, 10, 100, 1000], ["0", "0.1", "1", "10", "100", "1000"], minor=False)
    axis.minorticks_off()
    axis.set_ylim(-0.02, 2000)
    for x, text in ((-1, "edge"), (0, "decision line"), (1, "z⁺ itself")):
        axis.axvline(x, color=GREY, linewidth=0.8, linestyle=DASHES[x])
        axis.text(x + 0.05, 1600, text, rotation=90, fontsize=8, color="#555555", va="top")
    line = axis.plot(level := np.linspace(*SHOWN, 400), 0 * level, color=BLUE, linewidth=1.8, zorder=1)[0]
    bound = axis.axhline(1, color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)))
    return line, bound, axis.text(-3.9, 1, "bound C", fontsize=8, va="bottom"), *marks(axis)


def contours(field: np.ndarray) -> tuple[list[Path], list[np.ndarray], list[int]]:
    """The bands of a field (60, 60) between f = −1, 0 and 1, the lines there, and the f of each line."""
    drawn = contour_generator(GRID, GRID, field, fill_type="OuterCode")
    paths = []
    for low, high in BANDS:
        points, codes = drawn.filled(low, high)
        paths.append(Path(np.concatenate([np.empty((0, 2)), *points]), np.concatenate([[], *codes])))
    lines = [(line, level) for level in DASHES for line in drawn.lines(level)]
    return paths, [line for line, _ in lines], [level for _, level in lines]

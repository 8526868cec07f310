"""One machine in the plane: a positive, twelve negatives, the street between them, and a second view that is
scored (MMCL, figures 1 and 2, eq. 8 and 9)."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from contourpy import contour_generator
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from torch import Tensor

from setclr.inner import kernel, svm_dual
from setclr_course.kit.palette import BLACK, BLUE, FIELD, GREY, INK, VERMILION
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

NEGATIVES = torch.tensor(
    [[0.1, 0.1], [-0.2, 0.9], [0.3, -0.8], [-0.6, -0.2], [-0.9, 0.5], [-0.5, -1.1], [-1.3, -0.4],
     [-1.1, 1.3], [-1.6, 0.4], [-1.2, -1.5], [0.8, -1.6], [-1.9, -1.0]],
    dtype=torch.float64,
)  # fmt: skip
SIDE = 2.2  # the plane is drawn from −SIDE to SIDE
GRID = np.linspace(-SIDE, SIDE, 60)
PLANE = torch.tensor(np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2))
BANDS = dict(zip([(-1e9, -1), (-1, 0), (0, 1), (1, 1e9)], FIELD))
DASHES = {-1: (0, (4, 2)), 0: "solid", 1: (0, (4, 2))}
SHOWN = (-4, 2)  # decision values; those beyond are drawn at the ends
SOLVED = {
    "exact": "solved exactly",
    "pgd": "found by pgd (tanh is not positive definite)",
    "inv": "clipped least squares",
}


class Machine(NamedTuple):
    """A solved machine, and what it says of the points that were asked for."""

    alpha: Tensor  # (n,): the weights of the negatives
    score: Tensor  # (m,): w(z) = Σ α_j (k(z⁺, z) − k(y_j, z)) (eq. 8)
    offset: float  # b: the decision value is f = w + b, and f(z⁺) = 1


def machine(
    positive: Tensor, negatives: Tensor, points: Tensor, kind: str, bandwidth: float, **how
) -> Machine:
    """The machine of z⁺ (2,) against negatives (n, 2) by `svm_dual(**how)`, and its score at points (m, 2).

    The weight of z⁺ has no bound, so f(z⁺) = 1 gives the offset. The ridge acts on the weights alone: a score
    at a negative's own point has none of it.
    """
    pool = torch.cat([positive[None], negatives])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tanh has no optimum to arrive at
        alpha = svm_dual(kernel(pool, pool, kind, bandwidth), rounds=200, **how).alpha
    signed = torch.cat([alpha.sum()[None], -alpha[1:]])
    score = kernel(torch.cat([positive[None], points]), pool, kind, bandwidth) @ signed
    return Machine(alpha[1:], score[1:], 1 - score[0].item())


def machine_plane(**initial) -> Panel:
    """The machine of one positive in the plane, with sliders for all that decides it."""
    controls = {
        "C": log_slider("bound C", 100, 0.1, 1000, 0.1, {1: "1", 100: "paper 100"}),
        "bandwidth": log_slider("bandwidth σ²", 1, 0.1, 10, 0.1, {1: "STL-10: 1", 5: "ImageNet: 5"}),
        "ridge": log_slider("ridge ρ", 0.1, 1e-3, 1, 0.1, {0.001: "hard", 0.1: "paper 0.1"}),
        "x": slider("✚ to the right", 1.0, -2.0, 2.0, 0.1, {-0.7: "among the negatives", 1: "beside"}),
        "y": slider("✚ up", 0.5, -2.0, 2.0, 0.1),
        "toward": slider("★ on its way", 0.3, 0.0, 1.0, 0.05, {0: "at ✚", 1: "amid the negatives"}),
        "kernel": options("kernel", ("rbf", "linear", "tanh")),
        "weights": options("weights", ("exact", "clipped")),
    }
    return Panel(build, controls, (9, 4.3), initial, 3.9)


class State(NamedTuple):
    """What one setting of the controls comes to, in numbers of numpy."""

    alpha: np.ndarray  # (12,): the weights of the negatives
    f: np.ndarray  # (12,): their decision values
    field: np.ndarray  # (60, 60): decision values of GRID
    z_plus: np.ndarray  # (2,)
    z: np.ndarray  # (2,)
    score: float  # w(z), and the loss is −w(z)
    offset: float
    way: np.ndarray  # (2,): in which direction the loss pushes z, of length 1 or 0

    @property
    def solid(self) -> np.ndarray:
        """Which negatives weigh something."""
        return self.alpha > 0


def state_of(values: dict) -> State:
    z_plus = torch.tensor([values["x"], values["y"]], dtype=torch.float64)
    z = (z_plus + values["toward"] * (NEGATIVES.mean(0) - z_plus)).requires_grad_()
    asked = torch.cat([z[None], NEGATIVES, PLANE])
    how = {"solver": solver_of(values), "C": values["C"], "ridge": values["ridge"]}
    solved = machine(z_plus, NEGATIVES, asked, values["kernel"], values["bandwidth"], **how)
    (uphill,) = torch.autograd.grad(solved.score[0], z)
    w, of_negatives, of_plane = np.split(solved.score.detach().numpy(), [1, 1 + len(NEGATIVES)])
    b = solved.offset
    way = (uphill / uphill.norm().clamp(min=1e-12)).numpy()
    f, field = of_negatives + b, (of_plane + b).reshape(len(GRID), len(GRID))
    return State(solved.alpha.numpy(), f, field, z_plus.numpy(), z.detach().numpy(), w[0], b, way)


def solver_of(values: dict) -> str:
    if values["weights"] == "clipped":
        return "inv"
    return "pgd" if values["kernel"] == "tanh" else "exact"


def build(figure, compact: bool) -> Drawing:
    """Plane and law; or, compact, the plane."""
    axis, *right = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1, 1.05))
    bare(axis, (-SIDE, SIDE))
    if not compact:
        axis.set_title("the street between ✚ and the negatives ✕")
    parts = [draw_street(axis), draw_points(axis), *(draw_law(part) for part in right)]

    def update(values: dict) -> str:
        now = state_of(values)
        for part in parts:
            part.move(now, values)
        return sentence(now, values)

    z_plus = Handle(axis, ("x", "y"), lambda values: (values["x"], values["y"]))
    return Drawing([artist for part in parts for artist in part.artists], update, {"✚": z_plus})


def sentence(now: State, values: dict) -> str:
    C, ridge, alpha = values["C"], values["ridge"], now.alpha
    towards = now.way @ (now.z_plus - now.z)
    pushed = "on" if towards == 0 else "towards ✚" if towards > 0 else "away from ✚"
    off = np.abs(alpha - np.clip((1 + now.f) / ridge, 0, C)) > 0.01 * (1 + alpha)
    return (
        f"C {C:.4g}, ρ {ridge:.3g}, {values['kernel']} kernel of parameter {values['bandwidth']:.3g}, "
        f"{SOLVED[solver_of(values)]}, ✚ at ({values['x']:.1f}, {values['y']:.1f}): {now.solid.sum()} of "
        f"{len(alpha)} negatives weigh more than 0, {(alpha >= C).sum()} of them the bound C, the "
        f"largest {alpha.max():.3g}; {off.sum()} stand off the blue line. ★, {values['toward']:.0%} of "
        f"the way to the middle of the negatives, has f = {now.score + now.offset:.2f} and the loss "
        f"{-now.score:.3g}, which pushes it {pushed}."
    )


def draw_street(axis) -> Part:
    """The bands of decision values and the lines between them."""
    bands = axis.add_collection(PathCollection([], facecolors=list(BANDS.values()), linewidths=0))
    street = axis.add_collection(LineCollection([], colors=BLACK))

    def move(now: State, _: dict) -> None:
        paths, lines, levels = contours(now.field)
        bands.set_paths(paths)
        street.set(segments=lines, linewidths=[2.4 if level == 0 else 1.2 for level in levels])
        street.set_linestyles([DASHES[level] for level in levels])

    return Part([bands, street], move)


def draw_points(axis) -> Part:
    """The negatives, ✚, ★ with the arrow that pushes it, and the five largest weights."""
    squares = marks(axis)
    push = axis.quiver([0], [0], [0], [0], color=INK, angles="xy", scale_units="xy", scale=1, width=0.012)
    dots = [
        axis.plot([], [], marker, color=colour, markersize=size, markeredgecolor="white")[0]
        for marker, colour, size in (("P", INK, 14), ("*", INK, 16))
    ]
    numbers = [axis.text(0, 0, "", ha="center", va="top", fontsize=8) for _ in range(5)]
    for text in numbers:
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])

    def move(now: State, values: dict) -> None:
        alpha, at = now.alpha, NEGATIVES.numpy()
        squares.move(at, alpha, values["C"], 40 + 260 * alpha / alpha.max(initial=1e-9))
        push.set_offsets(now.z[None])
        push.set_UVC(*0.5 * now.way[:, None])
        for point, dot in zip((now.z_plus, now.z), dots):
            dot.set_data(point[:1], point[1:])
        for text, j in zip(numbers, np.argsort(-alpha)):
            text.set(position=at[j] - (0, 0.15), text=f"{alpha[j]:.2g}" if alpha[j] > 0 else "")

    return Part([*squares.artists, push, *dots, *numbers], move)


def marks(axis) -> Part:
    """✕ for negatives, filled where α > 0, ringed where it is C; moved by points, α, C and sizes."""
    signs = axis.scatter(*[[0] * len(NEGATIVES)] * 2, marker="X", edgecolors=INK, clip_on=False)
    rings = axis.scatter([], [], marker="o", s=330, linewidths=2, color=INK, facecolors="none", clip_on=False)

    def move(points: np.ndarray, alpha: np.ndarray, C: float, sizes: np.ndarray | float) -> None:
        signs.set(offsets=points, facecolors=[VERMILION if a > 0 else "white" for a in alpha])
        signs.set_sizes(np.broadcast_to(sizes, len(alpha)))
        rings.set_offsets(points[alpha >= C])

    return Part([signs, rings], move)


def draw_law(axis) -> Part:
    """The line of the exact weights over decision values, the bound, and the negatives."""
    axis.set_title("exact weights stand on α = clip((1 + f) / ρ, 0, C)", color=BLUE)
    axis.set(
        xlim=SHOWN,
        xlabel="f of the negative (at the ends of the axis: or beyond)",
        ylabel="weight α, logarithmic from 0.1 on",
    )
    axis.set_yscale("symlog", linthresh=0.1, linscale=0.6)
    axis.set_yticks([0, 0.1, 1, 10, 100, 1000], ["0", "0.1", "1", "10", "100", "1000"], minor=False)
    axis.minorticks_off()
    axis.set_ylim(-0.02, 2000)
    for x, text in ((-1, "kerb"), (0, "middle"), (1, "✚ itself")):
        axis.axvline(x, color=GREY, linewidth=0.8, linestyle=DASHES[x])
        axis.text(x + 0.05, 1600, text, rotation=90, fontsize=8, color="#555555", va="top")
    levels = np.linspace(*SHOWN, 400)
    line = axis.plot(levels, 0 * levels, color=BLUE, linewidth=1.8, zorder=1)[0]
    bound = axis.axhline(1, color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)))
    word = axis.text(-3.9, 1, "bound C", fontsize=8, va="bottom")
    squares = marks(axis)

    def move(now: State, values: dict) -> None:
        C = values["C"]
        line.set_ydata(np.clip((1 + levels) / values["ridge"], 0, C))
        bound.set_ydata([C, C])
        word.set_y(1.1 * C)
        squares.move(np.stack([now.f.clip(*SHOWN), now.alpha], axis=1), now.alpha, C, 60)

    return Part([line, bound, word, *squares.artists], move)


def contours(field: np.ndarray) -> tuple[list[Path], list[np.ndarray], list[int]]:
    """The bands of a field (60, 60) between f = −1, 0 and 1, the lines there, and the f of each line."""
    drawn: Any = contour_generator(GRID, GRID, field, fill_type="OuterCode")  # its type depends on fill_type
    paths = []
    for low, high in BANDS:
        points, codes = drawn.filled(low, high)
        paths.append(Path(np.concatenate([np.empty((0, 2)), *points]), np.concatenate([[], *codes])))
    lines = [(line, level) for level in DASHES for line in drawn.lines(level)]
    return paths, [line for line, _ in lines], [level for _, level in lines]

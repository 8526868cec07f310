"""One machine in the plane: a positive, twelve negatives, the street between them, and a second view that is
scored (MMCL, figures 1 and 2, eq. 8 and 9)."""

from typing import Any, NamedTuple

import numpy as np
from contourpy import contour_generator

from setclr_course.kit.handles import Segment
from setclr_course.kit.inner import dual, rbf
from setclr_course.kit.palette import BLUE, FIELD, INK, VERMILION, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, options, slider

NEGATIVES = np.array(
    [[0.1, 0.1], [-0.2, 0.9], [0.3, -0.8], [-0.6, -0.2], [-0.9, 0.5], [-0.5, -1.1], [-1.3, -0.4],
     [-1.1, 1.3], [-1.6, 0.4], [-1.2, -1.5], [0.8, -1.6], [-1.9, -1.0]],
)  # fmt: skip
MIDDLE = NEGATIVES.mean(0)
SIDE = 2.2  # the plane is drawn from −SIDE to SIDE
GRID = np.linspace(-SIDE, SIDE, 60)
PLANE = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
SHOWN = (-4, 2)  # decision values; those beyond are drawn at the ends


class Machine(NamedTuple):
    """What one setting of the controls comes to. The decision value is f = w + b, and f(✚) = 1."""

    alpha: np.ndarray  # (12,): the weights of the negatives
    f: np.ndarray  # (12,): their decision values
    field: np.ndarray  # (60, 60): decision values of GRID
    positive: np.ndarray  # (2,): ✚
    z: np.ndarray  # (2,): ★
    score: float  # w(★), and the loss is −w(★)
    offset: float  # b
    way: np.ndarray  # (2,): in which direction the loss pushes ★, of length 1 or 0


class machine_plane(Panel):
    """The machine of one positive in the plane, with sliders for all that decides it."""

    size, row_height = (9, 4.3), 6.6
    mosaic, row_mosaic, widths = "plane law", "plane; law", (1, 1.05)
    knobs = {
        "C": log_slider("bound C", 100, 0.1, 1000, 0.1, {1: "1", 100: "paper 100"}),
        "bandwidth": log_slider("bandwidth σ²", 1, 0.1, 10, 0.1, {1: "paper 1", 5: "5"}),
        "ridge": log_slider("ridge ρ", 0.1, 1e-3, 1, 0.1, {0.001: "hard", 0.1: "paper 0.1"}),
        "x": slider("✚ to the right", 1.0, -2.0, 2.0, 0.1, {-0.7: "among ✕", 1: "beside"}),
        "y": slider("✚ up", 0.5, -2.0, 2.0, 0.1),
        "toward": slider("★ on its way", 0.3, 0.0, 1.0, 0.05, {0: "at ✚", 1: "amid ✕"}),
        "kernel": options("kernel", ("rbf", "linear")),
    }

    def solve(self, values: dict) -> Machine:
        kind, positive = (values["kernel"], values["bandwidth"]), np.array([values["x"], values["y"]])
        z, pool = positive + values["toward"] * (MIDDLE - positive), np.array([positive, *NEGATIVES])
        K = kernel(pool, pool, *kind)
        alpha = dual(K, values["C"], values["ridge"])
        signed = np.array([alpha.sum(), *-alpha])  # w(z) = Σ α_j (k(✚, z) − k(✕_j, z)) (eq. 8)
        offset = 1 - K[0] @ signed
        field = (kernel(PLANE, pool, *kind) @ signed + offset).reshape(len(GRID), len(GRID))
        uphill = signed @ slopes(z, pool, *kind)
        way = uphill / max(np.hypot(*uphill), 1e-12)
        score = kernel(z[None], pool, *kind)[0] @ signed
        return Machine(alpha, K[1:] @ signed + offset, field, positive, z, score, offset, way)

    def draw(self, page: Page, values: dict, now: Machine) -> None:
        crosses = draw_plane(page, values, now)
        beside = draw_law(page, values, now)
        for j, (alpha, f) in enumerate(zip(now.alpha, now.f)):
            page.link(f"✕: weight α = {alpha:.3g}, f = {f:+.2f}", crosses[j][0], beside[j])

    def say(self, values: dict, now: Machine) -> str:
        C, alpha, towards = values["C"], now.alpha, now.way @ (now.positive - now.z)
        pushed = "on" if towards == 0 else "towards ✚" if towards > 0 else "away from ✚"
        return (
            f"C {C:.4g}, ρ {values['ridge']:.3g}, {values['kernel']} kernel of parameter "
            f"{values['bandwidth']:.3g}, ✚ at ({values['x']:.1f}, {values['y']:.1f}): {(alpha > 0).sum()} "
            f"of {len(alpha)} negatives weigh more than 0, {(alpha >= C).sum()} of them the bound C, the "
            f"largest {alpha.max():.3g}. ★, {values['toward']:.0%} of the way to the middle of the "
            f"negatives, has f = {now.score + now.offset:.2f} and the loss {-now.score:.3g}, which pushes it "
            f"{pushed}."
        )


def kernel(x: np.ndarray, y: np.ndarray, kind: str, bandwidth: float) -> np.ndarray:
    """k of points (n, 2) and (m, 2): (n, m)."""
    return rbf(x, y, bandwidth) if kind == "rbf" else x @ y.T


def slopes(z: np.ndarray, y: np.ndarray, kind: str, bandwidth: float) -> np.ndarray:
    """The gradients (m, 2) in z (2,) of its kernel with points y (m, 2)."""
    return rbf(y, z[None], bandwidth) * (y - z) / bandwidth if kind == "rbf" else y


def draw_plane(page: Page, values: dict, now: Machine) -> list[Mark]:
    """The bands of decision values, ✚, ★ with the arrow that pushes it, and the negatives with the five
    largest weights; the marks of the negatives."""
    title = "" if page.row else "the street between ✚ and the negatives ✕"
    plane = page.plane("plane", (-SIDE, SIDE), title=title)
    how: dict = {"fill_type": "OuterOffset", "line_type": "ChunkCombinedNan"}
    contours: Any = contour_generator(GRID, GRID, now.field, **how)
    for level, colour in zip((-np.inf, -1, 0, 1), FIELD):
        rings = [ring for x, at in zip(*contours.filled(level, np.inf)) for ring in np.split(x, at[1:-1])]
        plane.area(rings, colour)
    for level in (-1, 0, 1):
        ((line,),) = contours.lines(level)
        x, y = (np.nan, np.nan) if line is None else line.T
        plane.line(x, y, INK, 1.6 if level else 3, "dash" if level else "")
    plane.dots(NEGATIVES[now.alpha >= values["C"]], WHITE, size=24, edge=INK)
    sizes = np.sqrt(70 + 460 * now.alpha / max(now.alpha.max(), 1e-9))
    crosses = [
        plane.dots(point, VERMILION if alpha > 0 else WHITE, "✕", size, INK)
        for point, alpha, size in zip(NEGATIVES, now.alpha, sizes)
    ]
    plane.arrows(now.z, now.z + 0.5 * now.way, INK, 3)
    positive, anchor = plane.dots(now.positive, INK, "✚", 17), plane.dots(now.z, INK, "★", 20)
    positive.handle("✚", now.positive, "x", "y")
    anchor.handle("★", now.z, "toward", along=Segment(tuple(now.positive), tuple(MIDDLE)))
    fifth, (x, y) = np.sort(now.alpha)[-5], NEGATIVES.T
    words = [f"{alpha:.2g}" if alpha > 0 and alpha >= fifth else "" for alpha in now.alpha]
    plane.text(x, y, words, size="small", rise="top", up=-11, halo=True)
    return crosses


def draw_law(page: Page, values: dict, now: Machine) -> Mark:
    """The line of the exact weights over decision values, the bound, and the negatives."""
    C, ridge = values["C"], values["ridge"]
    below = {-4: "−4", -3: "−3", -2: "−2", -1: "kerb", 0: "middle", 1: "✚", 2: "2"}
    beside = {rise(a): f"{a:g}" for a in (0, 0.1, 1, 10, 100, 1000)}
    law = page.plot("law", SHOWN, (-0.2, rise(8000)), "exact weights stand on the blue line",
                    "f of the negative, cut at the ends", "weight α, nearly logarithmic",
                    below, beside)  # fmt: skip
    law.line(SHOWN, rise(C), INK, 0.8, "dash")
    law.text(SHOWN[0], rise(C), "bound C", size="small", anchor="start", rise="bottom", right=4)
    alpha = np.geomspace(0.01, min(C, 3 / ridge), 60)
    law.line([-4, -1, *ridge * alpha - 1, 2], rise([0, 0, *alpha, alpha[-1]]), BLUE, 2.4)
    law.note("α = clip((1 + f) / ρ, 0, C)", "top left", BLUE, bold=True)
    at = np.stack([now.f.clip(*SHOWN), rise(now.alpha)], axis=1)
    law.dots(at[now.alpha >= C], WHITE, size=18, edge=INK)
    return law.dots(at, [VERMILION if alpha > 0 else WHITE for alpha in now.alpha], "✕", 11, INK)


def rise(alpha: Any) -> Any:
    """Where a weight stands on its axis: in even steps near 0, in decades from 1 on."""
    return np.arcsinh(10 * np.asarray(alpha))

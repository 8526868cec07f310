"""One anchor, its positive and six negatives on a circle: whom InfoNCE and SparseCLR give weight as one of
the negatives is dragged away (QARe, section 4.2)."""

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.handles import Circle
from setclr_course.kit.inner import level, softmax, sparsemax
from setclr_course.kit.palette import GREY, INK, OCHRE, OF_LOSS, ORANGE, PINE, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.sparse.words import brief

ANGLES = (-25, 60, -55, -80, -110, -140, -170)  # degrees from the anchor: positive, dragged one, the others
WORDS = {"InfoNCE": "InfoNCE: all get some", "SparseCLR": "SparseCLR: hollow gets exactly nothing"}
READ = {"InfoNCE": OF_LOSS["InfoNCE"], "SparseCLR": PINE}  # the losses' colours, for words
ROUND = np.arange(0, 181, 2)

Weighed = dict[str, tuple[np.ndarray, np.ndarray]]


def lists(angle: ArrayLike, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """The cosines (..., 7) of positive, dragged and other negatives with the anchor, for angles (...); and
    the same with the margin taken off the positive, as SparseCLR has them."""
    degrees = np.tile(np.array(ANGLES, float), (*np.shape(angle), 1))
    degrees[..., 1] = angle
    cosines = np.cos(np.radians(degrees))
    return cosines, cosines - margin * (np.arange(len(ANGLES)) == 0)


def solve(angle: ArrayLike, margin: float, temperature: float) -> Weighed:
    """For each loss the weights (..., 7) of the candidates, and what the anchor adds to the loss (...)."""
    cosines, x = lists(angle, margin)
    soft, sparse = softmax(cosines, temperature), sparsemax(x)
    most = (sparse * x).sum(-1) + (1 - np.square(sparse).sum(-1)) / 2
    return {"InfoNCE": (soft, -np.log(soft[..., 0])), "SparseCLR": (sparse, most - x[..., 0])}


def let_go(margin: float) -> float:
    """The angle from which SparseCLR gives the dragged negative nothing: where its cosine is the level of the
    sparsemax of the other six."""
    others = np.delete(lists(0, margin)[1], 1)
    return float(np.degrees(np.arccos(level(others).clip(-1, 1))))


def clock(angle: ArrayLike) -> np.ndarray:
    """Points (..., 2) of the circle at these angles, clockwise from the anchor, which is on top."""
    radians = np.radians(np.asarray(angle, float))
    return np.stack([np.sin(radians), np.cos(radians)], axis=-1)


def angle_at(x: float, y: float) -> list[float]:
    """The reverse of `clock` on the right; a point on the left is beyond one of both ends."""
    return [float(np.degrees(np.arctan2(max(x, 0.0), y)))]


class support_drag(Panel):
    """The weights that both losses give seven candidates, with sliders for one of their angles, SparseCLR's
    margin and InfoNCE's temperature."""

    size, row_height = (9.6, 4.1), 4.6
    mosaic = "InfoNCE SparseCLR curve; InfoNCE SparseCLR count"
    widths, heights = (1, 1, 0.8), (2, 1)
    row_mosaic = "InfoNCE SparseCLR; curve curve"
    knobs = {
        "angle": slider("angle from the anchor", 60, 0, 180, 2, {0: "on it", 90: "90°", 180: "opposite"}),
        "margin": slider("margin m", 1.0, 0.0, 2.0, 0.1, {0: "0", 1: "authors' program 1"}),
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, marks={0.06: "QARe .05", 0.5: "SimCLR .5"}),
    }

    def solve(self, values: dict) -> Weighed:
        return solve(**values)

    def draw(self, page: Page, values: dict, now: Weighed) -> None:
        dots = [draw_circle(page, name, values["angle"], now[name]) for name in WORDS]
        roles = "positive", "dragged negative", *(f"negative at {-angle}°" for angle in ANGLES[2:])
        for j, role in enumerate(roles):
            weights = ", ".join(f"{name} {now[name][0][j]:.2g}" for name in WORDS)
            here = (plus[0] if j == 0 else crosses[j - 1] for plus, crosses in dots)
            page.link(f"{role}: {weights}", *here)
        draw_curves(page, values, now)

    def say(self, values: dict, now: Weighed) -> str:
        (soft, _), (sparse, _) = now.values()
        return (
            f"Dragged negative at {values['angle']}°. InfoNCE, temperature {values['temperature']:.2g}, "
            f"gives it {soft[1]:.2g} and every negative {soft[1:].min():.2g} or more. SparseCLR, margin "
            f"{values['margin']:.1f}, gives it {sparse[1]:.2g} and the positive {sparse[0]:.2g}, has "
            f"{(sparse[1:] > 0).sum()} of 6 negatives in its support, and lets this one go at "
            f"{let_go(values['margin']):.0f}°."
        )


def draw_circle(page: Page, name: str, angle: int, now: tuple[np.ndarray, np.ndarray]) -> tuple[Mark, Mark]:
    """The anchor and its seven candidates, and lines to those with weight; the marks of ✚ and ✕."""
    weights, loss = now
    ends, held = clock([ANGLES[0], angle, *ANGLES[2:]]), (weights[1:] > 0).sum()
    title, far, size, thick = (name, 1.5, 10, 7) if page.row else (WORDS[name], 1.3, 14, 14)
    plane = page.plane(name, (-1.65, 1.95), (-far - 0.5, far + 0.3), title)
    x, y = clock(np.arange(0, 361, 4)).T
    plane.line(x, y, GREY, 0.7)
    plane.segments(clock(0), ends, OF_LOSS[name], np.where(weights > 0, 0.7 + thick * weights, 0))
    plane.dots(clock(0), INK, "★", 1.4 * size)
    colours = np.where(weights > 0, [INK, ORANGE, *[INK] * 5], WHITE).tolist()
    plus = plane.dots(ends[:1], colours[:1], "✚", size, INK)
    crosses = plane.dots(ends[1:], colours[1:], "✕", size, INK)
    crosses.handle(name, ends[1], "angle", along=Circle(), to=angle_at, label="the dragged negative")
    (x, y), (first, second, *others) = far * ends.T, map(brief, weights)
    plane.text(x[2:], y[2:], others, size="small")
    if page.row:
        plane.text(x[0], y[0], first, size="small")
        plane.text(x[1], y[1], second, OCHRE, "small", anchor="start", bold=True)
        plane.text(0, -far - 0.4, f"{held} of 6, loss {loss:.2g}", size="small")
    else:
        plane.text(x[0], y[0], f"positive {first}", size="small", anchor="end")
        plane.text(x[1], y[1], f"dragged\n{second}", OCHRE, "small", anchor="start", right=5, bold=True)
        plane.text(0, -far - 0.35, f"{held} of 6 negatives, loss {loss:.2g}")
    return plus, crosses


def draw_curves(page: Page, values: dict, now: Weighed) -> None:
    """The dragged negative's weight by its angle, and how many negatives have any."""
    course, end = solve(ROUND, values["margin"], values["temperature"]), let_go(values["margin"])
    below = "its angle from the anchor"
    how: dict = {"x": (-4, 184), "xticks": (0, 45, 90, 135, 180)}
    curve = page.plot("curve", y=(-0.04, 1.04), title="weight of the dragged one", yticks=(0, 0.5, 1),
                      xlabel=below if page.row else "", **how)  # fmt: skip
    count = page.plot("count", y=(-0.4, 6.9), title="negatives with any weight", yticks=(0, 3, 6),
                      xlabel=below, room=(12, 0, 0, 0), **how)  # fmt: skip
    curve.key(*READ.items(), where="top right", size="small" if page.row else "normal")
    curve.line([end, end], [-0.04, 0.8], PINE, 1, "dot")
    curve.text(end, 0.8, f"nothing\nfrom {end:.0f}°", PINE, "small", anchor="start", rise="top", right=5)
    for name, size in (("InfoNCE", 14), ("SparseCLR", 9)):
        weights, at = course[name][0], now[name][0]
        curve.line(ROUND, weights[:, 1], OF_LOSS[name])
        curve.dots([values["angle"], at[1]], OF_LOSS[name], size=size)
        held = (weights[:, 1:] > 0).sum(-1)
        count.line(np.repeat(ROUND, 2)[1:] - 1, np.repeat(held, 2)[:-1], OF_LOSS[name])
        count.dots([values["angle"], (at[1:] > 0).sum()], OF_LOSS[name], size=size)

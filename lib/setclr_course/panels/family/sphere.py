"""Two views of six photographs on a sphere that can be turned: whom each finds while a loss trains them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.circle import unit
from setclr_course.kit.losses import gradient
from setclr_course.kit.palette import GREY, INK, PALE, VERMILION
from setclr_course.kit.panel import Mark, Page, Panel, Plot, options, slider
from setclr_course.panels.family.batch import SIX
from setclr_course.panels.family.plane import POINTS, N, called, draw_table, row_shares

STEPS, RATE, SMOOTHING = 40, 0.12, 0.2
SEED = 615  # of a beginning at which nobody finds its partner
END = 80  # degrees: so far the sphere turns either way
COS, SIN = unit(np.arange(0, 361, 5)).T
GRID = [np.stack([COS, 0 * COS, SIN], 1)]  # the equator, then meridians
GRID += [np.stack([s * COS, SIN, c * COS], 1) for c, s in unit(np.array([0, 60, 120]))]
ASIDE = (-0.15, 0.15)  # where the photographs ride, to the right of ● and of ■


class Trained(NamedTuple):
    seen: np.ndarray  # (2, N, 3): the views on the unit sphere as it is turned
    share: np.ndarray  # (N, N): what each ● gives to each ■, as shares of the row


class sphere(Panel):
    """Twelve points on a sphere, trained by one of five losses step by step."""

    size, row_height, in_sight = (9, 4.6), 3.7, 2
    mosaic, row_mosaic = "sphere table", "sphere"
    knobs = {
        "loss": options("trained by", [name for name in SIX if name != "MMCL"]),
        "step": slider("step of training", 0, 0, STEPS, 1, {0: "start", STEPS: "trained"}),
        "turn": slider("turned to the right, degrees", 0, -END, END, 2),
        "tilt": slider("tilted up, degrees", 0, -END, END, 2),
    }

    def solve(self, values: dict) -> Trained:
        z = trained(values["loss"], values["step"])
        return Trained(z @ rotation(values).T, row_shares(SIX[values["loss"]].solved(z, SMOOTHING)))

    def draw(self, page: Page, values: dict, now: Trained) -> None:
        title = "" if page.row else "drag the ring to turn the sphere; orange joins true partners"
        plane = page.plane("sphere", (-1.35, 1.35), (-1.15, 1.35), title)
        draw_grid(plane, rotation(values))
        found = now.share.argmax(1)
        colours = [VERMILION if j == i else GREY for i, j in enumerate(found)]
        lines = plane.segments(now.seen[0, :, :2], now.seen[1, found, :2], colours, 4)
        dots = draw_points(plane, now.seen)
        table = draw_table(page, "table", now.share, "whom each ● finds: bright is a large share")
        for view, i in POINTS:
            lit = [table[:, i]] if view else [table[i], lines[i]]
            page.link(called(view, i), dots[view][i], lit=lit)
        for i, j in np.ndindex(N, N):
            said = f"{NAMES[i]} to {NAMES[j]}: {now.share[i, j]:.2f}"
            page.link(said, table[i, j], lit=[dots[0][i], dots[1][j]])

    def say(self, values: dict, now: Trained) -> str:
        right = (now.share.argmax(1) == np.arange(N)).sum()
        apart = np.degrees(np.arccos((now.seen[0] * now.seen[1]).sum(-1).clip(-1, 1))).mean()
        return (
            f"Step {values['step']} of training by {values['loss']}: {right} of {N} photographs find their "
            f"own second view; partners are {apart:.0f}° apart on average. The sphere is turned by "
            f"{values['turn']}° and tilted by {values['tilt']}°."
        )


@lru_cache(maxsize=500)
def trained(name: str, step: int) -> np.ndarray:
    """The views (2, N, 3) after so many steps of descent on a loss that is rather hard."""
    if step == 0:
        z = np.random.default_rng(SEED).normal(size=(2, N, 3))
    else:
        z = trained(name, step - 1)
        slope = gradient(SIX[name].solved(z, SMOOTHING), z.reshape(-1, 3)).reshape(z.shape)
        z = z - RATE * slope / max(np.linalg.norm(slope, axis=-1).max(), 1e-12)
    return z / np.linalg.norm(z, axis=-1, keepdims=True)


def rotation(values: dict) -> np.ndarray:
    """First about the upright axis, then about the level one."""
    (c, s), (d, t) = ((np.cos(a), np.sin(a)) for a in np.deg2rad([values["turn"], values["tilt"]]))
    return np.array([[1, 0, 0], [0, d, t], [0, -t, d]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def turned_to(x: float, y: float) -> list[float]:
    """How the sphere is turned and tilted where its foremost point has been dragged there."""
    most = np.sin(np.deg2rad(END))
    turn = np.arcsin(np.clip(x, -most, most))
    return np.rad2deg([turn, np.arcsin(np.clip(y / np.cos(turn), -most, most))]).tolist()


def draw_grid(plane: Plot, R: np.ndarray) -> None:
    """Circles of latitude and longitude, pale at the back. Two cross at the point that turns the sphere."""
    plane.line(COS, SIN, GREY, 1)
    for colour, side in ((PALE, -1), (GREY, 1)):
        for ring in GRID:
            x, y, depth = (ring @ R.T).T
            line = plane.line(np.where(side * depth >= 0, x, np.nan), y, colour, 0.8)
    line.handle("sphere", R[:2, 2], "turn", "tilt", to=turned_to, label="the sphere")


def draw_points(plane: Plot, seen: np.ndarray) -> list[Mark]:
    """The photographs, larger where they are nearer, and the signs on top of them."""
    for view, i in POINTS:
        (x, y, depth), face = seen[view, i], two_views()[view, [i]]
        plane.photographs([x + ASIDE[view], y], face, 0.28 + 0.06 * depth, hangs="bottom", up=6)
    return [plane.dots(points[:, :2], INK, sign, 11) for points, sign in zip(seen, "●■")]

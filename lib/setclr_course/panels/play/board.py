"""How the playground looks: points on their circles or their sphere, who looks at whom, and the curves."""

from functools import cache
from itertools import combinations

import numpy as np

from setclr_course.kit.cast import NAMES, photographs, two_views
from setclr_course.kit.circle import unit
from setclr_course.kit.palette import DUSK, GREY, INK, OF_CLASS, OF_LOSS, PALE, VERMILION, WHITE
from setclr_course.kit.scene import Mark, Page, Plot
from setclr_course.panels.play.points import Points
from setclr_course.panels.play.rules import Seen

MOST = 24  # things
RADII = np.array([1.0, 0.8, 0.62, 0.46])  # of the circles of the views
SIGNS = "●■▲◆"
WIDE, LEAST = 6.5, 0.05  # pixels of the line of a whole share, and the smallest share that has one
LONG, REST = 0.4, 1e-7  # the longest arrow, and the push below which all is at rest
COS, SIN = unit(np.arange(0, 361, 10)).T
GRID = np.array([[COS, 0 * COS, SIN], [0 * COS, SIN, COS], [COS, SIN, 0 * COS]])  # the equator, two meridians


@cache
def faces() -> list[list[np.ndarray]]:
    """Two views of 24 things: the six photographs, then three corners of each; and of the first once more."""
    corners = [np.s_[:32, :32], np.s_[:32, 32:], np.s_[32:, 32:]]
    parts = np.concatenate([photographs()[(slice(None), *corner)] for corner in corners])
    return [[*view, *part, view[0]] for view, part in zip(two_views(), (parts, parts[:, :, ::-1]))]


def face_of(thing: int, of: dict) -> int:
    """The last thing may be the first one again, which has its own place among the faces."""
    return MOST if of["same"] == "yes" and thing == of["things"] - 1 else thing


def called(view: int, thing: int, of: dict) -> str:
    number = thing // len(NAMES) + 1
    name = f"{NAMES[thing % len(NAMES)]}{f' {number}' * (number > 1)}"
    if of["set"] != "photographs":
        name = f"dot {thing + 1}"
    elif face_of(thing, of) == MOST:
        name = f"{NAMES[0]} again"
    return f"{SIGNS[view]} {name}"


def classes(of: dict) -> np.ndarray:
    """(n,): photographs of one thing have one label, dots that of their class."""
    kinds, same = of["things"] if of["set"] == "photographs" else int(of["set"][0]), of["same"] == "yes"
    return np.array([*(np.arange(of["things"] - same) % kinds), *([0] * same)])


def rotation(of: dict) -> np.ndarray:
    """First about the upright axis, then about the level one."""
    (c, s), (d, t) = ((np.cos(a), np.sin(a)) for a in np.deg2rad([of["turn"], of["tilt"]]))
    return np.array([[1, 0, 0], [0, d, t], [0, -t, d]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def flat(x: np.ndarray, of: dict) -> np.ndarray:
    """Where vectors (M, E) at the points are drawn."""
    if x.shape[1] == 3:
        return (x @ rotation(of).T)[:, :2]
    return x * np.repeat(RADII[: of["views"]], of["things"])[:, None]


def draw_ground(plot: Plot, of: dict) -> None:
    """The circles of the views, or the sphere, whose grid is pale at the back."""
    if of["surface"] == "circle":
        for radius in RADII[: of["views"]]:
            plot.line(radius * COS, radius * SIN, GREY, 0.7)
        return
    plot.line(COS, SIN, GREY, 1)
    for x, y, depth in rotation(of) @ GRID:
        for colour, side in ((PALE, -1), (GREY, 1)):
            plot.line(np.where(side * depth >= -1e-9, x, np.nan), y, colour, 0.8)


def draw_points(page: Page, name: str, x: np.ndarray, now: Seen, pinned: np.ndarray, of: dict) -> list[Mark]:
    """Points x (M, E) with their lines, pushes, photographs, pins and signs, which are returned."""
    loss = of["loss"] + (f" + {of['qare']:.4g} · QARe" if of["qare"] else "")
    far = 1.5 if of["surface"] == "circle" else 1.25
    plot = page.plane(name, (-far, far), title=f"{loss}: {now.first} of {len(x)} find a partner first")
    draw_ground(plot, of)
    at, n = flat(x, of), of["things"]
    both = (now.shares + now.shares.T) / 2
    pairs = [(a, b) for a, b in combinations(range(len(x)), 2) if both[a, b] > LEAST]
    one, two = np.reshape(pairs, (-1, 2)).astype(int).T
    colours = [VERMILION if a % n == b % n else GREY for a, b in pairs]
    plot.segments(at[one], at[two], colours or GREY, WIDE * both[one, two])
    most = np.linalg.norm(now.gradient, axis=1).max()
    push = -LONG * now.gradient / most if most > REST else 0 * now.gradient
    plot.arrows(at, at + (flat(push, of) if x.shape[1] == 3 else push), OF_LOSS.get(of["loss"], DUSK), 2)
    for view in range(2):
        places = np.full((MOST + 1, 2), np.nan)
        if of["set"] == "photographs" and (view == 0 or (n <= 8 and of["views"] == 2 and x.shape[1] == 2)):
            ride = at[view * n : view * n + n] * ((1.26, 0.66)[view] if x.shape[1] == 2 else 1)
            places[[face_of(i, of) for i in range(n)]] = ride
        names = [page.picture(face) for face in faces()[view]]
        plot.photographs(places, names, 0.28 if n <= 8 else 0.2, up=0 if x.shape[1] == 2 else 18)
    plot.dots(at[pinned], WHITE, size=19, edge=INK)
    colours, size = [OF_CLASS[kind % 4] for kind in classes(of)], 11 if n <= 12 else 9
    inks = INK if of["set"] == "photographs" else colours
    parts = at.reshape(of["views"], n, 2)
    return [plot.dots(part, inks, sign, size) for part, sign in zip(parts, SIGNS)]


def draw_table(page: Page, name: str, shares: np.ndarray, of: dict) -> Mark:
    """A row for each point, view by view, and lines between the views."""
    M, n = len(shares), of["things"]
    plot = page.table(name, M, M, "who looks at whom: a row each", xlabel=of["loss"])
    cells = plot.cells(shares)
    down = np.array([[(k * n - 0.5, -0.5), (k * n - 0.5, M - 0.5)] for k in range(1, of["views"])])
    cuts = np.concatenate([down, np.flip(down, 2)])
    plot.segments(cuts[:, 0], cuts[:, 1], GREY, 1.5)
    return cells


def draw_curve(page: Page, found: Points, losses: list[str]) -> None:
    """The losses by step, each in its colour; that of the second one dashed."""
    curves = [np.array(curve) / 1000 for curve in found.curves[: len(losses)]]
    shown = np.concatenate([[] if found.curves[0] else [0, 1], *curves])
    low, last = shown.min(), max(found.steps, 20)
    high = max(shown.max(), low + 1e-3)
    ticks: dict = {"xticks": [0, last], "yticks": {low: f"{low:.3g}", high: f"{high:.3g}"}}
    plot = page.plot("curve", (0, last), (low, high), "the loss, step by step", "step", **ticks)
    for number, (curve, loss) in enumerate(zip(curves, losses)):
        if len(curve):
            steps = found.every * np.arange(len(curve))
            plot.line(steps, curve, OF_LOSS.get(loss, DUSK), 2, "dash" * number)
    if not found.curves[0]:
        plot.text(last / 2, (low + high) / 2, "it begins with ▶ or a step", DUSK)

"""The playground: a set of points, one loss or two beside one another, and training that one looks at.

It trains where it is looked at, in the browser: playground.js beside this file, in which all this is written
a second time, and the other files of JavaScript here.
"""

from functools import partial
from typing import Any

import numpy as np

from setclr_course.kit import layout
from setclr_course.kit.controls import Written
from setclr_course.kit.handles import Circle
from setclr_course.kit.palette import OF_LOSS
from setclr_course.kit.panel import Page, Panel, log_slider, options, slider
from setclr_course.panels.play import board, points
from setclr_course.panels.play.points import Points
from setclr_course.panels.play.rules import OF_TWO_VIEWS, RULES, Seen, seen

NOTHING = "nothing"
WAYS = (  # how the plots of one loss lie, and of two: in pixels, with shares of columns and rows
    ("one table-1; one curve", (864, 480), (1.3, 1), ()),
    ("one two; table-1 table-2; curve curve", (864, 864), (), (1.4, 1, 0.5)),
)
Side = tuple[dict, np.ndarray, Seen]  # of a loss its knobs, its points x (M, E), what it says
END = 80  # degrees: so far the sphere turns either way


def knobs_of(side: str) -> dict[str, Any]:
    """The knobs of the first loss, or of the one beside it."""
    of = " of the second loss" if side else ""
    found = {
        "loss": options("and beside it", [NOTHING, *RULES]) if side else options("loss", RULES),
        "temperature": log_slider(f"temperature τ, ε{of}", 0.2, 0.02, 2, 0.05, {0.07: "MoCo", 0.5: "SimCLR"}),
        "margin": slider(f"margin{of}", 0.5, 0.0, 1.5, 0.05),
        "beta": log_slider(f"steepness β{of}", 1.0, 0.1, 30, 0.1),
        "negatives": slider(f"negatives in the list{of}", 10, 1, 20, 1),
        "rounds": slider(f"rounds{of}", 5, 1, 20, 1),
        "C": log_slider(f"bound C{of}", 100, 0.01, 100, 0.1),
        "kernel": options(f"kernel{of}", ("rbf", "linear")),
        "width": log_slider(f"kernel's width σ²{of}", 1.0, 0.1, 10, 0.1),
        "qare": slider(f"weight of QARe{of}", 0.0, 0.0, 3.0, 0.125),
    }
    return {name + side: knob for name, knob in found.items()}


class playground(Panel):
    """Points of your own making, and losses that train them."""

    size, in_sight, row_height = (9, 5), 23, 3.4
    row_mosaic, words = "one", OF_LOSS
    knobs = {
        "points": Written("points", points.VERSION, points.READABLE),
        **knobs_of(""),
        **knobs_of(" 2"),
        "rate": log_slider("rate of a step", round(10**-0.5, 12), 0.01, 100, 0.1),
        "momentum": slider("momentum", 0.0, 0.0, 0.95, 0.05),
        "set": options("set", ("photographs", "2 classes", "3 classes", "4 classes")),
        "things": slider("how many things", 6, 4, board.MOST, 1),
        "views": slider("views of each", 2, 2, 4, 1),
        "scatter": slider("how far views scatter, degrees", 60, 5, 180, 5),
        "surface": options("on a", ("circle", "sphere")),
        "same": options("two of them are one thing", ("no", "yes")),
        "draw": slider("another draw", 0, 0, 99, 1),
        "turn": slider("turned to the right, degrees", 0, -END, END, 2),
        "tilt": slider("tilted up, degrees", 0, -END, END, 2),
    }

    @classmethod
    def at(cls, angles: np.ndarray, **initial: Any) -> "playground":
        """The playground with views (V, N) of photographs at these angles in degrees, on a circle."""
        begun = points.hundredths(np.reshape(angles, (-1, 1)) % 360)
        values = cls(views=len(angles), things=angles.shape[1], **initial).values
        return cls(**values | {"points": points.written(points.fresh(begun), values)})

    @property
    def mosaic(self) -> str:  # type: ignore[override]
        return WAYS[self.values["loss 2"] != NOTHING][0]

    def to_json(self) -> dict[str, Any]:
        """Also how the plots lie of which there are more, or fewer, than now."""
        ways = [
            {"size": size, "boxes": layout.boxes(mosaic, *size, *shares)} for mosaic, size, *shares in WAYS
        ]
        return super().to_json() | ways[self.values["loss 2"] != NOTHING] | {"layouts": ways}

    def solve(self, values: dict) -> tuple[Points, list[Side]]:
        found, sides = points.read(values["points"], values), []
        for side, x in zip(("", " 2"), map(points.vectors, found.now)):
            of = values | {name: values[name + side] for name in knobs_of("")}
            if of["loss"] != NOTHING:
                sides.append((of, x, seen(x, board.classes(of), of["views"], of)))
        return found, sides

    def draw(self, page: Page, values: dict, now: tuple[Points, list[Side]]) -> None:
        found, sides = now
        for number, (of, x, told) in enumerate(sides):
            signs = board.draw_points(page, ("one", "two")[number], x, told, found.pinned, of)
            if page.row:
                return
            cells = board.draw_table(page, f"table-{number + 1}", told.shares, of)
            for place, spot in enumerate(board.flat(x, of)):
                view, thing = divmod(place, of["things"])
                name = board.called(view, thing, of)
                way = Circle(radius=board.RADII[view]) if of["surface"] == "circle" else "plane"
                how: dict = {"to": partial(moved, found, of, place, x[place]), "step": 0.03, "along": way}
                how["label"] = name + ", second loss" * number
                signs[view].handle(f"{place} {number}", spot, "points", **how)
                page.link(name, signs[view][thing], lit=[cells[place]])
        board.draw_curve(page, found, [of["loss"] for of, *_ in sides])

    def say(self, values: dict, now: tuple[Points, list[Side]]) -> str:
        told = f"Step {now[0].steps}."
        for of, x, found in now[1]:
            views = " of views 1 and 2" * (of["views"] > 2 and of["loss"] in OF_TWO_VIEWS)
            told += f" {of['loss']}{' + QARe' * bool(of['qare'])}{views}: loss {found.value:.3g}, "
            told += f"{found.first} of {len(x)} points find a partner first, "
            told += f"alignment {found.align:.2f}, uniformity {found.uniform:.2f}."
        return told


def moved(found: Points, of: dict, place: int, at: np.ndarray, x: float, y: float) -> list[str]:
    """One point is dragged, for both losses: training begins anew from where all points are."""
    to = np.array([x, y])
    if len(at) == 3:
        R, to = board.rotation(of), to / max(1, np.hypot(x, y))
        depth = np.sqrt(max(0, 1 - to @ to))
        to = R.T @ [*to, depth if (R @ at)[2] >= 0 else -depth]
    if points.place_of(to) == points.place_of(at):
        return [of["points"]]
    now = found.now[0].copy(), found.now[1].copy()
    now[0][place] = now[1][place] = points.place_of(to)
    return [points.written(points.fresh(now[0])._replace(now=now, pinned=found.pinned), of)]

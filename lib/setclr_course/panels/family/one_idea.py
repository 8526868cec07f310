"""The one idea of the course: two views of six photographs look for each other, and training makes them find
their partners."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import VERMILION
from setclr_course.panels.family.batch import FAMILY
from setclr_course.panels.family.plane import (
    POINTS,
    N,
    angle_of,
    angle_sliders,
    angles_of,
    control,
    draw_plane,
    pair_of,
)
from setclr_course.pixels.circle import RADII, as_drawn, on_circle
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.handles import Circle, Handle, Link, cell, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, frames

STEPS = 30  # of training
STEP = 0.16  # the farthest that a point turns in one, in radians
ANGLES = ((80, 20, 320, 250, 200, 140), (110, 345, 285, 215, 60, 180))  # where the views begin
WAYS = {"softmax": "InfoNCE", "sort": "GroCo", "transport": "IOT both", "support vectors": "MMCL"}
FINDINGS = {
    "softmax": "each ● shares itself out among the ■",
    "sort": "each ● sorts the ■: who comes first?",
    "transport": "as softmax, but each ■ gets its share too",
    "support vectors": "whom each ● pushes: dark is nobody",
}
TITLE = "drag ● and ■; thick is a large share, orange to the partner"


class State(NamedTuple):
    z: np.ndarray  # (2, N, 2): the views on the unit circle
    share: np.ndarray  # (N, N): what each ● (row) gives to each ■ (column), as shares of the row


def one_idea(**initial) -> Panel:
    """Two views of six photographs on a circle, the matching inside a loss, and training that mends it."""
    controls = {
        "way": options("they look for each other by", WAYS),
        "softness": log_slider("softness (temperature)", 0.4, 0.04, 10, 0.05, {0.14: "MoCo", 1: "SimCLR"}),
        "step": slider("step of training", 0, 0, STEPS, 1, {0: "start", STEPS: "trained"}),
    }
    return Panel(build, controls | angle_sliders(ANGLES), (9, 4.4), initial, 2.4, in_sight=2, play="step")


def state(values: dict) -> State:
    angles = angles_of(values)
    made = FAMILY[WAYS[values["way"]]].at(values["softness"])
    z = trained(angles, values["way"])[values["step"]] if values["step"] else on_circle(angles)
    part = made.assignment(z)[:N, N:]
    return State(z.numpy(), (part / part.sum(1, keepdim=True).clamp(min=1e-12)).numpy())


@lru_cache(maxsize=32)
def trained(angles: tuple, way: str) -> list[Tensor]:
    """The views (2, N, 2) before each step of gradient descent on the loss, and after the last."""
    loss = FAMILY[WAYS[way]].at(0.4)
    turned = torch.tensor(angles, dtype=torch.float64).deg2rad()
    path = []
    for _ in range(STEPS + 1):
        turned = turned.detach().requires_grad_()
        z = torch.stack([turned.cos(), turned.sin()], dim=-1)
        path.append(z.detach())
        (slope,) = torch.autograd.grad(loss(z), turned)
        turned = turned - STEP * slope / slope.abs().max().clamp(min=1e-12)
    return path


def build(figure, compact: bool) -> Drawing:
    left, right = figure.subplots(1, 2, width_ratios=(1, 1))
    plane, matrix = draw_plane(left, "" if compact else TITLE), draw_matrix(right, compact)
    now: list[State] = []

    def update(values: dict) -> str:
        now[:] = [state(values)]
        plane.move(now[0].z, now[0].share)
        matrix.move(now[0])
        if not compact:
            right.title.set_text(FINDINGS[values["way"]])
        return sentence(now[0], values)

    def handle(view: int, i: int) -> Handle:
        moves, ring = (control(view, i), "step"), Circle(radius=RADII[view])
        place, label = lambda _: as_drawn(now[0].z)[view, i], f"{'●■'[view]} {NAMES[i]}"
        return Handle(left, moves, place, ring, lambda x, y: (angle_of(x, y), 0), label)

    handles = {control(view, i): handle(view, i) for view, i in POINTS}
    artists = [*plane.artists, *matrix.artists, *([] if compact else [right.title])]
    return Drawing(artists, update, handles, lambda: links(left, right, now[0]))


def sentence(now: State, values: dict) -> str:
    others = np.where(np.eye(N), 0, now.share).max(1)
    found = int((now.share.diagonal() > others + 1e-9).sum())  # who is as near as another is not found
    mean = now.share.trace() / N
    what = f"{found} of 6 photographs find their own second view first; on average it gets {mean:.0%}"
    if values["way"] == "support vectors":
        what = f"{int((now.share < 1e-9).sum()) - N} of the 30 wrong pairs have weight zero"
    return f"Step {values['step']}, {values['way']} of softness {values['softness']:.2g}: {what}."


def links(left, right, now: State) -> list[Link]:
    """Each cell with its two points, and each point with its row or column."""
    points = as_drawn(now.z)
    pairs = [
        Link([cell(right, i, j)], pair_of(left, points[0, i], points[1, j]), f"{one} to {two}: {share:.2f}")
        for (i, j), share in np.ndenumerate(now.share)
        for one, two in [(NAMES[i], NAMES[j])]
    ]
    blocks = [cell(right, i, 0, 1, N) if view == 0 else cell(right, 0, i, N, 1) for view, i in POINTS]
    single = [Link([dot(left, points[at])], [block], NAMES[at[1]]) for at, block in zip(POINTS, blocks)]
    return pairs + single


def draw_matrix(axis, compact: bool) -> Part:
    """The shares, a row for each ●, with the photographs along two sides and frames round the true pairs."""
    mesh = cells(axis, N, N)
    axis.set(xlim=(-1.7, N - 0.5), ylim=(N - 0.5, -1.7))
    for i, (one, two) in enumerate(zip(*two_views())):
        axis.imshow(one, extent=(-1.45, -0.65, i + 0.4, i - 0.4))
        axis.imshow(two, extent=(i - 0.4, i + 0.4, -0.65, -1.45))
    axis.set(xlim=(-1.7, N - 0.5), ylim=(N - 0.5, -1.7), autoscale_on=False)
    bare(axis)
    true_pairs = frames(axis, [(i, i) for i in range(N)], VERMILION, 2)
    if not compact:
        axis.set_xlabel("framed: the true pairs; bright: a large share", fontsize=9)
    return Part([mesh, true_pairs], lambda now: mesh.set_array(now.share))

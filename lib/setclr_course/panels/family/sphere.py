"""Two views of six photographs on a sphere that can be turned: whom each finds while a loss trains them."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
import torch
from matplotlib.collections import LineCollection
from torch import Tensor
from torch.nn.functional import normalize

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, INK, VERMILION
from setclr_course.panels.family.batch import SIX
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.panel import Drawing
from setclr_course.pixels.parts import bare
from setclr_course.pixels.plotted import PlottedPanel
from setclr_course.pixels.riders import riders

N, STEPS, RATE = len(NAMES), 40, 0.12
EDGE = {"visible": False, "range": [-1.1, 1.1]}
LAYOUT = {
    "scene": {"xaxis": EDGE, "yaxis": EDGE, "zaxis": EDGE, "aspectmode": "cube",
              "camera": {"eye": {"x": 1.0, "y": 0.8, "z": 0.6}}}  # nearer than plotly's own
}  # fmt: skip
CAMERA = np.linalg.qr(np.array([[1.0, 0.3, 0.2], [-0.4, 1.0, 0.5], [0.3, -0.3, 1.0]]))[0]  # of the twin


class State(NamedTuple):
    z: np.ndarray  # (2, N, 3)
    found: np.ndarray  # (N,): which ■ each ● gives most to


def sphere(**initial) -> PlottedPanel:
    """Twelve points on a sphere, trained by one of five losses step by step."""
    controls = {
        "loss": options("trained by", [name for name in SIX if name != "MMCL"]),
        "step": slider("step of training", 0, 0, STEPS, 1, {0: "start", STEPS: "trained"}),
    }
    signs = [
        go.Scatter3d(
            mode="markers+text", marker={"size": 6, "color": INK, "symbol": symbol}, hoverinfo="text"
        )
        for symbol in ("circle", "square")
    ]
    lines = [
        go.Scatter3d(mode="lines", line={"width": 6, "color": colour}, hoverinfo="skip")
        for colour in (VERMILION, GREY)
    ]
    return PlottedPanel(
        build,
        controls,
        [shell(), *lines, *signs],
        LAYOUT,
        traces,
        (9, 4.6),
        initial,
        row_height=3.7,
        in_sight=2,
    )


def shell() -> go.Scatter3d:
    """Circles of latitude and longitude, so that the sphere is seen."""
    angle = np.linspace(0, 2 * np.pi, 61)
    rings = [np.stack([np.cos(angle), np.sin(angle), 0 * angle])]
    rings += [
        np.stack([np.cos(t) * np.cos(angle), np.sin(t) * np.cos(angle), np.sin(angle)])
        for t in (0, 1.05, 2.1)
    ]
    x, y, z = np.concatenate([np.concatenate([ring, np.full((3, 1), np.nan)], 1) for ring in rings], 1)
    return go.Scatter3d(x=x, y=y, z=z, mode="lines", line={"width": 1, "color": GREY}, hoverinfo="skip")


@lru_cache
def trained(name: str) -> list[Tensor]:
    """The views (2, N, 3) before each step of descent on a loss that is rather hard, and after the last."""
    generator = torch.Generator().manual_seed(2)
    points = torch.randn(2, N, 3, generator=generator, dtype=torch.float64)
    loss, path = SIX[name](0.2), []
    for _ in range(STEPS + 1):
        z = normalize(points.detach(), dim=-1).requires_grad_()
        path.append(z.detach())
        (slope,) = torch.autograd.grad(loss(z), z)
        points = z - RATE * slope / slope.norm(dim=-1).max().clamp(min=1e-12)
    return path


def state(values: dict) -> State:
    z = trained(values["loss"])[values["step"]]
    return State(z.numpy(), SIX[values["loss"]](0.2).assignment(z)[:N, N:].argmax(1).numpy())


def traces(values: dict) -> list[dict]:
    """What moves in the plotly figure: the shell does not, then true and wrong lines, then both views."""
    now = state(values)
    data: list[dict[str, Any]] = [{}]
    for true in (True, False):
        ends = [
            np.stack([now.z[0, i], now.z[1, j], np.full(3, np.nan)])
            for i, j in enumerate(now.found)
            if (i == j) == true
        ]
        points = np.concatenate(ends) if ends else np.full((1, 3), np.nan)
        data.append(dict(zip("xyz", points.T)))
    for view in now.z:
        data.append({**dict(zip("xyz", view.T)), "text": NAMES})
    return data


def build(figure, compact: bool) -> Drawing:
    """The twin: the same points seen from one side, with their photographs."""
    axis = figure.subplots()
    bare(axis, (-2.3, 2.3) if not compact else (-1.35, 1.35), (-1.25, 1.35))
    around = np.linspace(0, 2 * np.pi, 100)
    axis.plot(np.cos(around), np.sin(around), color=GREY, linewidth=0.6, zorder=0)
    lines = axis.add_collection(LineCollection([], linewidths=3, zorder=2))
    faces = riders(axis, np.concatenate(two_views()), 0.26, 0.06)
    dots = [axis.plot([], [], s, color=INK, markersize=8, markeredgecolor="white", zorder=5)[0] for s in "os"]

    def update(values: dict) -> str:
        now = state(values)
        flat = now.z @ CAMERA[:, :2]
        lines.set_segments([[flat[0, i], flat[1, j]] for i, j in enumerate(now.found)])
        lines.set_colors([VERMILION if i == j else GREY for i, j in enumerate(now.found)])
        faces.move(flat.reshape(-1, 2))
        for sign, view in zip(dots, flat):
            sign.set_data(*view.T)
        right = int((now.found == np.arange(N)).sum())
        return (
            f"Step {values['step']} of training by {values['loss']}: {right} of {N} photographs find their "
            f"own second view; partners are {angle_between(now.z):.0f}° apart on average."
        )

    axis.set_title("turn the sphere; an orange line joins true partners" if not compact else "", color=INK)
    return Drawing([lines, *faces.artists, *dots], update)


def angle_between(z: np.ndarray) -> float:
    """The mean angle between true partners, in degrees."""
    return float(np.degrees(np.arccos((z[0] * z[1]).sum(-1).clip(-1, 1))).mean())

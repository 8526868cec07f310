"""An anchor, two positives and five negatives on a line: whom GroCo and InfoNCE push, and who gets the first
places (GroCo, figures 1 and 2, eq. 1, 5 and 6)."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from torch.nn import functional as F

from setclr.inner import sorting_network
from setclr_course.kit.cast import NAMES, photographs, two_views
from setclr_course.kit.palette import BLUE, GREY, INK, MIST, OCHRE, ORANGE
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.handles import Handle, Link, box, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

K = 2
WHO = (*NAMES[1:], "cat a", "cat b")  # the negatives in index order, then the positives
START = (0.5, 1.0, 1.2, 0.8, 1.45, 0.35, 0.65)  # distances 1 − s; the coffee is the hardest negative
END = 1.9
TEMPERATURE = 0.5
LONGEST = 0.16  # of the arrows, in distances


class Pushed(NamedTuple):
    chance: np.ndarray  # (7,): to be at one of the first two places, in the order of WHO
    loss: float  # GroCo of the anchor's list
    groco: np.ndarray  # (7,): −∂loss/∂similarity: above 0 it pulls
    info_nce: np.ndarray  # (7,)


def first_places(**initial) -> Panel:
    """Drag any of the seven; arrows show where two losses push them, bars who gets the first two places."""
    controls = {
        "beta": log_slider("steepness β", 8, 0.8, 80, 0.1, {8: "8", 80: "80"}),
        "preorder": options("pre-ordering", ["on", "off"]),
    }
    for name, at in zip(WHO, START):
        controls[name] = slider(f"{name}, distance", at, 0.1, END, 0.05)
    return Panel(build, controls, (9, 4.6), initial, 3.2)


def pushed(distances: ArrayLike, beta: float, preorder: bool) -> Pushed:
    """Both losses of the anchor's list, and their slopes by the similarities."""
    s = torch.tensor(1 - np.array(distances), requires_grad=True)
    order = torch.cat([s[:-K].argsort(), s[-K:].argsort() + len(s) - K]) if preorder else torch.arange(len(s))
    p = sorting_network(s[order], beta).P[-K:].sum(0).clamp(0, 1)
    loss = F.binary_cross_entropy(p, (order >= len(s) - K).to(p))
    logits = s / TEMPERATURE
    other = (torch.logaddexp(logits[:-K].logsumexp(0), logits[-K:]) - logits[-K:]).mean()
    slopes = [torch.autograd.grad(each, s)[0].numpy() for each in (loss, other)]
    return Pushed(p.detach()[order.argsort()].numpy(), loss.item(), -slopes[0], -slopes[1])


def build(figure, compact: bool) -> Drawing:
    line, bars = figure.subplots(2, 1, height_ratios=(1, 1.1) if compact else (1.25, 1))
    parts = [draw_line(line, compact), draw_chances(bars, compact)]
    now: dict = {}

    def update(values: dict) -> str:
        distances = [values[name] for name in WHO]
        found = pushed(distances, values["beta"], values["preorder"] == "on")
        now.update(distances=distances, found=found)
        for part in parts:
            part.move(np.array(distances), found)
        return sentence(values, np.array(distances), found)

    def handle(name: str) -> Handle:
        return Handle(line, (name,), lambda values: (values[name], 0), along="x")

    handles = {} if compact else {name: handle(name) for name in WHO}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(line, bars, now))


def within(distances: np.ndarray) -> np.ndarray:
    """Who stands in the overlap, from the nearest negative to the farther positive."""
    return (distances >= distances[:-K].min()) & (distances <= distances[-K:].max())


def sentence(values: dict, distances: np.ndarray, found: Pushed) -> str:
    inside = within(distances)
    shares = [np.abs(push[inside]).sum() / np.abs(push).sum() for push in (found.groco, found.info_nce)]
    hardest = int(distances[:-K].argmin())
    where = f"{inside.sum()} of the seven overlap" if inside.any() else "Nobody overlaps"
    p, at = found.chance, distances
    return (
        f"β = {values['beta']:.3g}, pre-ordering {values['preorder']}. {where}; GroCo spends "
        f"{shares[0]:.0%} of its push on them, InfoNCE {shares[1]:.0%}. The hardest negative, "
        f"{WHO[hardest]} at {at[hardest]:.2f}, gets a first place with {p[hardest]:.2f}, the positives at "
        f"{at[-2]:.2f} and {at[-1]:.2f} with {p[-2]:.2f} and {p[-1]:.2f}. GroCo's loss is {found.loss:.3f}."
    )


def links(line, bars, now: dict) -> list[Link]:
    """A photograph on the line and its bar."""
    return [
        Link([dot(line, (d, 0)), box(bars, (d - 0.025, 0), (d + 0.025, max(p, 0.05)))],
             text=f"{name}: d = {d:.2f}, a first place with {p:.3f}")
        for name, d, p in zip(WHO, now["distances"], now["found"].chance)
    ]  # fmt: skip


def draw_line(axis, compact: bool) -> Part:
    """The anchor at 0, the seven, and arrows of both losses; moved by the distances (7,) and pushes."""
    bare(axis)
    axis.set(xlim=(-0.12, END + 0.1), ylim=(-1.25, 1.1))
    axis.plot([0, END], [0, 0], color=GREY, linewidth=1, zorder=0)
    axis.plot(0, 0, "*", color=INK, markersize=14)
    if not compact:
        axis.set_title("GroCo pushes mostly where ✚ and ✕ overlap")
        axis.text(END + 0.08, -0.5, "GroCo", color=OCHRE, weight="bold", va="center", ha="right")
        axis.text(END + 0.08, -0.95, "InfoNCE", color=BLUE, weight="bold", va="center", ha="right")
        axis.text(0, -0.2, "distance from ★", fontsize=9, va="top", ha="center")
    size = 0.13 if compact else 0.085
    riders(axis, two_views()[0][:1], size, 0.3).move(np.zeros((1, 2)))
    band = axis.add_patch(Rectangle((0, -0.18), 0, 0.36, color=MIST))
    faces = riders(
        axis, np.concatenate([two_views()[0][1:], two_views()[1][:1], photographs()[:1]]), size, 0.3
    )
    signs = [
        axis.plot([], [], sign, color=INK, markersize=9 if compact else 12, markeredgecolor="white")[0]
        for sign in "XP"
    ]
    arrows = draw_arrows(axis)

    def move(distances: np.ndarray, found: Pushed) -> None:
        low, high = distances[:-K].min(), distances[-K:].max()
        band.set(x=low, width=max(high - low, 0))
        for sign, group in zip(signs, (distances[:-K], distances[-K:])):
            sign.set_data(group, 0 * group)
        faces.move(np.column_stack([distances, 0 * distances]))
        arrows.move(distances, found)

    return Part([band, *faces.artists, *signs, *arrows.artists], move)


def draw_arrows(axis) -> Part:
    """Where each loss pushes, each in units of its longest arrow; moved by the distances (7,) and pushes."""
    flights = LineCollection([], colors=[ORANGE] * 7 + [BLUE] * 7, linewidths=2.6)
    axis.add_collection(flights)
    tips = [axis.plot([], [], way, color=colour, markersize=7)[0]
            for colour in (ORANGE, BLUE) for way in "<>"]  # fmt: skip

    def move(distances: np.ndarray, found: Pushed) -> None:
        segments = []
        for row, push in enumerate((found.groco, found.info_nce)):
            y = np.where(np.arange(len(WHO)) < len(WHO) - K, -0.6, -0.42) - 0.45 * row  # ✚ above ✕
            to = distances - LONGEST * push / np.abs(push).max()
            seen = np.abs(to - distances) > 0.05 * LONGEST
            ends = np.where(seen, to, distances)
            segments += [[(d, at), (e, at)] for d, e, at in zip(distances, ends, y)]
            for tip, toward in zip(tips[2 * row : 2 * row + 2], (push > 0, push < 0)):
                tip.set_data(to[seen & toward], y[seen & toward])
        flights.set_segments(segments)

    return Part([flights, *tips], move)


def draw_chances(axis, compact: bool) -> Part:
    """For each its chance of one of the first two places; moved by the distances (7,)."""
    axis.set(xlim=(-0.12, END + 0.1), ylim=(0, 1.18), yticks=(0, 1), xticks=())
    axis.set_title(
        "chance of a first place" + "; it should be ✚ 1, ✕ 0" * (not compact), fontsize=9 if compact else 11
    )
    bars = [axis.add_patch(Rectangle((0, 0), 0.05, 0, color=ORANGE)) for _ in WHO]
    numbers = [axis.text(0, 0, "", ha="center", va="bottom", fontsize=8 if compact else 10) for _ in WHO]

    def move(distances: np.ndarray, found: Pushed) -> None:
        for i, (bar, number, d, p) in enumerate(zip(bars, numbers, distances, found.chance)):
            bar.set_bounds(d - 0.025, 0, 0.05, p)
            number.set(x=d, y=p + 0.02, text=f"{p:.2f}", color=INK if i >= len(WHO) - K else GREY)

    return Part([*bars, *numbers], move)

"""Five numbers let loose: their way downhill on InfoNCE and on GroCo, step by step (GroCo, figure 4)."""

from collections.abc import Collection
from functools import lru_cache, partial
from math import atan, pi

import numpy as np
from matplotlib.collections import LineCollection

from setclr.checks import choice
from setclr_course.kit.palette import GREY, INK, OF_LOSS
from setclr_course.panels.sorting.five import FIVE, faces, spread
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle, Link, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part
from setclr_course.pixels.riders import Riders

STARTS = {"cat": 0.0, "coffee": 1.5, "astronaut": 0.75, "rocket": -1.5, "temple": -0.75}
STEPS, RATE = 200, 0.3
LOW, HIGH = -3.4, 5.2  # of the picture
STRIDE = 5  # steps from one frame of the film to the next
LAYERS = [(left, left + 1) for layer in range(5) for left in range(layer % 2, 4, 2)]
LAST = FIVE.index("rocket")


def downhill(losses: Collection[str] = ("InfoNCE", "GroCo"), **initial) -> Panel:
    """The five numbers' paths under both losses, or one; the starts can be dragged, the steps played."""
    losses = [choice("losses", loss, LOSSES) for loss in losses]
    knobs = {
        "InfoNCE": log_slider("temperature τ of InfoNCE", 1, 0.1, 3, 0.05, {0.1: ".1", 1: "1"}),
        "GroCo": log_slider("how sharply GroCo sorts", 1, 0.1, 10, 0.1, {1: "paper 1", 8: "8"}),
    }
    controls = {"step": slider("step", STEPS, 0, STEPS, STRIDE)}
    controls |= {KNOBS[loss]: knobs[loss] for loss in losses}
    controls |= {name: slider(f"start of {name}", s, -2.5, 2.5, 0.05) for name, s in STARTS.items()}
    size, row_height = (4.5 * len(losses), 4.8), 2.7 * len(losses)
    return Panel(partial(build, losses=losses), controls, size, initial, row_height, play="step")


def info_nce_push(s: np.ndarray, temperature: float) -> np.ndarray:
    """Minus the gradient of InfoNCE by s (5,), the positive first: (truth − share) / τ."""
    powers = np.exp((s - s.max()) / temperature)
    push = -powers / powers.sum() / temperature
    push[0] += 1 / temperature
    return push


def groco_push(s: np.ndarray, sharpness: float) -> np.ndarray:
    """Minus the gradient of GroCo by s (5,), the positive first, by hand: autograd needs 0.7 ms a step."""
    order = [*(1 + np.argsort(s[1:])), 0]  # the negatives sorted, then the positive
    place, swaps = s[order].tolist(), []
    for left, right in LAYERS:
        over = place[left] - place[right]
        f = atan(sharpness * over) / pi + 0.5
        place[left] -= f * over
        place[right] += f * over
        swaps.append((over, f))
    top, before = [0.0, 0.0, 0.0, 0.0, 1.0], []  # how probably each place is sorted to the top
    for (left, right), (_, f) in zip(reversed(LAYERS), reversed(swaps)):
        before.append(top[right] - top[left])
        top[left], top[right] = top[left] + f * before[-1], top[right] - f * before[-1]
    rise = [-0.2 / (1 - p) for p in top[:4]] + [0.2 / top[4]]  # minus the slope of the loss by these
    slopes = []  # minus the slope by every f
    for (left, right), (_, f), gap in zip(LAYERS, swaps, reversed(before)):
        more = rise[left] - rise[right]
        slopes.append(more * gap)
        rise[left], rise[right] = rise[left] - f * more, rise[right] + f * more
    push = [0.0] * 5
    for (left, right), (over, f), slope in zip(reversed(LAYERS), reversed(swaps), reversed(slopes)):
        more = push[right] - push[left]
        steep = sharpness / (pi * (1 + (sharpness * over) ** 2))
        both = f * more + (slope + over * more) * steep
        push[left] += both
        push[right] -= both
    found = np.empty(5)
    found[order] = push
    return found


LOSSES = {"InfoNCE": info_nce_push, "GroCo": groco_push}
KNOBS = {"InfoNCE": "temperature", "GroCo": "sharpness"}


@lru_cache(maxsize=64)
def path(loss: str, knob: float, starts: tuple[float, ...]) -> np.ndarray:
    """Gradient descent on the loss from these starts: (STEPS + 1, 5)."""
    places = [np.array(starts)]
    for _ in range(STEPS):
        places.append(places[-1] + RATE * LOSSES[loss](places[-1], knob))
    return np.stack(places)


def paths(values: dict, losses: Collection[str]) -> dict[str, np.ndarray]:
    starts = tuple(values[name] for name in FIVE)
    return {loss: path(loss, values[KNOBS[loss]], starts) for loss in losses}


def build(figure, compact: bool, losses: list[str]) -> Drawing:
    n = len(losses)
    axes = figure.subplots(*((n, 1) if compact else (1, n)), sharex=True, sharey=True, squeeze=False).flat
    parts = {loss: draw_paths(axis, loss, compact) for loss, axis in zip(losses, axes)}
    axes[-1].set_xlabel("step")
    if not compact:
        axes[0].set(ylabel="number: larger is closer to ★", xlabel="step")
    now: dict[str, np.ndarray] = {}

    def update(values: dict) -> str:
        now.update(paths(values, losses))
        for loss, part in parts.items():
            part.move(now[loss], values["step"])
        return sentence(now, values)

    handles = {name: handle(axes[0], name) for name in FIVE}
    artists = [artist for part in parts.values() for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(axes, now))


def handle(axis, name: str) -> Handle:
    return Handle(axis, (name,), lambda values: (0, values[name]), along="y", label=f"start of {name}")


def links(axes, now: dict[str, np.ndarray]) -> list[Link]:
    """The two starts of a number."""
    found = []
    for k, name in enumerate(FIVE):
        moved = ", ".join(f"{loss} {places[-1, k] - places[0, k]:+.2f}" for loss, places in now.items())
        starts = [dot(axis, (0, places[0, k])) for axis, places in zip(axes, now.values())]
        found.append(Link(starts, text=f"{name} is moved by {moved}"))
    return found


def sentence(now: dict[str, np.ndarray], values: dict) -> str:
    said = []
    for loss, places in now.items():
        here = places[values["step"]]
        lead = here[0] - here[1:].max()
        stands = f"{abs(lead):.1f} {'ahead' if lead > 0 else 'behind'}"
        said.append(f"{loss} has moved the rocket by {change(places, values['step'])}, and ✚ is {stands}")
    knobs = " and ".join(f"{KNOBS[loss]} {values[KNOBS[loss]]:.2g} ({loss})" for loss in now)
    return f"After {values['step']} steps, at {knobs}: {'; '.join(said)}."


def change(places: np.ndarray, step: int) -> str:
    """By how much the rocket has moved."""
    return f"{places[step, LAST] - places[0, LAST] + 0.0:+.2f}".replace("-0.00", "0.00").replace("-", "−")


def leads_from(places: np.ndarray) -> str:
    """When the positive comes to the front."""
    ahead = places[:, 0] > places[:, 1:].max(1)
    if ahead[0]:
        return "leads from the start"
    return f"leads from step {ahead.argmax()}" if ahead.any() else f"never leads in {STEPS} steps"


def draw_paths(axis, loss: str, compact: bool) -> Part:
    """The five paths up to the present step, with the photographs at their heads."""
    colour = OF_LOSS[loss]
    words = 1.1 if compact else 0.0  # of room below for the words
    axis.set(xlim=(-12, 272), ylim=(LOW - words, HIGH), xticks=(0, 100, 200), yticks=range(-3, 6))
    knows = {"InfoNCE": "shares out", "GroCo": "sorts"}[loss]
    axis.set_title(f"{loss} {knows}", color=INK, weight="bold", fontsize=11)
    axis.axhline(0, color=GREY, linewidth=0.6, linestyle=":")
    lines = [
        axis.plot([], [], color=colour if k == 0 else INK if k == LAST else GREY, linewidth=w,
                  linestyle=(0, (4, 1)) if k == LAST else "-")[0]
        for k, w in enumerate((3.0, 1.4, 1.4, 2.2, 1.4))
    ]  # fmt: skip
    threads = axis.add_collection(LineCollection([], colors=GREY, linewidths=0.8))
    signs = [
        axis.plot([], [], marker, color=INK, markersize=size, markeredgecolor="white", linestyle="none")[0]
        for marker, size in (("P", 12), ("X", 10))
    ]
    shown = Riders(axis, faces(), 28 if compact else 38, 0.0)
    room = 1.03 * shown.height  # from one photograph to the next
    axis.add_artist(shown)
    moved = axis.text(0.02, 0.02, "", transform=axis.transAxes, fontsize=9 if compact else 10)

    def move(places: np.ndarray, step: int) -> None:
        inside = places.clip(LOW, HIGH)
        for k, line in enumerate(lines):
            line.set_data(np.arange(step + 1), places[: step + 1, k])
        heads = inside[step]
        column = spread(heads.clip(LOW + room / 2, HIGH - room / 2), room)
        threads.set_segments([[(step + 2, y), (step + 16, at)] for y, at in zip(heads, column)])
        shown.move(np.stack([np.full(5, step + 38.0), column - shown.height / 2], 1))
        signs[0].set_data([0], places[0, :1])
        signs[1].set_data(np.zeros(4), places[0, 1:])
        moved.set_text(f"rocket {change(places, step)} · ✚ {leads_from(places)}")

    return Part([*lines, threads, shown, *signs, moved], move)

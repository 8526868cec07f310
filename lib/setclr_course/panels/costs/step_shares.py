"""What part of a training step is the loss: of its time and of its memory, by encoder and batch."""

from functools import lru_cache

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection

from setclr.losses import BY_NAME
from setclr_course import costs
from setclr_course.kit.palette import INK
from setclr_course.panels.costs.steps import Step, Steps, measured_steps
from setclr_course.panels.costs.tables import colour_of, in_words
from setclr_course.pixels.controls import log_slider, options
from setclr_course.pixels.handles import Link, box
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

PARTS = {
    "views": "#e6e6e6",
    "encoder forward": "#c2c2c2",
    "encoder backward": "#8e8e8e",
    "optimiser": "#4a4a4a",
}
QUICK, QUICK_BATCHES = ("InfoNCE", "SparseCLR", "GroCo", "QARe"), (8, 16)  # measured where nothing is given
UNITS = {"time": (1e3, "ms"), "memory": (1e-6, "MB")}


def step_shares(steps: Steps | None = None, machine: str = "", **initial) -> Panel:
    """A training step as a bar for each loss: the parts that all losses share, then the loss.

    Without steps four losses are measured in small batches, in a second or two.

    Args:
        steps: as `measured_steps` makes them.
        machine: what the times were measured on.
    """
    steps, machine = (quick_steps(), costs.this_machine()) if steps is None else (steps, machine)
    encoders = next(iter(steps.values()))
    batches = list(next(iter(encoders.values())))
    marks: dict[float, str] = {batch: str(batch) for batch in batches}
    controls = {
        "encoder": options("encoder", encoders),
        "measure": options("share of the", steps),
        "batch": log_slider("images N in a batch", batches[-1], batches[0], batches[-1], np.log10(2), marks),
    }
    controls["batch"].readout_format = ".0f"
    rows = len(encoders[next(iter(encoders))][batches[0]].losses)
    return Panel(
        lambda figure, compact: build(figure, compact, steps, machine),
        controls,
        (9, round(1.5 + 0.3 * rows, 1)),
        initial,
        round(1.7 + 0.3 * rows, 1),
    )


@lru_cache
def quick_steps() -> Steps:
    return measured_steps({name: BY_NAME[name]() for name in QUICK}, QUICK_BATCHES, small=2, steps=3)


def build(figure, compact: bool, steps: Steps, machine: str) -> Drawing:
    axis = figure.subplots()
    names = list(next(iter(next(iter(steps["time"].values())).values())).losses)
    bars = draw_bars(axis, names, compact)
    if not compact:
        draw_legend(axis)
    now: dict = {}

    def chosen(values: dict) -> Step:
        row = steps[values["measure"]][values["encoder"]]
        return row[min(row, key=lambda N: abs(N - values["batch"]))]

    def update(values: dict) -> str:
        step = chosen(values)
        factor, unit = UNITS[values["measure"]]
        now.update(step=step, factor=factor, unit=unit)
        shares = {name: step.share(name) for name in names}
        bars.move(values, step, shares)
        verb = {"time": "takes", "memory": "keeps"}[values["measure"]]
        said = ", ".join(f"{name} {found.median:.2g} %" for name, found in shares.items())
        measured = f"time on {machine}" if values["measure"] == "time" and machine else values["measure"]
        reckoned = f", reckoned from a step of {step.small} images" if step.small else ""
        return (
            f"{values['encoder']}, N = {values['batch']:.0f}: without the loss a step {verb} "
            f"{in_words(factor * sum(float(np.median(p)) for p in step.parts.values()))} {unit}{reckoned}. "
            f"The loss's share of the {measured}: {said}."
        )

    return Drawing(bars.artists, update, links=lambda: links(axis, names, **now))


def links(axis, names: list[str], step: Step, factor: float, unit: str) -> list[Link]:
    """Each piece of each bar with its name and value."""
    found = []
    for y, name in enumerate(reversed(names)):
        pieces = {**step.parts, name: step.losses[name]}
        runs = {part: costs.middle(factor * size) for part, size in pieces.items()}
        left, whole = 0.0, sum(middle.median for middle in runs.values())
        for part, (low, middle, high) in runs.items():
            right = left + 100 * middle / whole
            half = f" (half of the steps: {in_words(low)} to {in_words(high)})" * (low < high)
            mark = box(axis, (left, y - 0.35), (right, y + 0.35))
            found.append(Link([mark], text=f"{part}: {in_words(middle)} {unit}{half}"))
            left = right
    return found


def draw_legend(axis) -> None:
    for part, colour in PARTS.items():
        axis.bar(0, 0, color=colour, label=part)
    axis.bar(0, 0, color="white", edgecolor=INK, label="in colour: the loss")
    below = {
        "loc": "upper center",
        "bbox_to_anchor": (0.45, -0.04),
        "handlelength": 1.2,
        "columnspacing": 1.2,
    }
    axis.legend(**below, ncols=5, fontsize=9, frameon=False)


def draw_bars(axis, names: list[str], compact: bool) -> Part:
    """A bar of 100 % for each loss; where the loss begins a line covers half of the measured steps."""
    size, order = (8 if compact else 9), list(reversed(names))
    axis.set(xlim=(0, 112), ylim=(-0.6, len(names) - 0.4), xticks=[])
    axis.set_yticks(range(len(names)), order, fontsize=size)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    title = axis.set_title("")
    pieces = axis.add_collection(PolyCollection([], linewidths=0))
    pieces.set_facecolors([colour for name in order for colour in (*PARTS.values(), colour_of(name))])
    reach = axis.add_collection(LineCollection([], colors=INK, linewidths=2))
    texts = [axis.text(101.5, y, "", va="center", fontsize=size) for y in range(len(names))]

    def move(values: dict, step: Step, shares: dict[str, costs.Middle]) -> None:
        shared = np.array([np.median(step.parts.get(part, 0)) for part in PARTS])
        corners = []
        for y, name in enumerate(order):
            loss = shares[name].median
            edges = np.cumsum([0, *(100 - loss) * shared / shared.sum(), loss])
            corners += [
                [(x, y - 0.35), (x, y + 0.35), (end, y + 0.35), (end, y - 0.35)]
                for x, end in zip(edges, edges[1:])
            ]
        pieces.set_verts(corners)
        reach.set_segments(
            [[(100 - shares[name].high, y), (100 - shares[name].low, y)] for y, name in enumerate(order)]
        )
        for text, name in zip(texts, order):
            text.set_text(f"{shares[name].median:.2g} %")
        if not compact:
            most = max(found.median for found in shares.values())
            whole = {"time": "step", "memory": "memory"}[values["measure"]]
            place = f"{values['encoder']}, N = {values['batch']:.0f}"
            title.set_text(f"{place}: the loss is at most {most:.2g} % of the {whole}")

    return Part([pieces, reach, *texts, title], move)

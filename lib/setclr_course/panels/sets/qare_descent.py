"""What the weight β of QARe does to a batch: gradient descent on InfoNCE + β·QARe (QARe, eq. 7 and 17)."""

import torch

from setclr_course.kit.palette import GREY, VERMILION
from setclr_course.panels.sets.circle import draw_circle
from setclr_course.panels.sets.descent import NCE_OF_ONE_POINT, SIMILARITIES, STEPS, paths, points
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.panel import Drawing, Panel


def qare_descent(**initial) -> Panel:
    """Eight things on a circle pulled by InfoNCE and by β times QARe, with sliders for β and for time."""
    controls = {
        "beta": slider(
            "weight β of QARe", 1.125, 0.0, 4.0, 0.125, {0.0: "InfoNCE alone", 1.125: "paper 1.125"}
        ),
        "step": slider("step of gradient descent", 10, 0, STEPS, 1),
        "similarity": options("similarity", SIMILARITIES),
    }
    return Panel(build, controls, (9, 3.7), initial, 4.6)


def build(figure, compact: bool) -> Drawing:
    size = 8 if compact else 9
    layout = [["circle", "circle"], ["within", "InfoNCE"]] if compact else [["circle", "within", "InfoNCE"]]
    ratios = {"height_ratios": [1.9, 1]} if compact else {"width_ratios": [1.15, 1, 1]}
    axes = figure.subplot_mosaic(layout, **ratios)
    batch = draw_circle(axes["circle"], "the batch", size)
    curves = {
        "within": draw_curve(axes["within"], "within", (-0.3, 1.05), 1.0, size),
        "InfoNCE": draw_curve(axes["InfoNCE"], "InfoNCE", (1.3, 2.8), NCE_OF_ONE_POINT, size),
    }

    def update(values: dict) -> str:
        path, k = paths()[values["similarity"]], int(round(values["beta"] / 0.125))
        at = values["step"]
        batch.move(points(torch.from_numpy(path["angles"][at, k])).numpy())
        for name, (line, dot) in curves.items():
            line.set_data(range(STEPS + 1), path[name][:, k])
            dot.set_data([at], [path[name][at, k]])
        return (
            f"Step {at} of InfoNCE + {values['beta']:g} · QARe({values['similarity']}): the mean cosine "
            f"within a view is {path['within'][at, k]:+.2f} (InfoNCE alone: {path['within'][at, 0]:+.2f}), "
            f"InfoNCE is {path['InfoNCE'][at, k]:.2f} (alone: {path['InfoNCE'][at, 0]:.2f}); "
            f"after {STEPS} steps they are {path['within'][-1, k]:+.2f} and {path['InfoNCE'][-1, k]:.2f}."
        )

    return Drawing([*batch.artists, *(artist for group in curves.values() for artist in group)], update)


def draw_curve(axis, name: str, limits: tuple[float, float], collapsed: float, size: int) -> tuple:
    """One quantity over the steps, that of β = 0 still; returns the line of β and its point at the step."""
    axis.set(xlim=(-3, STEPS + 3), ylim=limits)
    title = {"within": "mean cosine" + " within a view" * (size > 8), "InfoNCE": "InfoNCE"}[name]
    axis.set_title(title, fontsize=size + 1)
    axis.set_xlabel("step", fontsize=size)
    axis.tick_params(labelsize=size)
    alone = paths()["cosine"][name][:, 0]
    axis.plot(alone, color=GREY)
    axis.axhline(collapsed, color=GREY, linewidth=0.8, linestyle=":")
    if size > 8:
        axis.text(24, alone[18], "InfoNCE alone", fontsize=size, color="#555555", va="bottom")
        text = {"within": "all points equal", "InfoNCE": "all points equal: log 15"}[name]
        axis.text(STEPS, collapsed - 0.01, text, fontsize=size, color="#555555", ha="right", va="top")
    line = axis.plot([], [], color=VERMILION, linewidth=2.2)[0]
    return line, axis.plot([], [], "o", color=VERMILION, markersize=9, markeredgecolor="white")[0]

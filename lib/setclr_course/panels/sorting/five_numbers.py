"""Five numbers under two losses: one positive and four negative similarities that move (GroCo, figure 4)."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.inner import top_probability
from setclr_course.kit.palette import BLUE, GREY, OCHRE, ORANGE, VERMILION
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel

STEPS = 200
DECADE = 0.1  # the log sliders' step: every curve they can ask for is computed beforehand
TEMPERATURE, BETA, RATE = (0.1, 10), (0.1, 100), (0.1, 1)
STARTS = torch.tensor(
    [[-0.9, -0.3, 0.3, 0.8, 0.0], [-2.0, -0.1, 0.0, 0.1, -0.05], [0.6, 0.7, 0.8, 0.9, -0.9]],
    dtype=torch.float64,
)  # four negatives, then the positive


def five_numbers(**initial) -> Panel:
    """The five numbers' paths under InfoNCE and under GroCo, with sliders for all that decides them."""
    controls = {
        "temperature": log_slider(
            "temperature τ", 1, *TEMPERATURE, DECADE, {0.1: ".1", 0.5: "SimCLR .5", 5: "5"}
        ),
        "beta": log_slider("inverse temperature β", 1, *BETA, DECADE, {1: "paper 1", 8: "8"}),
        "rate": log_slider("learning rate", 10**-0.5, *RATE, DECADE, {1: "1", 0.1: ".1"}),
        "start": slider("start", 1, 1, len(STARTS), 1, {1: "mixed", 2: "one far away", 3: "all wrong"}),
    }
    return Panel(build, controls, (9, 3.8), initial)


def info_nce(x: Tensor, temperature: float | Tensor) -> Tensor:
    """InfoNCE of numbers x (..., 5), the positive last: −log softmax(x/τ) there, one number a list."""
    logits = x / temperature
    return logits.logsumexp(-1) - logits[..., -1]


def groco(x: Tensor, beta: float) -> Tensor:
    """GroCo of numbers x (..., 5), the positive last, each group sorted: one number a list (GroCo, eq. 6)."""
    groups = torch.cat([x[..., :-1].sort(-1).values, x[..., -1:]], dim=-1)
    p = top_probability(groups, 1, beta)
    truth = F.one_hot(torch.tensor(4), 5).to(p)
    return F.binary_cross_entropy(p.clamp(0, 1), truth.expand_as(p), reduction="none").mean(-1)


def descend(loss, x: Tensor, rate: Tensor | float, steps: int = STEPS) -> Tensor:
    """Plain gradient descent on loss(x).sum() from x (..., 5): the path (steps + 1, ..., 5)."""
    path = [x]
    for _ in range(steps):
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(x).sum(), x)
        x = x.detach() - rate * slope
        path.append(x)
    return torch.stack(path)


def grid(bounds: tuple[float, float]) -> Tensor:
    """The values that a log slider with these bounds can take."""
    low, high = np.log10(bounds)
    return torch.tensor(10 ** np.arange(low, high + DECADE / 2, DECADE))


@lru_cache
def paths() -> dict[str, Tensor]:
    """Every path that the sliders can ask for: for each loss (STEPS + 1, smoothings, rates, starts, 5).

    One descent for all of them: a soft sort depends on β·x only, so each list is scaled by its own β.
    """
    temperature, beta = (grid(bounds)[:, None, None, None] for bounds in (TEMPERATURE, BETA))
    rate = grid(RATE)[:, None, None]
    start = STARTS.expand(len(rate), *STARTS.shape)
    return {
        "InfoNCE": descend(
            lambda x: info_nce(x, temperature), start.expand(len(temperature), -1, -1, -1), rate
        ),
        "GroCo": descend(lambda x: groco(beta * x, 1.0), start.expand(len(beta), -1, -1, -1), rate),
    }


def nearest(bounds: tuple[float, float], value: float) -> int:
    return int((grid(bounds).log() - np.log(value)).abs().argmin())


def build(figure, compact: bool) -> Drawing:
    axes = figure.subplots(*((2, 1) if compact else (1, 2)), sharex=True, sharey=True)
    moving = []
    for axis, loss in zip(axes, paths()):
        axis.set(title=loss, xlim=(0, STEPS), ylim=(-3, 5))
        axis.axhline(0, color=GREY, linewidth=0.8, linestyle=":")
        hard = [axis.plot([], [], color=ORANGE, linewidth=1.5)[0] for _ in range(3)]
        far = axis.plot([], [], color=VERMILION, linewidth=2.5, linestyle=(0, (4, 1)))[0]
        positive = axis.plot([], [], color=BLUE, linewidth=2.5)[0]
        axis.text(0.03, 0.93, "positive", transform=axis.transAxes, color=BLUE, weight="bold")
        axis.text(0.98, 0.42, "near negatives", transform=axis.transAxes, color=OCHRE, ha="right")
        moved = axis.text(0.03, 0.04, "", transform=axis.transAxes, color=VERMILION, weight="bold")
        moving.append((far, *hard, positive, moved))
    axes[-1].set_xlabel("step of gradient descent")
    axes[0].set_ylabel("similarity")
    iteration = np.arange(STEPS + 1)

    def update(values: dict) -> str:
        rate, start = nearest(RATE, values["rate"]), values["start"] - 1
        words = []
        for loss, bounds, name, (*curves, moved) in zip(
            paths(), (TEMPERATURE, BETA), ("temperature", "beta"), moving
        ):
            path = paths()[loss][:, nearest(bounds, values[name]), rate, start].numpy()
            for curve, y in zip(curves, path.T):
                curve.set_data(iteration, y)
            far = path[-1, 0] - path[0, 0]
            moved.set_text(f"farthest negative\nmoved by {far:+.2f}")
            words.append(
                f"{loss} ({name} {values[name]:.2g}) moves the farthest negative by {far:+.2f} "
                f"and leaves the positive {path[-1, 4] - path[-1, :4].max():.1f} above the next"
            )
        return f"After {STEPS} steps " + "; ".join(words) + "."

    return Drawing([artist for artists in moving for artist in artists], update)

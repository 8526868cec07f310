"""The one idea of the course: a loss matches the two views of a batch and trains until the matching is
true."""

import numpy as np
import torch
from torch import Tensor

from setclr.explore.kit.panel import Drawing, Panel, log_slider, slider
from setclr.explore.kit.parts import bare
from setclr.losses import InfoNCE
from setclr.palette import BLACK, GREY, LINES

N, STEPS = 6, 40
RADIUS = (1.0, 0.78)  # the same circle drawn twice, so that a true match is a short spoke


def one_idea(**initial) -> Panel:
    """Two views of six images on a circle, the matching that InfoNCE sees between them, and training that
    mends it."""
    path = train(N, STEPS)
    controls = {
        "step": slider("training step", 0, 0, STEPS, 1, {0: "start", STEPS: "trained"}),
        "temperature": log_slider("temperature τ", 0.1, 0.01, 10, marks={0.07: "MoCo .07", 0.5: "SimCLR .5"}),
    }
    return Panel(lambda figure, compact: build(figure, compact, path), controls, (9, 4), initial, 2.1)


def train(n: int, steps: int, seed: int = 5) -> Tensor:
    """(steps + 1, 2, n, 2): points on a circle while InfoNCE is minimised over them directly."""
    generator = torch.Generator().manual_seed(seed)
    angle = (2 * torch.pi * torch.rand(2, n, generator=generator)).requires_grad_()
    loss, optimiser = InfoNCE(0.2), torch.optim.SGD([angle], lr=0.6)
    path = []
    for _ in range(steps + 1):
        z = torch.stack([angle.cos(), angle.sin()], dim=-1)
        path.append(z.detach())
        optimiser.zero_grad()
        loss(z).backward()
        optimiser.step()
    return torch.stack(path)


def build(figure, compact: bool, path: Tensor) -> Drawing:
    plane, matrix = figure.subplots(1, 2)
    n = path.shape[2]
    bare(plane, (-1.25, 1.25))
    plane.set_title("● view 1   ■ view 2")
    around = np.linspace(0, 2 * np.pi, 200)
    for radius in RADIUS:
        plane.plot(radius * np.cos(around), radius * np.sin(around), color=GREY, linewidth=0.5, zorder=0)
    lines = [
        [plane.plot([], [], color=LINES[i] if i == j else BLACK, zorder=1)[0] for j in range(n)]
        for i in range(n)
    ]
    dots = [
        [
            plane.plot([], [], marker, color=LINES[i], markersize=11, markeredgecolor="white")[0]
            for i in range(n)
        ]
        for marker in "os"
    ]
    matrix.set(
        title="share of the match",
        xticks=range(n),
        yticks=range(n),
        xlabel="image in view 2",
        ylabel="image in view 1",
        xticklabels=range(1, n + 1),
        yticklabels=range(1, n + 1),
    )
    image = matrix.imshow(np.zeros((n, n)), vmin=0, vmax=1)
    if compact:
        plane.set_title("")
        matrix.set(title="", xlabel="", ylabel="", xticks=[], yticks=[])
    else:
        figure.colorbar(image, ax=matrix, shrink=0.9)
    boxes = [
        matrix.plot(
            i + np.array([-0.46, 0.46, 0.46, -0.46, -0.46]),
            i + np.array([-0.46, -0.46, 0.46, 0.46, -0.46]),
            color=LINES[i],
            linewidth=2,
        )[0]
        for i in range(n)
    ]

    def update(values: dict) -> str:
        z = path[values["step"]]
        share = between_views(InfoNCE(values["temperature"]).assignment(z), n).numpy()
        drawn = [radius * view for radius, view in zip(RADIUS, z.numpy())]
        for view, marks in zip(drawn, dots):
            for mark, point in zip(marks, view):
                mark.set_data(point[:1], point[1:])
        for i in range(n):
            for j in range(n):
                ends = np.stack([drawn[0][i], drawn[1][j]]).T
                lines[i][j].set(data=ends, linewidth=6 * share[i, j], visible=share[i, j] > 0.02)
        image.set_data(share)
        right = int((share.argmax(1) == np.arange(n)).sum())
        return (
            f"Training step {values['step']}, temperature {values['temperature']:.2g}: "
            f"{right} of {n} images have their own second view as best match; "
            f"the true matches hold {share.diagonal().mean():.0%} of the share."
        )

    return Drawing([*sum(lines, []), *sum(dots, []), image, *boxes], update)


def between_views(assignment: Tensor, n: int) -> Tensor:
    """The part of an assignment (2n, 2n) that goes from view 1 to view 2, as shares of each row."""
    part = assignment[:n, n:]
    return part / part.sum(1, keepdim=True)

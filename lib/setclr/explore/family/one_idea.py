"""The one idea of the course: a loss matches the views of a batch and trains until the matching is true."""

import numpy as np
import torch
from torch import Tensor

from setclr.explore.kit.circle import draw_circles
from setclr.explore.kit.controls import log_slider, slider
from setclr.explore.kit.panel import Drawing, Panel
from setclr.explore.kit.parts import Part, bare
from setclr.losses import InfoNCE
from setclr.palette import BLACK, LINES

N, STEPS = 6, 40
RADII = (1.0, 0.78)  # the same circle drawn twice, so that a true match is a short spoke


def one_idea(**initial) -> Panel:
    """Two views of six images on a circle, the matching that InfoNCE sees, and training that mends it."""
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
    left, right = figure.subplots(1, 2)
    n = path.shape[2]
    plane, matrix = draw_plane(left, n), draw_matrix(figure, right, n, compact)
    left.set_title("" if compact else "● view 1   ■ view 2")

    def update(values: dict) -> str:
        z = path[values["step"]]
        share = between_views(InfoNCE(values["temperature"]).assignment(z), n).numpy()
        plane.move(z.numpy(), share)
        matrix.move(share)
        right = int((share.argmax(1) == np.arange(n)).sum())
        return (
            f"Training step {values['step']}, temperature {values['temperature']:.2g}: "
            f"{right} of {n} images have their own second view as best match; "
            f"the true matches hold {share.diagonal().mean():.0%} of the share."
        )

    return Drawing([*plane.artists, *matrix.artists], update)


def draw_plane(axis, n: int) -> Part:
    """The views of n images, a line for every pair; moved by the views z (2, n, 2) and the shares (n, n)."""
    bare(axis, (-1.25, 1.25))
    draw_circles(axis, RADII)
    lines = [
        [axis.plot([], [], color=LINES[i] if i == j else BLACK, zorder=1)[0] for j in range(n)]
        for i in range(n)
    ]
    dots = [
        [
            axis.plot([], [], marker, color=LINES[i], markersize=11, markeredgecolor="white")[0]
            for i in range(n)
        ]
        for marker in "os"
    ]

    def move(z: np.ndarray, share: np.ndarray) -> None:
        drawn = [radius * view for radius, view in zip(RADII, z)]
        for view, marks in zip(drawn, dots):
            for mark, point in zip(marks, view):
                mark.set_data(point[:1], point[1:])
        for i in range(n):
            for j in range(n):
                ends = np.stack([drawn[0][i], drawn[1][j]]).T
                lines[i][j].set(data=ends, linewidth=6 * share[i, j], visible=share[i, j] > 0.02)

    return Part([*sum(lines, []), *sum(dots, [])], move)


def draw_matrix(figure, axis, n: int, compact: bool) -> Part:
    """The shares as a matrix, with a frame in its image's colour round each true match."""
    image = axis.imshow(np.zeros((n, n)), vmin=0, vmax=1)
    if compact:
        axis.set(xticks=[], yticks=[])
    else:
        axis.set(title="share of the match", xlabel="image in view 2", ylabel="image in view 1")
        axis.set_xticks(range(n), range(1, n + 1))
        axis.set_yticks(range(n), range(1, n + 1))
        figure.colorbar(image, ax=axis, shrink=0.9)
    x, y = np.array([-0.46, 0.46, 0.46, -0.46, -0.46]), np.array([-0.46, -0.46, 0.46, 0.46, -0.46])
    boxes = [axis.plot(i + x, i + y, color=LINES[i], linewidth=2)[0] for i in range(n)]
    return Part([image, *boxes], image.set_data)


def between_views(assignment: Tensor, n: int) -> Tensor:
    """The part of an assignment (2n, 2n) that goes from view 1 to view 2, as shares of each row."""
    part = assignment[:n, n:]
    return part / part.sum(1, keepdim=True)

"""Sinkhorn round by round on 64 features: ε blurs the coupling, rounds make it fair (IOT-CL, figure 3)."""

from collections.abc import Sequence
from math import log10
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr.inner.transport import rounds_of
from setclr.losses import IOT
from setclr_course.kit.palette import BLUE, GREY, VERMILION
from setclr_course.panels.couplings.fair_shares import MOST, sum_bars
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle, Link, cell
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, cells

ROUNDS = 30
ERRORS = (1e-6, 60)


class Path(NamedTuple):
    """Sinkhorn's rounds 0 to ROUNDS for one ε."""

    logits: Tensor  # (n, m): −C/ε
    rows: list[Tensor]  # potentials after each round, (n,)
    columns: list[Tensor]  # (m,)
    errors: np.ndarray  # (ROUNDS + 1,): the largest relative error of a row or column sum

    def coupling(self, rounds: int) -> np.ndarray:
        return (self.logits + self.rows[rounds].unsqueeze(1) + self.columns[rounds]).exp().numpy()


def sinkhorn_rounds(cost: Tensor | None = None, names: Sequence[str] = (), **initial) -> Panel:
    """The coupling of two sets of features after any number of rounds, with the sums of its rows and columns.

    Args:
        cost: (n, n) with the true matches on the diagonal; 64 made-up features in 8 groups by default.
        names: of equally large groups of neighbouring rows and columns.
    """
    cost = made_up_cost() if cost is None else cost.detach().double()
    controls = {
        "epsilon": log_slider("entropy ε", 0.5, 0.005, 5, marks={0.05: ".05", 0.5: "paper .5"}),
        "rounds": slider("rounds", 1, 0, ROUNDS, 1, {0: "none", 8: "paper 1 to 8"}),
    }
    return Panel(
        lambda figure, compact: build(figure, compact, cost, names), controls, (9, 4.7), initial, 5,
        play="rounds",
    )  # fmt: skip


def made_up_cost(n: int = 64, groups: int = 8, dimensions: int = 16) -> Tensor:
    """1 − cosine of two views of n points on a sphere, neighbours in one group."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(4, n, dimensions, generator=generator, dtype=torch.float64)
    centre, own, *noise = draws
    points = centre[:groups].repeat_interleave(n // groups, 0) + 0.5 * own
    views = normalize(points + 0.6 * torch.stack(noise), dim=-1)
    return 1 - views[0] @ views[1].T


def path_of(cost: Tensor, epsilon: float) -> Path:
    """Round 0 is exp(−C/ε) with total mass 1, which is the coupling under U(1)."""
    logits = -cost / epsilon
    log_a, log_b = (logits.new_full((size,), size).log().neg() for size in cost.shape)
    path = rounds_of(logits, log_a, log_b, ROUNDS + 1)
    whole = (IOT("total").log_coupling(logits[None])[0] - logits)[0, 0]
    P = (logits + whole).exp()
    off = [P.sum(1) * len(P) - 1, P.sum(0) * P.shape[1] - 1]
    errors = [torch.cat(off).abs().max()]
    errors += [(now - after).expm1().abs().max() for now, after in zip(path.columns, path.columns[1:])]
    columns = [whole.expand(cost.shape[1]), *path.columns]
    return Path(logits, path.rows, columns, np.array(errors))


def build(figure, compact: bool, cost: Tensor, names: Sequence[str]) -> Drawing:
    matrix, curve = figure.subplots(2, 1, height_ratios=[2.4, 1]) if compact else figure.subplots(1, 2)
    word = {"fontsize": 8 if compact else 9, "va": "bottom"}
    coupling = draw_coupling(figure, matrix, len(cost), None if compact else names, word)
    errors = draw_errors(curve, 9 if compact else 10, word)
    now: dict = {}

    def at(values: dict) -> tuple[float, float]:
        return values["rounds"], float(np.clip(now["path"].errors[values["rounds"]], *ERRORS))

    def update(values: dict) -> str:
        path = path_of(cost, values["epsilon"])
        now.update(path=path, P=path.coupling(values["rounds"]))
        coupling.move(path.coupling(values["rounds"]))
        errors.move(path.errors, values["rounds"])
        return sentence(values, path)

    handles = {} if compact else {"rounds": Handle(curve, ("rounds",), at, along="x")}
    artists = [*coupling.artists, *errors.artists]
    return Drawing(artists, update, handles, lambda: links(matrix, names, now["P"]))


def links(matrix, names: Sequence[str], P: np.ndarray) -> list[Link]:
    """The block of two groups, and how much of the one goes to the other."""
    size = len(P) // max(len(names), 1)
    found = []
    for i, j in np.ndindex(len(names), len(names)):
        block = P[i * size : (i + 1) * size]
        share = block[:, j * size : (j + 1) * size].sum() / block.sum()
        found.append(Link([cell(matrix, i * size, j * size, size, size)],
                          text=f"{names[i]} to {names[j]}: {share:.0%} of its sand"))  # fmt: skip
    return found


def sentence(values: dict, path: Path) -> str:
    rounds, P = values["rounds"], path.coupling(values["rounds"])
    columns, rows = len(P) * P.sum(0), len(P) * P.sum(1)
    fair = np.flatnonzero(path.errors < 0.01)
    return (
        f"ε = {values['epsilon']:.3g}, {rounds} round{'s' * (rounds != 1)}: columns hold "
        f"{columns.min():.2f} to {columns.max():.2f} times their fair share, rows {rows.min():.2f} to "
        f"{rows.max():.2f}; largest error {per_cent(path.errors[rounds])}, "
        + (f"under 1 % from round {fair[0]} on" if len(fair) else f"not under 1 % within {ROUNDS} rounds")
        + f". The true matches hold {P.trace():.1%} of the mass."
    )


def per_cent(error: float) -> str:
    error = 100 * error
    return f"{error:.0f} %" if error >= 100 else f"{error:.3g} %" if error >= 1e-4 else "under 0.0001 %"


def draw_coupling(figure, axis, n: int, names: Sequence[str] | None, word: dict) -> Part:
    """The matrix n·P with its sums, moved by P; `names` of groups of rows and a scale where there is room."""
    mesh = cells(axis, n, n, 0, -1 - log10(n))
    above, right, stairs = sum_bars(axis, n, 0.2, MOST)
    heading = above.text(0, 1, "", transform=above.transAxes, **word)
    if names is not None:
        right.text(0, 1.01, "row sums", transform=right.transAxes, **word)
        middles = (np.arange(len(names)) + 0.5) * n / max(len(names), 1) - 0.5
        axis.set_yticks(middles, names, fontsize=8)
        axis.tick_params(length=0)
        bar = figure.colorbar(mesh, ax=axis, location="bottom", shrink=0.6, aspect=30, pad=0.02)
        ends = (f"1/{10 * n} or less", f"1/{n}: even", "1 or more")
        bar.set_ticks([-1 - log10(n), -log10(n), 0], labels=ends, fontsize=8)
        bar.set_label("share of a row", fontsize=8)

    def move(P: np.ndarray) -> None:
        mesh.set_array(np.log10((n * P).clip(0.1 / n, 1)))
        columns = n * P.sum(0)
        stairs.move(columns, n * P.sum(1))
        heading.set_text(f"column sums: {columns.min():.2f} to {columns.max():.2f} fair shares")

    return Part([mesh, *stairs.artists, heading], move)


def draw_errors(axis, size: int, word: dict) -> Part:
    """The error over the rounds, moved by the errors of all rounds and the round shown."""
    axis.set(yscale="log", xlim=(-0.5, ROUNDS + 0.5), ylim=ERRORS, yticks=[1e-6, 1e-4, 1e-2, 1])
    axis.set_yticklabels(["0.0001 %", "0.01 %", "1 %", "100 %"], fontsize=9)
    axis.minorticks_off()
    axis.set_title("largest relative error of a sum", fontsize=size)
    axis.set_xlabel("rounds")
    axis.axhline(0.01, color=GREY, linewidth=0.8, linestyle=":")
    (line,) = axis.plot([], [], color=BLUE)
    (mark,) = axis.plot([], [], "o", color=VERMILION, markersize=8)
    reading = axis.text(0, 1, "", color=VERMILION, weight="bold", **word)

    def move(errors: np.ndarray, rounds: int) -> None:
        shown = np.where(errors < ERRORS[0], np.nan, errors)
        line.set_data(np.arange(ROUNDS + 1), shown)
        mark.set_data([rounds], shown[rounds : rounds + 1])
        text = per_cent(errors[rounds])
        height = min(max(2 * errors[rounds], 2e-6), 20)
        reading.set(text=text, x=min(rounds + 0.8, ROUNDS - len(text)), y=height)

    return Part([line, mark, reading], move)

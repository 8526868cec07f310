"""Six molecules and a view of each: whom each loss matches them with, before and after training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from setclr.losses import SetLoss, parse
from setclr.seeding import seeded
from setclr_course.kit.palette import GREEN, VERMILION
from setclr_course.kit.tiles import tiles
from setclr_course.panels.graphs.drawn import Thumbnails, all_molecules, seen_in
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, cell
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, frames, numbers, write

if TYPE_CHECKING:
    from setclr.experiments import Run

N = 6
LOSSES = {
    "assignment": "LinearAssignment()",
    "InfoNCE": "InfoNCE(temperature=0.2)",
    "SparseCLR": "SparseCLR()",
    "GroCo": "GroCo(beta=1.0, negatives=10)",
    "IOT": "IOT(constraint='rows', epsilon=0.2)",
    "MMCL": "MMCL(solver='exact')",
}
PUSHING = ("SparseCLR", "MMCL")  # their matrices say which negatives are pushed; the true pairs are empty


def molecule_matching(runs: "Mapping[str, Run] | None" = None, **initial) -> Panel:
    """Rows: six molecules as they are. Columns: a random view of each. Cells: the shares that a loss gives.

    Args:
        runs: encoders and heads by what the reader shall call them; by default first weights and two epochs.
    """
    from setclr import experiments, recipes

    infonce = "InfoNCE(temperature=0.2)"
    runs = runs or {
        name: experiments.pretrain(recipes.GraphRecipe(infonce, epochs=epochs))
        for name, epochs in (("first weights", 0), ("two epochs", 2))
    }
    seen, last = Embedded(runs), (len(all_molecules()) - N) // N
    controls = {
        "loss": options("loss", LOSSES, "InfoNCE"),
        "run": options("encoder", runs),
        "anchor": slider("anchor ●", 5, 1, N, 1),
        "draw": slider("another draw of ■", 1, 1, 12, 1),
        "six": slider("another six", 4, 0, last, 1),
    }
    return Panel(lambda figure, compact: build(figure, compact, seen), controls, (9, 5), initial, 4.2, 2)


class Embedded:
    """Of six molecules and a random view of each: z (2, 6, E) float64 by an encoder, and pictures."""

    def __init__(self, runs: "Mapping[str, Run]"):
        from setclr import graphs

        self.runs, self.graphs = runs, graphs.load_graphs("mutag")
        self.kept: dict[tuple[str, int, int], Tensor] = {}
        self.drawn: dict[tuple[int, int], np.ndarray] = {}
        self.thumbnails = Thumbnails()

    def views(self, six: int, draw: int, ratio: float, numbered: bool = False) -> tuple:
        """The six and a view of each; `numbered`: their x are the numbers of their atoms."""
        from setclr import graphs

        batch = self.graphs.batch(range(N * six, N * six + N))
        if numbered:
            batch.x = (torch.arange(len(batch.x)) - batch.ptr[batch.batch]).double()[:, None]
        return batch, graphs.graph_view(batch, "any", ratio, seeded(six, draw))

    def pictures(self, six: int, draw: int) -> np.ndarray:
        """(12, side, side, 3) uint8: the molecules, then their views."""
        if (six, draw) not in self.drawn:
            ratio = next(iter(self.runs.values())).recipe.ratio
            shown = []
            for batch in self.views(six, draw, ratio, numbered=True):
                for i in range(N):
                    mine = batch.batch[batch.edge_index[0]] == i
                    edges = batch.edge_index[:, mine] - batch.ptr[i]
                    shown.append(seen_in(N * six + i, batch.x[batch.batch == i], edges))
            self.drawn[six, draw] = tiles(self.thumbnails.of(shown))
        return self.drawn[six, draw]

    @torch.no_grad()
    def of(self, name: str, six: int, draw: int) -> Tensor:
        if (name, six, draw) not in self.kept:
            run = self.runs[name]
            views = self.views(six, draw, run.recipe.ratio)
            z = torch.stack([run.head(run.encoder(view)) for view in views]).double()
            self.kept[name, six, draw] = z
        return self.kept[name, six, draw]


def shares(loss: str, z: Tensor) -> np.ndarray:
    """(6, 6): what each ● gives to each ■, as shares of what it gives to them all."""
    given = cast(SetLoss, parse(LOSSES[loss])).assignment(z)[:N, N:]
    return (given / given.sum(1, keepdim=True).clamp(min=1e-12)).numpy()


def build(figure, compact: bool, seen: Embedded) -> Drawing:
    axis = figure.subplots()
    mesh, said = cells(axis, N, N), numbers(axis, N, N, 6.5 if compact else 9)
    true_pairs = frames(axis, [(i, i) for i in range(N)], VERMILION, 1.6)
    round_row = frames(axis, [(0, 0)], GREEN, 3)
    bare(axis)
    beside = draw_molecules(axis)
    now: dict = {}

    def update(values: dict) -> str:
        z = seen.of(values["run"], values["six"], values["draw"])
        found, row = shares(values["loss"], z), values["anchor"] - 1
        now["found"] = found
        mesh.set_array(found)
        write(said, found, 0.6)
        corners = np.array([[-0.5, -0.5], [N - 0.5, -0.5], [N - 0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]])
        round_row.set_segments([corners + [0, row]])
        beside.move(seen.pictures(values["six"], values["draw"]))
        return sentence(values, found, row)

    row = Handle(axis, ("anchor",), lambda v: (-1.15, v["anchor"] - 1), along="y",
                 to=lambda x, y: [round(y) + 1], label="the anchor")  # fmt: skip
    artists = [mesh, true_pairs, round_row, *said, *beside.artists]
    return Drawing(artists, update, {"anchor": row}, lambda: links(axis, now["found"]))


def draw_molecules(axis) -> Part:
    """The six molecules to the left of their rows, and their views above the columns."""
    blank = np.full((96, 96, 3), 255, np.uint8)
    left = [axis.imshow(blank, extent=(-1.6, -0.62, i + 0.49, i - 0.49)) for i in range(N)]
    above = [axis.imshow(blank, extent=(i - 0.49, i + 0.49, -0.62, -1.6)) for i in range(N)]
    axis.text(-1.7, 2.5, "● as it is", rotation=90, ha="right", va="center", fontsize=10)
    axis.text(2.5, -1.7, "■ a random view of it", ha="center", va="bottom", fontsize=10)
    axis.set(xlim=(-2.1, N - 0.5), ylim=(N - 0.5, -2.0))

    def move(shown: np.ndarray) -> None:
        for image, picture in zip([*left, *above], shown):
            image.set_data(picture)

    return Part([*left, *above], move)


def links(axis, found: np.ndarray) -> list[Link]:
    return [
        Link(
            [cell(axis, i, j)], [cell(axis, j, i)], f"● {i + 1} gives ■ {j + 1} a share of {found[i, j]:.2f}"
        )
        for i, j in np.ndindex(N, N)
    ]


def sentence(values: dict, found: np.ndarray, row: int) -> str:
    molecules = f"molecules {N * values['six']} to {N * values['six'] + N - 1}, draw {values['draw']}"
    said = f"{values['loss']}, {values['run']}, {molecules}: "
    if values["loss"] in PUSHING:
        wrong = int((found > 0).sum())
        mine = f"anchor {row + 1} pushes {int((found[row] > 0).sum())} of {N - 1} views"
        return f"{said}{mine}, all anchors {wrong} of {N * (N - 1)}."
    first, own = int(found[row].argmax()), found.diagonal()
    right = int((found.argmax(1) == np.arange(N)).sum())
    mostly = "its own view" if first == row else f"view {first + 1}, another molecule's"
    return (
        f"{said}anchor {row + 1} gives {found[row, first]:.0%} to {mostly}. {right} of {N} anchors give most "
        f"to their own view, on average {own.mean():.0%}."
    )

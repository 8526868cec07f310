"""Molecules as pictures: where atoms stand, and a part that draws some of them."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from setclr_course.kit.palette import BLUE, GREEN, GREY, INK, PURPLE, VERMILION
from setclr_course.kit.png import DPI
from setclr_course.pixels.parts import Part, bare

if TYPE_CHECKING:
    from setclr.graphs.sets import Molecule

COLOURS = (INK, BLUE, VERMILION, GREEN, PURPLE, GREEN, PURPLE)  # of setclr.graphs.sets.ATOMS
PALE = "#d8d8d8"
WIDE, HIGH = 1.2, 0.95  # half of the field that a molecule is drawn in
FLAT = 0.72  # its atoms stand within 1 of the middle to the sides, and within this upwards
MOST = 28  # atoms of MUTAG's largest molecule


@cache
def all_molecules() -> "list[Molecule]":
    from setclr.graphs import molecules  # PyTorch Geometric takes seconds, so only where there is a molecule

    return molecules()


@cache
def positions(number: int) -> np.ndarray:
    """Where the atoms of a molecule stand, (n, 2), its longest way from left to right; after Kamada and Kawai
    1989: as far apart on paper as there are bonds between them."""
    import networkx

    molecule = all_molecules()[number]
    graph = networkx.Graph(molecule.bonds.T.tolist())
    graph.add_nodes_from(range(len(molecule.atoms)))
    found = networkx.kamada_kawai_layout(graph)
    x = np.array([found[i] for i in range(len(molecule.atoms))])
    x -= x.mean(0)
    x = x @ np.linalg.svd(x, full_matrices=False)[2].T
    x *= np.where(x[np.abs(x).argmax(0), range(2)] < 0, -1, 1)
    return x / max(np.abs(x[:, 0]).max(), np.abs(x[:, 1]).max() / FLAT)


def draw_atoms(axis: Axes, letters: float = 7.5, atoms: int = MOST) -> Part:
    """Atoms as discs with letters, and bonds between them. Moved by places (n, 2), kinds of atoms (n,), bonds
    (2, m), a colour for each bond, and words: "" for an atom as it is, "gone", or "?" where it is hidden."""
    from setclr.graphs.sets import ATOMS

    bare(axis, (-WIDE, WIDE), (-HIGH, HIGH))
    lines = axis.add_collection(LineCollection([], zorder=2, capstyle="round"))
    size = (letters * 1.9) ** 2
    discs = axis.scatter(np.zeros(atoms), np.zeros(atoms), s=size, zorder=3, linewidths=1.2)
    words = [axis.text(0, 0, "", fontsize=letters, color="white", weight="bold", zorder=4, ha="center",
                       va="center_baseline", in_layout=False) for _ in range(atoms)]  # fmt: skip

    def move(
        places: np.ndarray, kinds: np.ndarray, bonds: np.ndarray, colours: list[str], said: list[str]
    ) -> None:
        lines.set(segments=list(places[bonds.T]), colors=colours or INK, linewidths=letters / 4)
        discs.set_offsets(places)
        faces = [_face(kind, word) for kind, word in zip(kinds, said)]
        discs.set(facecolors=faces, edgecolors=[GREY if w else f for w, f in zip(said, faces)])
        for i, word in enumerate(words):
            shown = i < len(kinds)
            text = ("?" if said[i] == "?" else ATOMS[kinds[i]]) if shown and letters > 5 else ""
            word.set(text=text, color=GREY if shown and said[i] else "white")
            if shown:
                word.set_position(places[i])

    return Part([lines, discs, *words], move)


def _face(kind: int, word: str) -> str:
    return "white" if word == "gone" else PALE if word == "?" else COLOURS[kind]


def whole(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str], list[str]]:
    """What `draw_atoms` is moved by to show a molecule as it is."""
    molecule = all_molecules()[number]
    n, m = len(molecule.atoms), molecule.bonds.shape[1]
    return positions(number), molecule.atoms, molecule.bonds, [INK] * m, [""] * n


def seen_in(number: int, x: Tensor, edge_index: Tensor) -> tuple:
    """What `draw_atoms` is moved by to show a view of a molecule whose x (n, 1) were the numbers of its
    atoms: an atom whose number became noise is hidden, a bond that the molecule has not is purple."""
    molecule, numbers = all_molecules()[number], x[:, 0].double()
    hidden = (numbers != numbers.round()).numpy()  # then no atom is missing
    kept = np.where(hidden, np.arange(len(numbers)), numbers.round().numpy()).astype(int)
    bonds = edge_index.numpy()
    bonds = bonds[:, bonds[0] < bonds[1]]
    there = {frozenset(pair) for pair in molecule.bonds.T.tolist()}
    colours = [INK if frozenset(kept[pair].tolist()) in there else PURPLE for pair in bonds.T]
    said = ["?" if one else "" for one in hidden]
    return positions(number)[kept], molecule.atoms[kept], bonds, colours, said


def molecule_pictures(numbers: Any, side: int = 96) -> Tensor:
    """Small pictures of these molecules, (n, 3, side, side) uint8."""
    return Thumbnails(side).of([whole(int(number)) for number in numbers])


class Thumbnails:
    """Draws small pictures, side × side pixels, all on one figure."""

    def __init__(self, side: int = 96):
        figure = Figure(figsize=(side / DPI, side / DPI), dpi=DPI)
        figure.set_layout_engine("none")  # the picture is all axes
        self.canvas = FigureCanvasAgg(figure)
        self.part = draw_atoms(figure.add_axes((0, 0, 1, 1)), side / 30)

    def of(self, shown: list[tuple]) -> Tensor:
        """Pictures of what `draw_atoms` is moved by, (n, 3, side, side) uint8."""
        found = []
        for one in shown:
            self.part.move(*one)
            self.canvas.draw()
            found.append(torch.from_numpy(np.asarray(self.canvas.buffer_rgba())[..., :3].copy()))
        return torch.stack(found).permute(0, 3, 1, 2).contiguous()

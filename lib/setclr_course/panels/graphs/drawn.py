"""Molecules and random views of them: where atoms stand, and how they are drawn."""

from collections import namedtuple
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

from setclr.experiments import Run
from setclr.graphs import graph_view, load_graphs
from setclr.graphs.geometric import Batch
from setclr.graphs.sets import ATOMS
from setclr.seeding import seeded
from setclr_course.kit.palette import BLUE, DUSK, GREEN, GREY, INK, PALE, PURPLE, VERMILION, WHITE
from setclr_course.kit.scene import Page, Plot
from setclr_course.kit.still import pictured

MUTAG = load_graphs("mutag")
Molecule = namedtuple("Molecule", "atoms bonds")  # (n,) indices into ATOMS; (2, m), each bond once
MOLECULES = [Molecule(one.x.argmax(1).numpy(), one.edge_index.chunk(2, 1)[0].numpy()) for one in MUTAG.graphs]
COLOURS = (INK, BLUE, VERMILION, GREEN, PURPLE, GREEN, PURPLE)  # of ATOMS
WIDE, HIGH = 1.2, 0.95  # half of the field that a molecule is drawn in


class Shown(NamedTuple):
    """A molecule, or a view of one."""

    places: np.ndarray  # (n, 2) of its atoms
    kinds: np.ndarray  # (n,) of ATOMS
    bonds: np.ndarray  # (2, m)
    colours: np.ndarray  # (m,) of its bonds
    said: np.ndarray  # (n,): "" for an atom as it is, "gone", or "?" where it is hidden


@cache
def positions() -> list[np.ndarray]:
    """Where the atoms of each molecule stand, (n, 2), as far apart on paper as there are bonds between them
    (Kamada and Kawai 1989), by 30 rounds of majorization (Gansner 2004)."""
    sizes = [len(molecule.atoms) for molecule in MOLECULES]
    far, x = (np.zeros((len(sizes), max(sizes), last)) for last in (max(sizes), 2))
    for i, (n, molecule) in enumerate(zip(sizes, MOLECULES)):
        bonds, middle = molecule.bonds, np.eye(n) - 1 / n
        ways = shortest_path(coo_array((np.ones(bonds.shape[1]), bonds), (n, n)), directed=False)
        far[i, :n, :n] = ways
        values, vectors = np.linalg.eigh(-middle @ ways**2 @ middle)  # classical scaling begins
        x[i, :n] = turned(vectors[:, -2:] * values[-2:] ** 0.5) * ways.max()
    x += np.sin(np.arange(x[0].size)).reshape(-1, 2) / 100  # or rounding would part atoms in one place
    weight = 1 / np.where(far == 0, np.inf, far) ** 2
    pulls = np.linalg.pinv(np.eye(max(sizes)) * weight.sum(1, keepdims=True) - weight, 1e-9, hermitian=True)
    for _ in range(30):
        near = np.linalg.norm(x[:, :, None] - x[:, None], axis=-1)
        pull = weight * far / np.where(near == 0, np.inf, near)
        x = pulls @ (pull.sum(2, keepdims=True) * x - pull @ x)
    return [turned(places[:n]) for n, places in zip(sizes, x)]


def turned(x: np.ndarray) -> np.ndarray:
    """Places (n, 2), the longest way from left to right, within 1 of the middle sideways, 0.72 upwards."""
    x = x - x.mean(0)
    x = x @ np.linalg.svd(x, full_matrices=False)[2].T
    far = np.abs(x).max(0)
    x *= np.sign(x[(np.abs(x) > 0.999 * far).argmax(0), range(2)])  # or rounding would choose between equals
    return x / (far / (1, 0.72)).max()


def whole(number: int, gone: int = -1) -> Shown:
    """A molecule; the atom `gone` is shown as left out, with its bonds."""
    molecule = MOLECULES[number]
    colours = np.where((molecule.bonds == gone).any(0), PALE, INK)
    said = np.where(np.arange(len(molecule.atoms)) == gone, "gone", "")
    return Shown(positions()[number], molecule.atoms, molecule.bonds, colours, said)


@lru_cache(8)
def random_views(numbers: Sequence[int], view: str, ratio: float, *key: int) -> tuple[Batch, list[Shown]]:
    """A random view of each of these molecules, as `graphs.graph_view` makes it, and how they are drawn; a
    function of `key`.

    What chance does depends on the size of x alone. So x may hold the numbers of the atoms while it does it,
    and says afterwards which atom is which, and where there is noise. A bond that
    the molecule has not is purple.
    """
    batch = MUTAG.batch(numbers)
    whole, starts = batch.x, batch.ptr
    batch.x = torch.zeros_like(whole)
    batch.x[:, 0] = torch.arange(len(whole)) - starts[batch.batch]
    found = graph_view(batch, view, ratio, seeded(*key))
    hidden = (found.x[:, 1:] != 0).any(1)
    place = torch.arange(len(hidden)) - found.ptr[found.batch]  # where one is hidden, no atom is missing
    kept = torch.where(hidden, place, found.x[:, 0].round().long())
    found.x = torch.where(hidden[:, None], found.x, whole[starts[found.batch] + kept])
    once = found.edge_index[:, found.edge_index[0] < found.edge_index[1]].numpy()
    which, ends, said = kept.numpy(), found.ptr.numpy(), np.where(hidden, "?", "")
    shown = []
    for number, start, end in zip(numbers, ends, ends[1:]):
        molecule, atoms = MOLECULES[number], which[start:end]
        bonds = once[:, (start <= once[0]) & (once[0] < end)] - start
        there = {frozenset(pair) for pair in molecule.bonds.T.tolist()}
        colours = np.array([INK if frozenset(pair) in there else PURPLE for pair in atoms[bonds].T.tolist()])
        places = positions()[number][atoms]
        shown.append(Shown(places, molecule.atoms[atoms], bonds, colours, said[start:end]))
    return found, shown


def embedded(run: Run, batches: Sequence[Batch]) -> np.ndarray:
    """(graphs, E) unit vectors: what a run makes of these batches."""
    with torch.no_grad():
        z = torch.cat([run.head(run.encoder(batch)) for batch in batches]).double().numpy(force=True)
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def together(shown: Sequence[Shown], middles: np.ndarray, scale: ArrayLike) -> Shown:
    """Many molecules as one, scaled and moved to their middles (molecules, 2)."""
    places = [scale * one.places + middle for one, middle in zip(shown, middles)]
    first = np.cumsum([0, *map(len, places)])
    bonds = [one.bonds + start for one, start in zip(shown, first)]
    kinds, colours, said = (np.concatenate([one[part] for one in shown]) for part in (1, 3, 4))
    return Shown(np.concatenate(places), kinds, np.concatenate(bonds, axis=1), colours, said)


def draw_atoms(plot: Plot, shown: Shown, size: float, letters: bool = False) -> None:
    """Atoms as discs `size` across, with letters in them or not, and bonds between them."""
    places, plain = shown.places, shown.said == ""
    starts, ends = places[shown.bonds]
    plot.segments(starts, ends, shown.colours.tolist(), max(1.2, size / 7))
    kinds = np.array(COLOURS)[shown.kinds]
    faces = np.select([plain, shown.said == "?"], [kinds, PALE], WHITE)
    plot.dots(places, faces.tolist(), "●", size, np.where(plain, kinds, GREY).tolist())
    if letters:
        words = np.where(shown.said == "?", "?", np.array(ATOMS)[shown.kinds])
        colours = np.where(plain, WHITE, DUSK).tolist()
        plot.text(places[:, 0], places[:, 1], words.tolist(), colours, "small", bold=True)


def molecule_pictures(numbers: Any) -> Tensor:
    """Small pictures of these molecules, (n, 3, 96, 96) uint8."""

    def draw(page: Page, number: int) -> str:
        draw_atoms(page.plane("molecule", (-WIDE, WIDE)), whole(number), 6.5)
        return ""

    found = [pictured(partial(draw, number=int(number)), "molecule", (0.8, 0.8)).pixels for number in numbers]
    return torch.from_numpy(np.stack(found)).permute(0, 3, 1, 2).contiguous()

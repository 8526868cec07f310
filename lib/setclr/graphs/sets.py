"""Graph data sets: MUTAG ships with the package; the others of table 4 are files of the TU collection."""

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from setclr.data.downloads import downloading
from setclr.data.labels import checked_labels
from setclr.data.writing import replacing
from setclr.graphs.geometric import Batch, Data, read_tu_data
from setclr.graphs.views import together
from setclr.recipes.graph import GRAPH_SETS, TU, check_graph_data

ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
# Of the files that are read, one after the other in the order of READ.
READ = ("A", "graph_indicator", "graph_labels", "node_labels")
TU_SHA256 = {
    "PROTEINS": "b3a7da3a98832225f3203e5862ad8dcd17d65a3b7110b02b4a6f5fd617551acb",
    "IMDB-BINARY": "65318301ee72463e9938e06ed98e54afe0f56d147090cd20fd0fb29361db1bc8",
}
PLAIN = ("x", "edge_index", "y")  # what is used of a graph
ERRORS = (OSError, EOFError, LookupError, RuntimeError, ValueError, BadZipFile)  # of files and downloads


class GraphSet:
    """Labelled graphs, each a `torch_geometric.data.Data` with x (n, F) and edge_index (2, m), and y or
    none.

    edge_index holds both directions of an edge, PyTorch Geometric's form of undirected edges. A graph
    without edges is allowed: its nodes have no neighbours.

    Raises ValueError, naming the graph, where there are no graphs, only some have a label, or where one
    has no nodes, another number of features than the first, values that are not finite, edges to nodes that
    do not exist, or numbers at its edges, which no encoder here would use.
    """

    def __init__(self, graphs: Sequence[Data], name: str = "graphs"):
        if not len(graphs):
            raise ValueError("graphs must be at least one, got none; add some")
        for i, graph in enumerate(graphs):
            check_graph(f"graphs[{i}]", graph, None if i == 0 else graphs[0].x.shape[1])
        self.graphs, self.name = tuple(graphs), name
        labels = [graph.y for graph in self.graphs]
        has = [label is not None for label in labels]
        if any(has) and not all(has):
            raise ValueError(f"graphs must all have a label y, or none; graphs[{has.index(False)}] has none")
        parts = [y.flatten().tolist() if isinstance(y, Tensor) else [y] for y in labels]
        known = [y for part in parts for y in part] if all(has) else [-1] * len(self)
        self.labels = checked_labels("graphs' y", known, len(self))

    def __len__(self) -> int:
        return len(self.graphs)

    def subset(self, chosen: Tensor) -> "GraphSet":
        """The graphs where `chosen` (N,) bool is True, in their order."""
        return GraphSet([self.graphs[i] for i in chosen.nonzero().flatten().tolist()], self.name)

    @property
    def features(self) -> int:
        """F: the number of features of a node."""
        return self.graphs[0].x.shape[1]

    def batch(self, indices: Tensor | Sequence[int]) -> Batch:
        """The graphs of these indices as one: nodes concatenated, `batch` (n,) the graph of each."""
        chosen = [self.graphs[int(i)] for i in indices]
        sizes = torch.tensor([len(graph.x) for graph in chosen], device=chosen[0].x.device)
        starts, of = sizes.cumsum(0) - sizes, torch.arange(len(chosen)).to(sizes).repeat_interleave(sizes)
        edges = torch.cat([graph.edge_index + start for graph, start in zip(chosen, starts)], dim=1)
        return together(torch.cat([graph.x for graph in chosen]), edges, of, len(chosen))

    def __repr__(self) -> str:
        nodes = [graph.num_nodes for graph in self.graphs]
        return (
            f"GraphSet({self.name}: {len(self)} graphs of {min(nodes)} to {max(nodes)} nodes, "
            f"{self.features} numbers a node, {len(self.labels.unique())} classes)"
        )


def check_graph(name: str, graph: Data, features: int | None) -> None:
    """Raises ValueError, naming the graph, where it is not as `GraphSet` requires."""
    x, edges = getattr(graph, "x", None), getattr(graph, "edge_index", None)
    if not isinstance(x, Tensor) or x.ndim != 2 or not x.is_floating_point() or not x.numel():
        got = f"{tuple(x.shape)} {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        hint = "torch.ones(n, 1) where nodes have no attributes"
        raise ValueError(f"{name}.x must be a floating tensor (n, F) with n, F > 0, got {got}; {hint}")
    if not x.isfinite().all():
        raise ValueError(f"{name}.x must be finite, got NaN or inf; look at how it was made")
    if features not in (None, x.shape[1]):
        raise ValueError(f"{name}.x must be (n, {features}), as that of the first, got {tuple(x.shape)}")
    if not isinstance(edges, Tensor) or edges.ndim != 2 or len(edges) != 2 or edges.dtype != torch.long:
        hint = "torch.empty(2, 0, dtype=torch.long) where there are no edges"
        got = f"{tuple(edges.shape)} {edges.dtype}" if isinstance(edges, Tensor) else type(edges).__name__
        raise ValueError(f"{name}.edge_index must be an int64 tensor (2, m), got {got}; {hint}")
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < len(x):
        got = f"{int(edges.min())} to {int(edges.max())}"
        raise ValueError(f"{name}.edge_index must be 0 to {len(x) - 1}, the nodes it has, got {got}")
    if unused := [key for key in ("edge_attr", "edge_weight") if getattr(graph, key, None) is not None]:
        raise ValueError(f"{name} has {unused[0]}, which would not be used; delete it to train without")
    if graph.num_nodes != len(x):
        raise ValueError(f"{name}.num_nodes must be that of x, {len(x)}, got {graph.num_nodes}; leave it out")


class Molecule(NamedTuple):
    """A molecule without its hydrogens. `atoms` (n,) are indices into ATOMS. `bonds` (2, m) holds each
    bond once, and `kinds` (m,) its kind: 0 aromatic, 1 single, 2 double, 3 triple."""

    atoms: np.ndarray
    bonds: np.ndarray
    kinds: np.ndarray
    mutagenic: bool


def molecules() -> list[Molecule]:
    """The 188 nitro compounds of MUTAG (Debnath et al. 1991), from the files of the TU collection."""
    with (files("setclr.graphs") / "mutag.npz").open("rb") as file, np.load(file) as kept:
        stored = {name: kept[name] for name in kept.files}
    found, starts = [], np.searchsorted(stored["molecule"], np.arange(len(stored["mutagenic"]) + 1))
    bonds = stored["bonds"].astype(np.int64)
    for first, end, mutagenic in zip(starts[:-1], starts[1:], stored["mutagenic"]):
        own = (bonds[0] >= first) & (bonds[0] < end)
        atoms = stored["atoms"][first:end].astype(np.int64)
        found.append(Molecule(atoms, bonds[:, own] - first, stored["kinds"][own], bool(mutagenic)))
    return found


def graph_of(molecule: Molecule) -> Data:
    """The graph of a molecule. x (n, 7) says which atom a node is. Kinds of bonds are left out, as in
    GraphCL."""
    both = np.concatenate([molecule.bonds, molecule.bonds[::-1]], axis=1)
    x = one_hot(torch.from_numpy(molecule.atoms), len(ATOMS)).float()
    return Data(x=x, edge_index=torch.from_numpy(both), y=torch.tensor([int(molecule.mutagenic)]))


def load_graphs(name: str, root: str | Path = "data") -> GraphSet:
    """The graph set of that name.

    - A key of GRAPH_SETS. "mutag" needs no download. The others are text files under
      `root`/tudataset/NAME/raw, and are downloaded if they are missing.
    - "tu:PATH": a folder with such files of your own, NAME_A.txt, NAME_graph_indicator.txt,
      NAME_graph_labels.txt and, if nodes have kinds, NAME_node_labels.txt.
    - "PATH.pt": what torch.save wrote of a list of dicts of tensors: x (n, F) floating, edge_index (2, m)
      int64 with both directions of each edge, and y (1,) int64, or none in any.

    A node's features of a TU set are its kind, or a 1 where nodes have no kinds. Only text and plain tensors
    are read, so data never run code. Raises ValueError for another name, for files or tensors that the
    encoder would not use, and where a graph is not as a `GraphSet` requires; FileNotFoundError where your own
    files are missing; ConnectionError, with the remedy, where another set is damaged, or missing and cannot
    be downloaded.
    """
    reader = check_graph_data(name)
    if reader == "tu":
        return own_tu_graphs(Path(os.path.expanduser(name.removeprefix(TU))))
    if reader == "pt":
        return own_tensors(Path(os.path.expanduser(name)))
    original = GRAPH_SETS[name]
    if name == "mutag":
        return GraphSet([graph_of(molecule) for molecule in molecules()], name)
    folder = Path(root) / "tudataset"
    where = folder / original / "raw"
    remedy = f"put {original}_A.txt and its other files into {where}; 'mutag' needs no download"
    with downloading(f"{name} is not under {folder}, or damaged,", remedy, ERRORS):
        if not (where / f"{original}_A.txt").exists():
            fetch(original, where)
        graphs = tu_graphs(where, original)
        refuse_other_files(where, original)
    return GraphSet(graphs, name)


def refuse_other_files(folder: Path, name: str) -> None:
    """Raises ValueError if the text files of a set are not those whose checksum is known."""
    files = [folder / f"{name}_{part}.txt" for part in READ]
    found = sha256(b"".join(path.read_bytes() for path in files if path.exists())).hexdigest()
    if found != TU_SHA256.get(name, found):
        raise ValueError(f"the files have the checksum {found[:12]}, not {TU_SHA256[name][:12]}")


def own_tu_graphs(folder: Path) -> GraphSet:
    """The set whose text files lie in that folder. Raises as `load_graphs` does."""
    found = sorted(folder.glob("*_A.txt"))
    if len(found) != 1:
        said = f"{folder} must hold one file NAME_A.txt, got {len(found)}"
        raise FileNotFoundError(f"{said}; give the folder of one set in the TU collection's form")
    name = found[0].name.removesuffix("_A.txt")
    for part in ("edge_labels", "edge_attributes", "node_attributes", "graph_attributes"):
        if (unused := folder / f"{name}_{part}.txt").exists():
            raise ValueError(f"{unused} would not be used; move it away to train without these numbers")
    try:
        return both_ways(GraphSet(tu_graphs(folder, name), name))
    except ERRORS as error:
        said = f"{folder}: the files of {name} cannot be read ({error})"
        raise ValueError(f"{said}; write them as chrsmrrs.github.io/datasets says") from error


def own_tensors(path: Path) -> GraphSet:
    """The graphs in a file of plain tensors. Raises as `load_graphs` does."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; give a file that torch.save wrote")
    wanted = "a list of dicts with tensors x, edge_index and y"
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        said = f"{path} must hold plain tensors ({type(error).__name__})"
        raise ValueError(f"{said}; save {wanted}, not Data objects") from error
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{path} must hold {wanted}, got {type(found).__name__}")
    for i, one in enumerate(found):
        if other := sorted(set(map(str, one)) - set(PLAIN)):
            raise ValueError(f"{path}: graphs[{i}] has {other[0]}, which would not be used; leave it out")
        if other := [key for key, x in one.items() if not isinstance(x, Tensor)]:
            got = f"got {type(one[other[0]]).__name__}; torch.tensor makes one"
            raise ValueError(f"{path}: graphs[{i}].{other[0]} must be a tensor, {got}")
    return both_ways(GraphSet([Data(**one) for one in found], path.stem))


def both_ways(graphs: GraphSet) -> GraphSet:
    """The graphs. Raises ValueError, naming the graph, if an edge has one direction only."""
    for i, graph in enumerate(graphs.graphs):
        if not graph.is_undirected():
            raise ValueError(f"{graphs.name}: graphs[{i}] has a one-way edge; to_undirected mends it")
    return graphs


def fetch(name: str, where: Path) -> None:
    """Download a set of the TU collection, and unpack its text files into a folder."""
    where.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        archive = Path(place) / f"{name}.zip"
        torch.hub.download_url_to_file(f"{TU_URL}/{name}.zip", str(archive), progress=False)
        with ZipFile(archive) as packed:
            last = f"{name}_A.txt"  # its presence says that all are there
            for member in sorted(packed.namelist(), key=lambda member: member.endswith(last)):
                file_name = member.removeprefix(f"{name}/")
                if re.fullmatch(rf"{name}_\w+\.txt", file_name):
                    with replacing(where / file_name) as file:
                        file.write(packed.read(member))


def tu_graphs(folder: Path, name: str) -> list[Data]:
    """The graphs in the text files NAME_A.txt, NAME_graph_indicator.txt and so on, in that folder.

    A node's features are its labels, one after the other as 0s and a 1, or a 1 where nodes have none.
    Attributes of nodes and edges are left out.
    """
    data, slices, sizes = read_tu_data(str(folder), name)
    if data.y is None:
        raise ValueError(f"{name}_graph_labels.txt is missing")
    nodes = slices["x"].diff().tolist() if data.x is not None else data._num_nodes
    x = torch.ones(sum(nodes), 0) if data.x is None else data.x[:, sizes["num_node_attributes"] :]
    x = x if x.shape[1] else torch.ones(len(x), 1)
    edges = data.edge_index.split(slices["edge_index"].diff().tolist(), dim=1)
    edges += (torch.empty(2, 0, dtype=torch.long),) * (len(nodes) - len(edges))  # of last graphs without any
    rows = zip(x.split(nodes), edges, data.y.view(-1, 1), strict=True)
    return [Data(x=x, edge_index=e, y=y) for x, e, y in rows]

"""Graph data sets: MUTAG ships with the package; the others of table 4 are files of the TU collection."""

import os
import shutil
import warnings
from collections.abc import Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile, is_zipfile

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from setclr.data.downloads import downloading
from setclr.data.sets import checked_labels
from setclr.graphs.geometric import Batch, Data, coalesce, together
from setclr.recipes.graph import GRAPH_SETS, TU, check_graph_data

ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
MOST_NUMBERS = 2**28  # of the nodes' kinds as 0s and 1s, which take a gigabyte


class GraphSet:
    """Labelled graphs, each a `torch_geometric.data.Data` with x (n, F) and edge_index (2, m), and y or
    none.

    edge_index holds both directions of an edge, PyTorch Geometric's form of undirected edges. A graph
    without edges is allowed: its nodes have no neighbours.

    A warning says that numbers at edges are not used. Raises ValueError, naming the graph, where there are
    no graphs, only some have a label, or where one has no nodes, another number of features than the first,
    values that are not finite, or edges to nodes that do not exist.
    """

    def __init__(self, graphs: Sequence[Data], name: str = "graphs"):
        if not len(graphs):
            raise ValueError("graphs must be at least one, got none; add some")
        for i, graph in enumerate(graphs):
            check_graph(f"graphs[{i}]", graph, None if i == 0 else graphs[0].x.shape[1])
        self.graphs, self.name = tuple(graphs), name
        labels = [y.flatten().tolist() if isinstance(y := graph.y, Tensor) else [y] for graph in graphs]
        if [None] in labels and any(y != [None] for y in labels):
            place = labels.index([None])
            raise ValueError(f"graphs must all have a label y, or none; graphs[{place}] has none")
        known = [-1] * len(self) if [None] in labels else list(chain.from_iterable(labels))
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

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels that there are, as words; () if no graph has a label."""
        return tuple(str(label) for label in self.labels.unique().tolist() if label >= 0)

    def batch(self, indices: Tensor | Sequence[int]) -> Batch:
        """The graphs of these indices as one: nodes concatenated, `batch` (n,) the graph of each."""
        chosen = [self.graphs[int(i)] for i in indices]
        sizes = torch.tensor([len(graph.x) for graph in chosen], device=chosen[0].x.device)
        starts, of = sizes.cumsum(0) - sizes, torch.arange(len(chosen)).to(sizes).repeat_interleave(sizes)
        edges = torch.cat([graph.edge_index + start for graph, start in zip(chosen, starts)], dim=1)
        return together(torch.cat([graph.x for graph in chosen]), edges, of, len(chosen))

    def __repr__(self) -> str:
        sizes = [len(graph.x) for graph in self.graphs]
        nodes = f"{min(sizes)} to {max(sizes)} nodes, {self.features} numbers a node"
        return f"GraphSet({self.name}: {len(self)} graphs of {nodes}, {len(self.labels.unique())} classes)"


def check_graph(name: str, graph: Data, features: int | None) -> None:
    """Raises ValueError, naming the graph, where it is not as `GraphSet` requires."""
    x, edges = (getattr(graph, key, None) for key in ("x", "edge_index"))
    got = [f"{tuple(z.shape)} {z.dtype}" if isinstance(z, Tensor) else type(z).__name__ for z in (x, edges)]
    if not isinstance(x, Tensor) or x.ndim != 2 or not x.is_floating_point() or not x.numel():
        hint = "torch.ones(n, 1) where nodes have no attributes"
        raise ValueError(f"{name}.x must be a floating tensor (n, F) with n, F > 0, got {got[0]}; {hint}")
    if x.requires_grad or not x.isfinite().all():
        raise ValueError(f"{name}.x must be finite and need no gradient; look at how it was made")
    if features not in (None, x.shape[1]):
        raise ValueError(f"{name}.x must be (n, {features}), as that of the first, got {tuple(x.shape)}")
    if not isinstance(edges, Tensor) or edges.dtype != torch.long or edges.ndim != 2 or len(edges) != 2:
        hint = "torch.empty(2, 0, dtype=torch.long) where there are no edges"
        raise ValueError(f"{name}.edge_index must be an int64 tensor (2, m), got {got[1]}; {hint}")
    if (outside := edges[(edges < 0) | (edges >= len(x))]).numel():
        wanted = f"{name}.edge_index must join nodes 0 to {len(x) - 1}, those of x"
        raise ValueError(f"{wanted}, got {int(outside[0])}; look at how it was made")
    if unused := [key for key in ("edge_attr", "edge_weight") if getattr(graph, key, None) is not None]:
        warnings.warn(f"graphs have {unused[0]}, which is not used", stacklevel=3)


def load_graphs(name: str, root: str | Path = "data") -> GraphSet:
    """The graph set of that name.

    - A key of GRAPH_SETS. "mutag" needs no download. The others are text files under
      `root`/tudataset/NAME/raw, and are downloaded if they are missing.
    - "tu:PATH": a folder with such files of your own in it or below, NAME_A.txt, NAME_graph_indicator.txt,
      NAME_graph_labels.txt and, if nodes have kinds, NAME_node_labels.txt.
    - "PATH.pt": what torch.save wrote of a list of dicts of tensors: x (n, F) floating, edge_index (2, m)
      int64 with both directions of each edge, and y (1,) int64, or none in any.

    A node's features of a TU set are its kind, or a 1 where nodes have no kinds. Only text and plain tensors
    are read, so data never run code. Raises ValueError for another name, for files or tensors that the
    encoder would not use, and where a graph is not as a `GraphSet` requires; FileNotFoundError where your own
    files are missing; ConnectionError, with the remedy, where another set is damaged, or missing and cannot
    be downloaded.
    """
    reader, path = check_graph_data(name), Path(os.path.expanduser(name.removeprefix(TU)))
    if reader == "set":
        graphs = GraphSet(mutag() if name == "mutag" else collected(name, Path(root) / "tudataset"), name)
    else:
        graphs = own_tu_graphs(path) if reader == "tu" else own_tensors(path)
    for i, graph in enumerate(graphs.graphs):
        if not graph.is_undirected():
            raise ValueError(f"{name}: graphs[{i}] has a one-way edge; to_undirected mends it")
    return graphs


def mutag() -> list[Data]:
    """The 188 nitro compounds of MUTAG (Debnath et al. 1991) without their hydrogens, from the files of the
    TU collection.

    x (n, 7) says which of ATOMS a node is, and y whether the molecule is mutagenic. The first half of
    edge_index has each bond once. Kinds of bonds are left out, as in GraphCL.
    """
    with (files("setclr.graphs") / "mutag.npz").open("rb") as file, np.load(file) as stored:
        arrays = [stored[part].astype(np.int64) for part in ("atoms", "bonds", "molecule", "mutagenic")]
    atoms, bonds, of, y = map(torch.from_numpy, arrays)
    return separate(one_hot(atoms, len(ATOMS)), torch.cat([bonds, bonds.flip(0)], dim=1), of, y)


def separate(x: Tensor, edges: Tensor, of: Tensor, y: Tensor) -> list[Data]:
    """The graphs one by one, labelled `y`. `of` (n,), sorted, is the graph of each node of x (n, F). Edges
    (2, m) keep their order."""
    sizes, own = of.bincount(minlength=len(y)), of[edges[0]]
    edges = (edges - (sizes.cumsum(0) - sizes)[own])[:, own.argsort(stable=True)]
    of_each = edges.split(own.bincount(minlength=len(y)).tolist(), dim=1)
    parts = zip(x.float().split(sizes.tolist()), of_each, y.view(-1, 1))
    return [Data(x=x, edge_index=edge_index, y=label) for x, edge_index, label in parts]


def collected(name: str, folder: Path) -> list[Data]:
    """The graphs of a set of the TU collection. Text files that are missing are downloaded, and appear in the
    folder all at once."""
    original = GRAPH_SETS[name]
    where = folder / original / "raw"
    remedy = f"put {original}_A.txt and its other files into {where}; 'mutag' needs no download"
    with downloading(f"{name} is not under {folder}, or damaged,", remedy, (Exception,)):
        if not (where / f"{original}_A.txt").exists():
            where.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=where.parent) as place:
                archive = os.path.join(place, f"{original}.zip")
                torch.hub.download_url_to_file(f"{TU_URL}/{original}.zip", archive, progress=False)
                shutil.unpack_archive(archive, place)
                os.replace(os.path.join(place, original), where)
        return tu_graphs(where, original)


def own_tu_graphs(folder: Path) -> GraphSet:
    """The set whose text files lie in that folder. Raises as `load_graphs` does."""
    edge_files = sorted(folder.rglob("*_A.txt"))
    if len(edge_files) != 1:
        wanted = f"{folder} must hold one file NAME_A.txt, in it or below, got {len(edge_files)}"
        raise FileNotFoundError(f"{wanted}; give the folder of one set in the TU collection's form")
    name, folder = edge_files[0].name.removesuffix("_A.txt"), edge_files[0].parent
    for part in ("edge_labels", "edge_attributes", "node_attributes", "graph_attributes"):
        if (unused := folder / f"{name}_{part}.txt").exists():
            warnings.warn(f"{unused} is not used", stacklevel=2)
    try:
        return GraphSet(tu_graphs(folder, name), name)
    except (OSError, ValueError) as error:
        failed = f"{folder}: the files of {name} cannot be read ({error})"
        raise ValueError(f"{failed}; write them as chrsmrrs.github.io/datasets says") from error


def tu_graphs(folder: Path, name: str) -> list[Data]:
    """The graphs in the text files NAME_A.txt, NAME_graph_indicator.txt and so on, in that folder.

    A node's features are its labels, one after the other as 0s and a 1, or a 1 where nodes have none.
    Attributes of nodes and edges are left out. An edge that stands there twice is one edge. Raises ValueError
    or OSError, naming the file, where files are missing or do not fit together.
    """

    def numbers(part: str, columns: int) -> Tensor:
        """The whole numbers of a file, (lines, columns); any number of columns where that is 0."""
        path = folder / f"{name}_{part}.txt"
        if not path.is_file():
            raise FileNotFoundError(f"{path.name} is missing, or a pipe or a device")
        rows = np.loadtxt(path, np.int64, delimiter=",", ndmin=2)
        if rows.size and columns not in (0, rows.shape[1]):
            raise ValueError(f"{path.name} must have {columns} numbers in a line, got {rows.shape[1]}")
        return torch.from_numpy(rows).reshape(len(rows), columns or rows.shape[1])

    of, y = numbers("graph_indicator", 1)[:, 0] - 1, numbers("graph_labels", 1)[:, 0]
    edges, n, x = numbers("A", 2).T - 1, len(of), torch.ones(len(of), 1)
    if not n or of.unique_consecutive().tolist() != list(range(len(y))):
        wanted = f"1 to {len(y)}, one after the other, as {name}_graph_labels.txt has {len(y)} lines"
        raise ValueError(f"{name}_graph_indicator.txt must number graphs from {wanted}")
    a, b = edges.clamp(0, n - 1)
    wrong = (edges != torch.stack([a, b])).any(0) | (of[a] != of[b])
    if wrong.any():
        edge = ", ".join(str(node + 1) for node in edges[:, wrong][:, 0].tolist())
        wanted = f"it must join two of the nodes 1 to {n} of a graph"
        raise ValueError(f"{name}_A.txt has the edge {edge}; {wanted}")
    if (folder / f"{name}_node_labels.txt").exists():
        kinds = numbers("node_labels", 0)
        if len(kinds) != n:
            raise ValueError(f"{name}_node_labels.txt must have {n} lines, one a node, got {len(kinds)}")
        spans = [int(column.max()) - int(column.min()) + 1 for column in kinds.T]
        if n * sum(spans) > MOST_NUMBERS:
            raise ValueError(f"{name}_node_labels.txt has {max(spans)} kinds, {n} nodes; number them from 0")
        x = torch.cat([one_hot(column) for column in (kinds - kinds.amin(0)).T], dim=1)
    return separate(x, coalesce(edges), of, y.unique(return_inverse=True)[1])


def own_tensors(path: Path) -> GraphSet:
    """The graphs in a file of plain tensors. Raises as `load_graphs` does."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; give a file that torch.save wrote")
    wanted = "a list of dicts with tensors x, edge_index and y"
    size = path.stat().st_size
    try:
        if is_zipfile(path):
            with ZipFile(path) as packed:
                if sum(part.file_size for part in packed.infolist()) > size:
                    raise ValueError("it is compressed")
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        why = error if isinstance(error, ValueError) else type(error).__name__
        failed = f"{path} must hold plain tensors ({why})"
        raise ValueError(f"{failed}; save {wanted}, not Data objects") from error
    if not isinstance(stored, list) or not all(isinstance(one, dict) for one in stored):
        raise ValueError(f"{path} must hold {wanted}, got {type(stored).__name__}")
    for i, one in enumerate(stored):
        if other := sorted(set(map(str, one)) - {"x", "edge_index", "y"}):
            raise ValueError(f"{path}: graphs[{i}] has {other[0]}, which would not be used; leave it out")
        for key, z in one.items():
            if isinstance(z, Tensor) and (z.layout != torch.strided or z.is_meta or z.nbytes > size):
                wanted = f"{path}: graphs[{i}].{key} must be a tensor with all its numbers in the file"
                raise ValueError(f"{wanted}, got {tuple(z.shape)}; save it dense and contiguous")
            one[key] = z.detach() if isinstance(z, Tensor) else z
    return GraphSet([Data(**one) for one in stored], path.stem)

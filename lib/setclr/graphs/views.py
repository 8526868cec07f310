"""Random views of graphs: GraphCL's four augmentations (You et al. 2020, table 1), and a source of them.

An augmentation is a pure function of a batch. All graphs of a batch are changed at once. `chosen` (B,) bool
says which of them change; None is all. Random numbers come from `generator`, or from torch's global one.
Cost: O(nodes + edges), sorting included, and O(steps · B) for walks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import Generator, Tensor, nn

from setclr.checks import choice, number
from setclr.graphs.geometric import Batch, keep_nodes, some_graphs, together
from setclr.graphs.sets import GraphSet
from setclr.recipes.graph import AUGMENTATIONS, GRAPH_VIEWS
from setclr.seeding import seeded
from setclr.training.grad_cache import Group
from setclr.training.source import Step

STEPS = 10  # of a walk, for each node that it is to visit


def graph_view(
    graphs: Batch, view: str = "any", ratio: float = 0.2, generator: Generator | None = None
) -> Batch:
    """A view of every graph. `view` is "drop", "rewire", "mask" or "walk", as the functions below do it;
    "same", the graph itself; or "any", one of the four for each graph. Raises ValueError for another name
    or ratio."""
    if choice("view", view, GRAPH_VIEWS) == "same":
        return graphs
    drawn = torch.randint(len(AUGMENTATIONS), (graphs.num_graphs,), generator=generator).to(graphs.x.device)
    if view != "any":
        drawn.fill_(AUGMENTATIONS.index(view))
    for i, change in enumerate((drop_nodes, rewire_edges, mask_nodes, keep_walk)):
        if bool((drawn == i).any()):
            graphs = change(graphs, ratio, generator, drawn == i)
    return graphs


def drop_nodes(
    graphs: Batch, ratio: float = 0.2, generator: Generator | None = None, chosen: Tensor | None = None
) -> Batch:
    """Drop a share of `ratio` of each graph's nodes, rounded down, and their edges. At least one node
    stays."""
    of = graphs.batch
    lost = _share(graphs, of, ratio, chosen).minimum(graphs.ptr.diff() - 1)
    return keep_nodes(graphs, _rank(of, generator) >= lost[of])


def mask_nodes(
    graphs: Batch, ratio: float = 0.2, generator: Generator | None = None, chosen: Tensor | None = None
) -> Batch:
    """Replace the features of a share of `ratio` of each graph's nodes, rounded down, by noise of mean
    and standard deviation 0.5, as in the authors' program."""
    of = graphs.batch
    masked = _rank(of, generator) < _share(graphs, of, ratio, chosen)[of]
    noise = 0.5 + 0.5 * torch.randn(graphs.x.shape, generator=generator).to(graphs.x)
    return together(torch.where(masked[:, None], noise, graphs.x), graphs.edge_index, of, graphs.num_graphs)


def rewire_edges(
    graphs: Batch, ratio: float = 0.2, generator: Generator | None = None, chosen: Tensor | None = None
) -> Batch:
    """Remove a share of `ratio` of each graph's edges, rounded down, and add edges between as many random
    pairs of its nodes. A drawn pair that is an edge already, or was drawn before, adds nothing.

    An edge is removed or added in both directions, and `edge_index` must hold both.
    """
    of, n, nodes = graphs.batch, len(graphs.x), graphs.ptr.diff()
    a, b = graphs.edge_index
    once = torch.unique(torch.minimum(a, b) * n + torch.maximum(a, b))
    own = of[once // n]
    count = _share(graphs, own, ratio, chosen)
    stay = once[_rank(own, generator) >= count[own]]
    asked = torch.arange(len(nodes), device=of.device).repeat_interleave(count * (nodes > 1))
    u, v = torch.rand(2, len(asked), generator=generator, dtype=torch.float64).to(of.device)
    u = (u * nodes[asked]).long()
    v = (u + 1 + (v * (nodes[asked] - 1)).long()) % nodes[asked]  # another node than u
    first = graphs.ptr[asked]
    new = (first + torch.minimum(u, v)) * n + first + torch.maximum(u, v)
    pairs = torch.unique(torch.cat([stay, new[~torch.isin(new, once)]]))
    pairs = torch.stack([pairs // n, pairs % n])
    loops = pairs[0] == pairs[1]
    return together(graphs.x, torch.cat([pairs, pairs.flip(0)[:, ~loops]], dim=1), of, graphs.num_graphs)


def keep_walk(
    graphs: Batch, ratio: float = 0.2, generator: Generator | None = None, chosen: Tensor | None = None
) -> Batch:
    """Keep the nodes that a random walk visits, with all edges between them.

    The walk ends when it has visited a share of `ratio` of a graph's nodes, rounded up. It begins at a
    random node, and gives up after ten steps for each node that it is to visit. At a node without
    neighbours it stays, and that node alone is kept.

    The authors' program keeps the same share of nodes; it takes neighbours of the first node only.
    """
    number("ratio", ratio, least=0, most=1)
    of, B, nodes = graphs.batch, graphs.num_graphs, graphs.ptr.diff()
    wanted = (nodes * ratio).ceil().long().clamp(min=1)
    source, target = graphs.edge_index[:, graphs.edge_index[0].argsort(stable=True)]
    degree = source.bincount(minlength=len(of))
    first = degree.cumsum(0) - degree
    place = graphs.ptr[:-1] + (_uniform(B, generator, of.device) * nodes).long()
    seen, count = torch.zeros(len(of), dtype=torch.bool, device=of.device), torch.ones_like(nodes)
    seen[place] = True
    for _ in range(STEPS * int(wanted.max())):
        going = (count < wanted) & (degree[place] > 0)
        if not bool(going.any()):
            break
        step = first[place] + (_uniform(B, generator, of.device) * degree[place]).long()
        place = torch.where(going, target[step.clamp(max=len(target) - 1)], place)
        count += ~seen[place]
        seen[place] = True
    return keep_nodes(graphs, seen | ~_chosen(graphs, chosen)[of])


def _share(graphs: Batch, of: Tensor, ratio: float, chosen: Tensor | None) -> Tensor:
    """A share of `ratio` of each graph's entries, rounded down, or none where it is not chosen: (B,) counts.
    `of` is the graph of each entry. Raises ValueError for another ratio."""
    number("ratio", ratio, least=0, most=1)
    return (of.bincount(minlength=graphs.num_graphs) * ratio).floor().long() * _chosen(graphs, chosen)


def _chosen(graphs: Batch, chosen: Tensor | None) -> Tensor:
    """The graphs that are changed, (B,) bool. Raises ValueError where `chosen` has another shape or type."""
    if chosen is None:
        return torch.ones(graphs.num_graphs, dtype=torch.bool, device=graphs.x.device)
    if chosen.shape != (graphs.num_graphs,) or chosen.dtype != torch.bool:
        got = f"{tuple(chosen.shape)} {chosen.dtype}"
        raise ValueError(f"chosen must be a bool for each of {graphs.num_graphs} graphs, got {got}")
    return chosen


def _uniform(n: int, generator: Generator | None, device: torch.device) -> Tensor:
    return torch.rand(n, generator=generator, dtype=torch.float64).to(device)  # float64: u · n stays below n


def _rank(of: Tensor, generator: Generator | None) -> Tensor:
    """A random rank of each entry among those of its graph, from 0. `of` (n,) is the graph of each entry."""
    keys = _uniform(len(of), generator, of.device)
    order = keys.argsort()
    order = order[of[order].argsort(stable=True)]
    counts = of.bincount()
    starts = (counts.cumsum(0) - counts)[of[order]]
    return (torch.arange(len(of), device=of.device) - starts)[order.argsort()]


class GraphViews:
    """Two views of each graph, as `graph_view` makes them: `views` are their names.

        Trainer(GraphViews(load_graphs("mutag")), GIN(7), graph_head(96), InfoNCE(0.2))

    Random numbers are a function of the step's key and of the whole batch. With many processes each makes the
    views of the whole batch, and keeps those of its share. An encoder sees one view after the other.

    Raises ValueError for other names or another ratio.
    """

    things = "graphs"

    def __init__(self, graphs: GraphSet, views: tuple[str, ...] = ("same", "any"), ratio: float = 0.2):
        self.graphs, self.labels, self.ratio = graphs, graphs.labels, number("ratio", ratio, least=0, most=1)
        self.views = tuple(choice("view", view, GRAPH_VIEWS) for view in views)

    def __len__(self) -> int:
        return len(self.graphs)

    def digest(self) -> str:
        checksum = sha256(self.labels.numpy().tobytes())
        for graph in self.graphs.graphs:
            values = graph.x.contiguous().view(torch.uint8)  # numpy knows no bfloat16
            checksum.update(values.numpy().tobytes() + graph.edge_index.numpy().tobytes())
        return f"{len(self)} graphs with checksum {checksum.hexdigest()[:12]}"

    def batches(
        self, steps: Iterable[Step], device: torch.device, workers: int, compiled: bool
    ) -> Iterator[list[Group]]:
        """The views of each step; as they take little time, no `workers` make them."""
        for step in steps:
            batch, generator = self.graphs.batch(step.batch), seeded(*step.key)
            views = [graph_view(batch, name, self.ratio, generator) for name in self.views]
            whole = ViewsOfGraphs(tuple(view.to(device) for view in views))
            yield [whole.part(step.first, step.first + len(step.indices))]


@dataclass
class ViewsOfGraphs:
    """A group of views for the Trainer: a Batch of n graphs for each view."""

    views: tuple[Batch, ...]

    @property
    def n(self) -> int:
        return self.views[0].num_graphs

    def encode(self, encoder: nn.Module) -> Tensor:
        """The features (V·n, D), view after view."""
        return torch.cat([encoder(view) for view in self.views])

    def part(self, start: int, stop: int) -> "ViewsOfGraphs":
        """The views of the graphs from `start` to before `stop`."""
        return ViewsOfGraphs(tuple(some_graphs(view, start, stop) for view in self.views))

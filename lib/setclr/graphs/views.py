"""GraphCL's four augmentations of graphs (You et al. 2020, table 1), each a pure function of a batch.

All graphs of a batch are changed at once. `chosen` (B,) bool says which of them change; None is all.
Random numbers come from `generator`, or from torch's global one. Cost: O(nodes + edges), sorting
included, and O(steps · B) for walks.
"""

import torch
from torch import Generator, Tensor

from setclr.checks import choice, number
from setclr.graphs.geometric import Batch, subgraph
from setclr.recipes.graph import AUGMENTATIONS, GRAPH_VIEWS

STEPS = 10  # of a walk, for each node that it is to visit


def graph_view(
    graphs: Batch, view: str = "any", ratio: float = 0.2, generator: Generator | None = None
) -> Batch:
    """A view of every graph. `view` is "drop", "rewire", "mask" or "walk", as the functions below do it;
    "same", the graph itself; or "any", one of the four for each graph. Raises ValueError for another name
    or ratio."""
    check_view(view, ratio)
    if view == "same":
        return graphs
    drawn = torch.randint(len(AUGMENTATIONS), (graphs.num_graphs,), generator=generator).to(graphs.x.device)
    if view != "any":
        drawn.fill_(AUGMENTATIONS.index(view))
    for i, change in enumerate((drop_nodes, rewire_edges, mask_nodes, keep_walk)):
        if bool((drawn == i).any()):
            graphs = change(graphs, ratio, generator, drawn == i)
    return graphs


def check_view(view: str, ratio: float) -> None:
    """Raises ValueError where `graph_view` takes no such view or ratio."""
    choice("view", view, GRAPH_VIEWS)
    number("ratio", ratio, least=0, most=1)


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


def keep_nodes(graphs: Batch, nodes: Tensor) -> Batch:
    """The graphs with only the nodes that `nodes` (n,) bool selects, and the edges between them."""
    edges, _ = subgraph(nodes, graphs.edge_index, relabel_nodes=True, num_nodes=len(nodes))
    return together(graphs.x[nodes], edges, graphs.batch[nodes], graphs.num_graphs)


def some_graphs(graphs: Batch, start: int, stop: int) -> Batch:
    """The graphs from `start` to before `stop` as a batch of their own."""
    first, end = int(graphs.ptr[start]), int(graphs.ptr[stop])
    edges = graphs.edge_index
    own = edges[:, (edges[0] >= first) & (edges[0] < end)] - first
    return together(graphs.x[first:end], own, graphs.batch[first:end] - start, stop - start)


def together(x: Tensor, edges: Tensor, of: Tensor, graphs: int) -> Batch:
    """So many graphs as one: nodes x (n, F), edges (2, m) between them, `of` (n,) the graph of each node."""
    ptr = torch.cat([of.new_zeros(1), of.bincount(minlength=graphs).cumsum(0)])
    return Batch(x=x, edge_index=edges, batch=of, ptr=ptr)

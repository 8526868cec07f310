"""Batches of graphs, and what is used of PyTorch Geometric, with the warnings of its import silenced."""

import warnings

import torch
from torch import Tensor

from setclr.extras import extra

with extra("graphs"), warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # it still uses torch.jit.script, which torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GINConv, global_add_pool
    from torch_geometric.utils import coalesce, subgraph

__all__ = ["Batch", "Data", "GINConv", "coalesce", "global_add_pool"]


def together(x: Tensor, edges: Tensor, of: Tensor, graphs: int) -> Batch:
    """So many graphs as one: nodes x (n, F), edges (2, m) between them, `of` (n,) the graph of each node."""
    ptr = torch.cat([of.new_zeros(1), of.bincount(minlength=graphs).cumsum(0)])
    return Batch(x=x, edge_index=edges, batch=of, ptr=ptr)


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

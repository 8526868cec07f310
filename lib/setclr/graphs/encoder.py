"""The graph isomorphism network (Xu et al. 2019) as GraphCL has it, and its head."""

import torch
from torch import Tensor, nn

from setclr.checks import boolean, integer
from setclr.graphs.geometric import Batch, GINConv, global_add_pool


class GIN(nn.Module):
    """Graphs (a Batch of B, their x (n, F)) → (B, layers · width).

    A layer adds to each node its neighbours', then a small network, ReLU and a batch norm. What a graph
    gets is the sum over its nodes, of every layer. Cost: O(layers · (edges · width + nodes · width²)).

    Raises ValueError where features, width or layers is no integer ≥ 1.
    """

    def __init__(self, features: int, width: int = 32, layers: int = 3):
        super().__init__()
        for name, value in (("features", features), ("width", width), ("layers", layers)):
            integer(name, value, least=1)
        entering = [features] + [width] * (layers - 1)
        networks = [nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, width)) for n in entering]
        self.layers = nn.ModuleList(map(GINConv, networks))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in networks)
        self.out = layers * width
        self.apply(glorot)

    def forward(self, graphs: Batch) -> Tensor:
        x, sums = graphs.x, []
        for layer, norm in zip(self.layers, self.norms):
            x = norm(layer(x, graphs.edge_index).relu())
            sums.append(global_add_pool(x, graphs.batch, graphs.num_graphs))
        return torch.cat(sums, dim=1)


def graph_head(features: int, last_norm: bool = False) -> nn.Module:
    """GraphCL's: two linear layers that keep the width, ReLU between. `last_norm` ends it with a batch norm
    without scale and shift, which GroCo needs (`setclr.models.head`)."""
    boolean("last_norm", last_norm)
    layers = [nn.Linear(features, features), nn.ReLU(), nn.Linear(features, features)]
    head = nn.Sequential(*layers, *([nn.BatchNorm1d(features, affine=False)] if last_norm else []))
    return head.apply(glorot)


def glorot(module: nn.Module) -> None:
    """Give a linear layer the first weights of GraphCL's program: Glorot's uniform ones, and biases 0."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)

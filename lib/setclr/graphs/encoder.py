"""The graph isomorphism network (Xu et al. 2019) as in GraphCL, its projection head, and its features."""

import torch
from torch import Tensor, nn

from setclr.checks import boolean, integer
from setclr.graphs.geometric import Batch, GINConv, global_add_pool
from setclr.graphs.sets import GraphSet


class GIN(nn.Module):
    """Graph encoder: a Batch of B graphs with node features x (n, F) → features (B, layers · width).

    A layer adds to each node's features those of its neighbours, then applies a small network, ReLU and a
    batch norm. The features of a graph are the sums over its nodes after each layer, concatenated. Cost:
    O(layers · (edges · width + nodes · width²)).

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
        x, sums = graphs.x.to(self.norms[0].weight), []
        for layer, norm in zip(self.layers, self.norms):
            x = norm(layer(x, graphs.edge_index).relu())
            sums.append(global_add_pool(x, graphs.batch, graphs.num_graphs))
        return torch.cat(sums, dim=1)


def graph_head(features: int, last_norm: bool = False) -> nn.Module:
    """GraphCL's projection head: two linear layers that keep the width, with a ReLU between them.
    `last_norm` ends it with a batch norm without scale and shift, which GroCo needs
    (`setclr.models.head`)."""
    boolean("last_norm", last_norm)
    layers = [nn.Linear(features, features), nn.ReLU(), nn.Linear(features, features)]
    head = nn.Sequential(*layers, *([nn.BatchNorm1d(features, affine=False)] if last_norm else []))
    return head.apply(glorot)


def glorot(module: nn.Module) -> None:
    """Initialise a linear layer as GraphCL's program does: Glorot's uniform weights, and biases of 0."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


@torch.no_grad()
def graph_features(encoder: nn.Module, graphs: GraphSet, batch: int = 512) -> Tensor:
    """The features (N, D) of all graphs, in eval mode. The encoder's mode is restored afterwards."""
    mode, device = encoder.training, next(encoder.parameters()).device
    parts = torch.arange(len(graphs)).split(batch)
    encoder.eval()
    features = torch.cat([encoder(graphs.batch(part).to(device)) for part in parts])
    encoder.train(mode)
    return features

"""What a Trainer trains on where the things are graphs, and the features of all graphs of a set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import Tensor, nn

from setclr.graphs.geometric import Batch
from setclr.graphs.sets import GraphSet
from setclr.graphs.views import check_view, graph_view, some_graphs
from setclr.seeding import seeded
from setclr.training.grad_cache import Group
from setclr.training.source import Step


class GraphViews:
    """Two views of each graph, as `graph_view` makes them: `views` are their names.

        Trainer(GraphViews(load_graphs("mutag")), GIN(7), graph_head(96), InfoNCE(0.2))

    Random numbers are a function of the step's key and of the whole batch. With many processes each makes the
    views of the whole batch, and keeps those of its share. An encoder sees one view after the other.

    Raises ValueError for other names or another ratio.
    """

    things = "graphs"

    def __init__(self, graphs: GraphSet, views: tuple[str, ...] = ("same", "any"), ratio: float = 0.2):
        for name in views:
            check_view(name, ratio)
        self.graphs, self.views, self.ratio, self.labels = graphs, tuple(views), ratio, graphs.labels

    def __len__(self) -> int:
        return len(self.graphs)

    def digest(self) -> str:
        found = sha256(self.labels.numpy().tobytes())
        for graph in self.graphs.graphs:
            found.update(graph.x.numpy().tobytes() + graph.edge_index.numpy().tobytes())
        return f"{len(self)} graphs with checksum {found.hexdigest()[:12]}"

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
        if (start, stop) == (0, self.n):
            return self
        return ViewsOfGraphs(tuple(some_graphs(view, start, stop) for view in self.views))


@torch.no_grad()
def graph_features(encoder: nn.Module, graphs: GraphSet, batch: int = 512) -> Tensor:
    """The features (N, D) of all graphs, in eval mode. The encoder's mode is restored afterwards."""
    mode, device = encoder.training, next(encoder.parameters()).device
    parts = torch.arange(len(graphs)).split(batch)
    encoder.eval()
    found = torch.cat([encoder(graphs.batch(part).to(device)) for part in parts])
    encoder.train(mode)
    return found

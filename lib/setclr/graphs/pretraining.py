"""Pretraining on graphs: the training loop, in which each graph of a batch is seen in two views."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from setclr.extras import extra
from setclr.graphs.encoder import GIN, graph_head
from setclr.graphs.sets import GraphSet, load_graphs
from setclr.graphs.views import graph_view
from setclr.recipes.graph import GraphRecipe
from setclr.seeding import drawing, seeded
from setclr.training.batches import Batches
from setclr.training.optimisers import make_optimiser

with extra("train"):
    from tqdm.auto import tqdm


@dataclass
class GraphRun:
    """A run: its recipe, the trained `encoder` and `head`, and `rows`, one for each epoch."""

    recipe: GraphRecipe
    encoder: GIN
    head: nn.Module
    rows: list[dict] = field(default_factory=list)


def pretrain_graphs(
    recipe: GraphRecipe, graphs: GraphSet | None = None, root: str | Path = "data",
    device: str | torch.device = "cpu", on_epoch: Callable[[GraphRun], dict | None] | None = None,
) -> GraphRun:  # fmt: skip
    """Train as the recipe says, on its data set or on the `graphs` given. MUTAG takes seconds on a CPU.

    Initial weights are a function of the seed, the order of graphs of (seed, epoch), the views of (seed,
    epoch, step). `on_epoch` is called with the run after each epoch, in eval mode. The dict that it
    returns is added to the epoch's row. A set smaller than a batch is one batch.

    Raises ValueError where there are fewer than two graphs or the last batch of an epoch would be a
    single graph; FloatingPointError where loss or embeddings become NaN or inf; what `load_graphs`
    raises.
    """
    graphs = load_graphs(recipe.data, root) if graphs is None else graphs
    batches = Batches(graphs.labels, min(recipe.batch, len(graphs)), recipe.seed, drop_last=False)
    with drawing(recipe.seed):
        encoder = GIN(graphs.features, recipe.width, recipe.layers)
        head = graph_head(encoder.out, recipe.last_norm)
        loss = copy.deepcopy(recipe.parsed_loss)
    model = nn.ModuleList([encoder, head]).to(device)
    optimiser = make_optimiser("adam", model, loss.to(device), recipe.lr)
    run = GraphRun(recipe, encoder, head)
    for epoch in tqdm(range(recipe.epochs), unit="epoch", leave=False):
        model.train()
        started, values = time.perf_counter(), []
        for step, indices in enumerate(batches.of(epoch)):
            optimiser.zero_grad()
            z = two_views(run, graphs, indices, seeded(recipe.seed, epoch, step), device)
            value = loss(z) if z.isfinite().all() else z.sum() * math.nan
            if not math.isfinite(value.item()):
                said = f"loss or embeddings became NaN or inf in epoch {epoch + 1}"
                raise FloatingPointError(f"{said}; lower lr, it is {recipe.lr:g}")
            value.backward()
            optimiser.step()
            values.append(value.item() * len(indices))
        row = {"epoch": epoch + 1, "loss": sum(values) / len(graphs)}
        row["seconds"] = round(time.perf_counter() - started, 3)
        model.eval()
        run.rows.append(row | ((on_epoch(run) if on_epoch else None) or {}))
    model.eval()
    return run


def two_views(
    run: GraphRun, graphs: GraphSet, indices: Tensor, generator: torch.Generator, device: str | torch.device
) -> Tensor:
    """The embeddings (2, N, E) of two views of these graphs."""
    batch, recipe = graphs.batch(indices), run.recipe
    views = [graph_view(batch, name, recipe.ratio, generator) for name in (recipe.first, recipe.second)]
    return torch.stack([run.head(run.encoder(view.to(device))) for view in views])


@torch.no_grad()
def graph_features(encoder: GIN, graphs: GraphSet, batch: int = 512) -> Tensor:
    """The features (N, D) of all graphs, in eval mode. The encoder's mode is restored afterwards."""
    mode, device = encoder.training, next(encoder.parameters()).device
    parts = torch.arange(len(graphs)).split(batch)
    encoder.eval()
    found = torch.cat([encoder(graphs.batch(part).to(device)) for part in parts])
    encoder.train(mode)
    return found

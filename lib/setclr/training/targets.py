"""What a baseline is told of each image of a batch: its label, or its cluster."""

import torch
from torch import Tensor, nn

from setclr.checks import integer
from setclr.data import ImageSet
from setclr.training.batches import batches
from setclr.training.checkpoint import Run
from setclr.training.clusters import clusters, reinitialise


class Targets:
    """The targets of all images of an epoch. Raises ValueError where the recipe's `embedding` is less than
    the number of classes, or where images that are not in memory are to be clustered."""

    def __init__(self, run: Run, dataset: ImageSet):
        self.run, self.dataset = run, dataset
        self.of_image = dataset.labels
        self.weight: Tensor | None = None
        recipe, E = run.recipe, run.recipe.embedding
        self.clustered = recipe.parsed_loss.targets == "clusters"
        if not self.clustered:
            classes = int(dataset.labels.max()) + 1
            hint = f"{recipe.data} has {classes} classes, and each needs an output"
            integer("embedding", E, least=classes, hint=hint)
        elif dataset.source.in_memory:
            integer("embedding", E, least=2, most=len(dataset), hint="it is the number of clusters")
        else:
            raise ValueError(f"data must lie in memory for {recipe.loss}, got {recipe.data}, a stream")

    def begin(self, epoch: int, fresh: bool, optimiser: torch.optim.Optimizer) -> None:
        """Begin an epoch. If clusters are the targets, a `fresh` one finds them and renews the last layer."""
        recipe = self.run.recipe
        self.order = batches(recipe, self.dataset.labels, epoch)
        if self.clustered and fresh:
            seed = recipe.seed + epoch
            self.restore(clusters(self.run.encoder, self.dataset.images, recipe.embedding, seed))
            last = [layer for layer in self.run.head.modules() if isinstance(layer, nn.Linear)][-1]
            reinitialise(last, optimiser, recipe.seed, epoch, 0, 0)

    def of(self, position: int, device: torch.device) -> dict[str, Tensor]:
        """What the loss takes in addition to z at that step of the epoch: targets, and weights if any."""
        told = {"targets": self.of_image[self.order[position]].to(device)}
        return told if self.weight is None else {**told, "weight": self.weight.to(device)}

    def state(self) -> Tensor | None:
        """What is needed to go on within an epoch: the clusters (N,), if they are the targets."""
        return self.of_image if self.clustered else None

    def restore(self, clusters: Tensor | None) -> None:
        if clusters is not None:
            self.of_image = clusters
            self.weight = 1 / clusters.bincount(minlength=self.run.recipe.embedding).clamp(min=1)

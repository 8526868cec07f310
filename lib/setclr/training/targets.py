"""What a baseline is told of each image of a batch: its label, or its cluster."""

import torch
from torch import Tensor, nn

from setclr.checks import integer
from setclr.data import ImageSet
from setclr.losses import Objective
from setclr.training.batches import Batches
from setclr.training.clusters import clusters, reinitialise
from setclr.training.momentum import outputs
from setclr.views.numbers import sent


class Targets:
    """The targets of all images of an epoch, one of the E outputs of the head each. Raises ValueError where E
    is less than the number of classes, or where images that are not in memory are to be clustered."""

    def __init__(
        self, loss: Objective, images: ImageSet, batches: Batches, encoder: nn.Module, head: nn.Module
    ):
        self.images, self.batches, self.encoder, self.head = images, batches, encoder, head
        self.of_image = images.labels
        self.weight: Tensor | None = None
        self.clustered = loss.targets == "clusters"
        self.count = outputs(head)
        if not self.clustered:
            classes = int(images.labels.max()) + 1
            integer(
                "embedding", self.count, least=classes, hint=f"each of the {classes} classes needs an output"
            )
        elif images.source.in_memory:
            integer("embedding", self.count, least=2, most=len(images), hint="it is the number of clusters")
        else:
            raise ValueError(f"data must lie in memory for {loss}, got {images}, which is read from files")

    def begin(self, epoch: int, fresh: bool) -> None:
        """Begin an epoch. If clusters are the targets, a `fresh` one finds them and renews the last layer."""
        self.order, seed = self.batches.of(epoch), self.batches.seed
        if self.clustered and fresh:
            self.restore(clusters(self.encoder, self.images.images, self.count, seed + epoch))
            last = [layer for layer in self.head.modules() if isinstance(layer, nn.Linear)][-1]
            reinitialise(last, seed, epoch, 0, 0)

    def of(self, position: int, device: torch.device) -> dict[str, Tensor]:
        """What the loss takes in addition to z at that step of the epoch: targets, and weights if any."""
        told = {"targets": sent(self.of_image[self.order[position]], device)}
        return told if self.weight is None else {**told, "weight": sent(self.weight, device)}

    def state(self) -> Tensor | None:
        """What is needed to go on within an epoch: the clusters (N,), if they are the targets."""
        return self.of_image if self.clustered else None

    def restore(self, clusters: Tensor | None) -> None:
        if clusters is not None:
            self.of_image = clusters
            self.weight = 1 - clusters.bincount(minlength=self.count) / len(clusters)

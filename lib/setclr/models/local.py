"""Local features for DeepInfoMax: the encoder's map half-way, and a head for each of its locations."""

import torch
from torch import Tensor, nn


class LocalFeatures(nn.Module):
    """An encoder that also gives the map half-way, each location of which sees a part of the image.

    Images → (N, D + L·C): the D features, then the C channels of each of L locations. The map is that after
    the second pooling of "conv4" or the second stage of a ResNet. Raises ValueError for another encoder.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        layers = list(encoder.children())
        pools = [layer for layer in layers if isinstance(layer, nn.AvgPool2d)]
        middle = getattr(encoder, "layer2", pools[1] if len(pools) > 1 else None)
        if middle is None or type(encoder).__name__ not in ("Sequential", "ResNet"):
            wanted, got = "(conv4, resnet32, resnet18, resnet50)", type(encoder).__name__
            raise ValueError(f"encoder must have a map half-way for DeepInfoMax {wanted}, got {got}")
        self.encoder, self.until = encoder, layers.index(middle) + 1

    def forward(self, x: Tensor) -> Tensor:
        whole, local = self.parts(x)
        return torch.cat([whole, local.flatten(1)], dim=1)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, D) and local features (N, L, C)."""
        layers = list(self.encoder.children())
        halfway = through(layers[: self.until], x)
        return through(layers[self.until :], halfway), halfway.flatten(2).mT


def through(layers: list[nn.Module], x: Tensor) -> Tensor:
    """x after these layers of an encoder that has them in their order; what it averages, it flattens."""
    for layer in layers:
        x = layer(x)
        x = x.flatten(1) if isinstance(layer, nn.AdaptiveAvgPool2d) else x
    return x


class LocalHead(nn.Module):
    """A head for the whole image and one for its locations, as in Hjelm et al. 2019.

    Features (N, D + L·C) of `LocalFeatures` → embeddings ((1 + L)·N, E), of the images, then of each location
    in turn. Features (N, D) → (N, E). `whole` takes D = `features` to E, `local` takes C = `channels` to E.
    """

    def __init__(self, whole: nn.Module, local: nn.Module, features: int, channels: int) -> None:
        super().__init__()
        self.whole, self.local, self.features, self.channels = whole, local, features, channels

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == self.features:
            return self.whole(x)
        whole, local = x[:, : self.features], x[:, self.features :].unflatten(1, (-1, self.channels))
        local = self.local(local.flatten(0, 1)).unflatten(0, (len(x), -1))
        return torch.cat([self.whole(whole), local.transpose(0, 1).flatten(0, 1)])

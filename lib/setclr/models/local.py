"""Local features for DeepInfoMax: the encoder's map half-way, and a head for each of its locations."""

import torch
from torch import Tensor, nn


class Places(nn.Module):
    """An encoder that also gives the map half-way through it, whose places see a part of the image alone.

    Images → (N, D + L·C): the D features, then the C channels of each of L places. The map is that after the
    second pooling of "conv4" or the second stage of a ResNet.

    Raises ValueError for another encoder.
    """

    def __init__(self, encoder: nn.Module):
        super().__init__()
        pools = [module for module in encoder.modules() if isinstance(module, nn.AvgPool2d)]
        self.encoder = encoder
        self.middle = getattr(encoder, "layer2", pools[1] if len(pools) > 1 else None)
        if self.middle is None:
            raise ValueError(
                "encoder must have a map half-way for DeepInfoMax (conv4, resnet32, resnet18, resnet50), got "
                f"{type(encoder).__name__}"
            )

    def forward(self, x: Tensor) -> Tensor:
        whole, places = self.parts(x)
        return torch.cat([whole, places.flatten(1)], dim=1)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, D) and places (N, L, C)."""
        maps = []
        hook = self.middle.register_forward_hook(lambda module, inputs, output: maps.append(output))
        try:
            whole = self.encoder(x)
        finally:
            hook.remove()
        return whole, maps[0].flatten(2).mT


class PlacesHead(nn.Module):
    """A head for the whole image and one for its places, as in Hjelm et al. 2019.

    Features (N, D + L·C) as `Places` gives them → embeddings ((1 + L)·N, E), place after place; (N, D) →
    (N, E) by the first head.

    Args:
        whole: D → E.
        place: C → E.
        features, channels: D and C.
    """

    def __init__(self, whole: nn.Module, place: nn.Module, features: int, channels: int):
        super().__init__()
        self.whole, self.place, self.features, self.channels = whole, place, features, channels

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == self.features:
            return self.whole(x)
        whole, places = x[:, : self.features], x[:, self.features :].unflatten(1, (-1, self.channels))
        places = self.place(places.flatten(0, 1)).unflatten(0, (len(x), -1))
        return torch.cat([self.whole(whole), places.transpose(0, 1).flatten(0, 1)])

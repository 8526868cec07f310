"""Local features for DeepInfoMax: the encoder's first map, where each location sees a small part."""

import torch
from torch import Tensor, nn

from setclr.models.encoders import normalise


class LocalFeatures(nn.Module):
    """An encoder that also gives the map of its first layer, as in QARe's program.

    Images → (N, D + L·C). First come the D features, averaged over the last map. Then come the C channels
    of each of the L locations of the map after the first ReLU. A linear layer after the average is skipped
    and does not learn. For "conv4" and ResNets. Raises ValueError for another encoder; `forward` raises it
    if D and C are not `features` and `channels`.
    """

    def __init__(self, encoder: nn.Module, features: int, channels: int) -> None:
        super().__init__()
        layers = list(encoder.children())
        first = [at for at, layer in enumerate(layers, start=1) if isinstance(layer, nn.ReLU)][:1]
        if not first or type(encoder).__name__ not in ("Sequential", "ResNet"):
            wanted, got = "(conv4, resnet32, resnet18, resnet50)", type(encoder).__name__
            raise ValueError(f"encoder must begin with a map and a ReLU for DeepInfoMax {wanted}, got {got}")
        self.encoder, self.until, self.sizes = encoder, first[0], (features, channels)

    def forward(self, x: Tensor) -> Tensor:
        layers = list(self.encoder.children())
        (x,) = normalise(self.encoder, (x,))
        for layer in layers[: self.until]:
            x = layer(x)
        parts = x.flatten(2).mT
        for layer in layers[self.until :]:
            x = x if isinstance(layer, nn.Linear) else layer(x)
        x = x.flatten(1)
        if (x.shape[1], parts.shape[2]) != self.sizes:
            here = f"{x.shape[1]} and {parts.shape[2]} of the encoder"
            raise ValueError(f"features and channels must be {here}, got {self.sizes[0]} and {self.sizes[1]}")
        return torch.cat([x, parts.flatten(1)], dim=1)

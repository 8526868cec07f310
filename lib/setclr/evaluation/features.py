"""Images to features, by a frozen encoder or by none."""

import torch
from torch import Tensor, nn


@torch.no_grad()
def features(encoder: nn.Module, images: Tensor, batch: int = 500) -> Tensor:
    """Features (N, D) of images (N, C, H, W) uint8, without augmentation, on the images' device.

    The encoder runs in eval mode on its own device and is left as it was: no parameter, buffer or mode
    changes.
    """
    modes = [(module, module.training) for module in encoder.modules()]
    device = next(encoder.parameters()).device
    encoder.eval()
    try:
        return torch.cat(
            [encoder(part.to(device).float() / 255).float().to(images.device) for part in images.split(batch)]
        )
    finally:
        for module, training in modes:
            module.training = training


def pixels(images: Tensor) -> Tensor:
    """The baseline that has learned nothing: (N, C·H·W), pixels minus the mean of their channel in that
    image."""
    x = images.float()
    return (x - x.mean((2, 3), keepdim=True)).flatten(1)

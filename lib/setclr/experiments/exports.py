"""A run's encoder as a file that torchvision or timm can load, without setclr."""

from pathlib import Path

import torch

from setclr.data.writing import replacing
from setclr.experiments.run import Run


def export(run: Run, path: str | Path) -> None:
    """Write the encoder's weights and buffers, a state dict on the CPU, to a file for torch.load.

    What loads it; strict=False is needed where the classifier (fc) is missing, and nothing else is:

    - resnet18-imagenet, resnet50-imagenet: torchvision.models.resnet18() or resnet50(), strict=False; timm's
      of the same names, whose parts are called the same.
    - resnet18, resnet50: likewise, with the stem for small images,
      model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False) and model.maxpool = nn.Identity().
    - timm:NAME: timm.create_model(NAME, num_classes=0, in_chans=channels).
    - vit-small16-moco: timm.create_model("vit_small_patch16_224", num_heads=12, num_classes=0), for
      224 px; elsewhere the positions are recomputed, which timm does not do.
    - conv4, resnet32: setclr.models.encoder(name, channels)[0].

    Images go in as floats in [0, 1], as in training, less the mean colour and divided by the deviation where
    the recipe has them `normalised`. Raises OSError where the file cannot be written; what was there before
    stays.
    """
    state = {key: kept.detach().cpu().contiguous() for key, kept in run.encoder.state_dict().items()}
    with replacing(Path(path)) as file:
        torch.save(state, file)

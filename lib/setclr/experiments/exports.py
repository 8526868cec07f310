"""A run's encoder as a file that torchvision or timm can load, without setclr."""

from pathlib import Path

import torch

from setclr.data.writing import replacing
from setclr.experiments.run import Run


def export(run: Run, path: str | Path) -> None:
    """Write the encoder's weights and buffers, a state dict on the CPU, to a file for torch.load.

    These models load it. Where strict=False is needed, only the classifier (fc) is missing:

    - resnet18-imagenet, resnet50-imagenet: torchvision.models.resnet18() or resnet50(), strict=False; or
      timm's models resnet18 and resnet50, whose parts have the same names.
    - resnet18, resnet50: likewise, with the stem for small images,
      model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False) and model.maxpool = nn.Identity().
    - timm:NAME: timm.create_model(NAME, num_classes=0, in_chans=channels).
    - vit-small16-moco: timm.create_model("vit_small_patch16_224", num_heads=12, num_classes=0), for 224
      px. At other sizes setclr computes the positions anew, and timm does not.
    - conv4, resnet32: setclr.models.encoder(name, channels)[0].

    Images go in as floats in [0, 1], as in training. If the recipe has them `normalised`, subtract the
    mean colour and divide by the deviation first. Raises OSError if the file cannot be written; an older
    file then stays.
    """
    state = {key: kept.detach().cpu().contiguous() for key, kept in run.encoder.state_dict().items()}
    with replacing(Path(path)) as file:
        torch.save(state, file)

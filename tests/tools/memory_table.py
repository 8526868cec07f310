"""How many images, clips or graphs fit into a GPU's memory: the table of site/text/training.md, reckoned.

    python tests/tools/memory_table.py

Counted are the numbers that autograd keeps of two views in float32, on torch's meta device, where nothing
is computed; and 16 bytes a weight, for itself, its gradient and Adam's two moments. In bf16 the kept numbers
take half. A tenth of the memory is left for the rest. Nothing was measured.
"""

import torch

from setclr import models
from setclr.video import video_encoder
from setclr_course.costs import Kept

MEMORY = (12, 24, 80)  # GB
IMAGES = (("conv4", 32), ("resnet18", 32), ("resnet18-imagenet", 224), ("resnet50-imagenet", 224),
          ("vit-small16-moco", 224))  # fmt: skip


def fits(encoder: torch.nn.Module, shape: tuple[int, ...]) -> list[str]:
    """The cells of a row: float32 and bf16 for each memory, rounded down to two digits."""
    encoder, n = encoder.to("meta").train(), 4
    with Kept() as kept:
        encoder(torch.empty(2 * n, *shape, device="meta"))
    weights = 16 * sum(p.numel() for p in encoder.parameters())
    held = sum(4 * p.numel() for p in encoder.parameters())
    one = (kept.peak - held) / n
    cells = []
    for memory in MEMORY:
        for share in (1, 2):
            count = int(share * (0.9e9 * memory - weights) / one)
            digits = 10 ** max(0, len(str(count)) - 2)
            cells.append(f"{count // digits * digits:,}")
    return cells


def main() -> None:
    titles = [f"{memory} GB, {kind}" for memory in MEMORY for kind in ("float32", "bf16")]
    print("| | " + " | ".join(titles) + " |")
    print("|---" * (1 + 2 * len(MEMORY)) + "|")
    for name, side in IMAGES:
        print(f"| `{name}`, {side} px | " + " | ".join(fits(models.encoder(name)[0], (3, side, side))) + " |")
    clips = fits(video_encoder("s3d")[0], (3, 16, 128, 128))
    print("| `s3d`, clips of 16 frames, 128 px | " + " | ".join(clips) + " |")


if __name__ == "__main__":
    main()

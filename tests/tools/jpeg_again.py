"""Send a folder of JPEG images through JPEG once more, with its blocks moved by 4 pixels.

    python tests/tools/jpeg_again.py data/unpacked/cifar10 data/unpacked/cifar10-again

To tell what JPEG costs where the original pixels are not at hand: train on both folders. Each image keeps its
quality. With the blocks where they were a second pass would change nearly nothing; moved, it changes the
pixels about as much as the first did. Prints by how much; the images are kept as PNG.
"""

import argparse
import io
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import get_sampling
from tqdm.auto import tqdm

MOVED = (4, 4)  # half a block


def again(image: Image.Image) -> Image.Image:
    """The image after a second pass, at the quality of its first."""
    pixels = np.roll(np.asarray(image), MOVED, (0, 1))
    packed = io.BytesIO()
    settings = {"qtables": image.quantization, "subsampling": get_sampling(image)}
    Image.fromarray(pixels).save(packed, "jpeg", **settings)
    return Image.fromarray(np.roll(np.asarray(Image.open(packed)), (-MOVED[0], -MOVED[1]), (0, 1)))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("source", type=Path)
    arguments.add_argument("target", type=Path)
    told = arguments.parse_args()
    differences = []
    for path in tqdm(sorted(told.source.rglob("*.jpg"))):
        image = Image.open(path)
        second = again(image)
        differences.append(np.abs(np.asarray(second, float) - np.asarray(image, float)).mean())
        target = (told.target / path.relative_to(told.source)).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        second.save(target)
    print(f"{len(differences)} images, mean difference {np.mean(differences):.1f} of 255")


if __name__ == "__main__":
    main()

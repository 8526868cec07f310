"""What the panels of notebook 13 show where they are handed nothing: a few patches, and features of them that
nobody learned."""

from functools import cache

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from setclr import models, views
from setclr.data import ImageSet
from setclr.data.patches import PHOTOGRAPHS
from setclr.evaluation import features, pixels
from setclr.explore.trained.photo_tree import squares
from setclr.training.seeding import seeded


@cache
def few_patches(each: int = 6) -> ImageSet:
    """`each` squares of 32 px out of every photograph, as they are."""
    images = [
        square.transpose(2, 0, 1)
        for number, load in enumerate(PHOTOGRAPHS.values())
        for square in squares(np.asarray(Image.fromarray(load()).convert("RGB")), each, 32, [number])
    ]
    labels = torch.arange(len(PHOTOGRAPHS)).repeat_interleave(each)
    return ImageSet(torch.from_numpy(np.stack(images)), labels, tuple(PHOTOGRAPHS))


def unlearned(images: Tensor) -> dict[str, Tensor]:
    """Features (N, D) of images (N, C, H, W) by name: their pixels, and what a random network makes of
    them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder, _ = models.encoder("conv4", images.shape[1])
    return {"raw pixels": pixels(images), "untrained": features(encoder, images)}


def two_views(images: Tensor, seed: int = 0) -> Tensor:
    """(2, N, C, H, W) uint8: two random views of each image, by the "photo" augmentation."""
    return (views.augment(images, views.preset("photo"), seeded(seed)) * 255).round().byte()


@cache
def icons(side: int) -> np.ndarray:
    """The photographs themselves in small, (18, side, side, 3) uint8: the centre squares."""
    small = []
    for load in PHOTOGRAPHS.values():
        photograph = Image.fromarray(load()).convert("RGB")
        width, height = photograph.size
        half = min(width, height) / 2
        box = (width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half)
        small.append(np.asarray(photograph.resize((side, side), Image.Resampling.BILINEAR, box)))
    return np.stack(small)


def tiles(images: Tensor) -> np.ndarray:
    """Images (N, C, H, W) uint8 as (N, H, W, 3) uint8, for drawing."""
    return images.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()

"""A few patches and their untrained features, which panels show by default."""

from functools import cache

import numpy as np
import torch
from numpy.random import default_rng
from PIL import Image
from torch import Tensor

from setclr import models, views
from setclr.data import ImageSet
from setclr.data.patches import FLAT, PHOTOGRAPHS, TRIES
from setclr.evaluation import features, pixels
from setclr.seeding import seeded


@cache
def few_patches(each: int = 6) -> ImageSet:
    """`each` squares of 32 px out of every photograph, as they are."""
    images = [
        square.transpose(2, 0, 1)
        for number, load in enumerate(PHOTOGRAPHS.values())
        for square in cut_squares(np.asarray(Image.fromarray(load()).convert("RGB")), each, 32, [number])
    ]
    labels = torch.arange(len(PHOTOGRAPHS)).repeat_interleave(each)
    return ImageSet(torch.from_numpy(np.stack(images)), labels, tuple(PHOTOGRAPHS))


def cut_squares(part: np.ndarray, wanted: int, side: int, key: list[int]) -> list[np.ndarray]:
    """Random squares of a picture (H, W, 3), those that show something or, after many tries, the last."""
    rng, tries = default_rng(key), 0
    found: list[np.ndarray] = []
    while len(found) < wanted:
        top, left = rng.integers(0, (part.shape[0] - side, part.shape[1] - side), endpoint=True)
        square = part[top : top + side, left : left + side]
        tries += 1
        if square.mean(2).std() >= FLAT or tries > TRIES * wanted:
            found.append(square)
    return found


def unlearned(images: Tensor) -> dict[str, Tensor]:
    """Features (N, D) of images (N, C, H, W): their pixels, and what a random network makes of them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder, _ = models.encoder("conv4", images.shape[1])
    return {"raw pixels": pixels(images), "untrained": features(encoder, images)}


def augmented_pair(images: Tensor, seed: int = 0) -> Tensor:
    """(2, N, C, H, W) uint8: two random views of each image, by the "photo" augmentation."""
    generator = torch.Generator().manual_seed(seeded(seed).initial_seed())  # as on the pages
    return (views.augment(images, views.preset("photo"), generator) * 255).round().byte()


def unlearned_pair() -> tuple[dict[str, Tensor], Tensor]:
    """A dozen patches in two views (2, 12, 3, 32, 32), and features (2, 12, D) of them by name."""
    pair = augmented_pair(few_patches().images[::9])
    made = unlearned(pair.flatten(0, 1))
    return {name: x.unflatten(0, (2, -1)) for name, x in made.items()}, pair

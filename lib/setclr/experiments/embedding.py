"""Features of your own images: embed any tree of image files by the encoder of a run."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tqdm.auto import tqdm

from setclr.checks import boolean, integer
from setclr.data.folders import images_below, without_damaged
from setclr.data.photographs import Photographs, decode
from setclr.data_sets import FOLDER, known
from setclr.evaluation.frozen import features
from setclr.experiments.run import Features, Run
from setclr.views.pixels import grey


def embed_folder(
    run: Run, folder: str | Path, size: int | None = None, batch: int = 256, skip_damaged: bool = False
) -> Features:
    """The features of all image files below a folder, without augmentation.

    Files are read as those of a "folder:PATH" data set: the centre square, resized, in three channels,
    or in one (grey) if the run was trained on one. Files and folders whose names begin with a dot are passed
    over, and so are files without the ending of an image. A warning says how many, and with which endings.

    Args:
        size: side in pixels; None takes the side of the views that the run was trained on (`side_of`).
        batch: images that are decoded and held at once.
        skip_damaged: decode all files once before, and leave out those that cannot be read. A warning names
            each of them.

    Returns features (N, D) float32 and the files' paths (N,) relative to the folder, sorted by path.

    Raises FileNotFoundError if there is no such folder. Raises ValueError if it has no images, a file
    cannot be read (it is named), or the side is not known or does not suit the encoder.

    Cost: RAM for one batch of images and for the result, 4 · N · D bytes.
    """
    folder = Path(os.path.expanduser(folder))
    size = side_of(run) if size is None else integer("size", size, least=8)
    integer("batch", batch, least=1)
    files, found = images_below(folder, warn=True), []
    if boolean("skip_damaged", skip_damaged):
        files = without_damaged(files, decode)
    _refuse_unknown_kinds(files)
    with tqdm(total=len(files), desc="embed", unit="image") as bar:
        for images in Photographs(files, size).split(batch):
            seen = grey(images.float()).round().byte() if run.channels == 1 else images
            found.append(features(run.encoder, seen, batch))
            bar.update(len(images))
    return torch.cat(found).numpy(), np.array([Path(path).relative_to(folder).as_posix() for path in files])


def _refuse_unknown_kinds(files: list[str]) -> None:
    """Raises ValueError, with their number, if some files are of a kind that Pillow has no reader for."""
    endings = Counter(os.path.splitext(path)[1].lower() for path in files)
    if unknown := {ending: n for ending, n in endings.items() if ending not in Image.registered_extensions()}:
        got = ", ".join(f"{n} {ending}" for ending, n in unknown.items())
        remedy = "convert them, install a reader (pillow-heif for .heic), or add --skip-damaged"
        raise ValueError(f"Pillow must know the kind of each image file, got {got}; {remedy}")


def side_of(run: Run) -> int:
    """The side in pixels of the full views that a run was trained on.

    Raises ValueError if the recipe does not say, as for folders whose images already had one size.
    """
    recipe = run.recipe
    if recipe is None:
        raise ValueError("size must be given: the run has no recipe that would say it; add size=S")
    side = recipe.view_size or recipe.size or known(recipe.data).side
    if side is None:
        what = "a folder" if recipe.data.startswith(FOLDER) else repr(recipe.data)
        unknown = f"the run was trained on {what}, and its recipe does not say how large the images were"
        raise ValueError(f"size must be given: {unknown}; add --size S")
    return side

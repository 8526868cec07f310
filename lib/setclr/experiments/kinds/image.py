"""Images: random views of each, an encoder of `setclr.models`, kNN and a linear probe beside raw pixels.

Runs on pairs keep the best epoch on validation pairs, and are measured by how many test pairs are matched
(QARe, table 1).
"""

import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from setclr import data as data_of
from setclr import models as models_of
from setclr import views
from setclr.checks import boolean, choice, integer
from setclr.data import ImageSet
from setclr.data.folders import images_below, without_damaged
from setclr.data.photographs import Photographs, decode
from setclr.data.sets import validation_split
from setclr.data_sets import FOLDER
from setclr.evaluation.frozen import features, pixels
from setclr.evaluation.neighbours import accuracy, check_labels, matching_accuracy, nearest, vote
from setclr.evaluation.probes import linear_probe
from setclr.evaluation.protocols import OWN, OnFeatures, Protocol, protocol_named
from setclr.experiments.kinds import SPLITS
from setclr.experiments.run import Features, OnEpoch, Run, with_untrained
from setclr.recipes.image import ImageRecipe
from setclr.training.source import ImageViews, check_set
from setclr.views.pixels import grey

SMALL = ("conv4", "resnet32", "resnet18", "resnet50")  # encoders for small images


def load(recipe: ImageRecipe, root: str | Path) -> ImageSet:
    known = data_of.known(recipe.data)
    in_full = recipe.data.startswith(FOLDER) and recipe.view_size is not None and recipe.size is None
    split = "train" if recipe.labels else known.pretraining
    images = data_of.load(recipe.data, root, split, recipe.size, stream=in_full or None)
    if known.mirror:
        to_train_on, _ = data_of.split_pairs(data_of.two_views(images))
        images = data_of.paired(to_train_on, known.mirror)
    return images


def channels(data: ImageSet) -> int:
    return check_set(data).images.shape[1]


def models(recipe: ImageRecipe, channels: int) -> tuple[nn.Module, nn.Module]:
    encoder, width = models_of.encoder(recipe.encoder, channels, recipe.initial, recipe.normalised)
    if recipe.parsed_loss.headless:
        return encoder, nn.Identity()
    how = recipe.last_norm, recipe.layers, recipe.activation, recipe.head_norm
    return encoder, models_of.head(width, recipe.hidden, recipe.embedding, *how)


def source(recipe: ImageRecipe, data: ImageSet) -> ImageViews:
    if recipe.images and len(data) > 1:  # `Batches` raises the error for a single image
        integer("images", recipe.images, least=2, most=len(data), hint=f"{recipe.data} has {len(data)}")
        data = data.sample(recipe.images)
    made = views_of(recipe, data.images.shape[-1])
    if (side := made[0].size or data.images.shape[-1]) >= 128 and recipe.encoder in SMALL:
        hint = "with resnet18-imagenet, or as in photographs-224, a step takes a fraction of the time"
        warnings.warn(f"{recipe.encoder} is for small images, got views of {side} px; {hint}", stacklevel=2)
    return ImageViews(data, made)


def views_of(recipe: ImageRecipe, side: int) -> tuple[views.View, ...]:
    """The recipe's views of images of that side: the full ones, then the small crops."""
    full = recipe.full_views or len(views.PRESETS[recipe.views])
    small = recipe.local_size or round(3 / 7 * (recipe.view_size or side))
    made = views.multi_crop(recipe.views, full, recipe.local_views, recipe.view_size, small)
    return tuple(changed(view, recipe, v < full) for v, view in enumerate(made))


def changed(view: views.View, recipe: ImageRecipe, full: bool) -> views.View:
    """The view with what the recipe has of its own; the area is that of `full` views."""
    light, contrast, colour, hue = (x * (1 if recipe.jitter is None else recipe.jitter) for x in view.jitter)
    jitter = light, contrast, colour, min(hue, 0.5)
    blur = view.blur if recipe.blur is None else recipe.blur
    scale = (recipe.least_crop, 1) if full and recipe.least_crop else view.scale
    return replace(view, jitter=jitter, blur=blur, scale=scale, vertical=recipe.vertical, turn=recipe.turn)


def watch(recipe: ImageRecipe, root: str | Path) -> OnEpoch | None:
    """A function that `pretrain` calls after every epoch of a recipe on pairs; None for other data.

    It adds the column "matching" to the history, per cent on the validation pairs. It keeps the weights
    of the first epoch with the highest value.
    """
    if not data_of.known(recipe.data).mirror:
        return None
    _, pairs = data_of.split_pairs(data_of.two_views(data_of.load(recipe.data, root, "train", recipe.size)))

    def judge(run: Run) -> dict | None:
        if not run.rows:
            return None
        percent = matched(run, pairs)
        if percent > max((row["matching"] for row in run.rows[:-1]), default=-1.0):
            run.keep()
        return {"matching": percent}

    return judge


def labelled(
    recipe: ImageRecipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
) -> tuple[ImageSet, ImageSet]:
    """The labelled training images of a recipe's data set, and those to measure on.

    Files are resized to the side of the recipe's views. For protocols that show the encoder the central
    7/8, they are resized to 8/7 of that side, as 256 for 224.

    `split`: "test" gives all training images and the test images; "validation" gives two parts of the
    training images (`data.sets.validation_split`), and so does "held out", which is for encoders that
    have been trained on both parts; of images without labels it gives all twice. Where only the test images
    have labels, "test" gives two parts of these.

    Raises ValueError for another split. Also raises it for "validation" if the recipe trains on other images:
    unlabelled ones, or files from which views are cut at full resolution.
    """
    choice("split", split, SPLITS)
    side = side_of_photographs(recipe)
    if split == "validation" and (side or data_of.known(recipe.data).pretraining != "train"):
        wanted = "data must be labelled images of one size for a validation split"
        raise ValueError(f"{wanted}, got {recipe.data!r}; give a folder a size=, or take another set")
    size = recipe.size or (side and round(side / protocol_named(protocol).centre))
    train = data_of.load(recipe.data, root, "train", size)
    if split == "test":
        test = data_of.load(recipe.data, root, "test", size)
        return (train, test) if train.classes or not test.classes else validation_split("", test)
    if split == "held out" and not train.classes:
        return train, train
    return validation_split(recipe.data, train)


def side_of_photographs(recipe: ImageRecipe) -> int | None:
    """The side of full views that are cut from files of any size; None if images have one size."""
    return recipe.view_size if data_of.known(recipe.data).in_files and not recipe.size else None


def evaluate(
    run: Run, train: ImageSet, test: ImageSet, linear: bool = True, protocol: str = OWN
) -> pd.DataFrame:  # fmt: skip
    """Accuracies in per cent by the protocol of that name: rows raw pixels, untrained, trained.

    The columns are those of the protocol (`evaluation.protocols`), "knn" (k=10, T=0.1) and "linear" for
    the project's own. Raw pixels are centred in each channel. Untrained is the same encoder with its
    first weights. Raw pixels have no linear probe, since it is no baseline of the papers, and no row if
    the images are not in RAM. If the classifier sees new views in every epoch, untrained has no probe
    either. A run on labels has one more column, "classifier", of its own outputs. A run on pairs has
    only the column "matching", by any protocol (`evaluate_pairs`).

    Raises ValueError if there is no such protocol, the two sets have different classes, or there are
    fewer training images than k. Cost: 4 · (N + Q) · D bytes for the features of one row, and those of
    the probe.
    """
    how = protocol_named(protocol)
    if run.recipe and data_of.known(run.recipe.data).mirror:
        return evaluate_pairs(run, test)
    check_classes(train, test)
    rows, whole, probed = {}, nn.Sequential(run.encoder, run.head), ["untrained", "trained"]
    if not isinstance(how.probe, OnFeatures):
        probed = ["trained"]
        if run.recipe:  # the probe's views are as large as those of the training
            view = replace(how.probe.view, size=run.recipe.view_size)
            how = replace(how, probe=replace(how.probe, view=view))
    for name, encoder in encoders(run, train, how).items():
        rows[name] = measure(encoder, train, test, run.device, how, linear and name in probed).numbers
    if how.projection:
        numbers = measure(whole, train, test, run.device, how, False).numbers
        rows["trained"] |= {f"{name}-projection": x for name, x in numbers.items()}
    if run.recipe and run.recipe.parsed_loss.classifies:
        scores = features(whole, test.images)
        rows["trained"]["classifier"] = accuracy(scores.argmax(1), test.labels)
    columns = how.columns + (["classifier"] if "classifier" in rows["trained"] else [])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns, dtype=float)


def accuracies(run: Run, train: ImageSet, test: ImageSet) -> dict[str, float]:
    return measure(run.encoder, train, test, run.device, protocol_named(OWN), True).numbers


class Measurements(NamedTuple):
    """The measurements of one encoder."""

    numbers: dict[str, float]
    labels: dict[int, Tensor]  # (Q,) of the test images, by k of the kNN vote
    nearest: Tensor  # (Q, max k) indices into the training images
    queries: Tensor  # (Q, D) the test images' features


def check_classes(train: ImageSet, test: ImageSet) -> None:
    """Raises ValueError unless both sets are labelled, have the same classes, and train has images of every
    class in test."""
    if train.classes != test.classes:
        differ = ", ".join(sorted(set(train.classes) ^ set(test.classes))[:9]) or "their order"
        remedy = "Add images, or compare views with matching_accuracy, which needs no labels"
        raise ValueError(f"test must have the classes of train; they differ in {differ}. {remedy}")
    known, measured = (x.labels[x.labels >= 0].unique().tolist() for x in (train, test))
    if lacking := [train.classes[label] for label in measured if label not in known]:
        remedy = "add them, or take the class out of test"
        raise ValueError(f"train must have images of {lacking[0]!r}, got none, and test has some; {remedy}")
    for name, images in (("train.labels", train), ("test.labels", test)):
        check_labels(name, images.labels, len(images))


def encoders(run: Run, train: ImageSet, how: Protocol) -> dict[str, nn.Module | None]:
    """The encoders to measure, by row: raw pixels (None) if they are in RAM, untrained (of a recipe's own
    encoder) and trained.

    If photographs are larger than the training's views, an encoder sees their centre (`labelled`).
    """
    rows = {name: one.encoder for name, one in with_untrained(run).items()}
    if run.recipe and how.centre < 1 and (side := side_of_photographs(run.recipe)):
        from torchvision.transforms import CenterCrop  # needed only here

        rows = {name: nn.Sequential(CenterCrop(side), encoder) for name, encoder in rows.items()}
    return {**({"raw pixels": None} if isinstance(train.images, Tensor) else {}), **rows}


def embedder(encoder: nn.Module | None) -> Callable:
    return pixels if encoder is None else partial(features, encoder)


def measure(
    encoder: nn.Module | None, train: ImageSet, test: ImageSet, device: torch.device, how: Protocol,
    probed: bool,
) -> Measurements:  # fmt: skip
    """kNN accuracies by the protocol and, if `probed`, those of its linear probe, computed on the device."""
    embed = embedder(encoder)
    bank, queries = (embed(split.images).to(device) for split in (train, test))
    labels = train.labels.to(device)
    similarity, index = nearest(bank, queries, max(how.ks))
    votes = {k: vote(similarity[:, :k], labels[index[:, :k]], how.temperature) for k in how.ks}
    numbers = {how.column(k): accuracy(votes[k], test.labels) for k in how.ks}
    for column, probe in how.probes.items() if probed else ():
        if isinstance(probe, OnFeatures):
            numbers[column] = accuracy(linear_probe(bank, labels, queries, **asdict(probe)), test.labels)
    if probed and not isinstance(how.probe, OnFeatures) and encoder is not None:
        ranked = how.probe.ranks(encoder, train, test)
        numbers["linear"] = accuracy(ranked[:, 0], test.labels)
        numbers["linear-top5"] = 100 * float((ranked == test.labels[:, None].cpu()).any(1).float().mean())
    return Measurements(numbers, votes, index, queries)


def evaluate_pairs(run: Run, test: ImageSet) -> pd.DataFrame:
    """Per cent of the test pairs that are matched: rows raw pixels, untrained, trained; column "matching".

    Distances are Euclidean, between the head's outputs, and between pixels centred in each channel.
    """
    pairs = data_of.two_views(test)
    a, b = map(pixels, pairs)
    rows = {"raw pixels": 100 * matching_accuracy(a, b, "euclidean")}
    rows |= {name: matched(one, pairs) for name, one in with_untrained(run).items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["matching"])


def matched(run: Run, pairs: Tensor) -> float:
    """Per cent of pairs (2, n, C, H, W) that are matched by Euclidean distances of the head's outputs."""
    whole = nn.Sequential(run.encoder, run.head)
    a, b = (features(whole, view) for view in pairs)
    return 100 * matching_accuracy(a, b, "euclidean")


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
    files, parts = images_below(folder, warn=True), []
    if boolean("skip_damaged", skip_damaged):
        files = without_damaged(files, decode)
    with tqdm(total=len(files), desc="embed", unit="image") as bar:
        for images in Photographs(files, size).split(batch):
            seen = grey(images.float()).round().byte() if run.channels == 1 else images
            parts.append(features(run.encoder, seen, batch))
            bar.update(len(images))
    return torch.cat(parts).numpy(), np.array([Path(path).relative_to(folder).as_posix() for path in files])


embed = embed_folder


def side_of(run: Run) -> int:
    """The side in pixels of the full views that a run was trained on.

    Raises ValueError if the recipe does not say, as for folders whose images already had one size.
    """
    recipe = run.recipe
    if recipe is None:
        raise ValueError("size must be given: the run has no recipe that would say it; add size=S")
    if recipe.side is None:
        what = "a folder" if recipe.data.startswith(FOLDER) else repr(recipe.data)
        unknown = f"the run was trained on {what}, and its recipe does not say how large the images were"
        raise ValueError(f"size must be given: {unknown}; add --size S")
    return recipe.side

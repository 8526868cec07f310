"""Evaluate a run: kNN and linear probe beside raw pixels and an untrained encoder."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from setclr import data
from setclr.checks import choice
from setclr.data import ImageSet
from setclr.data.sets import validation_split
from setclr.evaluation.frozen import features, pixels
from setclr.evaluation.neighbours import accuracy, check_labels, neighbours, vote
from setclr.evaluation.probes import linear_probe
from setclr.evaluation.protocols import OWN, OnFeatures, Protocol, protocol_named
from setclr.experiments.pairs import evaluate_pairs
from setclr.experiments.run import Run, untrained
from setclr.recipes.image import ImageRecipe
from setclr.training.distributed import from_first, world

SPLITS = ("test", "validation", "held out")  # what an encoder is measured on


class Measurements(NamedTuple):
    """The measurements of one encoder."""

    numbers: dict[str, float]
    labels: dict[int, Tensor]  # (Q,) of the test images, by k of the kNN vote
    nearest: Tensor  # (Q, max k) indices into the training images
    queries: Tensor  # (Q, D) the test images' features


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
    how = fitted(protocol_named(protocol), run.recipe) if run.recipe else protocol_named(protocol)
    if run.recipe and data.known(run.recipe.data).mirror:
        return evaluate_pairs(run, test)
    check_classes(train, test)
    rows, probed = {}, ["untrained", "trained"] if isinstance(how.probe, OnFeatures) else ["trained"]
    for name, encoder in encoders(run, train, how).items():
        rows[name] = measure(encoder, train, test, device_of(run), how, linear and name in probed).numbers
    if how.projection:
        head = nn.Sequential(run.encoder, run.head)
        found = measure(head, train, test, device_of(run), how, False).numbers
        rows["trained"] |= {f"{name}-projection": x for name, x in found.items()}
    if run.recipe and run.recipe.parsed_loss.classifies:
        scores = features(nn.Sequential(run.encoder, run.head), test.images)
        rows["trained"]["classifier"] = accuracy(scores.argmax(1), test.labels)
    columns = how.columns + (["classifier"] if "classifier" in rows["trained"] else [])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns, dtype=float)


def check_classes(train: ImageSet, test: ImageSet) -> None:
    """Raises ValueError unless both sets are labelled, have the same classes, and train has images of every
    class in test."""
    if train.classes != test.classes:
        differ = sorted(set(train.classes) ^ set(test.classes)) or ["their order"]
        more = f" and {len(differ) - 3} more" if len(differ) > 3 else ""
        remedy = "Add images, or compare views with matching_accuracy, which needs no labels"
        found = f"they differ in {', '.join(differ[:3])}{more}"
        raise ValueError(f"test must have the classes of train; {found}. {remedy}")
    known, measured = (x.labels[x.labels >= 0].unique().tolist() for x in (train, test))
    if lacking := [train.classes[label] for label in measured if label not in known]:
        remedy = "add them, or take the class out of test"
        raise ValueError(f"train must have images of {lacking[0]!r}, got none, and test has some; {remedy}")
    for name, images in (("train.labels", train), ("test.labels", test)):
        check_labels(name, images.labels, len(images))


def fitted(how: Protocol, recipe: ImageRecipe) -> Protocol:
    """The protocol, with the size of its probe's views set to that of the recipe's views."""
    if isinstance(how.probe, OnFeatures):
        return how
    return replace(how, probe=replace(how.probe, view=replace(how.probe.view, size=recipe.view_size)))


def encoders(run: Run, train: ImageSet, how: Protocol) -> dict[str, nn.Module | None]:
    """The encoders to measure, by row: raw pixels (None) if they are in RAM, untrained (of a recipe's own
    encoder) and trained.

    If photographs are larger than the training's views, an encoder sees their centre (`labelled`).
    """
    first = untrained(run)
    found = ({"untrained": first.encoder} if first else {}) | {"trained": run.encoder}
    if run.recipe and how.centre < 1 and (side := side_of_photographs(run.recipe)):
        from torchvision.transforms import CenterCrop  # needed only here

        found = {name: nn.Sequential(CenterCrop(side), encoder) for name, encoder in found.items()}
    return {**({"raw pixels": None} if train.in_ram else {}), **found}


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
    similarity, nearest = neighbours(bank, labels, queries, max(how.ks))
    votes = {k: vote(similarity[:, :k], labels[nearest[:, :k]], how.temperature) for k in how.ks}
    numbers = {how.column(k): accuracy(votes[k], test.labels) for k in how.ks}
    for column, probe in how.probes.items() if probed else ():
        if isinstance(probe, OnFeatures):
            numbers[column] = accuracy(linear_probe(bank, labels, queries, **asdict(probe)), test.labels)
    if probed and not isinstance(how.probe, OnFeatures) and encoder is not None:
        ranked = how.probe.ranks(encoder, train, test)
        numbers["linear"] = accuracy(ranked[:, 0], test.labels)
        numbers["linear-top5"] = 100 * float((ranked == test.labels[:, None].cpu()).any(1).float().mean())
    return Measurements(numbers, votes, nearest, queries)


def device_of(run: Run) -> torch.device:
    return next(run.encoder.parameters()).device


def side_of_photographs(recipe: ImageRecipe) -> int | None:
    """The side of full views that are cut from files of any size; None if images have one size."""
    return recipe.view_size if data.known(recipe.data).in_files and not recipe.size else None


def labelled(
    recipe: ImageRecipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
) -> tuple[ImageSet, ImageSet]:
    """The labelled training images of a recipe's data set, and those to measure on.

    Files are resized to the side of the recipe's views. For protocols that show the encoder the central
    7/8, they are resized to 8/7 of that side, as 256 for 224.

    `split`: "test" gives all training images and the test images; "validation" gives two parts of the
    training images (`data.sets.validation_split`), and so does "held out", which is for encoders that
    have been trained on both parts.

    With many processes the first makes or downloads the data before the others load them. Raises
    ValueError for another split. Also raises it for "validation" if the recipe trains on other images:
    unlabelled ones, or files from which views are cut at full resolution.
    """
    choice("split", split, SPLITS)
    side = side_of_photographs(recipe)
    if split == "validation" and (side or data.known(recipe.data).pretraining != "train"):
        wanted = "data must be labelled images of one size for a validation split"
        raise ValueError(f"{wanted}, got {recipe.data!r}; give a folder a size=, or take another set")
    size = recipe.size or (side and round(side / protocol_named(protocol).centre))

    def load(split: str) -> ImageSet:
        return data.load(recipe.data, root, split, size)

    if world() > 1:
        from_first(lambda: [len(load(one)) for one in ("train", *(["test"] if split == "test" else []))])
    return (load("train"), load("test")) if split == "test" else validation_split(recipe.data, load("train"))

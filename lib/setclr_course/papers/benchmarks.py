"""The labelled sets of GroCo's table 3 and MMCL's table 1 that `setclr.data.load` does not have.

Their images stay in files and are read when they are needed. Files are verified only as torchvision does
it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from tarfile import TarError
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor

from setclr.checks import choice
from setclr.data.downloads import downloading
from setclr.data.folders import class_folders, files_of_classes
from setclr.data.photographs import Photographs
from setclr.data.sets import ImageSet

Listed = tuple[list[str], list[int], tuple[str, ...]]  # files, labels, classes
Parts = tuple[dict[str, str], ...]
ERRORS = (OSError, EOFError, HTTPException, RuntimeError, TarError, ValueError)  # of downloads and archives
CORNERS = ("xmin", "ymin", "xmax", "ymax")
OF_VOC = """aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person
pottedplant sheep sofa train tvmonitor"""
VOC = tuple(OF_VOC.split())


def _by_loader(found: Any) -> Listed:
    """Files, labels and classes of a set whose loader is `str`: it gives an image's path in place of the
    image."""
    files, labels = zip(*(found[i] for i in range(len(found))))
    return list(files), list(map(int, labels)), tuple(found.classes)


def _of_caltech(found: Any) -> Listed:
    files, labels = [], []
    for i in range(len(found)):
        image, label = found[i]
        with image:  # opened, not decoded
            files.append(image.filename)
        labels.append(label)
    return files, labels, tuple(found.categories)


def _of_pets(found: Any) -> Listed:
    return list(map(str, found._images)), list(found._labels), tuple(found.classes)


def _of_voc(found: Any) -> Listed:
    return list(found.images), [VOC.index(_largest(path)) for path in found.annotations], VOC


def _largest(path: str) -> str:
    """The class of a picture's largest object. Objects marked difficult count only if all are."""

    def key(one: ElementTree.Element) -> tuple[int, float]:
        left, top, right, bottom = (float(one.findtext(f"bndbox/{x}", "nan")) for x in CORNERS)
        return int(one.findtext("difficult") or 0), -(right - left) * (bottom - top)

    return min(ElementTree.parse(path).iter("object"), key=key).findtext("name", "")


def shown_in(picture: str) -> list[int]:
    """For each class of VOC: 1 if the picture shows it, −1 if only as difficult objects, else 0."""
    found, place = [0] * len(VOC), Path(picture)
    notes = place.parents[1] / "Annotations" / f"{place.stem}.xml"
    for one in ElementTree.parse(notes).iter("object"):
        c = VOC.index(one.findtext("name", ""))
        found[c] = 1 if found[c] == 1 or not int(one.findtext("difficult") or 0) else -1
    return found


@dataclass(frozen=True, eq=False, repr=False)
class ImagesOfMany(ImageSet):
    """Images that show several classes each; `labels` are the classes of the largest objects."""

    present: Tensor  # (N, C) int8: 1 shown, 0 not shown, -1 shown but difficult


@dataclass(frozen=True)
class Benchmark:
    """A data set of torchvision, its splits and its metric."""

    kind: str  # its class in torchvision.datasets
    train: Parts = ({},)  # arguments of that class for each part of the training split
    test: Parts = ({},)
    metric: str = "accuracy"
    # Where torchvision has no splits: images of each class to draw for train and for test (None: all others).
    dealt: tuple[int, int | None] | None = None
    files: Callable[[Any], Listed] = _by_loader
    note: str = ""
    """The splits and the metric of an accuracy on it, in words."""


def _splits(*names: str, key: str = "split", **more: str) -> Parts:
    return tuple({key: name, **more} for name in names)


_voc = partial(_splits, key="image_set", year="2007")
TEST = _splits("test")
EQUAL = "mean of the classes' accuracies"
BENCHMARKS = {
    "aircraft": Benchmark(
        "FGVCAircraft", _splits("trainval"), TEST, "per class",
        note=f"100 variants, of which 'trainval' trains and 'test' tests; {EQUAL}",
    ),
    "caltech101": Benchmark(
        "Caltech101", metric="per class", dealt=(30, None), files=_of_caltech,
        note=f"30 images a class, drawn here once, train, all others test, as usual; {EQUAL}; without the "
        "102nd class, background, that some count",
    ),
    "cars": Benchmark(
        "StanfordCars", _splits("train"), TEST, note="196 models, their own splits; accuracy"
    ),
    "dtd": Benchmark(
        "DTD", _splits("train", "val"), TEST,
        note="47 textures, the first of ten splits, its training and validation part train; accuracy",
    ),
    "flowers": Benchmark(
        "Flowers102", _splits("train", "val"), TEST, "per class",
        note=f"102 flowers, 20 images of each train, training and validation part together; {EQUAL}",
    ),
    "food": Benchmark("Food101", _splits("train"), TEST, note="101 dishes, their own splits; accuracy"),
    "pets": Benchmark(
        "OxfordIIITPet", _splits("trainval"), TEST, "per class", files=_of_pets,
        note=f"37 breeds, their own splits; {EQUAL}",
    ),
    "sun397": Benchmark(
        "SUN397", dealt=(50, 50),
        note="397 scenes, 50 images of each train and 50 test as in the ten official partitions, drawn here "
        "because torchvision reads none of those; accuracy",
    ),
    "voc2007": Benchmark(
        "VOCDetection", _voc("trainval"), _voc("test"), "11-point mAP", files=_of_voc,
        note="20 classes, several in a picture; mean over classes of the average precision at eleven "
        "recalls, pictures where all of a class is marked difficult left out for it",
    ),
}  # fmt: skip
WHOLE = ("eurosat", "cropdiseases")  # of CD-FSL (Guo et al. 2020); episodes draw their own splits


def benchmark(name: str, root: str | Path, size: int) -> tuple[ImageSet, ImageSet]:
    """The training and the test images of a set of BENCHMARKS in root/NAME, at side `size`.

    Raises:
        ValueError: no such name, or too few images of a class to split.
        ConnectionError: the set is missing and cannot be downloaded.
    """
    known, folder = BENCHMARKS[choice("name", name, BENCHMARKS)], Path(root, name)

    def listed(parts: Parts) -> Listed:
        return _joined(name, [known.files(_opened(name, known, folder, part)) for part in parts])

    first = listed(known.train)
    splits = dealt(name, first, *known.dealt) if known.dealt else (first, listed(known.test))
    train, test = (_images(found, size, known.files is _of_voc) for found in splits)
    return train, test


def _images(found: Listed, size: int, many: bool) -> ImageSet:
    files, labels, classes = found
    images, y = Photographs(files, size), torch.tensor(labels)
    if not many:
        return ImageSet(images, y, classes)
    return ImagesOfMany(images, y, classes, torch.tensor(list(map(shown_in, files)), dtype=torch.int8))


def whole(name: str, root: str | Path, size: int) -> ImageSet:
    """All images of a set of WHOLE, at side `size`.

    "eurosat": 27,000 images of 10 classes, downloaded by torchvision to root/eurosat. "cropdiseases"
    (Mohanty et al. 2016): 38 classes, put by hand into root/cropdiseases/CLASS/IMAGE. Raises ValueError
    for another name; ConnectionError or FileNotFoundError where the set is missing.
    """
    folder = Path(root, choice("name", name, WHOLE))
    if name == "eurosat":
        found = _opened(name, Benchmark("EuroSAT"), folder, {})
        return _images(_by_loader(found), size, many=False)
    of_class = files_of_classes(
        class_folders(folder, f"put the images of {name} there as CLASS/IMAGE"), "images"
    )
    files = [path for paths in of_class.values() for path in paths]
    labels = [label for label, paths in enumerate(of_class.values()) for _ in paths]
    return _images((files, labels, tuple(of_class)), size, many=False)


def splits_of(name: str, root: str | Path, size: int) -> dict[str, ImageSet]:
    """The splits of a set of BENCHMARKS or WHOLE by their names, "train" and "test", or "all". Raises as
    `benchmark` and `whole` do."""
    if name in WHOLE:
        return {"all": whole(name, root, size)}
    return dict(zip(("train", "test"), benchmark(name, root, size)))


def _opened(name: str, known: Benchmark, folder: Path, part: dict[str, str]) -> Any:
    """torchvision's data set in `folder`, downloaded first if it is missing."""
    from torchvision import datasets

    kind = getattr(datasets, known.kind)
    arguments: dict[str, Any] = {**part, **({"loader": str} if known.files is _by_loader else {})}
    try:
        return kind(folder, **arguments, download=False)
    except (RuntimeError, FileNotFoundError):  # torchvision raises these where the set is missing
        pass
    remedy = f"put there what torchvision.datasets.{known.kind} reads"
    with downloading(f"{name} is not under {folder}, or not whole,", remedy, ERRORS):
        return kind(folder, **arguments, download=True)


def _joined(name: str, parts: Iterable[Listed]) -> Listed:
    """The parts of a split as one. Raises ValueError if their classes differ."""
    files, labels, classes = zip(*parts)
    if differ := {c for one in classes for c in set(one) ^ set(classes[0])}:
        named = ", ".join(sorted(differ))
        raise ValueError(f"{name}: its parts differ in the classes {named}; get the set again")
    return [path for one in files for path in one], [label for one in labels for label in one], classes[0]


def dealt(name: str, found: Listed, train: int, test: int | None) -> tuple[Listed, Listed]:
    """Two splits of a set: `train` and `test` images drawn from each class (`test` None: all others), the
    same on every call. Raises ValueError where a class has too few."""
    files, labels, classes = found
    of_class: list[list[str]] = [[] for _ in classes]
    for path, label in sorted(zip(files, labels)):
        of_class[label].append(path)
    splits: list[Listed] = [([], [], classes), ([], [], classes)]
    for label, inside in enumerate(of_class):
        if len(inside) < train + (test or 1):
            needed = f"{train} for training and {test or 'at least 1'} for testing are needed"
            got = f"{classes[label]} has {len(inside)} images"
            raise ValueError(f"{name}: {got}, {needed}; get the set again")
        order = np.random.default_rng(label).permutation(len(inside))
        chosen = order[:train], order[train : train + test if test else None]
        for (paths, ys, _), index in zip(splits, chosen):
            paths.extend(inside[i] for i in index)
            ys.extend([label] * len(index))
    return splits[0], splits[1]

"""Accuracies of an encoder on other data sets, a row for each set (GroCo, table 3; MMCL, table 1)."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

from setclr import data
from setclr.checks import boolean, choice, integer
from setclr.data import ImageSet
from setclr.data_sets import FOLDER
from setclr.evaluation.frozen import features
from setclr.evaluation.neighbours import knn
from setclr.evaluation.probes import linear_probe
from setclr.experiments.kinds.image import side_of
from setclr.experiments.run import Run
from setclr.views.pixels import grey
from setclr_course.papers.average_precision import knn_scores, mean_average_precision
from setclr_course.papers.benchmarks import BENCHMARKS, WHOLE, ImagesOfMany, benchmark, whole
from setclr_course.papers.fine_tuning import check_pair, fine_tune
from setclr_course.papers.shots import few_shot


def accuracy(predicted: Tensor, labels: Tensor, metric: str = "accuracy") -> float:
    """Accuracy in per cent; with the metric "per class" the mean of the classes' accuracies."""
    score = balanced_accuracy_score if metric == "per class" else accuracy_score
    return 100 * float(score(labels.numpy(force=True), predicted.numpy(force=True)))


def transfer(
    run: Run, names: str | Sequence[str], root: str | Path = "data", k: int = 20, temperature: float = 0.07,
    linear: bool = True, tuned: dict | None = None, size: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Test accuracies, in per cent, of a run's encoder on labelled data sets that it was not trained on.

    GroCo's table 3 has "aircraft", "caltech101", "cars", "cifar10", "cifar100", "dtd", "flowers", "food",
    "pets", "sun397" and "voc2007" by kNN. The paper votes with T = 0.07, and does not say which of its k
    = 1, 10, 20 the table shows. MMCL's table 1 has five of these sets with fine-tuning.

    Images get the side and the channels that the run was trained on. Photographs are cropped to the
    central square and resized; images in RAM are resized. For one channel colours become grey; for three,
    grey is repeated.

    Args:
        names: of `setclr.data.load` or of BENCHMARKS, or folder:PATH; what is missing in `root` is
            downloaded.
        k, temperature: of the kNN vote.
        linear: also a linear probe, as `linear_probe` trains it; the papers' tables do not have it.
        tuned: also fine-tune the encoder: a dict of `fine_tune`'s arguments, such as {"epochs": 30}, or
            {}.
        size: side in pixels; None takes the training's (`side_of`).

    Returns a row for each name; columns classes, train, test (numbers of images), metric, knn, linear,
    fine-tuned. The metric is "accuracy", or "per class", the mean of the classes' accuracies, where
    Kornblith et al. 2019 and MMCL's table take that. It is "11-point mAP" for "voc2007", whose pictures
    show several things: a class's score is its share of the neighbours' votes, and linear and fine-tuned
    are empty. The paper does not say which metric GroCo has there. `BENCHMARKS[name].note` says which
    images of a set train and which test.

    Raises, before anything is computed, ValueError where an argument is not as above, a split lacks
    classes, which are named, or the side of the training is not known; FileNotFoundError or
    ConnectionError where a set is missing and cannot be downloaded.

    Cost: a forward pass for each image, 4 · N · D bytes for a set's features; then that of `knn`,
    `linear_probe` and `fine_tune`.
    """
    size = side_of(run) if size is None else integer("size", size, least=8)
    boolean("linear", linear)
    names = [names] if isinstance(names, str) else list(names)
    sets = {name: labelled_pair(name, root, size) for name in names}
    encoder, rows = AnyImages(run.encoder, run.channels, size), {}
    for name, (train, test) in tqdm(sets.items(), desc="transfer", unit="set"):
        metric = BENCHMARKS[name].metric if name in BENCHMARKS else "accuracy"
        row: dict = {"classes": len(train.classes), "train": len(train), "test": len(test), "metric": metric}
        device = next(encoder.parameters()).device
        bank, queries = (features(encoder, part.images).to(device) for part in (train, test))
        labels = train.labels.to(device)
        if isinstance(train, ImagesOfMany) and isinstance(test, ImagesOfMany):
            scores = knn_scores(bank, train.present, queries, k, temperature)
            rows[name] = row | {"knn": mean_average_precision(scores, test.present)}
            continue
        row["knn"] = accuracy(knn(bank, labels, queries, k, temperature), test.labels, metric)
        if linear:
            row["linear"] = accuracy(linear_probe(bank, labels, queries), test.labels, metric)
        if tuned is not None:
            row["fine-tuned"] = accuracy(fine_tune(encoder, train, test, **tuned), test.labels, metric)
        rows[name] = row
    return pd.DataFrame.from_dict(rows, "index")


def few_shot_transfer(
    run: Run, names: str | Sequence[str] = WHOLE, root: str | Path = "data", size: int | None = None,
    **episodes: int,
) -> pd.DataFrame:  # fmt: skip
    """Few-shot accuracies, in per cent, of a run's encoder on sets that it was not trained on.

    MMCL's table 1 has "cropdiseases" and "eurosat" by the protocol of CD-FSL (Guo et al. 2020): 5
    classes, 20 images of each to learn from, 600 episodes. Other names are those of `transfer`; their
    test images are taken. `episodes` are the arguments ways, shots, queries, episodes and seed of
    `few_shot`. Images get sides and channels as in `transfer`.

    Returns a row for each name; columns classes, images, mean, half width (of the 95 % interval). Raises
    what `transfer`, `whole` and `few_shot` do. Cost: a forward pass for each image, then that of
    `few_shot`.
    """
    size = side_of(run) if size is None else integer("size", size, least=8)
    names = [names] if isinstance(names, str) else list(names)
    sets = {n: whole(n, root, size) if n in WHOLE else labelled_pair(n, root, size)[1] for n in names}
    encoder, rows = AnyImages(run.encoder, run.channels, size), {}
    for name, images in tqdm(sets.items(), desc="few-shot transfer", unit="set"):
        found = few_shot(features(encoder, images.images), images.labels, **episodes)
        row = {"classes": len(images.classes), "images": len(images)}
        rows[name] = row | {"mean": found.mean, "half width": found.half_width}
    return pd.DataFrame.from_dict(rows, "index")


def labelled_pair(name: str, root: str | Path, size: int) -> tuple[ImageSet, ImageSet]:
    """The training and test images of a set. Files are read at side `size` when they are needed. Raises
    what `transfer` does."""
    if name in BENCHMARKS:
        train, test = benchmark(name, root, size)
    else:
        is_folder = isinstance(name, str) and name.startswith(FOLDER)
        of_images = [name for name in data.NAMES if not data.known(name).mirror]
        choice("names", FOLDER + "PATH" if is_folder else name, [*of_images, *BENCHMARKS])
        files: dict = {"size": size, "stream": True} if data.known(name).in_files else {}
        train, test = (data.load(name, root, split, **files) for split in ("train", "test"))
    for split, part in (("train", train), ("test", test)):
        counts = part.labels.bincount(minlength=len(part.classes)).tolist()
        if missing := [c for c, count in zip(part.classes, counts) if not count]:
            raise ValueError(f"{name}: its {split} split has no images of {', '.join(missing)}; complete it")
    try:
        check_pair(train, test)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return train, test


class AnyImages(nn.Module):
    """An encoder for images (N, 1 or 3, H, W) of any side. They are converted to the channels and the
    side of the encoder inside."""

    def __init__(self, encoder: nn.Module, channels: int, size: int):
        super().__init__()
        self.encoder, self.channels, self.size = encoder, channels, size

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] != self.channels:
            x = grey(x) if self.channels == 1 else x.expand(-1, self.channels, -1, -1)
        if x.shape[2:] != (self.size, self.size):
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        return self.encoder(x)

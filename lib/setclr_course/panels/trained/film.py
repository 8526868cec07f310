"""A film of a training run: for the same test images, frame by frame, where they lie and their neighbours."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from setclr.data import ImageSet
from setclr.data.writing import replacing
from setclr.evaluation import features, knn
from setclr.experiments.run import Run

SHOWN, NEIGHBOURS = 180, 6
SPREAD = 12  # about how far t-SNE spreads as many points


class Film:
    """Records a run: hand it to `pretrain` as `on_epoch`. With a path the film is kept in that file.

    A frame holds, always for the same test images, their positions on a map (t-SNE of the features, starting
    from the frame before) and their nearest training images. The first frame is the untrained encoder's.
    """

    def __init__(self, train: ImageSet, test: ImageSet, path: str | Path | None = None):
        self.train, self.test = train, test
        self.shown = test.sample(min(SHOWN, len(test)))
        self.path = Path(path) if path else None
        self.positions: list[np.ndarray] = []
        self.neighbours: list[np.ndarray] = []
        self.accuracy: list[float] = []
        if self.path and self.path.exists():
            with np.load(self.path) as kept:
                self.positions, self.neighbours = list(kept["places"]), list(kept["neighbours"])
                self.accuracy = list(kept["accuracy"])

    def __call__(self, run: Run) -> dict:
        """Add the frame of the run as it is now; returns the epoch's row of metrics."""
        epoch = len(run.rows)
        if len(self) < epoch:
            hint = "the run began without it; train again with resume=False"
            raise ValueError(f"film must hold the {epoch} frames before this epoch, got {len(self)}: {hint}")
        del self.positions[epoch:], self.neighbours[epoch:], self.accuracy[epoch:]
        bank, queries = (features(run.encoder, images) for images in (self.train.images, self.test.images))
        self.accuracy.append(vote(bank, queries, self.train, self.test))
        shown = features(run.encoder, self.shown.images)
        similarity = F.normalize(shown, dim=1) @ F.normalize(bank, dim=1).T
        self.neighbours.append(similarity.topk(NEIGHBOURS).indices.numpy().astype(np.uint32))
        self.positions.append(flat(shown, self.positions[-1] if self.positions else None).astype(np.float16))
        if self.path:
            kept: dict[str, Any] = {"places": self.positions, "neighbours": self.neighbours}
            with replacing(self.path) as file:
                np.savez_compressed(file, accuracy=self.accuracy, **kept)
        return {"knn": self.accuracy[-1]}

    def __len__(self) -> int:
        return len(self.positions)


def vote(bank: Tensor, queries: Tensor, train: ImageSet, test: ImageSet) -> float:
    """The share of test images that ten training images name right, by features of both (k=10, T=0.1)."""
    predicted = knn(bank, train.labels, queries, k=min(10, len(bank)), temperature=0.1)
    return float((predicted == test.labels).float().mean())


def flat(points: Tensor, before: np.ndarray | None) -> np.ndarray:
    """Positions (n, 2) in [-1, 1]² for points (n, D): t-SNE of their directions, starting from `before`."""
    from sklearn.manifold import TSNE  # takes a second

    x = F.normalize(points, dim=1).numpy()
    start = "pca" if before is None else SPREAD * before.astype(np.float32)
    perplexity = min(12, (len(x) - 1) / 3)
    tsne = TSNE(2, init=start, perplexity=perplexity, early_exaggeration=4, max_iter=500, random_state=0)
    positions = tsne.fit_transform(x)
    return positions / np.abs(positions).max(0).clip(min=1e-9)


def made_up() -> Film:
    """A film of a training that nobody has run: patches of a photograph gather."""
    from setclr_course.kit.few_patches import few_patches

    few, noise = few_patches(10), np.random.default_rng(0)
    film = Film(few, few)
    film.train, labels = film.shown, film.shown.labels.numpy()
    start, end = noise.uniform(-0.9, 0.9, (2, len(few), 2))
    for share in (0, 0.3, 0.6, 0.8):
        places = (1 - share) * start + share * end[labels]
        near = np.square(places[:, None] - places).sum(-1).argsort(1)[:, 1 : NEIGHBOURS + 1]
        film.positions.append(places)
        film.neighbours.append(near)
        film.accuracy.append(float((labels[near] == labels[:, None]).mean()))
    return film

"""A film of a training run: for the same test images, frame by frame, their places and their neighbours."""

import os
from pathlib import Path

import numpy as np
from sklearn.manifold import TSNE
from torch import Tensor
from torch.nn import functional as F

from setclr.data import ImageSet
from setclr.evaluation import features, knn
from setclr.training.checkpoint import Run

SHOWN, NEIGHBOURS = 180, 6
SPREAD = 12  # about how far t-SNE spreads as many points


class Film:
    """Records a run: hand it to `pretrain` as `on_epoch`. With a path it is kept there beside the run's
    checkpoint.

    A frame holds, for the same test images each time, their places on a map (t-SNE of the features, starting
    from the frame before) and their nearest training images. Before the first epoch the frame is the
    untrained encoder's.
    """

    def __init__(self, train: ImageSet, test: ImageSet, path: str | Path | None = None):
        self.train, self.test = train, test
        self.shown = test.sample(min(SHOWN, len(test)))
        self.path = Path(path) if path else None
        self.places, self.neighbours, self.accuracy = [], [], []
        if self.path and self.path.exists():
            with np.load(self.path) as kept:
                for name in ("places", "neighbours", "accuracy"):
                    setattr(self, name, list(kept[name]))

    def __call__(self, run: Run) -> dict:
        """Add the frame of the run as it is now; returns the epoch's row of metrics."""
        epoch = len(run.rows)
        if len(self) < epoch:
            raise ValueError(
                f"film must hold the {epoch} frames before this epoch, got {len(self)}: "
                "the run began without it; train again with resume=False"
            )
        for frames in (self.places, self.neighbours, self.accuracy):
            del frames[epoch:]
        bank, queries = (features(run.encoder, images) for images in (self.train.images, self.test.images))
        predicted = knn(bank, self.train.labels, queries, k=min(10, len(bank)), temperature=0.1)
        self.accuracy.append(float((predicted == self.test.labels).float().mean()))

        shown = features(run.encoder, self.shown.images)
        similarity = F.normalize(shown, dim=1) @ F.normalize(bank, dim=1).T
        self.neighbours.append(similarity.topk(NEIGHBOURS).indices.numpy().astype(np.uint32))
        self.places.append(flat(shown, self.places[-1] if self.places else None).astype(np.float16))
        if self.path:
            self.save()
        return {"knn": self.accuracy[-1]}

    def __len__(self) -> int:
        return len(self.places)

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, places=self.places, neighbours=self.neighbours, accuracy=self.accuracy)
        os.replace(unfinished, self.path)


def flat(points: Tensor, before: np.ndarray | None) -> np.ndarray:
    """Places (n, 2) in [-1, 1]² for points (n, D): t-SNE of their directions, starting from the places
    `before`."""
    x = F.normalize(points, dim=1).numpy()
    start = "pca" if before is None else SPREAD * before.astype(np.float32)
    perplexity = min(12, (len(x) - 1) / 3)
    tsne = TSNE(2, init=start, perplexity=perplexity, early_exaggeration=4, max_iter=500, random_state=0)
    places = tsne.fit_transform(x)
    return places / np.abs(places).max(0).clip(min=1e-9)

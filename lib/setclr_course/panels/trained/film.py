"""A film of a training run: for the same test images, frame by frame, where they lie and their neighbours."""

from pathlib import Path

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
            raise ValueError(
                f"film must hold the {epoch} frames before this epoch, got {len(self)}: "
                "the run began without it; train again with resume=False"
            )
        del self.positions[epoch:], self.neighbours[epoch:], self.accuracy[epoch:]
        bank, queries = (features(run.encoder, images) for images in (self.train.images, self.test.images))
        predicted = knn(bank, self.train.labels, queries, k=min(10, len(bank)), temperature=0.1)
        self.accuracy.append(float((predicted == self.test.labels).float().mean()))

        shown = features(run.encoder, self.shown.images)
        similarity = F.normalize(shown, dim=1) @ F.normalize(bank, dim=1).T
        self.neighbours.append(similarity.topk(NEIGHBOURS).indices.numpy().astype(np.uint32))
        before = self.positions[-1] if self.positions else None
        self.positions.append(flat(shown, before).astype(np.float16))
        if self.path:
            self.save(self.path)
        return {"knn": self.accuracy[-1]}

    def __len__(self) -> int:
        return len(self.positions)

    def save(self, path: Path) -> None:
        places, neighbours, accuracy = map(np.array, (self.positions, self.neighbours, self.accuracy))
        with replacing(path) as file:
            np.savez_compressed(file, places=places, neighbours=neighbours, accuracy=accuracy)


def flat(points: Tensor, before: np.ndarray | None) -> np.ndarray:
    """Positions (n, 2) in [-1, 1]² for points (n, D): t-SNE of their directions, starting from `before`."""
    from sklearn.manifold import TSNE  # takes a second

    x = F.normalize(points, dim=1).numpy()
    start = "pca" if before is None else SPREAD * before.astype(np.float32)
    perplexity = min(12, (len(x) - 1) / 3)
    tsne = TSNE(2, init=start, perplexity=perplexity, early_exaggeration=4, max_iter=500, random_state=0)
    positions = tsne.fit_transform(x)
    return positions / np.abs(positions).max(0).clip(min=1e-9)

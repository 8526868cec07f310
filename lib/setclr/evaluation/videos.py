"""Evaluation of video encoders: retrieval of the nearest video, and a linear probe, with one crop or ten."""

from typing import Any

import torch
from torch import Tensor, nn

from setclr.checks import integer
from setclr.evaluation.frozen import evaluating
from setclr.evaluation.neighbours import knn
from setclr.evaluation.probes import linear_probe
from setclr.video.sets import VideoSet
from setclr.video.views import ten_crops, uncut


@torch.no_grad()
def video_features(
    encoder: nn.Module, videos: VideoSet, frames: int = 8, stride: int = 1, size: int | None = None,
    moments: int = 1, crops: int = 1, batch: int = 64,
) -> Tensor:  # fmt: skip
    """Features (N, D) of whole videos, float32 on the CPU: the mean over clips and crops.

    The `moments` clips of a video are evenly spread, from the first possible clip to the last; a single
    one is the middle clip. `crops` is 1, the whole frame, or 10, those of `ten_crops`.

    A linear classifier's scores of the mean are the mean of its scores, so this is the ten-crop test of a
    linear probe. CoCLR's program takes the mean of probabilities instead. The encoder runs in eval mode
    on its device and is not changed. Raises ValueError for another number of crops, or where a video is
    shorter than a clip. Cost: moments · crops forward passes for each video.
    """
    integer("moments", moments, least=1)
    integer("batch", batch, least=1)
    if crops not in (1, 10):
        raise ValueError(f"crops must be 1 or 10, got {crops!r}")
    size, weight = size or videos.side, next(encoder.parameters())
    places = torch.linspace(0, 1, moments) if moments > 1 else torch.tensor([0.5])
    features = []
    with evaluating(encoder):
        for part in torch.arange(len(videos)).split(batch):
            clips = videos.cut(part, places.expand(len(part), moments), frames, stride)
            seen = [uncut(clip, size)[None] if crops == 1 else ten_crops(clip, size=size) for clip in clips]
            rows = torch.stack([encoder(x.to(weight)).float() for x in torch.cat(seen)])
            features.append(rows.mean(0).cpu())
    return torch.cat(features)


def pointing(x: Tensor) -> Tensor:
    """Which of the features (N, D) have a direction, (N,) bool: those longer than 10⁻⁵ of the longest.
    Shorter ones are rounding errors."""
    length = x.detach().float().cpu().norm(dim=1)
    return length > 1e-5 * length.max()


def video_accuracies(
    encoder: nn.Module, train: VideoSet, test: VideoSet, frames: int = 8, stride: int = 1,
    size: int | None = None, moments: int = 1, seed: int = 0,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Accuracies in per cent for each kind of label that the videos have, by the name of the measure.

    "retrieval@1" is how often the nearest training video by cosine has the test video's label. "linear"
    is a linear probe. "ten crops" is the same probe tested on ten crops, five of them mirrored.

    A feature that is all 0 has no direction: no video is near it, and retrieval counts it as wrong.
    Convolutions and batch norms with initial weights give such features where nothing moves. CoCLR's
    program subtracts the features' mean first; here they stay as they are.
    """
    how: dict[str, Any] = dict(frames=frames, stride=stride, size=size, moments=moments)
    bank, queries = (video_features(encoder, videos, **how) for videos in (train, test))
    cropped = video_features(encoder, test, **how, crops=10)
    accuracies = {}
    for thing, labels in train.labels.items():
        right = test.labels[thing]
        nearest = knn(bank, labels, queries, k=1)
        probed = linear_probe(bank, labels, torch.cat([queries, cropped]), seed=seed).split(len(queries))
        scores = {"retrieval@1": (nearest == right) & pointing(queries)}
        scores |= {name: label == right for name, label in zip(("linear", "ten crops"), probed)}
        accuracies[thing] = {name: round(100 * float(x.float().mean()), 2) for name, x in scores.items()}
    return accuracies

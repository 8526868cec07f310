"""What an encoder of clips knows: retrieval of the nearest video, and a linear probe, with ten crops or
one."""

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
    """Features (N, D) of whole videos, float32 on the CPU: the mean over `moments` clips of each, evenly
    from the first that there is to the last (one: the middle), and over `crops`: 1 is the whole frame, 10
    are those of `ten_crops`.

    A linear classifier of the mean is the mean of its scores, so this is the ten-crop test of a linear
    probe; CoCLR's program takes the mean of probabilities. The encoder runs in eval mode on its device and
    is left as it was. Raises ValueError for another number of crops, or where a video is shorter than a
    clip. Cost: moments · crops forward passes for each video."""
    integer("moments", moments, least=1)
    integer("batch", batch, least=1)
    if crops not in (1, 10):
        raise ValueError(f"crops must be 1 or 10, got {crops!r}")
    size, device = size or videos.side, next(encoder.parameters()).device
    places = torch.linspace(0, 1, moments) if moments > 1 else torch.tensor([0.5])
    found = []
    with evaluating(encoder):
        for part in torch.arange(len(videos)).split(batch):
            clips = videos.cut(part, places.expand(len(part), moments), frames, stride)
            seen = [uncut(clip, size)[None] if crops == 1 else ten_crops(clip, size=size) for clip in clips]
            rows = torch.stack([encoder(x.to(device)).float() for x in torch.cat(seen)])
            found.append(rows.mean(0).cpu())
    return torch.cat(found)


def pointing(x: Tensor) -> Tensor:
    """Which of the features (N, D) have a direction, (N,) bool: those that are more than rounding, 10⁻⁵ of
    the longest."""
    length = x.detach().float().cpu().norm(dim=1)
    return length > 1e-5 * length.max()


def known(
    encoder: nn.Module, train: VideoSet, test: VideoSet, frames: int = 8, stride: int = 1,
    size: int | None = None, moments: int = 1, seed: int = 0,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Per cent for each thing that the videos are labelled with: "retrieval@1", how often the nearest
    training video by cosine has the test video's label; "linear", a linear probe; "ten crops", the same
    probe tested on ten crops, five of them mirrored.

    Features that are all 0 point nowhere: nothing is near them, and retrieval counts them as wrong.
    Convolutions and batch norms with first weights give such where nothing moves. CoCLR's program takes the
    mean off the features first; here they stay as they are."""
    how: dict[str, Any] = dict(frames=frames, stride=stride, size=size, moments=moments)
    bank, queries = (video_features(encoder, videos, **how) for videos in (train, test))
    cropped = video_features(encoder, test, **how, crops=10)
    found = {}
    for thing, labels in train.labels.items():
        right = test.labels[thing]
        nearest = knn(bank, labels, queries, k=1)
        probed = linear_probe(bank, labels, torch.cat([queries, cropped]), seed=seed).split(len(queries))
        scores = {"retrieval@1": (nearest == right) & pointing(queries)}
        scores |= {name: label == right for name, label in zip(("linear", "ten crops"), probed)}
        found[thing] = {name: round(100 * float(x.float().mean()), 2) for name, x in scores.items()}
    return found

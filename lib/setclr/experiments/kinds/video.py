"""Videos: clips of each, a 3D encoder, and retrieval and a linear probe, as in CoCLR."""

from functools import partial
from mimetypes import guess_type
from pathlib import Path

import numpy as np
import torch
from torch import nn

from setclr.checks import printable
from setclr.data.folders import files_below, without_damaged
from setclr.evaluation.protocols import OWN
from setclr.evaluation.videos import video_accuracies, video_features
from setclr.experiments.kinds import split_of
from setclr.experiments.run import Features, OnEpoch, Run, beside_untrained
from setclr.models import head as make_head
from setclr.recipes.video import MOVING, VideoRecipe
from setclr.video import ClipViews, VideoFiles, VideoSet, load_videos, video_encoder, video_views
from setclr.video.files import decoded


def load(recipe: VideoRecipe, root: str | Path, split: str = "train") -> VideoSet:
    return load_videos(recipe.data, split, recipe.modality, root, recipe.size)


def channels(data: VideoSet) -> int:
    return data.channels


def models(recipe: VideoRecipe, channels: int) -> tuple[nn.Module, nn.Module]:
    encoder, features = video_encoder(recipe.encoder, channels)
    return encoder, make_head(features, recipe.hidden, recipe.embedding, recipe.last_norm, activation="relu")


def source(recipe: VideoRecipe, data: VideoSet) -> ClipViews:
    views = video_views(recipe.views, recipe.size, recipe.flip)
    return ClipViews(data, views, recipe.frames, recipe.stride)


def watch(recipe: VideoRecipe, root: str | Path) -> OnEpoch | None:
    return None


def labelled(
    recipe: VideoRecipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
) -> tuple[VideoSet, VideoSet]:
    train = load(recipe, root)
    labels = next(iter(train.labels.values()))
    return split_of(split, train, labels, lambda: load(recipe, root, "test"))


def accuracies(run: Run, train: VideoSet, test: VideoSet) -> dict[str, float]:
    """Retrieval, a linear probe, and the probe on ten crops, for each kind of label.

    Their names are as "motion retrieval@1", or "retrieval@1" if there is one kind of label
    (`evaluation.videos.video_accuracies`).
    """
    recipe = run.recipe
    clips = recipe.frames, recipe.stride, recipe.size, moments_of(run)
    scores = video_accuracies(run.encoder, train, test, *clips, recipe.seed)
    prefix = {thing: f"{thing} " * (len(scores) > 1) for thing in scores}
    return {prefix[thing] + name: x for thing, of in scores.items() for name, x in of.items()}


evaluate = partial(beside_untrained, accuracies)


def moments_of(run: Run) -> int:
    """At how many moments the encoder sees a video: ten, or one for the short ones of moving-patches."""
    return 1 if run.recipe.data == MOVING else 10


def embed(run: Run, place: Path, size: int | None, batch: int, skip_damaged: bool = False) -> Features:
    """`place` is a folder with video files in it, at any depth."""
    recipe = run.recipe
    is_video = lambda name: (guess_type(name)[0] or "").startswith("video/")  # noqa: E731
    files = files_below(place, is_video, "video files (.mp4, .avi, …)", warn=True)
    side = size or recipe.size
    paths = [*map(Path, without_damaged(files, lambda x: decoded(Path(x), side)) if skip_damaged else files)]
    if run.channels == 2:
        raise ValueError("the run must be of colours to embed files, got one of flow")
    labels = {"none": torch.zeros(len(paths), dtype=torch.long)}
    videos = VideoSet(VideoFiles(paths, side), labels, {"none": ("none",)})
    clips = recipe.frames, recipe.stride, side, moments_of(run)
    features = video_features(run.encoder, videos, *clips, batch=batch)
    return features.numpy(), np.array([printable(path.relative_to(place)) for path in paths])

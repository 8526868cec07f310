"""Videos: clips of each, a 3D encoder, and retrieval and a linear probe, as in CoCLR."""

from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from setclr.checks import printable
from setclr.data.folders import without_damaged
from setclr.data_sets import FOLDER
from setclr.evaluation.protocols import OWN
from setclr.evaluation.videos import video_accuracies, video_features
from setclr.experiments.kinds import split_of
from setclr.experiments.run import Features, OnEpoch, Run, beside_untrained
from setclr.models import head as make_head
from setclr.recipes.video import VideoRecipe
from setclr.video import ClipViews, VideoFiles, VideoSet, load_videos, video_encoder, video_views
from setclr.video.files import decoded, videos_below


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
    return split_of(split, train, train.first_labels, lambda: load(recipe, root, "test"))


def accuracies(run: Run, train: VideoSet, test: VideoSet) -> dict[str, float]:
    """Retrieval, a linear probe, and the probe on ten crops, for each kind of label.

    Their names are as "motion retrieval@1", or "retrieval@1" if there is one kind of label
    (`evaluation.videos.video_accuracies`).
    """
    scores = video_accuracies(run.encoder, train, test, *clips_of(run, run.recipe.size), run.recipe.seed)
    prefix = {thing: f"{thing} " * (len(scores) > 1) for thing in scores}
    return {prefix[thing] + name: x for thing, of in scores.items() for name, x in of.items()}


evaluate = partial(beside_untrained, accuracies)


def clips_of(run: Run, size: int) -> tuple[int, int, int, int]:
    """Which clips the encoder sees of a video: frames, stride, size, and at how many moments, ten for files,
    one for the short videos of other sets."""
    return run.recipe.frames, run.recipe.stride, size, 10 if run.recipe.data.startswith(FOLDER) else 1


def embed(run: Run, place: Path, size: int | None, batch: int, skip_damaged: bool = False) -> Features:
    """`place` is a folder with video files in it, at any depth."""
    files, side = videos_below(place, warn=True), size or run.recipe.size
    paths = [*map(Path, without_damaged(files, partial(decoded, size=side)) if skip_damaged else files)]
    if run.channels == 2:
        raise ValueError("the run must be of colours to embed files, got one of flow")
    videos = VideoSet(VideoFiles(paths, side), {}, {})
    features = video_features(run.encoder, videos, *clips_of(run, side), batch=batch)
    return features.numpy(), np.array([printable(path.relative_to(place)) for path in paths])

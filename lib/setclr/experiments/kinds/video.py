"""Videos: clips of each, a 3D encoder, and retrieval and a linear probe, as in CoCLR."""

from collections.abc import Callable
from mimetypes import guess_type
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from setclr.checks import choice
from setclr.data.folders import files_below, without_damaged
from setclr.data.photographs import shown
from setclr.data.sets import held_out_mask
from setclr.evaluation.protocols import OWN
from setclr.evaluation.videos import video_accuracies, video_features
from setclr.experiments.run import Run, beside_untrained
from setclr.experiments.tables import SPLITS
from setclr.models import head as make_head
from setclr.recipes.video import MOVING, VideoRecipe
from setclr.training.distributed import from_first, world
from setclr.video import ClipViews, VideoFiles, VideoSet, load_videos, video_encoder, video_views
from setclr.video.files import decoded


def load(recipe: VideoRecipe, root: str | Path, given: VideoSet | None = None) -> VideoSet:
    def loaded() -> VideoSet:
        return load_videos(recipe.data, "train", recipe.modality, root, recipe.size)

    if given is None and world() > 1:
        from_first(lambda: len(loaded()))
    return given or loaded()


def channels(data: VideoSet) -> int:
    return data.channels


def models(recipe: VideoRecipe, channels: int) -> tuple[nn.Module, nn.Module]:
    encoder, features = video_encoder(recipe.encoder, channels)
    return encoder, make_head(features, recipe.hidden, recipe.embedding, recipe.last_norm, activation="relu")


def source(recipe: VideoRecipe, data: VideoSet) -> ClipViews:
    views = video_views(recipe.views, recipe.size, recipe.flip)
    return ClipViews(data, views, recipe.frames, recipe.stride)


def watch(recipe: VideoRecipe, root: str | Path) -> Callable[[Run], dict | None] | None:
    return None


def labelled(
    recipe: VideoRecipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
) -> tuple[VideoSet, VideoSet]:
    """The training and the test videos; for other splits two parts of the training videos: four fifths of
    each class, and a fifth, drawn by a fixed seed."""
    choice("split", split, SPLITS)
    train = load_videos(recipe.data, "train", recipe.modality, root, recipe.size)
    if split == "test":
        return train, load_videos(recipe.data, "test", recipe.modality, root, recipe.size)
    held = held_out_mask(next(iter(train.labels.values())))
    return train.subset(~held), train.subset(held)


def evaluate(
    run: Run, train: VideoSet, test: VideoSet, linear: bool = True, protocol: str = OWN
) -> pd.DataFrame:
    """Retrieval, a linear probe, and the probe on ten crops, for each kind of label.

    Rows are untrained, unless encoder and head are your own, and trained. Columns are as "motion
    retrieval@1", or "retrieval@1" if there is one kind of label (`evaluation.videos.video_accuracies`).
    `protocol` is not used.
    """
    return beside_untrained(run, accuracies, train, test)


def accuracies(run: Run, train: VideoSet, test: VideoSet) -> dict[str, float]:
    recipe = run.recipe
    scores = video_accuracies(
        run.encoder, train, test, recipe.frames, recipe.stride, recipe.size, moments_of(run), recipe.seed
    )
    many = len(scores) > 1
    return {
        f"{thing} {name}" if many else name: score
        for thing, of in scores.items()
        for name, score in of.items()
    }


def moments_of(run: Run) -> int:
    """At how many moments the encoder sees a video: ten, or one for the short ones of moving-patches."""
    return 1 if run.recipe.data == MOVING else 10


def embed(
    run: Run, place: Path, size: int | None, batch: int, skip_damaged: bool = False
) -> tuple[np.ndarray, np.ndarray]:
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
    features = video_features(
        run.encoder, videos, recipe.frames, recipe.stride, side, moments_of(run), batch=batch
    )
    return features.numpy(), np.array([shown(path.relative_to(place)) for path in paths])

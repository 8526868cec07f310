"""Pretraining on videos: the training loop, in which each video of a batch is seen in two views."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from setclr.extras import extra
from setclr.models import head as make_head
from setclr.recipes.video import VideoRecipe
from setclr.seeding import drawing, seeded
from setclr.training.batches import Batches
from setclr.training.devices import Precision
from setclr.training.grad_cache import GradCache
from setclr.training.momentum import Keys, MomentumEncoder
from setclr.training.optimisers import make_optimiser
from setclr.video.encoders import video_encoder
from setclr.video.sets import VideoSet, load_videos
from setclr.video.views import draw_clips, video_views

with extra("train"):
    from tqdm.auto import tqdm


@dataclass
class VideoRun:
    """A run: its recipe, the trained `encoder` and `head`, and `rows`, one for each epoch."""

    recipe: VideoRecipe
    encoder: nn.Module
    head: nn.Module
    rows: list[dict] = field(default_factory=list)


def pretrain_videos(
    recipe: VideoRecipe, videos: VideoSet | None = None, root: str | Path = "data",
    device: str | torch.device = "cpu", on_epoch: Callable[[VideoRun], dict | None] | None = None,
) -> VideoRun:  # fmt: skip
    """Train as the recipe says, on its data set or on the `videos` given.

    Initial weights are a function of the seed, the order of videos of (seed, epoch), clips and views of
    (seed, epoch, step). Where the recipe has a queue, a momentum encoder's embeddings are the loss's
    candidates, as in MoCo: those of this batch, and the second view's of earlier batches. `on_epoch` is
    called with the run after each epoch. The dict that it returns is added to the epoch's row.

    Raises ValueError where the batch is larger than the set or a video is shorter than a clip;
    FloatingPointError where loss or embeddings become NaN or inf; what `load_videos` raises.
    """
    if videos is None:
        videos = load_videos(recipe.data, "train", recipe.modality, root, recipe.size)
    run, step = prepared(recipe, videos, torch.device(device))
    batches = Batches(torch.zeros(len(videos), dtype=torch.long), recipe.batch, recipe.seed)
    for epoch in tqdm(range(recipe.epochs), unit="epoch", leave=False):
        run.encoder.train()
        run.head.train()
        started, values = time.perf_counter(), []
        for number, indices in enumerate(batches.of(epoch)):
            progress = (epoch + number / len(batches)) / recipe.epochs
            values.append(step(indices, seeded(recipe.seed, epoch, number), progress))
            if not math.isfinite(values[-1]):
                said = f"loss or embeddings became NaN or inf in epoch {epoch + 1}"
                raise FloatingPointError(f"{said}; lower lr, it is {recipe.lr:g}")
        row = {"epoch": epoch + 1, "loss": sum(values) / len(values)}
        row["seconds"] = round(time.perf_counter() - started, 3)
        run.encoder.eval()
        run.head.eval()
        run.rows.append(row | ((on_epoch(run) if on_epoch else None) or {}))
    run.encoder.eval()
    run.head.eval()
    return run


Step = Callable[[Tensor, torch.Generator, float], float]


def prepared(recipe: VideoRecipe, videos: VideoSet, device: torch.device) -> tuple[VideoRun, Step]:
    """A run with initial weights, and its training step. The step takes the videos' indices, a generator
    and the progress (0 to 1), updates the weights and returns the loss."""
    with drawing(recipe.seed):
        encoder, features = video_encoder(recipe.encoder, videos.channels)
        head = make_head(features, recipe.hidden, recipe.embedding, recipe.last_norm, activation="relu")
        loss = copy.deepcopy(recipe.parsed_loss).to(device)
    model = nn.ModuleList([encoder, head]).to(device)
    optimiser = make_optimiser("adam", model, loss, recipe.lr, weight_decay=recipe.weight_decay)
    how = Precision("float32", device)
    cache, keys = GradCache(encoder, head, how), None
    if recipe.queue:
        keys = MomentumEncoder(encoder, head, cache, Keys(recipe.momentum, queue=recipe.queue), recipe.seed)
    views = video_views(recipe.views, recipe.size, recipe.flip)

    def step(indices: Tensor, generator: torch.Generator, progress: float) -> float:
        seen = draw_clips(videos, indices, views, recipe.frames, recipe.stride, generator).to(device)
        more = keys.candidates([seen]) if keys else {}

        def objective(z: Tensor) -> Tensor:
            return loss(z, **more) if z.isfinite().all() else z.sum() * math.nan

        optimiser.zero_grad()
        value = cache.backward([seen], objective)
        how.step(optimiser)
        if keys:
            keys.advance(more["keys"], progress)
        return value.item()

    return VideoRun(recipe, encoder, head), step

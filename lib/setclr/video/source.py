"""What a Trainer trains on where the things are videos."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256

import torch
from torch import Tensor

from setclr.data.streaming import streamed
from setclr.seeding import seeded
from setclr.training.grad_cache import Group
from setclr.training.source import Step
from setclr.video.sets import VideoSet
from setclr.video.views import chance, clip_views
from setclr.views import View
from setclr.views.view import check_views


class ClipViews:
    """Random views of clips, each of `frames` frames that begin anywhere in its video (`draw_clips`).

        source = ClipViews(load_videos("moving-patches"), video_views("photo", 32))

    `stride`: a clip has every stride-th frame. Labels are the videos' first kind of labels. Files are read
    ahead by workers. Raises ValueError for other views, and during training where a video is too short.
    """

    things = "videos"
    dims = 5

    def __init__(self, videos: VideoSet, views: Sequence[View], frames: int = 8, stride: int = 1):
        check_views(views)
        self.videos, self.views, self.frames, self.stride = videos, tuple(views), frames, stride
        self.labels = next(iter(videos.labels.values()))

    def __len__(self) -> int:
        return len(self.videos)

    def digest(self) -> str:
        found = sha256(repr(dict(self.videos.classes)).encode())
        for labels in self.videos.labels.values():
            found.update(labels.numpy().tobytes())
        found.update(self.videos.fingerprint())
        return f"{len(self)} videos with checksum {found.hexdigest()[:12]}"

    def batches(
        self, steps: Iterable[Step], device: torch.device, workers: int, compiled: bool
    ) -> Iterator[list[Group]]:
        waiting = deque[Tensor]()

        def asked() -> Iterator[tuple[Tensor, Tensor]]:
            for step in steps:
                n, generator = len(step.indices), seeded(*step.key)
                places, draws = chance(self.views, n, generator, step.first, len(step.batch))
                waiting.append(draws)
                yield step.indices, places

        cut = partial(clips_of, self.videos, self.frames, self.stride)
        for clips in streamed(cut, asked(), 0 if self.videos.in_memory else workers, device):
            yield [clip_views(clips, self.views, waiting.popleft())]


def clips_of(videos: VideoSet, frames: int, stride: int, asked: tuple[Tensor, Tensor]) -> Tensor:
    """The clips (V, n, C, T, H, W) uint8 of these videos at these places."""
    return videos.cut(*asked, frames, stride)

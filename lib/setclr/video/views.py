"""Random views of clips: a random start, one crop, flip and colour change for all frames; their source."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

import torch
from torch import Tensor

from setclr.checks import choice, number
from setclr.data.streaming import streamed
from setclr.seeding import seeded
from setclr.training.grad_cache import Group
from setclr.training.source import Step
from setclr.video.flow import STEPS, ZERO
from setclr.video.sets import VideoSet
from setclr.views import View, apply, draw, parameters
from setclr.views.numbers import COLUMNS
from setclr.views.view import FLIP, PRESETS, check_views

VIDEO: dict[str, View] = {
    # CoCLR's program, which the recipe of MMCL's table 5 seems to follow.
    "coclr": View(scale=(0.2, 1), jitter=(0.4, 0.4, 0.4, 0.1), grey=0.2, blur=0.5),
    "photo": replace(PRESETS["photo"][0], scale=(0.4, 1)),
}


def video_views(name: str, size: int, flip: float = 0.5, count: int = 2) -> tuple[View, ...]:
    """The view of that name, a key of VIDEO, of `size` pixels, `count` times. A clip is mirrored with
    probability `flip`; use 0 where left and right differ in meaning. Raises ValueError for another name
    or flip."""
    number("flip", flip, least=0, most=1, hint="it is a probability")
    return (replace(VIDEO[choice("name", name, VIDEO)], size=size, flip=flip),) * count


def chance(
    views: Sequence[View], n: int, generator: torch.Generator, first: int = 0, batch: int | None = None
) -> tuple[Tensor, Tensor]:
    """Everything random in V views of n videos: where clips begin (n, V), 0 to 1, and `views.draw`'s numbers.

    `first` is the place of the first video in a batch of that size; None: they are the whole batch.
    """
    places = torch.rand(batch or n, len(views), generator=generator)[first : first + n]
    return places, draw(views, n, generator, first)


def clip_views(clips: Tensor, views: Sequence[View], draws: Tensor) -> Tensor:
    """Views of clips (V, N, C, T, H, W) uint8, where view v is of clip v: (V, N, C, T, S, S) float32.

    All frames of a clip get the same crop, flip, colours and blur, as `setclr.views.apply` gives to one
    image, from `draws` (N, V, 36). A view of flow, C = 2, is the flow of the view: a mirrored clip moves
    the other way, an enlarged one moves faster, and colour changes have no effect. The unit of flow is an
    eighth of S. Raises ValueError for other clips or draws. Cost of each view: as of N · T images.
    """
    check_views(views)
    got = tuple(getattr(clips, "shape", ()))
    if len(got) != 6 or len(clips) != len(views) or clips.dtype != torch.uint8 or got[2] not in (2, 3):
        wanted = f"({len(views)}, N, C, T, H, W) uint8 with C = 3, or 2 for flow"
        raise ValueError(f"clips must be {wanted}, got {got} {getattr(clips, 'dtype', '')}")
    one = flow_view if got[2] == 2 else colour_view
    return torch.stack([one(x, view, draws[:, v : v + 1]) for v, (x, view) in enumerate(zip(clips, views))])


def colour_view(clips: Tensor, view: View, draws: Tensor) -> Tensor:
    """One view (N, C, T, S, S) of clips (N, C, T, H, W)."""
    N, _, T, *_ = clips.shape
    seen = apply(clips.transpose(1, 2).flatten(0, 1), [view], draws.repeat_interleave(T, 0))[0]
    return seen.unflatten(0, (N, T)).transpose(1, 2)


def flow_view(clips: Tensor, view: View, draws: Tensor) -> Tensor:
    """One view (N, 2, T, S, S) of flow (N, 2, T, H, W)."""
    N, _, T, H, W = clips.shape
    plain = replace(FLIP, size=view.size, scale=view.scale, ratio=view.ratio, flip=view.flip)
    images = clips.reshape(N * 2 * T, 1, H, W)
    seen = apply(images, [plain], draws.repeat_interleave(2 * T, 0))[0].view(N, 2, T, *(view.size or H,) * 2)
    p = parameters([plain], draws, H, W)
    enlarged = H / p.box[0, :, [3, 2]].float()  # (N, 2): right, down
    sign = torch.stack([1 - 2.0 * p.flip[0], torch.ones(N)], dim=1)
    factor = (enlarged * sign).to(seen.device)[:, :, None, None, None]
    return (255 * seen - ZERO) / STEPS * factor


def ten_crops(clips: Tensor, share: float = 7 / 8, size: int | None = None) -> Tensor:
    """Ten crops of clips (N, C, T, H, H) uint8: corners and middle, and these five mirrored.

    Returns (10, N, C, T, S, S) float32. Each crop is a square of `share` of the side, resized to `size`
    pixels, or to H. Raises ValueError for a share that is not above 0 and at most 1.
    """
    number("share", share, above=0, most=1)
    H = clips.shape[-1]
    side = round(share * H)
    room = H - side
    corners = [(0, 0), (0, room), (room, 0), (room, room), (room // 2, room // 2)]
    fast = H / side if clips.shape[1] == 2 else 1.0  # a crop that is enlarged moves faster
    whole = torch.stack([uncut(clips[..., y : y + side, x : x + side], size or H) for y, x in corners])
    mirrored = whole.flip(-1)
    if clips.shape[1] == 2:
        mirrored = mirrored * torch.tensor([-1.0, 1]).view(2, 1, 1, 1).to(mirrored.device)
    return torch.cat([whole, mirrored]) * fast


def uncut(clips: Tensor, size: int) -> Tensor:
    """Whole clips (N, C, T, H, H) uint8 as an encoder takes them, resized to `size`: (N, C, T, S, S)
    float32."""
    still = replace(FLIP, size=size, flip=0)
    return clip_views(clips[None], [still], torch.zeros(len(clips), 1, COLUMNS))[0]


class ClipViews:
    """Random views of clips, each of `frames` frames that begin anywhere in its video (`clip_views`).

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
        parts = [labels.numpy().tobytes() for labels in self.videos.labels.values()]
        whole = b"".join([repr(dict(self.videos.classes)).encode(), *parts, self.videos.fingerprint()])
        return f"{len(self)} videos with checksum {sha256(whole).hexdigest()[:12]}"

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
        for clips in streamed(cut, asked(), 0 if isinstance(self.videos.videos, Tensor) else workers, device):
            yield [clip_views(clips, self.views, waiting.popleft())]


def clips_of(videos: VideoSet, frames: int, stride: int, asked: tuple[Tensor, Tensor]) -> Tensor:
    """The clips (V, n, C, T, H, W) uint8 of these videos at these places."""
    return videos.cut(*asked, frames, stride)

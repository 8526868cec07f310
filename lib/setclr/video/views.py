"""Random views of clips: a random start, one crop, flip and colour change for all frames; their source."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

import torch
from torch import Tensor

from setclr.checks import choice
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
    return (replace(VIDEO[choice("name", name, VIDEO)], size=size, flip=flip),) * count


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


def ten_crops(clips: Tensor, size: int | None = None) -> Tensor:
    """Ten crops of clips (N, C, T, H, H) uint8: corners and middle, and these five mirrored.

    Returns (10, N, C, T, S, S) float32. Each crop is a square of 7/8 of the side, resized to `size`
    pixels, or to H.
    """
    H = clips.shape[-1]
    side = round(7 / 8 * H)
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
    ahead by workers. Raises ValueError for other views, and where a video is too short.
    """

    things = "videos"
    dims = 5

    def __init__(self, videos: VideoSet, views: Sequence[View], frames: int = 8, stride: int = 1):
        check_views(views)
        videos.check_clips(frames, stride)
        self.videos, self.views, self.frames, self.stride = videos, tuple(views), frames, stride
        self.labels = videos.first_labels

    def __len__(self) -> int:
        return len(self.videos)

    def digest(self) -> str:
        """How many videos these are, and a checksum of classes, labels, and the first and the last video; of
        files, the names of all with their folders'."""
        videos, checksum = self.videos.videos, sha256(repr(dict(self.videos.classes)).encode())
        for labels in self.videos.labels.values():
            checksum.update(labels.numpy().tobytes())
        if isinstance(videos, Tensor):
            checksum.update(videos[[0, -1]].cpu().numpy().tobytes())
        else:
            names = "\n".join("/".join(path.parts[-2:]) for path in videos.paths)
            checksum.update(names.encode(errors="replace"))
        return f"{len(self)} videos with checksum {checksum.hexdigest()[:12]}"

    def batches(
        self, steps: Iterable[Step], device: torch.device, workers: int, compiled: bool
    ) -> Iterator[list[Group]]:
        waiting = deque[Tensor]()

        def asked() -> Iterator[tuple[Tensor, Tensor]]:
            for step in steps:
                n, generator = len(step.indices), seeded(*step.key)
                places = torch.rand(len(step.batch), len(self.views), generator=generator)
                waiting.append(draw(self.views, n, generator, step.first))
                yield step.indices, places[step.first : step.first + n]

        in_ram = isinstance(self.videos.videos, Tensor)
        for clips in streamed(self._cut, asked(), 0 if in_ram else workers, device):
            yield [clip_views(clips, self.views, waiting.popleft())]

    def _cut(self, asked: tuple[Tensor, Tensor]) -> Tensor:
        """The clips (V, n, C, T, H, W) uint8 of these videos at these places."""
        return self.videos.cut(*asked, self.frames, self.stride)

"""A video as a strip of frames, and two views of it: where they begin, and what all their frames share."""

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from setclr.data.patches import SIDE
from setclr.seeding import seeded
from setclr.video.sets import VideoSet
from setclr.video.views import clip_views, video_views
from setclr.views import draw
from setclr_course.kit.palette import BLUE, GREEN
from setclr_course.panels.clips.made_up import filmed_hills
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

KINDS = ("one view for all frames", "each frame its own")
SHOWN = ("colours", "flow")
DRAWS = 12
GAP = 4  # pixels between two frames of a strip
PITCH = SIDE + GAP


def clip_strips(videos: VideoSet | None = None, flow: VideoSet | None = None, **initial) -> Panel:
    """The frames of a video in a row, with a bracket for each of two clips, and below them the clips' views.

    Args:
        videos: colours; hills that five cameras film, by default.
        flow: the flow of these, as many.

    Raises:
        ValueError: the two are not as many, or have no twelve frames and eleven flows of 32 pixels.
    """
    if videos is None or flow is None:
        videos, flow = filmed_hills()
    if len(videos) != len(flow) or videos.channels != 3 or flow.channels != 2:
        raise ValueError(f"videos and flow must be as many, 3 and 2 channels, got {videos} and {flow}")
    got = [tuple(x.in_ram.shape[2:4]) for x in (videos, flow)]
    if got != [(12, SIDE), (11, SIDE)]:
        raise ValueError(f"videos must have 12 frames and flow 11, of {SIDE} px, got (frames, px) {got}")
    last = 4  # where a clip of eight frames can begin
    controls = {
        "begin 1": slider("first clip begins", 1, 0, last, 1, {0: "first frame", last: "last that there is"}),
        "begin 2": slider("second clip begins", 3, 0, last, 1),
        "frames": options("frames", KINDS),
        "video": slider("video", 0, 0, len(videos) - 1, 1),
        "draw": slider("another draw", 1, 1, DRAWS, 1),
        "shown": options("show", SHOWN),
    }
    size = (9, 4.0)
    return Panel(lambda f, compact: build(f, compact, Seen(videos, flow)), controls, size, initial, 3.4, 3)


class Seen:
    """Strips of frames: the whole video, and its two views."""

    def __init__(self, videos: VideoSet, flow: VideoSet):
        self.sets, self.views = dict(zip(SHOWN, (videos, flow))), video_views("photo", videos.side, flip=0)

    def strips(self, values: dict) -> list[np.ndarray]:
        chosen = self.sets[values["shown"]]
        whole = chosen.in_ram[values["video"]]
        clips = torch.stack([whole[:, begin : begin + 8] for begin in begins(values)])[:, None]
        generator = seeded(16, values["video"], values["draw"])
        draws = draw(self.views, 8, generator)
        if values["frames"] == KINDS[0]:
            seen = clip_views(clips, self.views, draws[:1])[:, 0]
        else:
            frames = clips[:, 0].transpose(1, 2)[:, :, :, None]  # each a clip of one frame
            seen = clip_views(frames, self.views, draws)[:, :, :, 0].transpose(1, 2)
        whole = whole.float() / 255 if chosen.channels == 3 else (whole.float() - 128) / 127
        return [strip(x) for x in (whole, *seen)]


def begins(values: dict) -> list[int]:
    """Where the two clips begin. Flow has a field less than there are frames, so one place less."""
    last = 3 if values["shown"] == "flow" else 4
    return [min(values[f"begin {v}"], last) for v in (1, 2)]


def strip(frames: Tensor) -> np.ndarray:
    """Frames (C, T, H, H) side by side, (H, T (H + GAP), 3) in [0, 1]; flow in colours."""
    x = coloured(frames) if len(frames) == 2 else frames
    side = torch.nn.functional.pad(x, (0, GAP), value=1.0)
    return side.permute(2, 1, 3, 0).reshape(side.shape[2], -1, 3).clamp(0, 1).numpy()


def coloured(flow: Tensor) -> Tensor:
    """Flow (2, T, H, W), in eighths of a frame, as colours (3, T, H, W): the hue says where to, white is
    still. A third of the reach has the full colour."""
    far = flow.square().sum(0).sqrt().clamp(min=1e-6)
    turns = torch.tensor([0.0, 2 * np.pi / 3, 4 * np.pi / 3]).view(3, 1, 1, 1)
    hue = 0.5 + 0.5 * torch.cos(torch.atan2(flow[1], flow[0]) - turns)
    return 1 - (3 * far).clamp(max=1) * (1 - hue)


def build(figure, compact: bool, seen: Seen) -> Drawing:
    axes = list(figure.subplots(2 if compact else 3, 1).flat)
    titles = ["● view 1", "■ view 2"] if compact else [
        "the video: drag a bracket to where its clip begins", "● view 1, eight frames",
        "■ view 2, eight frames",
    ]  # fmt: skip
    images = [draw_strip(axis, title) for axis, title in zip(axes, titles)]
    brackets = Part([], lambda *_: None) if compact else draw_brackets(axes[0])

    def update(values: dict) -> str:
        for image, picture in zip(images, seen.strips(values)[-len(images) :]):
            image.set_data(picture)
            image.set_extent((0, picture.shape[1], picture.shape[0], 0))
        brackets.move(values)
        return sentence(values)

    handles = {}
    if not compact:
        for v in (1, 2):
            handles[f"clip {v}"] = handle(axes[0], v)
    return Drawing([*images, *brackets.artists], update, handles)


def handle(axis: Axes, v: int) -> Handle:
    def at(values: dict) -> tuple[float, float]:
        return (begins(values)[v - 1] + 0.5) * PITCH, height(v)

    def to(x: float, y: float) -> list[float]:
        return [x / PITCH - 0.5]

    return Handle(axis, (f"begin {v}",), at, "x", to, f"clip {v}")


def height(v: int) -> float:
    return {1: -5.0, 2: 37.0}[v]


def draw_strip(axis: Axes, title: str):
    bare(axis)
    axis.set_title(title, fontsize=10, loc="left", pad=9 if "video" in title else 4)
    image = axis.imshow(np.ones((SIDE, 12 * PITCH, 3)), interpolation="nearest")
    axis.set(xlim=(-2, 12 * PITCH), ylim=(40, -8))
    return image


def draw_brackets(axis: Axes) -> Part:
    lines = [
        axis.plot([], [], color=colour, linewidth=4, solid_capstyle="butt")[0] for colour in (BLUE, GREEN)
    ]
    dots = [
        axis.plot([], [], mark, color=colour, markersize=9)[0] for mark, colour in (("o", BLUE), ("s", GREEN))
    ]

    def move(values: dict) -> None:
        for v, (one, dot) in enumerate(zip(lines, dots), 1):
            begin = begins(values)[v - 1]
            one.set_data([begin * PITCH, (begin + 8) * PITCH - GAP], [height(v)] * 2)
            dot.set_data([(begin + 0.5) * PITCH], [height(v)])

    return Part([*lines, *dots], move)


def sentence(values: dict) -> str:
    first, second = begins(values)
    shared = max(0, 8 - abs(first - second))
    told = {
        (KINDS[0], "colours"): "Each clip has one crop and one colouring for all its frames, so that what "
        "moves in it is the camera.",
        (KINDS[1], "colours"): "Each frame has a crop and a colouring of its own: they jump, and the motion "
        "is lost among them.",
        (KINDS[0], "flow"): "Each clip has one crop for all its fields, enlarged, so faster by one factor.",
        (KINDS[1], "flow"): "Each field has a crop and a factor of its own: the same motion seems to change.",
    }
    how = told[values["frames"], values["shown"]]
    return (
        f"Video {values['video']}, draw {values['draw']}, as {values['shown']}: the clips begin at frames "
        f"{first + 1} and {second + 1} and share {shared} of their 8 frames. {how}"
    )

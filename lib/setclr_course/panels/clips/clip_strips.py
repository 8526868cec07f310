"""A video as a strip of frames, and two views of it: where they begin, and what all their frames share."""

from typing import Any

import numpy as np
from torch import cat

from setclr import views
from setclr.seeding import seeded
from setclr.video import VideoSet, clip_views, load_videos, video_views
from setclr_course.kit.palette import BLUE, GREEN, INK, WHITE
from setclr_course.kit.panel import Page, Panel, Piece, Plot, options, slider
from setclr_course.kit.tiles import coloured

KINDS = {
    "one view for all frames": "All frames of a clip have one view, so what moves in it is the camera.",
    "each frame its own": "Each frame has a view of its own: they jump, and the motion is lost among them.",
}
SIDE, FRAMES = 32, 8  # a clip has so many frames of so many pixels
HALF = 6  # frames in each plot
BRACKETS, ROWS = (-0.22, 1.22), (1.85, 3.3)  # y of the brackets and of the views; the video is at 0


class clip_strips(Panel):
    """The frames of a video in a row, with a bracket for each of two clips, and below them the clips' views.

    Args:
        videos: colours, of twelve frames of 32 pixels; by default those of moving-patches.
        flow: the flow of these, of eleven fields.
    """

    size, mosaic, row_height = (9, 3.9), "early late", 2
    in_sight = 3

    def __init__(self, videos: VideoSet | None = None, flow: VideoSet | None = None, **initial: Any):
        if videos is None or flow is None:
            videos, flow = (load_videos("moving-patches", "test", kind) for kind in ("rgb", "camera flow"))
        self.whole = {"colours": videos.tensor, "flow": flow.tensor}
        self.knobs = {
            "begin 1": slider("frames before clip 1", 1, 0, 4, 1, {0: "none", 4: "the most"}),
            "begin 2": slider("frames before clip 2", 3, 0, 4, 1),
            "frames": options("frames", KINDS),
            "video": slider("video", 0, 0, len(videos) - 1, 1),
            "draw": slider("another draw", 1, 1, 12, 1),
            "shown": options("show", self.whole),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> list[np.ndarray]:
        """The strips of the video and of both views, by the library's views of clips."""
        photo, whole = video_views("photo", SIDE, flip=0), self.whole[values["shown"]][values["video"]]
        frames = cat([whole[:, begin : begin + FRAMES] for begin in self.begins(values)], 1).transpose(0, 1)
        draws = views.draw(photo, FRAMES, seeded(16, values["video"], values["draw"]))
        if values["frames"] == "one view for all frames":
            draws = draws[:1].expand_as(draws)
        draws = draws.transpose(0, 1).flatten(0, 1)[:, None]  # of all frames, each a clip of its own
        seen = clip_views(frames[None, :, :, None], photo[:1], draws)[0, :, :, 0].unflatten(0, (2, FRAMES))
        whole = whole.float() / 255 if values["shown"] == "colours" else (whole.float() - 128) / 127
        return [strip(x.numpy()) for x in (whole, *seen.transpose(1, 2))]

    def draw(self, page: Page, values: dict, now: list[np.ndarray]) -> None:
        begins, count = self.begins(values), self.whole[values["shown"]].shape[2]
        titles = f"{FRAMES - np.ptp(begins)} frames are in both clips", f"frames {HALF + 1} to {count}"
        x, y = np.array([0, HALF]), (ROWS[1] + 1.1, BRACKETS[0] - 0.2)
        names = zip(("early", "late"), titles)
        plots = [page.plane(name, x + HALF * k, y, title) for k, (name, title) in enumerate(names)]
        frames, seen = draw_strip(plots, now[0], 0, 0), []
        looks = zip(begins, BRACKETS, (BLUE, GREEN), "●■", ROWS, now[1:])
        for v, (begin, y, colour, sign, row, view) in enumerate(looks, 1):
            for plot in plots:
                plot.line([begin, begin + FRAMES], y, colour, 5)
            grip = plots[0].dots((begin, y), INK, sign, 12)
            grip.handle(f"clip {v}", (begin, y), f"begin {v}", along="x")
            plots[0].text(begin, row - 0.08, f"{sign} view {v}", rise="bottom", anchor="start")
            seen.append(draw_strip(plots, view, begin, row))
        for k in range(count):
            same = [view[k - begin] for view, begin in zip(seen, begins) if 0 <= k - begin < FRAMES]
            page.link(f"frame {k + 1}, seen {('never', 'once', 'twice')[len(same)]}", frames[k], *same)

    def say(self, values: dict, now: list[np.ndarray]) -> str:
        first, second = self.begins(values)
        return (
            f"Video {values['video']}, draw {values['draw']}, as {values['shown']}: the clips begin at "
            f"frames {first + 1} and {second + 1} and share {FRAMES - abs(first - second)} of their {FRAMES} "
            f"frames. {KINDS[values['frames']]}"
        )

    def begins(self, values: dict) -> list[int]:
        """Where the two clips begin. Flow has a field less than there are frames, so one place less."""
        last = self.whole[values["shown"]].shape[2] - FRAMES
        return [min(values[name], last) for name in ("begin 1", "begin 2")]


def draw_strip(plots: list[Plot], pixels: np.ndarray, begin: int, y: float) -> list[Piece]:
    """Frames side by side from `begin` on, HALF of them in each plot; the boxes round them."""
    frames: list[Piece] = []
    for k, plot in enumerate(plots):
        end = begin + pixels.shape[1] // SIDE
        plot.picture(pixels, (begin, y), (end, y + 1))
        places = np.arange(max(begin, HALF * k), min(end, HALF * (k + 1)))
        corners = np.column_stack([places, np.full(len(places), y)])
        boxes = plot.boxes(corners, corners + 1, edge=WHITE, width=4)
        frames += [boxes[place] for place in range(len(places))]
    return frames


def strip(frames: np.ndarray) -> np.ndarray:
    """Frames (C, T, H, H) side by side, (H, T H, 3) uint8; flow in colours."""
    x = (255 * (coloured(frames) if len(frames) == 2 else frames).clip(0, 1)).round().astype(np.uint8)
    return x.transpose(2, 1, 3, 0).reshape(x.shape[2], -1, 3)

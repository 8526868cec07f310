"""A camera over a photograph, what it films, and the flow: true by the camera, found by TV-L1 (MMCL, table
5)."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from setclr.video.flow import tv_l1
from setclr.video.moving import MOTIONS, PANS, TURNS, ZOOMS, Camera, camera_flow, drive, film, looked_at
from setclr_course.kit.palette import BLUE, GREEN, VERMILION
from setclr_course.panels.clips.made_up import hills
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

FRAMES, SIDE, WIDTH = 12, 32, 64  # of a clip; pixels of a frame; pixels of the photograph that it shows
EVERY = 4  # pixels from arrow to arrow
FASTEST = 2.0  # pixels at the edge of a frame
CORNERS = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])


def moving_camera(picture: np.ndarray | None = None, **initial) -> Panel:
    """A square over a picture that moves, the frame that it sees, and where each pixel goes to in the next.

    Args:
        picture: (H, W) grey values, 0 to 255; made-up hills by default.

    Raises:
        ValueError: the picture is not as above, or smaller than 128 pixels.
    """
    picture = hills() if picture is None else np.asarray(picture, dtype=np.float32)
    if picture.ndim != 2 or min(picture.shape) < 2 * WIDTH:
        got = picture.shape
        raise ValueError(f"picture must be (H, W) with at least {2 * WIDTH} pixels a side, got {got}")
    high, wide = picture.shape
    controls = {
        "motion": options("camera", MOTIONS, "pan right"),
        "frame": slider("frame", 4, 1, FRAMES - 1, 1, {1: "first", FRAMES - 1: "last but one"}),
        "speed": slider("speed", 1.2, 0.2, FASTEST, 0.1, {0.2: "slow", FASTEST: "two pixels a frame"}),
        "right": slider("middle, to the right", round(0.5 * wide), WIDTH, wide - WIDTH, 1),
        "down": slider("middle, downwards", round(0.5 * high), WIDTH, high - WIDTH, 1),
    }
    seen = Seen(picture)
    return Panel(
        lambda figure, compact: build(figure, compact, seen),
        controls,
        (9, 3.7),
        initial,
        3.2,
        2,
        play="frame",
    )


def speed_of(motion: str, speed: float) -> float:
    """What `drive` calls the speed of a motion that moves the edge of a frame by so many pixels."""
    if motion in ZOOMS:
        return 1 + speed / (SIDE / 2)
    return speed / (SIDE / 2) if motion in TURNS else speed


class Seen:
    """What the camera sees, and both flows."""

    def __init__(self, picture: np.ndarray):
        self.picture = picture
        self.found = lru_cache(64)(self.filmed)

    def camera(self, values: dict) -> Camera:
        made = drive(values["motion"], speed_of(values["motion"], values["speed"]), WIDTH, FRAMES)
        return made._replace(centre=made.centre + (values["down"], values["right"]))

    def at(self, values: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The frame (32, 32), the true flow and TV-L1's, both (2, 32, 32)."""
        names = ("motion", "speed", "right", "down", "frame")
        return self.found(*(values[name] for name in names))

    def filmed(self, motion: str, speed: float, right: int, down: int, frame: int) -> tuple:
        camera = self.camera(dict(motion=motion, speed=speed, right=right, down=down))
        two = Camera(*(part[frame - 1 : frame + 1] for part in camera))
        frames = film(self.picture, two, SIDE).clip(0, 255).round().astype(np.uint8)
        tv = tv_l1(torch.from_numpy(frames).transpose(0, 1))[:, 0].numpy()
        return frames[0, 0], camera_flow(two, SIDE)[0], tv


def build(figure, compact: bool, seen: Seen) -> Drawing:
    axes = list(figure.subplots(1, 1 if compact else 3, squeeze=False).flat)
    right = axes[-1]
    square = Part([], lambda *_: None) if compact else draw_square(axes[0], seen.picture)
    frame = Part([], lambda *_: None) if compact else draw_frame(axes[1])
    arrows = draw_arrows(right, compact)

    def update(values: dict) -> str:
        picture, true, found = seen.at(values)
        square.move(seen.camera(values), values["frame"])
        frame.move(picture)
        arrows.move(picture, true, found)
        return sentence(values, true, found)

    handles = {}
    if not compact:
        middle = lambda values: (values["right"], values["down"])  # noqa: E731
        handles["camera"] = Handle(axes[0], ("right", "down"), middle, label="the camera")
    return Drawing([*square.artists, *frame.artists, *arrows.artists], update, handles)


def draw_square(axis: Axes, picture: np.ndarray) -> Part:
    bare(axis)
    axis.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axis.set(xlim=(-0.5, picture.shape[1] - 0.5), ylim=(picture.shape[0] - 0.5, -0.5))
    axis.set_title("drag the green dot: the camera", fontsize=10)
    now = axis.plot([], [], color=GREEN, linewidth=2.5)[0]
    last = axis.plot([], [], color=GREEN, linewidth=1, linestyle=":")[0]
    middle = axis.plot([], [], "o", color=GREEN, markersize=9)[0]

    def move(camera: Camera, frame: int) -> None:
        places = looked_at(camera, CORNERS)
        now.set_data(*places[frame - 1].T[::-1])
        last.set_data(*places[-1].T[::-1])
        middle.set_data(*camera.centre.mean(0)[::-1, None])

    return Part([last, now, middle], move)


def draw_frame(axis: Axes) -> Part:
    bare(axis)
    axis.set_title("what it sees now", fontsize=10)
    image = axis.imshow(np.zeros((SIDE, SIDE)), cmap="gray", vmin=0, vmax=255)
    return Part([image], image.set_data)


def draw_arrows(axis: Axes, compact: bool) -> Part:
    bare(axis)
    axis.set_title("flow" if compact else "flow, drawn twice as long", fontsize=10)
    image = axis.imshow(np.zeros((SIDE, SIDE)), cmap="gray", vmin=-400, vmax=255)
    at = np.arange(EVERY // 2, SIDE, EVERY)
    x, y = np.meshgrid(at, at)
    style: dict[str, Any] = dict(angles="xy", scale_units="xy", scale=0.5, width=0.011)
    true = axis.quiver(x, y, 0 * x, 0 * x, color=BLUE, zorder=3, **style)
    found = axis.quiver(x, y, 0 * x, 0 * x, color=VERMILION, zorder=4, **(style | {"width": 0.006}))
    axis.set(xlim=(-0.5, SIDE - 0.5), ylim=(SIDE - 0.5, -0.5))
    if not compact:
        axis.set_xlabel("thick blue: by the camera   thin red: by TV-L1", fontsize=9)

    def move(picture: np.ndarray, by_camera: np.ndarray, by_tv: np.ndarray) -> None:
        image.set_data(picture)
        for arrows, flow in ((true, by_camera), (found, by_tv)):
            arrows.set_UVC(*flow[:, y, x])

    return Part([image, true, found], move)


def sentence(values: dict, true: np.ndarray, found: np.ndarray) -> str:
    inside = slice(6, -6)
    far, off = np.hypot(*true)[inside, inside], np.hypot(*(found - true))[inside, inside]
    motion = values["motion"]
    way = {"pan left": "to the right", "pan right": "to the left", "pan up": "down", "pan down": "up"}
    if motion in PANS:
        told = f"{way[motion]}, all by {far.mean():.1f} pixels"
    else:
        told = {"zoom in": "outwards", "zoom out": "inwards", "turn left": "round to the right",
                "turn right": "round to the left", "still": "nowhere"}[motion]  # fmt: skip
    return (
        f"Frame {values['frame']}, camera {motion} over column {values['right']}, row {values['down']}: the "
        f"picture goes {told}. TV-L1, which sees two frames and no camera, is off by {np.median(off):.2f} "
        "pixels, away from the border and by the median."
    )

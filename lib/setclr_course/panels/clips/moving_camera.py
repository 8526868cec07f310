"""A camera over a photograph, what it films, and the flow: true by the camera, found by TV-L1 (MMCL, table
5)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from setclr.data.patches import photograph
from setclr_course.kit.inner import tv_l1
from setclr_course.kit.palette import BLUE, GREEN, VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.papers.moving import Camera, camera_flow, drive, film, looked_at

FRAMES, SIDE, WIDTH = 12, 32, 64  # of a clip; pixels of a frame; pixels of the photograph that it shows
SEEN_AS = {"still": "nowhere", "pan left": "to the right", "pan right": "to the left", "pan up": "down",
           "pan down": "up", "zoom in": "outwards", "zoom out": "inwards", "turn left": "round to the right",
           "turn right": "round to the left"}  # fmt: skip  # by the camera's motion: where the picture goes
CORNERS = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])
ARROWS = np.array([(x, y) for y in range(2, SIDE, 4) for x in range(2, SIDE, 4)])


class Filmed(NamedTuple):
    squares: np.ndarray  # (FRAMES, 5, 2): the corners of what the camera sees, row and column
    frame: np.ndarray  # (SIDE, SIDE) uint8
    true: np.ndarray  # (2, SIDE, SIDE): how far each pixel goes to the next frame, to the right and down
    found: np.ndarray  # by TV-L1


class moving_camera(Panel):
    """A square over a picture that moves, the frame that it sees, and where each pixel goes to in the next.

    Args:
        picture: (H, W) grey values, 0 to 255; by default a photograph.

    Raises:
        ValueError: the picture is not as above, or smaller than 128 pixels.
    """

    size, row_height = (9, 3.7), 3.2
    mosaic, row_mosaic = "picture sees flow", "flow"
    in_sight, play = 2, "frame"
    least = 0.38

    def __init__(self, picture: ArrayLike | None = None, **initial: Any):
        self.picture = np.asarray(photograph("camera") if picture is None else picture, np.float32)
        if self.picture.ndim != 2 or min(self.picture.shape) < 2 * WIDTH:
            got = self.picture.shape
            raise ValueError(f"picture must be (H, W) with at least {2 * WIDTH} pixels a side, got {got}")
        high, wide = self.picture.shape
        whole = Image.fromarray(self.picture.clip(0, 255).astype(np.uint8))
        self.shown = np.asarray(whole.convert("RGB").resize((288, 288)))
        self.knobs = {
            "motion": options("camera", SEEN_AS, "pan right"),
            "frame": slider("frame", 4, 1, FRAMES - 1, 1, {1: "first", FRAMES - 1: "last but one"}),
            "speed": slider("speed", 1.2, 0.2, 2.0, 0.1, {0.2: "slow", 2.0: "two pixels a frame"}),
            "right": slider("middle, to the right", wide // 2, WIDTH, wide - WIDTH, 1),
            "down": slider("middle, downwards", high // 2, WIDTH, high - WIDTH, 1),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Filmed:
        motion, frame, share = values["motion"], values["frame"], values["speed"] / (SIDE / 2)
        speed = {"zoom": 1 + share, "turn": share}.get(motion.split()[0], values["speed"])
        camera = drive(motion, speed, WIDTH, FRAMES)
        camera = camera._replace(centre=camera.centre + (values["down"], values["right"]))
        two = Camera(*(part[frame - 1 : frame + 1] for part in camera))
        seen = film(self.picture, two, SIDE).clip(0, 255).round().astype(np.uint8)
        found = tv_l1(*seen[:, 0].astype(np.float32) / 255)
        return Filmed(looked_at(camera, CORNERS), seen[0, 0], camera_flow(two, SIDE)[0], found)

    def draw(self, page: Page, values: dict, now: Filmed) -> None:
        (high, wide), frame = self.picture.shape, np.stack([now.frame] * 3, axis=-1)
        title, below = "green: what the camera sees", "dotted: in the last frame"
        picture = page.plane("picture", (0, wide), (high, 0), title, xlabel=below)
        picture.picture(self.shown, (0, 0), (wide, high), smooth=True)
        for square, width, dash in ((now.squares[-1], 1.5, "dot"), (now.squares[values["frame"] - 1], 3, "")):
            picture.line(square[:, 1], square[:, 0], GREEN, width, dash)
        middle = values["right"], values["down"]
        picture.dots(middle, GREEN, "●", 13).handle("camera", middle, "right", "down", label="the camera")
        below = f"{SIDE} × {SIDE} pixels"
        sees = page.plane("sees", (0, SIDE), (SIDE, 0), "the same, enlarged", xlabel=below)
        sees.picture(frame, (0, 0), (SIDE, SIDE))
        title, below = "flow, drawn twice as long", "thick: by the camera, thin: by TV-L1"
        flow = page.plane("flow", (0, SIDE), (SIDE, 0), title, xlabel=below)
        flow.picture(frame, (0, 0), (SIDE, SIDE))
        flow.boxes([(0, 0)], [(SIDE, SIDE)], WHITE, opacity=0.6)
        x, y = ARROWS.T
        for field, colour, width in ((now.true, BLUE, 3), (now.found, VERMILION, 1.5)):
            tips = ARROWS + 0.5 + 2 * field[:, y, x].T
            flow.arrows(ARROWS + 0.5, tips.clip(0, SIDE), colour, width)

    def say(self, values: dict, now: Filmed) -> str:
        inside = slice(6, -6)
        far, off = (np.hypot(*field)[inside, inside] for field in (now.true, now.found - now.true))
        by = f", by {np.median(far):.1f} pixels" * bool(far.any())
        return (
            f"Frame {values['frame']}, camera {values['motion']} over column {values['right']}, row "
            f"{values['down']}: the picture goes {SEEN_AS[values['motion']]}{by}. TV-L1, which sees two "
            f"frames and no camera, is off by {np.median(off):.2f} (medians, away from the border)."
        )

"""The video set moving-patches: a virtual camera films the photographs of photo-patches; with true flow."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator, default_rng
from scipy.ndimage import map_coordinates
from torch import Tensor

from setclr.checks import choice
from setclr.data import patches
from setclr.data.patches import PHOTOGRAPHS, SIDE
from setclr.recipes.video import MODALITIES
from setclr.video.flow import computed_once, to_bytes, tv_l1
from setclr.video.sets import VideoSet

MOVING = "moving-patches"
FRAMES = 12
PER_PAIR = {"train": 8, "test": 2}  # clips of each photograph under each motion
WINDOW = (20, 48)  # side of the middle frame, in pixels of the photograph
PAN, ZOOM, TURN = (0.5, 2.0), (1.015, 1.06), (1.5, 6.0)  # pixels, factor, degrees from frame to frame
PANS = {"pan left": (0, -1), "pan right": (0, 1), "pan up": (-1, 0), "pan down": (1, 0)}
ZOOMS = {"zoom in": -1, "zoom out": 1}
TURNS = {"turn left": -1, "turn right": 1}
MOTIONS = ("still", *PANS, *ZOOMS, *TURNS)


class Camera(NamedTuple):
    """The path of a virtual camera over F frames, in pixels of the picture that it films."""

    centre: np.ndarray  # (F, 2) row and column of the middle of the frame
    side: np.ndarray  # (F,) side of the square that the frame shows
    angle: np.ndarray  # (F,) radians by which the square is turned clockwise


def drive(motion: str, speed: float, side: float, frames: int = FRAMES) -> Camera:
    """A camera that moves evenly and is at the origin in the middle frame. `speed` is the change from
    each frame to the next: pixels of the frame in a pan, a factor in a zoom, radians in a turn."""
    t = np.arange(frames) - (frames - 1) / 2
    centre = np.outer(t * speed * side / SIDE, PANS.get(motion, (0, 0)))
    sides = side * speed ** (t * ZOOMS[motion]) if motion in ZOOMS else np.full(frames, float(side))
    angle = t * speed * TURNS[motion] if motion in TURNS else np.zeros(frames)
    return Camera(centre, sides, angle)


def turns(angle: np.ndarray) -> np.ndarray:
    """The matrices (F, 2, 2) that turn offsets (row, column) clockwise by these angles."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([cos, sin, -sin, cos], 1).reshape(-1, 2, 2)


def looked_at(camera: Camera, offsets: np.ndarray) -> np.ndarray:
    """The places in the picture that lie at `offsets` from the middle of each frame: (F, n, 2) rows and
    columns. The offsets (n, 2) are in widths of the frame."""
    turned = offsets @ turns(camera.angle).transpose(0, 2, 1)
    return camera.centre[:, None] + camera.side[:, None, None] * turned


def film(picture: np.ndarray, camera: Camera, side: int = SIDE) -> np.ndarray:
    """The frames (F, 1, side, side) that the camera sees of a grey picture (H, W) of floats. A pixel is
    the mean of four samples, each interpolated between the picture's pixels."""
    places = looked_at(camera, grid(2 * side)) - 0.5  # pixel (0, 0) is at its middle, not at its corner
    seen = map_coordinates(picture, places.reshape(-1, 2).T, order=1, mode="nearest")
    return seen.reshape(-1, 1, side, 2, side, 2).mean((3, 5))


def camera_flow(camera: Camera, side: int = SIDE) -> np.ndarray:
    """The true flow (F − 1, 2, side, side): how far each pixel moves to the next frame, in pixels to the
    right and down. It depends on the camera alone, whatever the picture shows."""
    here = grid(side)
    points = looked_at(camera, here)[:-1] - camera.centre[1:, None]
    there = points @ turns(camera.angle[1:]) / camera.side[1:, None, None]
    return (side * (there - here))[..., [1, 0]].transpose(0, 2, 1).reshape(-1, 2, side, side)


def grid(side: int) -> np.ndarray:
    """The middles of side × side pixels of a frame of width 1 centred at 0: (side², 2) row and column."""
    axis = (np.arange(side) + 0.5) / side - 0.5
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def draw_camera(grey: np.ndarray, blocks: np.ndarray, motion: str, rng: Generator) -> Camera:
    """A random camera that stays inside one of these blocks (n, 2) of a photograph. A camera that would
    leave its block, or whose middle frame is flat, is drawn again. Raises RuntimeError after TRIES draws."""
    edges = [np.arange(patches.BLOCKS + 1) * length // patches.BLOCKS for length in grey.shape]
    corners = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])
    for _ in range(patches.TRIES):
        (top, bottom), (left, right) = (edge[i : i + 2] for edge, i in zip(edges, rng.choice(blocks)))
        low, high = PAN if motion in PANS else ZOOM if motion in ZOOMS else np.radians(TURN)
        camera = drive(motion, rng.uniform(low, high), rng.uniform(*WINDOW))
        reach = looked_at(camera, corners).reshape(-1, 2)
        first, last = (top, left) - reach.min(0), (bottom, right) - reach.max(0)
        place = rng.uniform(size=2)
        if (first > last).any():
            continue
        camera = camera._replace(centre=camera.centre + first + place * (last - first))
        middle = Camera(*(x[len(x) // 2 :][:1] for x in camera))
        if film(grey, middle).std() >= patches.FLAT:
            return camera
    raise RuntimeError(f"none of {patches.TRIES} cameras shows anything; is it scikit-image's photograph?")


class Filmed(NamedTuple):
    """The clips of `moving_patches`, sorted by photograph and motion, with their flow and labels."""

    clips: np.ndarray  # (N, 3, F, 32, 32) uint8
    flow: np.ndarray  # (N, 2, F − 1, 32, 32) float32, pixels to the right and down
    photographs: np.ndarray  # (N,) indices into PHOTOGRAPHS
    motions: np.ndarray  # (N,) indices into MOTIONS


@cache
def moving_patches(split: str) -> Filmed:
    """Clips of the 18 photographs under the 9 motions, each at its own place, size and speed.

    Training clips do not show the blocks of a photograph that are for test. All frames of a clip have one
    colour cast, contrast and brightness, drawn for that clip, so that none of these identifies a
    photograph. The result is the same on every call and machine, up to libjpeg's rounding. Takes 3 s for
    test and 12 s for training.
    """
    clips, flow = [], []
    for i, name in enumerate(PHOTOGRAPHS):
        rng = default_rng([7, i, patches.SPLITS.index(split)])
        grey = patches.photograph(name).astype(np.float32)
        blocks = np.argwhere(patches.blocks_for_test(name) == (split == "test"))
        for motion in np.repeat(MOTIONS, PER_PAIR[split]).tolist():
            camera = draw_camera(grey, blocks, motion, rng)
            clips.append(patches.altered(film(grey, camera), rng, offset=40).transpose(1, 0, 2, 3))
            flow.append(camera_flow(camera).transpose(1, 0, 2, 3).astype(np.float32))
    pairs = np.indices((len(PHOTOGRAPHS), len(MOTIONS))).reshape(2, -1).repeat(PER_PAIR[split], axis=1)
    return Filmed(np.stack(clips), np.stack(flow), *pairs)


def video_set(split: str, modality: str, root: str | Path) -> VideoSet:
    """The set moving-patches, labelled by photograph and by motion, in colours, "rgb", or as flow: "flow" by
    TV-L1, computed once and kept under `root`/flow, "camera flow" the true one. Raises ValueError for another
    modality."""
    choice("modality", modality, MODALITIES)
    clips, true_flow, photographs, motions = map(torch.from_numpy, moving_patches(split))
    if modality != "rgb":
        clips = flow_of_clips(clips, Path(root) / "flow") if modality == "flow" else to_bytes(true_flow)
    classes = {"photograph": tuple(PHOTOGRAPHS), "motion": MOTIONS}
    return VideoSet(clips, {"photograph": photographs, "motion": motions}, classes)


def flow_of_clips(clips: Tensor, cache: Path) -> Tensor:
    """The flow of clips (N, 3, F, H, W) uint8 as bytes (N, 2, F − 1, H, W), by `tv_l1`.

    It is computed once and kept in a file of the folder `cache`, named by a hash of the clips. Cost: that
    of `tv_l1` for each clip.
    """
    key = clips.numpy().tobytes() + repr(clips.shape).encode()
    return computed_once(cache, key, lambda: torch.stack([to_bytes(tv_l1(clip)) for clip in clips]))

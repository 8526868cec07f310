"""`VideoRecipe`, the settings of a training run on videos."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from setclr.checks import integer, number
from setclr.recipes.recipe import Bounds, Recipe

MOVING = "moving-patches"
MODALITIES = ("rgb", "flow", "camera flow")
VIDEO_ENCODER_NAMES, VIDEO_VIEW_NAMES = ("conv4-clips", "s3d"), ("coclr", "photo")


@dataclass(frozen=True)
class VideoRecipe(Recipe):
    """Settings of a pretraining run on videos. Raises ValueError, naming the field, if a value is
    invalid."""

    kind: ClassVar[str] = "video"
    things: ClassVar[str] = "videos"
    shown: ClassVar[tuple[str, ...]] = ("linear", "motion linear")
    CHOICES: ClassVar[dict[str, Collection[str]]] = Recipe.CHOICES | {
        "modality": MODALITIES, "encoder": VIDEO_ENCODER_NAMES, "views": VIDEO_VIEW_NAMES,
    }  # fmt: skip
    BOUNDS: ClassVar[Bounds] = Recipe.BOUNDS | {
        "frames": (1, 2**16), "stride": (1, 2**16), "size": (8, 4096), "hidden": (1, 2**16),
        "embedding": (1, 2**16),
    }  # fmt: skip

    data: str = MOVING
    """moving-patches or folder:PATH (`video.load_videos`)."""
    modality: str = "rgb"
    """"rgb", "flow" by TV-L1, or "camera flow", the true one of moving-patches."""
    encoder: str = "conv4-clips"
    frames: int = 8
    """T, the number of frames of a clip."""
    stride: int = 1
    """A clip has every stride-th frame of a video."""
    size: int = 32
    """Side in pixels to which files are decoded, and side of the views."""
    views: str = "photo"
    """One of VIDEO_VIEW_NAMES."""
    flip: float = 0.0
    """Probability that a clip is mirrored; above 0 the encoder learns to ignore left and right."""
    hidden: int = 64
    embedding: int = 64
    """Widths of the head's two linear layers."""
    schedule: str = "constant"
    epochs: int = 10
    precision: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        number("flip", self.flip, least=0, most=1, hint="it is a probability")
        if self.encoder == "s3d":
            integer("frames", self.frames, least=8, hint="with fewer torch gets s3d's gradients wrong")
            integer("size", self.size, least=32, hint="s3d halves it five times")

    @property
    def embeddings(self) -> int:
        return self.embedding

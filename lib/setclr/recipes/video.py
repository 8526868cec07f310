"""`VideoRecipe`, the settings of a training run on videos."""

from dataclasses import dataclass

from setclr.checks import integer
from setclr.recipes.recipe import PRECISIONS, SCHEDULES, Recipe
from setclr.settings import one_of, real, text, whole

MODALITIES = ("rgb", "flow", "camera flow")


@dataclass(frozen=True)
class VideoRecipe(Recipe):
    """Settings of a pretraining run on videos. Raises ValueError, naming the field, if a value is
    invalid."""

    kind, things, shown = "video", "videos", ("linear", "motion linear")

    data: str = text("moving-patches")
    """folder:PATH, or a set that a package registers, as the course does (`video.load_videos`)."""
    modality: str = one_of("rgb", MODALITIES)
    """"rgb", "flow" by TV-L1, or "camera flow", the true one where the camera is known."""
    encoder: str = one_of("conv4-clips", ("conv4-clips", "s3d"))
    frames: int = whole(8, 1, 2**16)
    """T, the number of frames of a clip."""
    stride: int = whole(1, 1, 2**16)
    """A clip has every stride-th frame of a video."""
    size: int = whole(32, 8, 4096)
    """Side in pixels to which files are decoded, and side of the views."""
    views: str = one_of("photo", ("coclr", "photo"))
    """A key of `video.VIDEO`."""
    flip: float = real(0.0, "it is a probability", least=0, most=1)
    """Probability that a clip is mirrored; above 0 the encoder learns to ignore left and right."""
    hidden: int = whole(64, 1, 2**16)
    embedding: int = whole(64, 1, 2**16)
    """Widths of the head's two linear layers."""
    schedule: str = one_of("constant", SCHEDULES)
    epochs: int = whole(10, 0, 10**6)
    precision: str = one_of("float32", PRECISIONS)

    @property
    def side(self) -> int:
        """The side of the views in pixels."""
        return self.size

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encoder == "s3d":
            integer("frames", self.frames, least=8, hint="with fewer torch gets s3d's gradients wrong")
            integer("size", self.size, least=32, hint="s3d halves it five times")

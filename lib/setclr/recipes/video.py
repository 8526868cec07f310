"""`VideoRecipe`, the settings of a training run on videos, and the project's own recipes for videos."""

from dataclasses import dataclass
from typing import Any

from setclr.checks import boolean, choice, integer, number
from setclr.recipes.contrasting import Contrasting

MOVING = "moving-patches"
MODALITIES = ("rgb", "flow", "camera flow")
VIDEO_ENCODER_NAMES, VIDEO_VIEW_NAMES = ("conv4-clips", "s3d"), ("coclr", "photo")


@dataclass(frozen=True)
class VideoRecipe(Contrasting):
    """Settings of a pretraining run on videos. Raises ValueError, naming the field, if a value is
    invalid."""

    data: str = MOVING
    """A name that setclr.video.load_videos knows."""
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
    last_norm: bool = False
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    queue: int = 0
    """Number of keys of earlier batches used as further negatives (MoCo); a momentum encoder makes the
    keys."""
    momentum: float = 0.999
    """Momentum of the momentum encoder, where there is a queue."""
    lr: float = 1e-3
    weight_decay: float = 0.0
    """Learning rate and weight decay of Adam."""
    epochs: int = 10
    batch: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("modality", self.modality, MODALITIES)
        choice("encoder", self.encoder, VIDEO_ENCODER_NAMES)
        choice("views", self.views, VIDEO_VIEW_NAMES)
        counts = dict(frames=1, stride=1, size=8, hidden=1, embedding=1, queue=0, epochs=0, batch=2, seed=0)
        for name, least in counts.items():
            integer(name, getattr(self, name), least=least)
        for name in ("flip", "momentum"):
            number(name, getattr(self, name), least=0, most=1)
        boolean("last_norm", self.last_norm)
        number("lr", self.lr, above=0)
        number("weight_decay", self.weight_decay, least=0)
        if self.queue and not {"keys", "memory"} <= self.parsed_loss.takes:
            raise ValueError(f"queue must be 0 for {self.loss}, which takes no queue, got {self.queue}")
        if self.encoder == "s3d":
            integer("frames", self.frames, least=5, hint="s3d halves them four times")
            integer("size", self.size, least=32, hint="s3d halves it five times")


# The losses of the four papers on moving-patches, with equal settings otherwise and none of them tuned.
LOSSES = {
    "infonce": "InfoNCE(temperature=0.2)",
    "infonce+qare": "InfoNCE(temperature=0.2) + 1.0 * QARe()",
    "sparseclr": "SparseCLR()",
    "groco": "GroCo(beta=1.0, negatives=10)",
    "iot": "IOT(constraint='rows', uniformity=0.5)",
    "mmcl": "MMCL(solver='inv')",
}


def own_recipes() -> dict[str, dict[str, Any]]:
    """The fields of the project's own recipes, by name: colours with every loss, flow with two, the
    camera's flow with one, and the untrained encoder of each."""
    infonce = LOSSES["infonce"]
    made = {f"rgb-{name}": dict(loss=loss, last_norm=name == "groco") for name, loss in LOSSES.items()}
    made["rgb-moco"] = dict(loss=infonce, queue=512, momentum=0.99)
    made["rgb-infonce-mirrored"] = dict(loss=infonce, flip=0.5)
    for modality, names in (("flow", ("infonce", "mmcl")), ("camera flow", ("infonce",))):
        for name in names:
            made[f"{modality}-{name}"] = dict(loss=LOSSES[name], modality=modality)
    for modality in MODALITIES:
        made[f"{modality}-untrained"] = dict(loss=infonce, modality=modality, epochs=0)
    return {f"moving-{name.replace(' ', '-')}": fields for name, fields in made.items()}

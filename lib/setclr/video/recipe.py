"""What decides a run on videos, and the rows of MMCL's table 5."""

from dataclasses import dataclass
from typing import Any

from setclr.checks import boolean, choice, integer, number
from setclr.recipes.contrasting import Contrasting
from setclr.recipes.published.row import Published
from setclr.video.encoders import VIDEO_ENCODERS
from setclr.video.sets import MODALITIES, MOVING
from setclr.video.views import VIDEO


@dataclass(frozen=True)
class VideoRecipe(Contrasting):
    """One pretraining run on videos. Raises ValueError where a field cannot be used, naming it."""

    data: str = MOVING
    """A name that setclr.video.load_videos knows."""
    modality: str = "rgb"
    """"rgb", "flow" by TV-L1, or "camera flow", the true one of moving-patches."""
    encoder: str = "conv4-clips"
    frames: int = 8
    """T of a clip."""
    stride: int = 1
    """A clip has every stride-th frame of a video."""
    size: int = 32
    """Pixels to which files are decoded, and the side of the views."""
    views: str = "photo"
    """A key of setclr.video.VIDEO."""
    flip: float = 0.0
    """Probability that a clip is mirrored; then left and right are forgotten."""
    hidden: int = 64
    embedding: int = 64
    """Widths of the head, two linear layers."""
    last_norm: bool = False
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    queue: int = 0
    """Keys of earlier batches that are negatives too, as in MoCo; then a momentum encoder makes the keys."""
    momentum: float = 0.999
    """Of the momentum encoder, where there is a queue."""
    lr: float = 1e-3
    weight_decay: float = 0.0
    """Of Adam."""
    epochs: int = 10
    batch: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("modality", self.modality, MODALITIES)
        choice("encoder", self.encoder, VIDEO_ENCODERS)
        choice("views", self.views, VIDEO)
        counts = dict(frames=1, stride=1, size=8, hidden=1, embedding=1, queue=0, epochs=0, batch=2, seed=0)
        for name, least in counts.items():
            integer(name, getattr(self, name), least=least)
        for name in ("flip", "momentum"):
            number(name, getattr(self, name), least=0, most=1)
        boolean("last_norm", self.last_norm)
        number("lr", self.lr, above=0)
        number("weight_decay", self.weight_decay, least=0)
        if self.queue and not {"keys", "memory"} <= self.parsed_loss.takes:
            raise ValueError(f"queue must be 0 for {self.loss}, which takes no memory, got {self.queue}")
        if self.encoder == "s3d":
            integer("frames", self.frames, least=5, hint="s3d halves them four times")
            integer("size", self.size, least=32, hint="s3d halves it five times")


# All else alike, on moving-patches: the losses of the four papers, none of them tuned.
SMALL = {
    "infonce": "InfoNCE(temperature=0.2)",
    "infonce+qare": "InfoNCE(temperature=0.2) + 1.0 * QARe()",
    "sparseclr": "SparseCLR()",
    "groco": "GroCo(beta=1.0, negatives=10)",
    "iot": "IOT(constraint='rows', uniformity=0.5)",
    "mmcl": "MMCL(solver='inv')",
}


def small() -> dict[str, VideoRecipe]:
    """Of colours with every loss, of flow with two, of the true flow with one; and first weights of each."""
    made = {f"rgb-{name}": VideoRecipe(x, last_norm=name == "groco") for name, x in SMALL.items()}
    made["rgb-moco"] = VideoRecipe(SMALL["infonce"], queue=512, momentum=0.99)
    made["rgb-infonce-mirrored"] = VideoRecipe(SMALL["infonce"], flip=0.5)
    for modality, names in (("flow", ("infonce", "mmcl")), ("camera flow", ("infonce",))):
        for name in names:
            made[f"{modality}-{name}"] = VideoRecipe(SMALL[name], modality=modality)
    for modality in MODALITIES:
        made[f"{modality}-untrained"] = VideoRecipe(SMALL["infonce"], modality=modality, epochs=0)
    return {f"moving-{name.replace(' ', '-')}": recipe for name, recipe in made.items()}


PAPER = "Shah 2022"
NOTE = (
    "Linear probe over ten crops, and retrieval@1: how often the nearest training video is of the same "
    "class. The paper gives encoder, data, 300 epochs, 100 of the probe, and 254 negatives, those of batches "
    "of 128. "
)
LIKE = (
    "It leaves out clips, views and rates: here those of CoCLR's program (Han et al. 2020), 32 frames of 128 "
    "pixels, Adam at 0.001 with decay 0.00001, a head to 128. Not run here: UCF-101 is no part of this "
    "project, and 300 epochs of it need GPUs. That program takes the mean off the features before retrieval; "
    "`known` does not"
)
CITED = (
    "46.8 by colours is what CoCLR's authors give for their InfoNCE after 500 epochs, so the row seems to be "
    "theirs; this recipe has the 300 of the rows of MMCL beside it. Queue 2048, momentum 0.999, temperature "
    "0.07. "
)
TABLE = {"rgb": ((46.8, 33.1), (52.45, 45.6)), "flow": ((66.8, 45.2), (68.01, 50.94))}


def printed() -> dict[str, tuple[VideoRecipe, Published]]:
    """The four rows of table 5 with what the paper printed."""
    like: dict[str, Any] = dict(encoder="s3d", frames=32, size=128, views="coclr", flip=0.5, hidden=1024)
    like |= dict(data="ucf101:data/ucf101", embedding=128, weight_decay=1e-5, epochs=300)
    rows = {}
    for modality, (theirs, ours) in TABLE.items():
        moco = VideoRecipe("InfoNCE(temperature=0.07)", modality=modality, queue=2048, **like)
        mmcl = VideoRecipe("MMCL(solver='inv')", modality=modality, **like)
        for name, recipe, numbers, note in (
            ("moco-v2", moco, theirs, NOTE + CITED + LIKE), ("mmcl", mmcl, ours, NOTE + LIKE),
        ):  # fmt: skip
            said = Published(PAPER, "5", dict(zip(("ten crops", "retrieval@1"), numbers)), note=note)
            rows[f"mmcl-table5-{modality}-{name}"] = recipe, said
    return rows


VIDEO_PRINTED = printed()
VIDEO_RECIPES = small() | {name: recipe for name, (recipe, _) in VIDEO_PRINTED.items()}

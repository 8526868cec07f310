"""`Recipe`: all settings that decide what a training run on images learns. Equal recipes give equal runs.

The device and the output folder are not part of it.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Any

from setclr import losses
from setclr.checks import boolean, choice, integer, number
from setclr.models import ACTIVATIONS, INITIAL, NORMALISED, check_encoder
from setclr.recipes import loss_schedule
from setclr.seeding import drawing, seeded
from setclr.views import PRESETS

# The fields that take one of several names; the command line lists these.
CHOICES: dict[str, Collection[str]] = {
    "views": PRESETS,
    "initial": INITIAL,
    "normalised": NORMALISED,
    "activation": ACTIVATIONS,
    "optimiser": ("adam", "adamw", "sgd", "lars"),
    "schedule": ("cosine", "constant", "steps"),
    "key_schedule": ("constant", "cosine"),
    "precision": ("auto", "float32", "bf16", "fp16"),
}
# Bounds of the integers, and of those that may also be None. Larger values are mistakes, or fit no machine.
BOUNDS = {
    "local_views": (0, 64), "images_per_class": (1, 2**20), "layers": (1, 64), "hidden": (1, 2**16),
    "embedding": (1, 2**16), "predictor": (0, 64), "queue": (0, 10**7), "epochs": (0, 10**6),
    "batch": (2, 2**20), "seed": (0, 2**63 - 1),
}  # fmt: skip
OR_NONE = {
    "size": (8, 4096, "None leaves the images as they are"),
    "images": (2, 10**9, "None takes all"),
    "full_views": (1, 4, "None takes as many as `views` has"),
    "view_size": (8, 4096, "None takes the images' side"),
    "local_size": (8, 4096, "None takes 3/7 of a full view's side"),
    "lr_batch": (1, 2**20, "None takes lr itself"),
    "chunk": (2, 2**20, "None takes the whole batch at once"),
}
OLD_NAMES = {"same_class": "images_per_class"}  # fields that had another name in earlier versions
NUMBERS = 10**9  # in a head, predictor or queue: 4 GB, and an optimiser keeps up to three times as much


@dataclass(frozen=True)
class Recipe:
    """Settings of one pretraining run. Raises ValueError, naming the field, where a value is invalid."""

    loss: str
    """The loss as its repr, for example "InfoNCE(temperature=0.5)"; + and * combine losses."""
    data: str = "photo-patches"
    """Name of a data set (`python -m setclr data` lists them), folder:PATH, or pairs:PATH."""
    size: int | None = None
    """Side in pixels to which a folder's images are resized and cropped; None: they have one size
    already. For pairs it is the height; they are half as wide."""
    images: int | None = None
    """Train on this many images of the set, spread evenly over the classes; None: on all."""
    views: str = "simclr"
    """Named augmentation, a key of setclr.views.PRESETS."""
    full_views: int | None = None
    """Number of full views of an image, 1 to 4, those of `views` in turn; None: as many as `views` has.
    Losses need two or more, baselines such as "Supervised()" one."""
    local_views: int = 0
    """Number of small crops of an image beside its full views (multi-crop)."""
    view_size: int | None = None
    """Side of a full view in pixels; None: that of the images. With a folder and no `size`, the files may
    have any sizes, and crops are read from them during training."""
    local_size: int | None = None
    """Side of a small crop; None: 3/7 of a full view's."""
    labels: bool = False
    """Give the loss the labels, so that all images of a class are positives: supervised contrast. Then only
    images with a label are trained on."""
    images_per_class: int = 1
    """Build batches from groups of this many images of one class. Without `labels` they are deliberate false
    negatives; with them a loss finds several of each class."""
    encoder: str = "conv4"
    """Name of an encoder, a key of setclr.models.ENCODERS, or timm:NAME for any model of timm."""
    initial: str = "torch"
    """Initial weights of the encoder's convolutions: "he", "xavier", "torch", the encoder's own, or
    "zero-residual", the same with scales of 0 where a residual block ends."""
    normalised: str = "none"
    """Normalise colours before the encoder, by the mean and deviation of this data set or of each "image"
    alone; "none" leaves them."""
    layers: int = 2
    """Linear layers of the projection head."""
    hidden: int = 256
    """Width of the projection head's hidden layers."""
    activation: str = "leaky_relu"
    """Activation between the head's layers: "leaky_relu" or "relu", each after a batch norm."""
    embedding: int = 64
    """E: dimensions of the embeddings that the loss sees."""
    last_norm: bool = False
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    key_momentum: float | None = None
    """Momentum of a second encoder, a moving average of the first, whose embeddings are the loss's
    candidates (MoCo). None: no such encoder; views are compared with one another."""
    key_schedule: str = "constant"
    """Schedule of `key_momentum`: "constant", or "cosine", rising to 1 (MoCo v3)."""
    queue: int = 0
    """Number of keys of earlier batches used as further negatives (MoCo)."""
    predictor: int = 0
    """Linear layers between head and loss, on the side of the first encoder alone (MoCo v3)."""
    optimiser: str = "adam"
    lr: float = 1e-3
    """Peak learning rate."""
    lr_batch: int | None = None
    """Batch size that `lr` is meant for: the learning rate is lr · batch / lr_batch. None: it is lr."""
    momentum: float = 0.9
    """Momentum of SGD and LARS."""
    weight_decay: float = 0.0
    warmup: float = 0.0
    """Epochs over which the learning rate rises linearly."""
    schedule: str = "cosine"
    """After the warm-up the learning rate falls to 0 as a "cosine", is "constant", or falls in "steps" to a
    tenth after half of the epochs and to a hundredth after three quarters."""
    loss_schedule: str = ""
    """Parameters of the loss that change during training: "bandwidth: 25, 2.5 from 75" is 25 before epoch
    75 (counted from 0). Several are separated by ";"."""
    epochs: int = 20
    batch: int = 128
    """Images (not views) per step, over all processes."""
    drop_last: bool = True
    """Leave out the last batch of an epoch if it is incomplete."""
    chunk: int | None = None
    """Images that go through the encoder together on one device (gradient caching); None: the batch."""
    seed: int = 0
    precision: str = "auto"
    """Number format of encoder and head: "float32", "bf16", "fp16" (with a scaled loss), or "auto", bf16
    where the device has it in hardware. A recipe without the field was computed in float32."""

    def __post_init__(self) -> None:
        for name in ("loss", "data", "encoder", "loss_schedule"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text, got {getattr(self, name)!r}")
        check_encoder(self.encoder)
        for name, options in CHOICES.items():
            choice(name, getattr(self, name), options)
        for name in ("labels", "last_norm", "drop_last"):
            boolean(name, getattr(self, name))
        for name, (least, most) in BOUNDS.items():
            integer(name, getattr(self, name), least=least, most=most)
        for name, (least, most, hint) in OR_NONE.items():
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), least=least, most=most, hint=hint)
        self._check_numbers()
        if self.batch % self.images_per_class:
            raise ValueError(
                f"batch must be a multiple of images_per_class={self.images_per_class}, got {self.batch}"
            )
        number("lr", self.lr, above=0)
        number("momentum", self.momentum, least=0, most=1)
        number("weight_decay", self.weight_decay, least=0)
        number("warmup", self.warmup, least=0)
        with drawing(seeded(self.seed, 0, 0, 0, 0).initial_seed()):  # for the weights of discriminators
            object.__setattr__(self, "_parsed_loss", losses.parse(self.loss))
        loss_schedule.check(self.parsed_loss, self.loss_schedule)
        losses.check_labels(self.parsed_loss, self.labels)
        self._check_views()
        self._check_keys(self.parsed_loss.takes)

    @property
    def parsed_loss(self) -> losses.Objective:
        """The loss, or baseline, that `loss` describes. Do not change it: training takes a copy."""
        return self.__dict__["_parsed_loss"]

    def _check_numbers(self) -> None:
        """Raises ValueError where head, predictor or queue would be too large. Nothing is built for the
        check."""
        E, hidden = self.embedding, self.hidden
        for name, layers in (("layers", self.layers), ("predictor", self.predictor)):
            if (weights := max(layers - 2, 0) * hidden**2 + (layers > 1) * hidden * E) > NUMBERS:
                got = f"{name}={layers}, hidden={hidden} and embedding={E}, {weights:.1e} weights"
                raise ValueError(
                    f"{name} must make at most {NUMBERS:.0e} weights, got {got}; make one smaller"
                )
        if self.queue * E > NUMBERS:
            got = f"queue={self.queue} and embedding={E}, {self.queue * E:.1e} numbers"
            raise ValueError(f"queue must hold at most {NUMBERS:.0e} numbers, got {got}; make one smaller")

    def _check_views(self) -> None:
        """Raises ValueError where the loss needs more or fewer views."""
        full = self.full_views or len(PRESETS[self.views])
        baseline = isinstance(self.parsed_loss, losses.Baseline)
        if baseline and (full > 1 or self.local_views):
            wanted = f"full_views must be 1 with {self.loss}, which contrasts no views"
            raise ValueError(f"{wanted}, got {full} and {self.local_views} local ones; set full_views=1")
        if not baseline and full < 2:
            raise ValueError(f"full_views must be 2 to 4 with {self.loss}, which contrasts views, got {full}")

    def _check_keys(self, takes: frozenset[str]) -> None:
        """Raises ValueError where momentum encoder, queue, predictor and loss cannot be combined."""
        if self.key_momentum is None:
            for name in ("queue", "predictor"):
                if got := getattr(self, name):
                    wanted, hint = "0 without a momentum encoder", "key_momentum=0.999 adds one"
                    raise ValueError(f"{name} must be {wanted}, got {got}; {hint}")
            return
        number("key_momentum", self.key_momentum, least=0, most=1, hint="MoCo has 0.999, MoCo v3 0.99")
        for field, kind in (("key_momentum", "keys"), ("queue", "memory")):
            if getattr(self, field) and kind not in takes:
                able = [name for name, loss in losses.BY_NAME.items() if kind in loss.takes]
                raise ValueError(f"{field} must not be set with {self.loss}; {', '.join(able)} take {kind}")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Recipe":
        """The recipe that `to_dict` wrote, in this version or an earlier one.

        Raises ValueError for fields that this version does not know.
        """
        values = renamed(values)
        if unknown := sorted(map(str, values.keys() - {field.name for field in fields(cls)})):
            raise ValueError(f"recipe holds the unknown fields {unknown}: another version wrote it")
        if "loss" not in values:
            raise ValueError("recipe must have a loss, and has none")
        return cls(**{"precision": "float32", **values})


def renamed(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a recipe under the present names of its fields."""
    return {OLD_NAMES.get(name, name): value for name, value in values.items()}


DEFAULTS = {field.name: field.default for field in fields(Recipe)} | {"precision": "float32"}
"""The values of fields that a record of an earlier version lacks; "loss" has no default."""

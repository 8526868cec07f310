"""`Recipe`: what the recipes of images, graphs and videos share. Equal recipes give equal runs.

The device and the output folder are not part of it.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

from setclr import losses
from setclr.checks import choice
from setclr.recipes import loss_schedule
from setclr.seeding import drawing, seeded
from setclr.settings import flag, one_of, real, settings_of, text, whole

OLD_NAMES = {"same_class": "images_per_class"}  # fields that had another name in earlier versions
SCHEDULES = ("cosine", "constant", "steps")
PRECISIONS = ("auto", "float32", "bf16", "fp16")


@dataclass(frozen=True)
class Recipe:
    """Settings of one pretraining run. Raises ValueError, naming the field, where a value is invalid.

    `ImageRecipe`, `GraphRecipe` and `VideoRecipe` add the fields of their kind, and have defaults of their
    own.
    """

    kind: ClassVar[str] = ""
    things: ClassVar[str] = ""  # what a set of the kind holds, in the plural
    shown: ClassVar[tuple[str, ...]] = ()  # the measures of a record that a list of recipes shows

    loss: str = text(...)
    """The loss as its repr, for example "InfoNCE(temperature=0.5)"; + and * combine losses."""
    data: str = text("")
    """Name of a data set; `setclr data` lists them."""
    encoder: str = text("")
    """Name of an encoder."""
    init: str = text("")
    """Start from these weights of the encoder: the folder of a run, a file of weights that setclr,
    torchvision, timm, MoCo, Lightning or safetensors wrote, timm:NAME or torchvision:NAME. "": new weights,
    drawn by the seed."""
    labels: bool = flag(False)
    """Give the loss the labels, so that all of one class are positives of each other: supervised contrast."""
    images_per_class: int = whole(1, 1, 2**20)
    """Build batches from groups of this many of one class. Without `labels` they are deliberate false
    negatives; a loss with `labels` may need several of a class."""
    last_norm: bool = flag(False)
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    key_momentum: float | None = real(None, "MoCo has 0.999, MoCo v3 0.99", least=0, most=1)
    """Momentum of a second encoder, a moving average of the first, whose embeddings are the loss's
    candidates (MoCo). None: no such encoder; views are compared with one another."""
    key_schedule: str = one_of("constant", ("constant", "cosine"))
    """Schedule of `key_momentum`: "constant", or "cosine", rising to 1 (MoCo v3)."""
    queue: int = whole(0, 0, 2**20)
    """Number of keys of earlier batches used as further negatives; MoCo's loss, candidates="memory", takes
    no others."""
    optimiser: str = one_of("adam", ("adam", "adamw", "sgd", "lars"))
    lr: float = real(1e-3, above=0)
    """Peak learning rate."""
    lr_batch: int | None = whole(None, 1, 2**20, "None takes lr itself")
    """Batch size that `lr` is meant for: the learning rate is lr · batch / lr_batch. None: it is lr."""
    momentum: float = real(0.9, least=0, most=1)
    """Momentum of SGD and LARS."""
    weight_decay: float = real(0.0, least=0)
    warmup: float = real(0.0, least=0)
    """Epochs over which the learning rate rises linearly."""
    schedule: str = one_of("cosine", SCHEDULES)
    """After the warm-up the learning rate falls to 0 as a "cosine", is "constant", or falls in "steps" to a
    tenth after half of the epochs and to a hundredth after three quarters."""
    loss_schedule: str = text("")
    """Parameters of the loss that change during training: "bandwidth: 25, 2.5 from 75" is 25 before epoch
    75 (counted from 0). Several are separated by ";"."""
    epochs: int = whole(20, 0, 10**6)
    batch: int = whole(128, 2, 2**20)
    """Images (not views), graphs or videos per step, over all processes."""
    drop_last: bool = flag(True)
    """Leave out the last batch of an epoch if it is incomplete."""
    chunk: int | None = whole(None, 2, 2**20, "None takes the whole batch at once")
    """Images that go through the encoder together on one device (gradient caching); None: the batch."""
    seed: int = whole(0, 0, 2**63 - 1)
    precision: str = one_of("auto", PRECISIONS)
    """Number format of encoder and head: "float32", "bf16", "fp16" (with a scaled loss), or "auto", bf16
    where the device has it in hardware. A recipe without the field was computed in float32."""

    def __post_init__(self) -> None:
        if self.batch % self.images_per_class:
            wanted = f"a multiple of images_per_class={self.images_per_class}"
            raise ValueError(f"batch must be {wanted}, got {self.batch}")
        loss_schedule.check(self.parsed_loss, self.loss_schedule)
        losses.check_labels(self.parsed_loss, self.labels)
        self._check_loss()
        self._check_keys(self.parsed_loss.takes)

    @cached_property
    def parsed_loss(self) -> losses.Objective:
        """The loss, or baseline, that `loss` describes. Do not change it: training takes a copy."""
        with drawing(seeded(self.seed, 0, 0, 0, 0).initial_seed()):  # for the weights of discriminators
            return losses.parse(self.loss)

    def _check_loss(self) -> None:
        """Raises ValueError where the loss contrasts no views."""
        if not isinstance(self.parsed_loss, losses.SetLoss):
            raise ValueError(f"loss must contrast views, got {self.loss}; take one of setclr.losses")

    def _check_keys(self, takes: frozenset[str]) -> None:
        """Raises ValueError where momentum encoder, queue, predictor and loss cannot be combined."""
        if not self.queue and "candidates='memory'" in repr(self.parsed_loss):
            raise ValueError(f"queue must be at least 1 with {self.loss}, got 0; it holds all negatives")
        if self.key_momentum is None:
            for field in ("queue", "predictor"):
                if there := getattr(self, field, 0):
                    wanted, hint = "0 without a momentum encoder", "key_momentum=0.999 adds one"
                    raise ValueError(f"{field} must be {wanted}, got {there}; {hint}")
            return
        for field, kind in (("key_momentum", "keys"), ("queue", "memory")):
            if getattr(self, field) and kind not in takes:
                able = [name for name, loss in losses.BY_NAME.items() if kind in loss.takes]
                raise ValueError(f"{field} must not be set with {self.loss}; {', '.join(able)} take {kind}")

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind} | asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Recipe":
        """The recipe that `to_dict` wrote, in this version or an earlier one; without a kind it is of images.

        Raises ValueError for fields that this version does not know.
        """
        values = completed(values)
        one = recipe_class(values.pop("kind"))
        if unknown := sorted(map(str, values.keys() - settings_of(one).keys())):
            raise ValueError(f"recipe holds the unknown fields {unknown}: another version wrote it")
        return one(**values)


def recipe_class(kind: Any) -> type[Recipe]:
    """The class of the recipes of that kind. Raises ValueError for another kind."""
    classes = {one.kind: one for one in Recipe.__subclasses__()}
    return classes[choice("kind", kind, classes)]


def completed(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a recipe, and of the fields that it lacks: an earlier version wrote it.

    Without a kind it is of images. A field has its present name. A loss that is missing is None.
    """
    kind = recipe_class(values.get("kind", "image"))
    defaults = {name: x.default for name, x in settings_of(kind).items()}
    values = {OLD_NAMES.get(name, name): value for name, value in values.items()}
    return {"kind": kind.kind, **defaults, "loss": None, "precision": "float32", **values}

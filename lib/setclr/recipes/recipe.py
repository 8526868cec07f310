"""`Recipe`: what the recipes of images, graphs and videos share. Equal recipes give equal runs.

The device and the output folder are not part of it.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from setclr import losses
from setclr.checks import boolean, choice, integer, number
from setclr.recipes import loss_schedule
from setclr.seeding import drawing, seeded

OLD_NAMES = {"same_class": "images_per_class"}  # fields that had another name in earlier versions
NUMBERS = 10**9  # in a head, predictor or queue: 4 GB, and an optimiser keeps up to three times as much
Bounds = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Recipe:
    """Settings of one pretraining run. Raises ValueError, naming the field, where a value is invalid.

    `ImageRecipe`, `GraphRecipe` and `VideoRecipe` add the fields of their kind, and have defaults of their
    own.
    """

    kind: ClassVar[str] = ""
    things: ClassVar[str] = ""  # what a set of the kind holds, in the plural
    shown: ClassVar[tuple[str, ...]] = ()  # the measures of a record that a list of recipes shows
    # The fields that take one of several names; the command line lists these.
    CHOICES: ClassVar[dict[str, Collection[str]]] = {
        "optimiser": ("adam", "adamw", "sgd", "lars"), "schedule": ("cosine", "constant", "steps"),
        "key_schedule": ("constant", "cosine"), "precision": ("auto", "float32", "bf16", "fp16"),
    }  # fmt: skip
    # Bounds of the integers, and of those that may also be None. Larger values are mistakes.
    BOUNDS: ClassVar[Bounds] = {"images_per_class": (1, 2**20), "queue": (0, 10**7), "epochs": (0, 10**6),
                                "batch": (2, 2**20), "seed": (0, 2**63 - 1)}  # fmt: skip
    OR_NONE: ClassVar[dict[str, tuple[int, int, str]]] = {
        "lr_batch": (1, 2**20, "None takes lr itself"),
        "chunk": (2, 2**20, "None takes the whole batch at once"),
    }

    loss: str
    """The loss as its repr, for example "InfoNCE(temperature=0.5)"; + and * combine losses."""
    data: str = ""
    """Name of a data set; `setclr data` lists them."""
    encoder: str = ""
    """Name of an encoder."""
    init: str = ""
    """Start from these weights of the encoder: the folder of a run, or a file that `setclr export` wrote.
    "": new weights, drawn by the seed."""
    labels: bool = False
    """Give the loss the labels, so that all of one class are positives of each other: supervised contrast."""
    images_per_class: int = 1
    """Build batches from groups of this many of one class. Without `labels` they are deliberate false
    negatives; a loss with `labels` may need several of a class."""
    last_norm: bool = False
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    key_momentum: float | None = None
    """Momentum of a second encoder, a moving average of the first, whose embeddings are the loss's
    candidates (MoCo). None: no such encoder; views are compared with one another."""
    key_schedule: str = "constant"
    """Schedule of `key_momentum`: "constant", or "cosine", rising to 1 (MoCo v3)."""
    queue: int = 0
    """Number of keys of earlier batches used as further negatives; MoCo's loss, candidates="memory", takes
    no others."""
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
    """Images (not views), graphs or videos per step, over all processes."""
    drop_last: bool = True
    """Leave out the last batch of an epoch if it is incomplete."""
    chunk: int | None = None
    """Images that go through the encoder together on one device (gradient caching); None: the batch."""
    seed: int = 0
    precision: str = "auto"
    """Number format of encoder and head: "float32", "bf16", "fp16" (with a scaled loss), or "auto", bf16
    where the device has it in hardware. A recipe without the field was computed in float32."""

    def __post_init__(self) -> None:
        for name in ("loss", "data", "encoder", "init", "loss_schedule"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text, got {getattr(self, name)!r}")
        for name, options in self.CHOICES.items():
            choice(name, getattr(self, name), options)
        for name in ("labels", "last_norm", "drop_last"):
            boolean(name, getattr(self, name))
        for name, (least, most) in self.BOUNDS.items():
            integer(name, getattr(self, name), least=least, most=most)
        for name, (least, most, hint) in self.OR_NONE.items():
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), least=least, most=most, hint=hint)
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
        self._check_loss()
        self._check_keys(self.parsed_loss.takes)

    @property
    def parsed_loss(self) -> losses.Objective:
        """The loss, or baseline, that `loss` describes. Do not change it: training takes a copy."""
        return self.__dict__["_parsed_loss"]

    @property
    def embeddings(self) -> int:
        """E: the dimensions of the embeddings that the loss sees."""
        raise NotImplementedError

    def _check_loss(self) -> None:
        """Raises ValueError where the loss contrasts no views."""
        if not isinstance(self.parsed_loss, losses.SetLoss):
            raise ValueError(f"loss must contrast views, got {self.loss}; take one of setclr.losses")

    def _check_keys(self, takes: frozenset[str]) -> None:
        """Raises ValueError where momentum encoder, queue, predictor and loss cannot be combined."""
        E = self.embeddings
        if self.queue * E > NUMBERS:
            got = f"queue={self.queue} and embedding={E}, {self.queue * E:.1e} numbers"
            raise ValueError(f"queue must hold at most {NUMBERS:.0e} numbers, got {got}; make one smaller")
        if not self.queue and "candidates='memory'" in repr(self.parsed_loss):
            raise ValueError(f"queue must be at least 1 with {self.loss}, got 0; it holds all negatives")
        if self.key_momentum is None:
            for field in ("queue", "predictor"):
                if there := getattr(self, field, 0):
                    wanted, hint = "0 without a momentum encoder", "key_momentum=0.999 adds one"
                    raise ValueError(f"{field} must be {wanted}, got {there}; {hint}")
            return
        number("key_momentum", self.key_momentum, least=0, most=1, hint="MoCo has 0.999, MoCo v3 0.99")
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
        one = recipe_class(values.get("kind", "image"))
        values = renamed({name: value for name, value in values.items() if name != "kind"})
        if unknown := sorted(map(str, values.keys() - one.defaults().keys() - {"loss"})):
            raise ValueError(f"recipe holds the unknown fields {unknown}: another version wrote it")
        if "loss" not in values:
            raise ValueError("recipe must have a loss, and has none")
        return one(**{"precision": "float32", **values})

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The values of fields that a record of an earlier version lacks; "loss" has no default."""
        return {one.name: one.default for one in fields(cls) if one.name != "loss"} | {"precision": "float32"}


def recipe_class(kind: Any) -> type[Recipe]:
    """The class of the recipes of that kind. Raises ValueError for another kind."""
    classes = {one.kind: one for one in Recipe.__subclasses__()}
    return classes[choice("kind", kind, classes)]


def renamed(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a recipe under the present names of its fields."""
    return {OLD_NAMES.get(name, name): value for name, value in values.items()}

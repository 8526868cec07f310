"""Every experiment as a value: a `Recipe` says all that decides what a training run learns.

Where it runs and where it writes is no part of it, so equal recipes give equal runs.
"""

from dataclasses import asdict, dataclass, fields

from setclr import losses
from setclr.checks import boolean, choice, integer, number
from setclr.models import ENCODERS
from setclr.views import PRESETS


@dataclass(frozen=True)
class Recipe:
    """One pretraining run. Raises ValueError where a field cannot be used, naming it."""

    loss: str
    """The loss as its repr, for example "InfoNCE(temperature=0.5)"; + and * combine losses."""
    data: str = "photo-patches"
    """Name of a data set (`python -m setclr data` lists them) or folder:PATH."""
    size: int | None = None
    """Side in pixels to which the images of a folder are resized and cropped; None: they are all of one
    size."""
    images: int | None = None
    """Train on so many of its images, spread evenly over the classes; None: on all."""
    views: str = "simclr"
    """Named augmentation, a key of setclr.views.PRESETS."""
    encoder: str = "conv4"
    hidden: int = 256
    """Width of the projection head's hidden layer."""
    embedding: int = 64
    """E: dimensions of the embeddings that the loss sees."""
    last_norm: bool = False
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    optimiser: str = "adam"
    lr: float = 1e-3
    """Peak learning rate."""
    momentum: float = 0.9
    """Of SGD."""
    weight_decay: float = 0.0
    warmup: float = 0.0
    """Epochs over which the learning rate rises linearly."""
    schedule: str = "cosine"
    """What the learning rate does after the warm-up: "cosine" to 0, or "constant"."""
    epochs: int = 20
    batch: int = 128
    """Images (not views) a step."""
    seed: int = 0

    def __post_init__(self):
        losses.parse(self.loss)
        if self.size is not None:
            integer("size", self.size, least=8)
        if self.images is not None:
            integer("images", self.images, least=2)
        choice("views", self.views, PRESETS)
        choice("encoder", self.encoder, ENCODERS)
        choice("optimiser", self.optimiser, ("adam", "sgd"))
        choice("schedule", self.schedule, ("cosine", "constant"))
        boolean("last_norm", self.last_norm)
        for name, least in (("hidden", 1), ("embedding", 1), ("epochs", 1), ("batch", 2), ("seed", 0)):
            integer(name, getattr(self, name), least=least)
        number("lr", self.lr, above=0)
        number("momentum", self.momentum, least=0, most=1)
        number("weight_decay", self.weight_decay, least=0)
        number("warmup", self.warmup, least=0)

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "Recipe":
        """The recipe that `to_dict` wrote. Raises ValueError for fields that this version does not know."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(
                f"recipe holds the unknown fields {sorted(unknown)}: "
                "it was written by another version of setclr"
            )
        return cls(**values)


INFONCE = "InfoNCE(temperature=0.1)"
GROCO = "GroCo(beta=1.0, negatives=10)"

RECIPES = {
    "photo-infonce": Recipe(INFONCE, views="photo", epochs=30, lr=3e-3),
    "photo-groco": Recipe(GROCO, views="photo", epochs=30, lr=3e-3, last_norm=True),
    "cifar10-infonce": Recipe(INFONCE, data="cifar10", views="qare", epochs=5, lr=3e-3),
    "cifar10-groco": Recipe(GROCO, data="cifar10", views="qare", epochs=5, lr=3e-3, last_norm=True),
}

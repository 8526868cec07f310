"""Base class of the recipes for graphs and videos: a loss that contrasts two views."""

from dataclasses import asdict, dataclass
from typing import Any

from setclr import losses
from setclr.seeding import drawing


@dataclass(frozen=True)
class Contrasting:
    """Base of recipes with a contrastive loss. Raises ValueError where the loss contrasts no views."""

    loss: str
    """The loss as its repr, for example "InfoNCE(temperature=0.2)"; + and * combine losses."""

    def __post_init__(self) -> None:
        with drawing(0):  # parsing must not change the global generator
            object.__setattr__(self, "_parsed_loss", losses.parse(self.loss))
        if isinstance(self.parsed_loss, losses.Baseline):
            raise ValueError(f"loss must contrast views, got {self.loss}; take one of setclr.losses")
        if self.parsed_loss.supervised:
            raise ValueError(
                f"loss must do without labels on graphs and videos, got {self.loss}; take InfoNCE"
            )

    @property
    def parsed_loss(self) -> losses.Objective:
        """The loss object that `loss` describes."""
        return self.__dict__["_parsed_loss"]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

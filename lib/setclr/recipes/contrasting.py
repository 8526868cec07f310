"""What recipes that are not of images share: a loss that contrasts two views."""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from setclr import losses


@dataclass(frozen=True)
class Contrasting:
    """A recipe with a loss. Raises ValueError where the loss contrasts no views."""

    loss: str
    """The loss as its repr, for example "InfoNCE(temperature=0.2)"; + and * combine losses."""

    def __post_init__(self) -> None:
        if isinstance(self.parsed_loss, losses.Baseline):
            raise ValueError(f"loss must contrast views, got {self.loss}; take one of setclr.losses")

    @property
    def parsed_loss(self) -> losses.Objective:
        """The loss that `loss` describes. The global random state does not change."""
        with torch.random.fork_rng(devices=[]):
            return losses.parse(self.loss)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

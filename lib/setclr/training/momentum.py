"""The momentum encoder, a moving average of the encoder, and its queue of keys from earlier batches.

Its embeddings, the keys, are candidates that change slowly; the queue holds more of them than a batch
does. MoCo (He et al. 2020) has both. MoCo v3 (Chen et al. 2021) has the momentum encoder alone, and a
predictor on the side of the encoder that learns.
"""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setclr.settings import one_of, real, whole
from setclr.training.distributed import gather_alike
from setclr.training.grad_cache import GradCache, Group
from setclr.training.own_loop import Queue, update_momentum


@dataclass(frozen=True)
class Keys:
    """How the momentum encoder follows the encoder: key ← m·key + (1 − m)·encoder.

    `momentum` is m, 0 to 1. `schedule`: m is "constant", or rises to 1 by half a "cosine". `queue`: the
    number of keys of earlier batches that are further negatives. `predictor`: layers between head and loss on
    the side of the encoder that learns; None: none. Raises ValueError where one is not as above.

    >>> from setclr.training import Keys
    >>> keys = Keys(0.99, "cosine")
    >>> keys.at(0.0), keys.at(1.0)  # the momentum rises to 1
    (0.99, 1.0)
    """

    momentum: float = real(0.999, "MoCo has 0.999, MoCo v3 0.99", least=0, most=1)
    schedule: str = one_of("constant", ("constant", "cosine"))
    queue: int = whole(0, least=0)
    predictor: nn.Module | None = None

    def at(self, progress: float) -> float:
        """m after the fraction `progress`, 0 to 1, of the training."""
        m = self.momentum
        return m if self.schedule == "constant" else 1 - (1 - m) * (1 + math.cos(math.pi * progress)) / 2


class MomentumEncoder:
    """A copy of encoder and head that follows them as a moving average and embeds the candidates.

    Nothing in it gets a gradient. Its batch norms use each batch's own statistics, over all processes
    together, so that they do not reveal which part of a batch an image is in. `grad_cache` is that of
    the encoder it follows.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, grad_cache: GradCache, keys: Keys, seed: int):
        self.keys, self.followed = keys, nn.ModuleList([encoder, head])
        self.model = copy.deepcopy(self.followed).requires_grad_(False).train()
        self.grad_cache = GradCache(self.model[0], self.model[1], grad_cache.precision, grad_cache.chunk)
        device = grad_cache.precision.device
        self.queue = Queue(keys.queue, outputs(head), seed).to(device) if keys.queue else None

    def candidates(self, views: list[Group]) -> dict[str, Tensor]:
        """The loss's arguments beside z: `keys` (V, N, E) of all processes, and `memory` (Q, E).

        `memory` is the queue; without a queue it is left out.
        """
        keys = gather_alike(self.grad_cache.embed(views))
        memory = {} if self.queue is None else {"memory": self.queue.keys.to(keys.dtype)}
        return {"keys": keys} | memory

    @torch.no_grad()
    def advance(self, keys: Tensor, progress: float) -> None:
        """Follow the encoder by a step; in the queue, the second view's keys replace the oldest.

        `keys` (V, N, E) are this step's; `progress`, 0 to 1, is the fraction of the training that is
        done.
        """
        update_momentum(self.followed, self.model, self.keys.at(progress))
        if self.queue is not None:
            self.queue.add(keys[1])

    def state_dict(self) -> dict:
        return {"model": self.model.state_dict(), "queue": None if self.queue is None else self.queue.keys}

    def load_state_dict(self, state: dict) -> None:
        """Raises RuntimeError, as torch does, if the state belongs to another model or queue."""
        self.model.load_state_dict(state["model"])
        queue = {} if state["queue"] is None else {"keys": state["queue"]}
        (self.queue or nn.Identity()).load_state_dict(queue)


def outputs(head: nn.Module) -> int:
    """E, the number of outputs of the head's last linear layer. Raises ValueError if it has no such layer."""
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise ValueError(f"head must have a linear layer, got {head}; setclr.models.head makes one")
    return layers[-1].out_features

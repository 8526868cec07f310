"""The momentum encoder, a moving average of the encoder, and its queue of keys from earlier batches.

Its embeddings, the keys, are candidates that change slowly; the queue holds more of them than a batch
does. MoCo (He et al. 2020) has both. MoCo v3 (Chen et al. 2021) has the momentum encoder alone, and a
predictor on the side of the encoder that learns. `Queue` and `update_momentum` serve a training loop of your
own as well.
"""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import integer, number
from setclr.seeding import seeded
from setclr.settings import one_of, real, whole
from setclr.training.distributed import gather_alike
from setclr.training.grad_cache import GradCache, Group


class Queue(nn.Module):
    """The latest Q keys of earlier batches, which are more negatives (MoCo, He et al. 2020).

    It begins full of random directions, so that the loss has equally many negatives from the first step.
    `queue.keys` (Q, E) are of unit length, the oldest first; they are in `state_dict`. On many processes add
    what `gather` gives, and all queues stay alike.

    >>> import torch
    >>> from setclr import InfoNCE, Queue
    >>> queue, loss = Queue(512, 16), InfoNCE(0.2)
    >>> z, keys = torch.randn(2, 8, 16), torch.randn(2, 8, 16)  # of the encoder, of the momentum encoder
    >>> loss(z, keys=keys, memory=queue.keys).shape
    torch.Size([])
    >>> queue.add(keys[1])

    `queue.labels` (Q,) are the classes that `add` was given, -1 without, for the loss's `memory_labels`.

    Raises ValueError unless `size` and `dimensions` are whole numbers from 1 on.
    """

    keys: Tensor
    labels: Tensor

    def __init__(self, size: int, dimensions: int, seed: int = 0) -> None:
        super().__init__()
        shape = integer("size", size, least=1), integer("dimensions", dimensions, least=1)
        self.register_buffer("keys", F.normalize(torch.randn(*shape, generator=seeded(seed)), dim=1))
        self.register_buffer("labels", torch.full((size,), -1))

    @torch.no_grad()
    def add(self, keys: Tensor, labels: Tensor | None = None) -> None:
        """Keys (n, E), of any length, and their labels (n,) take the place of the n oldest. Raises
        ValueError for other shapes."""
        if keys.ndim != 2 or keys.shape[1] != self.keys.shape[1]:
            wanted = f"(n, {self.keys.shape[1]})"
            raise ValueError(f"keys must be {wanted} for this queue, got {tuple(keys.shape)}")
        labels = self.labels.new_full((len(keys),), -1) if labels is None else labels
        if labels.shape != (len(keys),) or labels.is_floating_point():
            got = f"{labels.dtype} {tuple(labels.shape)}"
            raise ValueError(f"labels must be {len(keys)} integers, one for each key, got {got}")
        newest = F.normalize(keys, dim=1).to(self.keys)
        self.keys = torch.cat([self.keys, newest])[-len(self.keys) :]
        self.labels = torch.cat([self.labels, labels.to(self.labels)])[-len(self.labels) :]


@torch.no_grad()
def update_momentum(model: nn.Module, ema: nn.Module, m: float) -> None:
    """The parameters of `ema` follow those of `model`: ema ← m·ema + (1 − m)·model. Buffers stay.

    >>> import copy
    >>> from torch import nn
    >>> from setclr import update_momentum
    >>> model = nn.Linear(2, 2)
    >>> slow = copy.deepcopy(model).requires_grad_(False)
    >>> update_momentum(model, slow, m=0.99)

    Raises ValueError unless m is 0 to 1 and both have parameters of the same shapes.
    """
    number("m", m, least=0, most=1, hint="MoCo has 0.999, MoCo v3 0.99")
    slow, fast = ([p.detach() for p in one.parameters()] for one in (ema, model))
    if [p.shape for p in slow] != [p.shape for p in fast]:
        raise ValueError("ema must be a copy of model, got other shapes; copy.deepcopy makes one")
    torch._foreach_lerp_(slow, fast, 1 - m)


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
        try:
            self.model = copy.deepcopy(self.followed).requires_grad_(False).train()
        except RuntimeError as error:
            remedy = "weight_norm of torch.nn.utils.parametrizations can be copied"
            raise ValueError(f"encoder and head must allow a copy for keys ({error}); {remedy}") from error
        self.grad_cache = GradCache(self.model[0], self.model[1], grad_cache.precision, grad_cache.chunk)
        device = grad_cache.precision.device
        self.queue = Queue(keys.queue, outputs(head), seed).to(device) if keys.queue else None

    def candidates(self, views: list[Group], labelled: bool = False) -> dict[str, Tensor]:
        """The loss's arguments beside z: `keys` (V, N, E) of all processes, and `memory` (Q, E).

        `memory` is the queue; without a queue it is left out. Where the loss gets labels, so are those of it.
        """
        keys = gather_alike(self.grad_cache.embed(views))
        memory = {} if self.queue is None else {"memory": self.queue.keys.to(keys.dtype)}
        if self.queue and labelled:
            memory["memory_labels"] = self.queue.labels
        return {"keys": keys} | memory

    @torch.no_grad()
    def advance(self, keys: Tensor, progress: float, labels: Tensor | None = None) -> None:
        """Follow the encoder by a step; in the queue, the second view's keys replace the oldest.

        `keys` (V, N, E) and `labels` (N,) are this step's; `progress`, 0 to 1, is the fraction of the
        training that is done.
        """
        update_momentum(self.followed, self.model, self.keys.at(progress))
        if self.queue is not None:
            self.queue.add(keys[1], labels)

    def state_dict(self) -> dict:
        queue = {} if self.queue is None else {"queue": self.queue.keys, "queue_labels": self.queue.labels}
        return {"model": self.model.state_dict(), "queue": None, **queue}

    def load_state_dict(self, state: dict) -> None:
        """Raises RuntimeError, as torch does, if the state belongs to another model or queue."""
        self.model.load_state_dict(state["model"])
        queue = {} if state["queue"] is None else {"keys": state["queue"]}
        if queue:  # an older run kept no labels
            queue["labels"] = state.get("queue_labels", torch.full((len(state["queue"]),), -1))
        (self.queue or nn.Identity()).load_state_dict(queue)


def outputs(head: nn.Module) -> int:
    """E, the number of outputs of the head's last linear layer. Raises ValueError if it has no such layer."""
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    if not layers:
        raise ValueError(f"head must have a linear layer, got {head}; setclr.models.head makes one")
    return layers[-1].out_features

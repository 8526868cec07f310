"""Pieces for a training loop of your own: a queue of keys, a moving average, a loss over many processes."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import integer, number
from setclr.losses.base import SetLoss, joined_views
from setclr.seeding import seeded
from setclr.training.distributed import gather


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

    Raises ValueError unless `size` and `dimensions` are whole numbers from 1 on.
    """

    keys: Tensor

    def __init__(self, size: int, dimensions: int, seed: int = 0) -> None:
        super().__init__()
        shape = integer("size", size, least=1), integer("dimensions", dimensions, least=1)
        self.register_buffer("keys", F.normalize(torch.randn(*shape, generator=seeded(seed)), dim=1))

    @torch.no_grad()
    def add(self, keys: Tensor) -> None:
        """Keys (n, E), of any length, take the place of the n oldest. Raises ValueError for another shape."""
        if keys.ndim != 2 or keys.shape[1] != self.keys.shape[1]:
            wanted = f"(n, {self.keys.shape[1]})"
            raise ValueError(f"keys must be {wanted} for this queue, got {tuple(keys.shape)}")
        newest = F.normalize(keys, dim=1).to(self.keys)
        self.keys = torch.cat([self.keys, newest])[-len(self.keys) :]


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
        raise ValueError(
            "ema must be a copy of model, got parameters of other shapes; copy.deepcopy makes one"
        )
    torch._foreach_lerp_(slow, fast, 1 - m)


class DistributedLoss(nn.Module):
    """A loss of the batch of all processes: it gathers, then every process computes the same number.

    Wrap the loss, not the model; the model is in DistributedDataParallel. With one process nothing changes.
    The gradient is as `gather` says.

    >>> import torch
    >>> from setclr import DistributedLoss, InfoNCE
    >>> DistributedLoss(InfoNCE(0.2))(torch.randn(2, 8, 16)).shape
    torch.Size([])

    Raises ValueError if `loss` is no loss on embeddings, and what the loss raises.
    """

    def __init__(self, loss: SetLoss) -> None:
        super().__init__()
        if not isinstance(loss, SetLoss):
            raise ValueError(f"loss must be a loss on embeddings, such as InfoNCE(0.2), got {loss!r}")
        self.loss = loss

    def forward(
        self, z: Tensor, other: Tensor | None = None, memory: Tensor | None = None,
        labels: Tensor | None = None, weight: Tensor | None = None, keys: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """As the loss, of this process's images; `memory` is the same on all processes."""
        z, keys = joined_views(z, other, keys, labels is not None)
        keys = None if keys is None else gather(keys)
        each = {"labels": labels, "weight": weight}
        every = {name: None if x is None else gather(x[None, :, None]).flatten() for name, x in each.items()}
        return self.loss(gather(z), keys=keys, memory=memory, **every)

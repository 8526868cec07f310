"""A loss of your own in a Trainer: any module or function of the embeddings."""

import inspect
from typing import Any

from torch import Tensor, nn

from setclr.losses.base import Objective


class Own(Objective):
    """A module or function of z (V, N, E), or, if it needs two tensors, of two views (N, E), as an objective.

    z is float32 or wider, without autocast, as for the library's losses. If it has an argument `labels`, it
    can get those (N,). What a module learns is trained.

    >>> import torch
    >>> from setclr.losses import Own
    >>> def alignment(z1, z2):
    ...     return (z1 - z2).square().sum(1).mean()
    >>> Own(alignment), Own(alignment)(torch.stack([torch.eye(3), torch.zeros(3, 3)])).item()
    (alignment(), 1.0)

    Raises ValueError when called, if z has not two views where it needs two, or it gives no single number.
    """

    def __init__(self, given: Any) -> None:
        super().__init__()
        self.given = given
        arguments = inspect.signature(given.forward if isinstance(given, nn.Module) else given).parameters
        needed = [name for name, x in arguments.items() if x.default is x.empty and x.kind < x.VAR_POSITIONAL]
        self.of_two = len([name for name in needed if name != "labels"]) == 2
        self.takes = frozenset({"labels"} & {*arguments} | ({"views"} if not self.of_two else set()))

    @property
    def reads_values(self) -> bool:
        return True  # it may

    def forward(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        if self.of_two and len(z) != 2:
            raise ValueError(f"z must hold two views for {self}, which takes two, got {len(z)}")
        value = self.given(*(z if self.of_two else [z]), **({} if labels is None else {"labels": labels}))
        if not isinstance(value, Tensor) or value.ndim:
            got = f"{tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"loss must give one number, a 0-d tensor, got {got}; end {self} with .mean()")
        return value

    def __repr__(self) -> str:
        return f"{getattr(self.given, '__name__', type(self.given).__name__)}()"


def objective(loss: Any) -> Any:
    """The loss as an `Objective`; what is no module or function stays as it is."""
    if isinstance(loss, Objective | type) or not callable(loss):
        return loss
    return Own(loss)

"""Gradient caching: embed the views and compute gradients, in chunks if the batch is too large."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setclr.seeding import States, global_states, restore
from setclr.training.devices import Precision
from setclr.training.distributed import synchronised, world


class OwnGroup(Protocol):
    """Views of n things that are no plain tensor, for example two batches of graphs."""

    @property
    def n(self) -> int:
        """How many things these are views of."""
        ...

    def encode(self, encoder: nn.Module) -> Tensor:
        """The features (V·n, D), view after view."""
        ...

    def part(self, start: int, stop: int) -> Any:
        """The views of the things from `start` to before `stop`."""
        ...


Group = Tensor | OwnGroup  # a tensor of views is (V, n, ...)


class EncodeGroups(nn.Module):
    """The encoder for a list of groups of views: features (V_all·n, D), view after view.

    Images are (V, n, C, S, S), one tensor for each side S; clips are (V, n, C, T, S, S). V_all is the sum
    of V over all groups.
    """

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder

    def forward(self, views: list[Group]) -> Tensor:
        return torch.cat([self._encoded(group) for group in views])

    def _encoded(self, group: Group) -> Tensor:
        if not isinstance(group, Tensor):
            return group.encode(self.encoder)
        x = channels_last(group.flatten(0, 1))
        return flat(self.encoder(x.to(dtype_of(self.encoder, x))), len(x))


def dtype_of(model: nn.Module, x: Tensor) -> torch.dtype:
    """The dtype of the model's first weight, or of x if it has none."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), x.dtype)


def flat(features: Any, n: int) -> Tensor:
    """Features (N, D) as an encoder gives them for n inputs; (N, D, 1, 1) and the like lose their ones.

    Raises ValueError for anything else, such as a tuple or a map.
    """
    got = f"a {type(features).__name__}"
    if isinstance(features, Tensor):
        got = f"{features.dtype} {tuple(features.shape)}"
        one_each = features.shape[:1] == (n,) and features.shape[2:].numel() == 1 < features.ndim
        if one_each and features.is_floating_point():
            return features.flatten(1)
    wanted = f"one floating tensor of features (N, D) for N = {n} inputs"
    raise ValueError(f"encoder must give {wanted}, got {got}; nn.Flatten() or a mean over tokens makes one")


def part(group: Group, start: int, stop: int) -> Group:
    """The views of the things from `start` to before `stop`."""
    return group[:, start:stop] if isinstance(group, Tensor) else group.part(start, stop)


def count(views: list[Group]) -> int:
    """n, the number of things of which these are views."""
    return views[0].shape[1] if isinstance(views[0], Tensor) else views[0].n


def channels_last(x: Tensor) -> Tensor:
    """Images (N, C, H, W) in torch's memory format channels_last; any other tensor as it is."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


class GradCache:
    """Encoder and head for the training loop, on one process or many, on a whole batch or in chunks.

    `chunk` images (not views), or all, go through the encoder together. Chunks change nothing for an
    encoder without batch statistics. What it draws from the global generators of torch, NumPy or Python,
    such as dropout, it draws again when it runs a second time for the gradient. A batch norm in the encoder
    sees each chunk by itself, and updates its running statistics once for each chunk. The head sees the
    whole batch.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, precision: Precision, chunk: int | None = None):
        self.precision, self.chunk, device = precision, chunk, precision.device
        self.parts = [synchronised(EncodeGroups(encoder), device), nn.Sequential(synchronised(head, device))]
        for parameter in self.parts[0].parameters():
            parameter.data = channels_last(parameter.data)
        self.encoder, self.head = (data_parallel(part) for part in self.parts)

    def backward(self, views: list[Group], objective: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the gradients of objective(z), a 0-d tensor, to the weights; returns objective(z), detached.

        `views` are as `EncodeGroups` takes them; z (V_all, n, E) is float32 or wider.
        """
        chunks, n = self._chunks(views), count(views)
        if len(chunks) == 1:
            value = objective(self._embed(self._reached(self._features(views)), n))
            self.precision.backward(value)
            return value.detach()
        with unchanged_buffers(self.encoder):
            features, states = self._collected(chunks)
        features.requires_grad_()
        value = objective(self._embed(features.flatten(0, 1), n))
        self.precision.backward(value)
        assert features.grad is not None
        no_sync = getattr(self.encoder, "no_sync", nullcontext)  # a method of DistributedDataParallel
        drawn, device = global_states(self.precision.device), self.precision.device
        for i, (chunk, grad) in enumerate(zip(chunks, features.grad.split(self.chunk, dim=1))):
            restore(states[i], device)
            with no_sync() if i < len(chunks) - 1 else nullcontext():
                part = self._reached(self._features(chunk))
                if part.requires_grad:
                    part.backward(grad.flatten(0, 1).to(part.dtype))
        restore(drawn, device)
        return value.detach()

    def _reached(self, features: Tensor) -> Tensor:
        """The features, if a gradient can reach the encoder that learns by them."""
        if not features.requires_grad and any(p.requires_grad for p in self.encoder.parameters()):
            remedy = "do not detach them, or freeze the encoder by requires_grad_(False)"
            raise ValueError(f"encoder must give features with a gradient, got some without; {remedy}")
        return features

    def embed(self, views: list[Group]) -> Tensor:
        """The embeddings z (V_all, n, E) without gradient, computed chunk after chunk."""
        with torch.no_grad():
            features, _ = self._collected(self._chunks(views))
            return self._embed(features.flatten(0, 1), features.shape[1])

    def _chunks(self, views: list[Group]) -> list[list[Group]]:
        n = count(views)
        size = self.chunk or n
        cuts = [(start, min(start + size, n)) for start in range(0, n, size)]
        return [[part(group, *cut) for group in views] for cut in cuts]

    @torch.no_grad()
    def _collected(self, chunks: list[list[Group]]) -> tuple[Tensor, list[States]]:
        """The features (V_all, n, …) of all chunks, and the states of the generators before each chunk."""
        parts, states = [], []
        for chunk in chunks:
            states.append(global_states(self.precision.device))
            parts.append(self._features(chunk).unflatten(0, (-1, count(chunk))))
        return at_least_float32(torch.cat(parts, dim=1)), states

    def _features(self, views: list[Group]) -> Tensor:
        with self.precision.autocast():
            return self.encoder(views)

    def _embed(self, features: Tensor, n: int) -> Tensor:
        wanted = dtype_of(self.head, features)
        if self.precision.name == "float32" or torch.float64 in (wanted, features.dtype):
            features = features.to(wanted)  # autocast matches the others
        with self.precision.autocast():
            z = self.head(features)
        return at_least_float32(z).unflatten(0, (-1, n))


@contextmanager
def unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the model's buffers, such as running statistics, at the end."""
    before = [buffer.clone() for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(model.buffers(), before):
                buffer.copy_(value)


def data_parallel(module: nn.Module) -> nn.Module:
    """The module; if many processes train it, wrapped so that its gradients become their mean."""
    learns = any(parameter.requires_grad for parameter in module.parameters())
    return DistributedDataParallel(module) if world() > 1 and learns else module


def at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))

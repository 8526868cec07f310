"""The momentum encoder and its queue: candidates that change slowly, and more of them than a batch holds.
MoCo (He et al. 2020) has both; MoCo v3 (Chen et al. 2021) the encoder, with a predictor on the other side."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.recipes import Recipe
from setclr.training.distributed import gather
from setclr.training.embedding import Embedder
from setclr.training.seeding import seeded


class MomentumEncoder:
    """A copy of encoder and head that follows them as a moving average and embeds the candidates. Nothing in
    it gets a gradient. Its batch norms use each batch's own statistics, of all processes together, so that
    they do not give away which part of a batch an image is in."""

    def __init__(self, encoder: nn.Module, head: nn.Module, recipe: Recipe, device: torch.device):
        self.recipe, self.followed = recipe, nn.ModuleList([encoder, head])
        self.model = copy.deepcopy(self.followed).requires_grad_(False).train()
        self.embedder = Embedder(self.model[0], self.model[1], device, recipe.chunk)
        # Random directions (Q, E): the losses need a full queue from the first step, as in MoCo.
        drawn = torch.randn(recipe.queue, recipe.embedding, generator=seeded(recipe.seed))
        self.queue = F.normalize(drawn, dim=1).to(device) if recipe.queue else None

    def candidates(self, views: list[Tensor]) -> dict[str, Tensor]:
        """What the loss takes in addition to z: `keys` (V, N, E) of all processes, and `memory` (Q, E)."""
        keys = gather(self.embedder.embed(views))
        return {"keys": keys} if self.queue is None else {"keys": keys, "memory": self.queue.to(keys.dtype)}

    @torch.no_grad()
    def advance(self, keys: Tensor, progress: float) -> None:
        """Follow the encoder by a step; in the queue, the second view's keys replace the oldest.
        `keys` (V, N, E) are this step's; `progress`, 0 to 1, is the fraction of the training that is done."""
        old, new = ([p.detach() for p in model.parameters()] for model in (self.model, self.followed))
        torch._foreach_lerp_(old, new, 1 - momentum(self.recipe, progress))
        if self.queue is not None:
            newest = F.normalize(keys[1], dim=1).to(self.queue.dtype)
            self.queue = torch.cat([self.queue, newest])[-len(self.queue) :]

    def state(self) -> dict:
        return {"model": self.model.state_dict(), "queue": self.queue}

    def restore(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        if self.queue is not None:
            self.queue = state["queue"].to(self.queue.device)


def momentum(recipe: Recipe, progress: float) -> float:
    """m of key ← m·key + (1 − m)·encoder: `key_momentum`, or rising from it to 1 by half a cosine."""
    m = recipe.key_momentum
    assert m is not None  # there is no momentum encoder without it
    rising = 1 - (1 - m) * (1 + math.cos(math.pi * progress)) / 2
    return m if recipe.key_schedule == "constant" else rising

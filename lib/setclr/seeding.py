"""Random generators that are functions of a key: a resumed run draws the same from its step number alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seeded(*key: int) -> torch.Generator:
    """A CPU generator that is a function of `key` alone, for example (seed, epoch, step).

    The key's length counts too: numpy's SeedSequence by itself takes (seed, epoch) for (seed, epoch, 0).
    """
    seed = int(np.random.SeedSequence([len(key), *key]).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(seed)


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """torch's global generator begins at the seed; afterwards it is where it was. For first weights."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield

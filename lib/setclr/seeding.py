"""Random generators seeded by a key such as (seed, epoch, step).

A resumed run needs only its step number to draw the same numbers as an uninterrupted one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seeded(*key: int) -> torch.Generator:
    """A CPU generator that is a function of `key` alone, for example (seed, epoch, step).

    The key's length counts too: numpy's SeedSequence alone takes (seed, epoch) and (seed, epoch, 0) as equal.
    """
    seed = int(np.random.SeedSequence([len(key), *key]).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(seed)


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """Seed torch's global CPU generator inside, restore it after. For initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield

"""Random generators seeded by a key such as (seed, epoch, step).

A resumed run needs only its step number to draw the same numbers as an uninterrupted one.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

States = tuple  # of the global generators
WORDS = slice(24, 24 + 624 * 8)  # where the Mersenne Twister's words lie in a state of torch's CPU generator


def generator_of(seed: int) -> torch.Generator:
    """A CPU generator seeded by all bits of `seed`. Up to 2**32 it is `torch.Generator().manual_seed(seed)`.

    torch takes the lower 32 bits alone, so that seeds 1 and 1 + 2**32 would draw the same. From a larger seed
    NumPy fills the generator's 624 words.
    """
    generator = torch.Generator().manual_seed(seed % 2**64)
    if seed >= 2**32:
        words = np.random.MT19937(np.random.SeedSequence(seed)).state["state"]["key"].astype(np.int64)
        state = generator.get_state()
        state[WORDS] = torch.from_numpy(words).view(torch.uint8)
        generator.set_state(state)
    return generator


def seeded(*key: int) -> torch.Generator:
    """A CPU generator that is a function of `key` alone, for example (seed, epoch, step).

    The key's length counts too: numpy's SeedSequence alone takes (seed, epoch) and (seed, epoch, 0) as equal.
    """
    return generator_of(int(np.random.SeedSequence([len(key), *key]).generate_state(1, np.uint64)[0]))


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """Seed torch's global CPU generator inside, restore it after. For initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator_of(seed).get_state())
        yield


@contextmanager
def seeded_globals(*key: int, torch_too: bool = True) -> Iterator[None]:
    """Seed the global generators of torch, NumPy and Python by `key` inside, and restore them afterwards.

    Without `torch_too` those of NumPy and Python alone.
    """
    generator, before = seeded(*key), global_states()
    seed = generator.initial_seed()
    try:
        if torch_too:
            torch.set_rng_state(generator.get_state())
        np.random.seed([seed % 2**32, seed >> 32])
        random.seed(seed)
        yield
    finally:
        restore(before if torch_too else (torch.get_rng_state(), None, *before[2:]))


def global_states(device: torch.device | None = None) -> States:
    """The states of the global generators: torch's, that of a GPU `device`, NumPy's and Python's."""
    gpu = torch.cuda.get_rng_state(device) if device is not None and device.type == "cuda" else None
    return torch.get_rng_state(), gpu, np.random.get_state(), random.getstate()


def restore(states: States, device: torch.device | None = None) -> None:
    """Set the global generators to states that `global_states` gave for the same device."""
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state(states[1], device or "cuda")
    np.random.set_state(states[2])
    random.setstate(states[3])

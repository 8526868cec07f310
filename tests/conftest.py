"""What all tests share: seeds, threads, a headless matplotlib, and hypothesis without deadlines.

SETCLR_SEED_SHIFT=n (default 0) draws other numbers in every test.
SETCLR_THREADS=n sets torch's threads: 2 without it, or 1 where pytest-xdist runs several workers.
`tests/tools/machines.py` tries both.
"""

import os

import hypothesis
import numpy as np
import pytest
import torch

SHIFT = int(os.environ.get("SETCLR_SEED_SHIFT", "0"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
THREADS = int(os.environ.get("SETCLR_THREADS", "2" if WORKERS == 1 else "1"))

os.environ.setdefault("MPLBACKEND", "agg")
os.environ["OMP_NUM_THREADS"] = str(THREADS)  # for the processes that tests start
torch.set_num_threads(THREADS)
hypothesis.settings.register_profile(
    "setclr",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # the machine may be busy
    max_examples=30,
    derandomize=True,
    database=None,
)
hypothesis.settings.load_profile("setclr")


def shifted(seed: int = 0) -> torch.Generator:
    """A generator of this test run's numbers: another one under each SETCLR_SEED_SHIFT."""
    return torch.Generator().manual_seed(seed + 1000 * SHIFT)


def numpy_shifted(seed: int = 0) -> np.random.Generator:
    """`shifted` for numpy."""
    return np.random.default_rng(seed + 1000 * SHIFT)


def a_record(recipe: dict, **more) -> dict:
    """A record of a run of that recipe, with all fields that a record must have."""
    measured = {"untrained": {"knn": 30.0, "linear": 31.0}, "trained": {"knn": 40.0, "linear": 41.0}}
    return {"accuracy_percent": measured, "epochs": 1, "training_seconds": 1.0, "pixels": "original",
            "images": {"train": 50, "test": 10}, "recipe": recipe, "machine": {"device": "CPU"},
            "precision": "float32"} | more  # fmt: skip


def pytest_pycollect_makemodule() -> None:
    """Tensors drawn in lists of parameters are the same whichever files are collected."""
    torch.manual_seed(SHIFT)


def pytest_itemcollected(item: pytest.Item) -> None:
    if SHIFT and hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
        hypothesis.seed(SHIFT)(item.obj)


@pytest.fixture(scope="module")
def browser():
    from in_browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(SHIFT)

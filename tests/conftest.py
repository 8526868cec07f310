"""What all tests share: one seed, a headless matplotlib, two threads, and hypothesis without deadlines."""

import os

import pytest
import torch
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "agg")
torch.set_num_threads(2)
settings.register_profile("setclr", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("setclr")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)

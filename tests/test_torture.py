"""`make torture` finds what it looks for, and nothing in a first trial of each part."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

TORTURE = Path(__file__).parent / "tools" / "torture"
sys.path.insert(0, str(TORTURE))
from kills import compared  # noqa: E402
from tensors import not_finite  # noqa: E402

pytestmark = pytest.mark.careful


@pytest.mark.parametrize("part, counted", [("kills", "1 bit-identical"), ("losses", "finite, ")])
def test_a_first_trial_counts_something_and_everything_holds(part, counted):
    done = subprocess.run([sys.executable, TORTURE, part, "0"], capture_output=True, text=True)
    assert done.returncode == 0 and counted in done.stdout and "1 trials, 0 did not hold" in done.stdout


def test_nan_in_a_result_or_a_gradient_is_seen():
    x = torch.zeros(2, requires_grad=True)
    assert not not_finite((x * 2).sum(), x)
    assert not_finite((x / 0).sum(), x) and not_finite(x.sqrt().sum(), x)


def test_a_file_that_is_missing_is_seen_and_a_lock_that_stayed_is_none(tmp_path):
    for top in ("struck", "whole"):
        (tmp_path / top / "runs/a").mkdir(parents=True)
        (tmp_path / top / "runs/a/history.csv").touch()
    (tmp_path / "struck/runs/a/lock").touch()
    assert compared(tmp_path / "struck", tmp_path / "whole") == ""
    (tmp_path / "whole/runs/a/checkpoint.pt").touch()
    assert "the files are" in compared(tmp_path / "struck", tmp_path / "whole")

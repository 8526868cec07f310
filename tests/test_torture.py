"""`make torture` finds what it looks for, and nothing in a first trial of each part."""

import sys
from pathlib import Path

import pytest
import torch

TORTURE = Path(__file__).parent / "tools" / "torture"
sys.path.insert(0, str(TORTURE))
from kills import compared  # noqa: E402
from parts import PARTS, Part  # noqa: E402
from tensors import not_finite  # noqa: E402

pytestmark = pytest.mark.careful


@pytest.mark.parametrize("name", PARTS)
def test_a_first_trial_counts_something_and_everything_holds(name, tmp_path):
    part = Part(name, tmp_path)
    try:
        counts, findings = part.trial(0)
    finally:
        part.close()
    assert not findings and sum(counts.values()) > 0


def test_a_part_that_dies_or_hangs_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr("parts.HANGS", 0.0)
    part = Part("losses", tmp_path)
    counts, (said,) = part.trial(0)
    assert counts == {"hung": 1} and "hung" in said and part.process is None
    monkeypatch.undo()
    part.process = part._begun()
    part.process.kill()
    counts, (said,) = part.trial(0)
    assert counts == {"crashed": 1} and "crashed" in said


def test_nan_in_a_result_or_a_gradient_is_seen():
    x = torch.zeros(2, requires_grad=True)
    assert not not_finite((x * 2).sum(), [x])
    assert not_finite((x / 0).sum(), [x]) and not_finite(x.sqrt().sum(), [x])


def test_a_file_that_is_missing_is_seen_and_a_lock_that_stayed_is_none(tmp_path):
    for top in ("struck", "whole"):
        (tmp_path / top / "runs/a").mkdir(parents=True)
        (tmp_path / top / "runs/a/history.csv").touch()
    (tmp_path / "struck/runs/a/lock").touch()
    assert compared(tmp_path / "struck", tmp_path / "whole") == ""
    (tmp_path / "whole/runs/a/checkpoint.pt").touch()
    assert "the files are" in compared(tmp_path / "struck", tmp_path / "whole")

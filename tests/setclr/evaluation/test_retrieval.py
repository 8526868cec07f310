"""The nearest other image, against scikit-learn and cases counted by hand."""

import pytest
import torch
from conftest import shifted
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from setclr.evaluation import retrieval as module
from setclr.evaluation import retrieval_at_1


@given(st.integers(2, 40), st.integers(0, 100))
def test_retrieval_at_1_equals_scikit_learn(n, seed):
    drawn = shifted(seed)
    x, y = torch.randn(n, 5, generator=drawn), torch.randint(0, 3, (n,), generator=drawn)
    y[0] = (y[1] + 1) % 3
    nearest = NearestNeighbors(metric="cosine", algorithm="brute").fit(x).kneighbors(n_neighbors=1)[1][:, 0]
    assert retrieval_at_1(x, y) == pytest.approx(float((y[nearest] == y).float().mean()))


def test_retrieval_at_1_counted_by_hand():
    """By cosine: 0 finds 1, 1 finds 0, 2 finds 3, 3 finds 2. By distance 0 would find 3."""
    x = torch.tensor([[1.0, 0.1], [9.0, 0.0], [0.0, 8.0], [0.5, 1.0]])
    assert retrieval_at_1(x, torch.tensor([7, 7, 1, 2])) == 0.5
    assert retrieval_at_1(x, torch.tensor([7, 7, 1, 1])) == 1.0


def test_retrieval_at_1_is_chunked_without_a_trace(monkeypatch):
    x, y = torch.randn(50, 4), torch.randint(0, 3, (50,))
    whole = retrieval_at_1(x, y)
    monkeypatch.setattr(module, "SIMILARITIES", 7 * len(x))
    assert retrieval_at_1(x, y) == whole


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, y: retrieval_at_1(x[:1], y[:1]), r"features must be \(N, D\) with N >= 2, got \(1, 3\)"),
        (lambda x, y: retrieval_at_1(x * torch.nan, y), "features must be finite"),
        (lambda x, y: retrieval_at_1(x, y[:5]), "labels must be 10 integers, got torch.int64 of shape"),
        (lambda x, y: retrieval_at_1(x, y.float()), "labels must be 10 integers, got torch.float32"),
    ],
)
def test_bad_features_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.randn(10, 3), torch.arange(10))

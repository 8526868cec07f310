"""The two smoothings of a maximum against their formulas, entmax and golden values."""

import math
from pathlib import Path

import entmax
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setclr.inner.simplex import _newton, _sorted_depth, soft_maximum, sparse_maximum, sparsemax

GOLDENS = np.load(Path(__file__).parent / "goldens" / "sparseclr_easy.npz")
scales = st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4])


def by_the_book(x):
    """Threshold (eq. 15) and smoothed maximum of one list, its support the k largest entries with the largest
    k for which 1 + k x_(k) > x_(1) + … + x_(k)."""
    descending = sorted((float(v) for v in x), reverse=True)
    k = max(k for k in range(1, len(x) + 1) if 1 + k * descending[k - 1] > sum(descending[:k]))
    T = (sum(descending[:k]) - 1) / k
    return T, sum(v * v - T * T for v in descending[:k]) / 2 + 0.5


def masked(x):
    """x with about a third of its entries −inf, never a whole row."""
    keep = torch.rand_like(x) > 0.3
    keep[..., 0] = True
    return x.masked_fill(~keep, -torch.inf)


@given(st.integers(1, 30), scales)
def test_equals_the_formula(n, scale):
    x = scale * torch.randn(3, n, dtype=torch.float64)
    for row, p, value in zip(x, sparsemax(x), sparse_maximum(x)):
        T, expected = by_the_book(row)
        torch.testing.assert_close(p, (row - T).clamp(min=0), rtol=0, atol=1e-9)
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 40), scales, st.booleans(), st.sampled_from([torch.float32, torch.float64]))
def test_equals_entmax(n, scale, mask, dtype):
    x = scale * torch.randn(2, 3, n, dtype=dtype)
    x = masked(x) if mask else x
    p, expected = sparsemax(x), entmax.sparsemax(x.double().clamp(min=-1e9), dim=-1)
    torch.testing.assert_close(p.double(), expected, rtol=0, atol=8 * scale * torch.finfo(dtype).eps + 1e-7)
    torch.testing.assert_close(p.sum(-1), torch.ones_like(x[..., 0]))


@given(st.integers(2, 20), scales)
def test_less_an_entry_it_is_the_sparsemax_loss(n, scale):
    x, target = scale * torch.randn(5, n, dtype=torch.float64), torch.randint(n, (5,))
    expected = entmax.SparsemaxLoss(reduction="none")(x, target)
    loss = sparse_maximum(x) - x.gather(1, target.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-12)


def test_golden_values():
    x = torch.tensor(GOLDENS["sparsemax_in"])
    np.testing.assert_allclose(sparsemax(x), GOLDENS["sparsemax_out"], rtol=1e-9, atol=1e-15)


@given(st.integers(1, 20), scales, st.booleans())
def test_the_gradient_of_a_smoothed_maximum_is_its_maximiser(n, scale, mask):
    x = scale * torch.randn(4, n, dtype=torch.float64)
    x = (masked(x) if mask else x).requires_grad_()
    (gradient,) = torch.autograd.grad(sparse_maximum(x).sum(), x)
    torch.testing.assert_close(gradient, sparsemax(x.detach()))
    (gradient,) = torch.autograd.grad(soft_maximum(x, 0.3).sum(), x)
    torch.testing.assert_close(gradient, (x.detach() / 0.3).softmax(-1))


@given(st.integers(1, 12), st.integers(1, 4), scales)
def test_also_makes_one_list_of_each(n, k, scale):
    x = masked(scale * torch.randn(2, 3, n, dtype=torch.float64)).requires_grad_()
    also = (scale * torch.randn(2, 3, k, dtype=torch.float64)).requires_grad_()
    lists = torch.cat([x.unsqueeze(2).expand(2, 3, k, n), also.unsqueeze(3)], dim=3)
    together, apart = sparse_maximum(x, also), sparse_maximum(lists)
    torch.testing.assert_close(together, apart)
    weights = torch.randn(2, 3, k, dtype=torch.float64)
    for got, expected in zip(
        *(torch.autograd.grad((y * weights).sum(), (x, also)) for y in (together, apart))
    ):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)


def test_gradients():
    x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    also = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sparsemax, x)
    assert torch.autograd.gradgradcheck(sparsemax, x)
    assert torch.autograd.gradcheck(sparse_maximum, x)
    assert torch.autograd.gradcheck(sparse_maximum, (x, also))
    assert torch.autograd.gradcheck(lambda x: soft_maximum(x, 0.5), x)
    jacobian = torch.autograd.functional.jacobian(sparsemax, x[0].detach())
    s = (sparsemax(x[0].detach()) > 0).double()
    torch.testing.assert_close(jacobian, s.diag() - torch.outer(s, s) / s.sum())


@given(st.integers(1, 20), scales, st.sampled_from([1e-3, 0.5, 1e3]))
def test_a_smoothing_stays_near_the_maximum(n, scale, temperature):
    x = scale * torch.randn(4, n, dtype=torch.float64)
    sparse, soft = sparse_maximum(x) - x.amax(-1), soft_maximum(x, temperature) - x.amax(-1)
    slack = 1e-12 * (scale + temperature)
    assert -slack <= sparse.min() and sparse.max() <= (1 - 1 / n) / 2 + slack
    assert -slack <= soft.min() and soft.max() <= temperature * math.log(n) + slack


def test_towards_zero_temperature_log_sum_exp_is_the_maximum():
    x = torch.randn(4, 9, dtype=torch.float64)
    for temperature in (1e-2, 1e-4, 1e-6):
        gap = (soft_maximum(x, temperature) - x.amax(-1)).abs().max()
        assert gap <= temperature * math.log(9)


HARD = {
    "geometric": -(0.5 ** torch.arange(200, dtype=torch.float64)),
    "harmonic": -1 / torch.arange(1, 201, dtype=torch.float64),
    "flat top": -((torch.arange(200, dtype=torch.float64) / 200) ** 8),
    "log-spaced": -torch.logspace(-12, 0, 200, dtype=torch.float64),
    "equal": torch.zeros(200, dtype=torch.float64),
    "far": torch.linspace(-1e6, 1e6, 200, dtype=torch.float64),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_fixed_number_of_rounds_suffices(dtype):
    """Compiled, the rounds do not stop early; on a GPU there is one, after sorting."""
    x = torch.stack([*HARD.values(), *torch.randn(20, 200).double()]).to(dtype)
    expected = entmax.sparsemax(x.double(), dim=-1)
    tolerance = dict(rtol=0, atol=16 * torch.finfo(dtype).eps)
    torch.testing.assert_close(sparsemax(x).double(), expected, **tolerance)
    compiled = torch.compile(sparsemax, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x).double(), expected, **tolerance)
    below = x - x.amax(-1, keepdim=True)
    depth = _newton(below, _sorted_depth(below), 1)
    torch.testing.assert_close((below + depth).clamp(min=0).double(), expected, **tolerance)


def test_a_common_offset_costs_no_digits():
    x = torch.randint(-512, 512, (8, 20)).float() / 256  # multiples of 2⁻⁸, so that x + 2¹⁵ is exact
    torch.testing.assert_close(sparsemax(x + 2**15), sparsemax(x), rtol=0, atol=1e-7)
    x.requires_grad_()
    (near,), (far,) = (torch.autograd.grad(sparse_maximum(x + c).sum(), x) for c in (0.0, 2.0**15))
    torch.testing.assert_close(far, near, rtol=0, atol=1e-7)


x = torch.randn(2, 3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: sparsemax([1.0]), r"x must be a float32 or float64 tensor .* got list"),
        (lambda: sparsemax(torch.arange(3)), "x must be .* got torch.int64"),
        (lambda: sparsemax(x.half()), "x must be .* got torch.float16"),
        (lambda: sparsemax(torch.tensor(1.0)), r"x must be .* shape \(\)"),
        (lambda: sparsemax(x[..., :0]), "x must be .* n >= 1"),
        (lambda: sparsemax(x * torch.nan), "x must hold a finite maximum in every row, got nan"),
        (lambda: sparse_maximum(x - torch.inf), "x must hold a finite maximum in every row, got -inf"),
        (lambda: soft_maximum(x + torch.inf, 1.0), "x must hold a finite maximum in every row, got inf"),
        (lambda: sparse_maximum(x, x[0]), r"also must be torch.float32 of shape \(..., k\) .* got .*\(3,\)"),
        (lambda: sparse_maximum(x, x.double()), "also must be torch.float32 .* got torch.float64"),
        (lambda: sparse_maximum(x, 1.0), "also must be .* got float"),
        (lambda: soft_maximum(x, 0.0), "temperature must be > 0, got 0.0"),
        (lambda: soft_maximum(x, math.nan), "temperature must be > 0, got nan"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

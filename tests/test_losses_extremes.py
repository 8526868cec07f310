"""No loss is silently inf or NaN: at the ends of what may be asked for it is finite, beyond it is refused."""

import inspect
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setclr import losses
from setclr.losses.baselines import DeepCluster, DeepInfoMax, Rotation, Supervised

NUMBERS = [
    1e-38,
    1e-30,
    1e-20,
    1e-12,
    1e-9,
    1e-6,
    1e-3,
    0.1,
    1.0,
    10.0,
    64.0,
    750.0,
    1e6,
    1e9,
    1e12,
    1e20,
    1e30,
    0.0,
    -1.0,
]
SIZES = [1e-40, 1e-37, 1e-20, 1e-12, 1e-9, 1.0, 1e9, 1e37]  # of the rows


def values_of(parameter: inspect.Parameter) -> st.SearchStrategy:
    kind = type(parameter.default)
    options = {bool: [True, False], int: [0, 1, 2, 5, 1000], float: [*NUMBERS, math.inf]}
    return st.sampled_from(options.get(kind, [parameter.default]))


@st.composite
def settings_of(draw, kind):
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: draw(values_of(p)) for p in parameters if draw(st.booleans())}


def batch(seed: int, sizes: tuple[float, float], alike: str, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    z[1] = {"own": z[1], "same": z[0], "opposite": -z[0]}[alike]
    return (z * torch.tensor(sizes, dtype=torch.float64)[:, None, None]).to(dtype).requires_grad_()


@pytest.mark.parametrize("kind", losses.LOSSES, ids=lambda kind: kind.__name__)
@settings(max_examples=120)
@given(data=st.data())
def test_value_and_gradient_are_finite_or_refused(kind, data):
    asked = data.draw(settings_of(kind))
    sizes = data.draw(st.tuples(st.sampled_from(SIZES), st.sampled_from(SIZES)))
    alike = data.draw(st.sampled_from(["own", "same", "opposite"]))
    weight = data.draw(st.sampled_from([None, *NUMBERS]))
    z = batch(
        data.draw(st.integers(0, 99)),
        sizes,
        alike,
        data.draw(st.sampled_from([torch.float32, torch.float64])),
    )
    try:
        loss = kind(**asked)
        value = (loss if weight is None else weight * loss)(z)
    except ValueError:
        return
    value.backward()
    assert value.isfinite() and z.grad.isfinite().all(), (asked, weight)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.AlignUniform(alpha=750), "alpha must be > 0 and <= 64, got 750"),
        (lambda: losses.InfoNCE(1e-20), "temperature must be 1e-9 to 1e9 in size, got 1e-20"),
        (lambda: losses.IOT(epsilon=1e-20), "epsilon must be 1e-9 to 1e9"),
        (lambda: losses.HCL(hardness=1e-320), "hardness must be 1e-9 to 1e9"),
        (lambda: 1e30 * losses.QARe(), "weight must be 1e-9 to 1e9"),
        (lambda: 1e6 * (1e6 * losses.QARe()), "weight must be 1e-9 to 1e9 in size, got 1000000000000"),
        (
            lambda: losses.InfoNCE()(1e-38 * torch.ones(2, 2, 3)),
            r"z\[0, 0\] must be .* too short for a gradient",
        ),
    ],
)
def test_what_lies_beyond_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", [losses.InfoNCE, losses.SupCon])
def test_the_own_place_is_zero_at_any_temperature(kind):
    """Where positives point the other way, one's own similarity is far above all that is compared."""
    z = torch.tensor([[[1.0, 0.5], [0.2, -1.0]], [[-1.0, -0.5], [-0.2, 1.0]], [[1.0, -1.0], [-1.0, 0.1]]])
    for temperature in (1e-2, 1e-4, 1e-6, 1e-9):
        found = kind(temperature=temperature).assignment(z)
        assert found.isfinite().all() and (found.diagonal() == 0).all()


TARGETS = torch.tensor([0, 1, 2])


@pytest.mark.parametrize("kind", [Supervised, DeepCluster, Rotation, DeepInfoMax])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_baseline_refuses_outputs_that_are_not_finite(kind, wrong):
    z = torch.ones(4, 3, 4) if kind is Rotation else torch.ones(1, 3, 64 + 8)
    z[0, 1, 2] = wrong
    targets = TARGETS if kind.targets else None
    with pytest.raises(ValueError, match=r"z\[0, 1, 2\] must be finite"):
        kind()(z, targets)


@pytest.mark.parametrize(
    "targets", ["x", [0, 1, 2], TARGETS.float(), TARGETS > 0, TARGETS[:2], TARGETS.to("meta")]
)
def test_a_baseline_refuses_targets_in_words(targets):
    with pytest.raises(ValueError, match="targets must be a tensor of 3 integers on cpu, got"):
        Supervised()(torch.ones(1, 3, 5), targets)


def test_a_baseline_refuses_sparse_tensors():
    z = torch.ones(1, 3, 5)
    for outputs, targets in ((z.to_sparse(), TARGETS), (z, TARGETS.to_sparse())):
        with pytest.raises(ValueError, match=r"^(z|targets) must be a dense tensor, got torch.sparse_coo"):
            Supervised()(outputs, targets)


@pytest.mark.parametrize("name", ["features", "channels"])
def test_what_no_machine_holds_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1 and <= 65536, got 1000000000"):
        DeepInfoMax(**{name: 10**9})

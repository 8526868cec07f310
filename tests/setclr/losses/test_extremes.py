"""No loss is silently inf or NaN: at the ends of what may be asked for it is finite, beyond it is refused."""

import inspect
import math

import pytest
import torch
from every_loss import EXAMPLES, several, slope, views
from hypothesis import given, settings
from hypothesis import strategies as st

from setclr import losses
from setclr.losses import LOSSES, InfoNCE, SupCon

SOFT = (InfoNCE, losses.NTLogistic, losses.InvaSpread, losses.DebiasedInfoNCE, losses.GroCo)
EXTREME = EXAMPLES + [kind(tau) for kind in SOFT for tau in (1e-3, 1e3)] + [
    losses.LinearAssignment(0.5, tau, mining, distance) for tau in (0.0, 1e-3, 1e3)
    for mining in ("one-to-one", "batch-hard") for distance in ("cosine", "euclidean")
] + several("""
SparseCLR(0.0); SparseCLR(100.0); AlignUniform(1.0, 1e3); HardNegatives(1e-3, 0.01); HCL(1e-3, hardness=3.0)
HCL(1e3); IOT("both", 1e-3, 5); IOT("both", 1e3, 5, 1.0); IOT("total", 1e-3, uniformity=1.0)
IOT("rows", 1e-3, uniformity=1.0, uniform_target="max"); MMCL(bandwidth=1e-3); MMCL(bandwidth=1e3)
MMCL(bandwidth=1e3, C=float("inf")); MMCL(bandwidth=1e-3, solver="exact"); MMCL(bandwidth=1e3, solver="exact")
MMCL("linear", C=float("inf"), solver="exact"); MMCL("tanh", bandwidth=1e3, C=1.0)
""")  # fmt: skip
SIGNS = torch.tensor([1.0, -1.0])
BATCHES = {
    "all equal": lambda V: torch.ones(V, 4, 3),
    "all equal, N > E + 1": lambda V: torch.ones(V, 4, 2),
    "equal views": lambda V: torch.randn(1, 4, 3).repeat(V, 1, 1),
    "antipodal": lambda V: torch.randn(4, 3) * SIGNS.view(2, 1, 1),
    "antipodal images": lambda V: SIGNS.repeat(4).view(1, 8, 1) * torch.ones(2, 8, 3),
    "N=2": lambda V: torch.randn(V, 2, 3),
    "V=8": lambda V: torch.randn(2 if V == 2 else 8, 4, 3),
    "V=8, N > E + 1": lambda V: torch.randn(2 if V == 2 else 8, 5, 3),
} | {
    f"{scale} in {dtype}": lambda V, scale=scale, dtype=dtype: (scale * torch.randn(V, 4, 3)).to(dtype)
    for dtype, scales in ((torch.float32, (1e-6, 1e6)), (torch.bfloat16, (1,)), (torch.float16, (1e-2, 1e3)))
    for scale in scales
}


@pytest.mark.filterwarnings("ignore:the solver 'pgd' stopped", "ignore:sinkhorn stopped")
@pytest.mark.parametrize("loss", EXTREME, ids=repr)
def test_extremes_give_finite_values_and_gradients_and_the_right_ones(loss):
    for name, batch in BATCHES.items():
        z = batch(views(loss, 3)).requires_grad_()
        value = loss(z)
        scale = max(1, abs(value.item())) if z.dtype == torch.float16 else 1  # as fp16 training scales it
        assert value.dtype == torch.float32 and value.isfinite(), name
        assert slope(value / scale, z).isfinite().all(), name
        if loss.has_assignment:
            assert loss.assignment(z).isfinite().all(), name
        exact = loss(z.detach().double())
        near = dict(rtol=2e-3, atol=2e-4 * max(1, abs(float(exact))))
        torch.testing.assert_close(value.detach().double(), exact, **near, msg=lambda m: f"{name}: {m}")  # noqa: B023


@pytest.mark.parametrize("E", [3, 100])
@pytest.mark.parametrize("loss", several("""
Triplet(0.5, "all", 4); QARe("euclidean"); AlignUniform(0.3, weight=0); AlignUniform(1.0, weight=0)
AlignUniform(1.5, weight=0); AlignUniform(2.0, weight=0); AlignUniform(3.0, weight=0)
"""), ids=repr)  # fmt: skip
def test_equal_points_have_distance_and_gradient_0(loss, E):
    z = torch.randn(E).repeat(3, 5, 1).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        value = loss(z)
        assert value == getattr(loss, "margin", 0) and slope(value, z).abs().max() == 0


NUMBERS = [1e-38, 1e-30, 1e-20, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0, 64.0, 750.0, 1e6, 1e9, 1e12, 1e20,
           1e30, 0.0, -1.0]  # fmt: skip
SIZES = st.sampled_from([1e-40, 1e-37, 1e-20, 1e-12, 1e-9, 1.0, 1e9, 1e37])  # of the rows


def values_of(parameter: inspect.Parameter) -> st.SearchStrategy:
    options = {bool: [True, False], int: [0, 1, 2, 5, 1000], float: [*NUMBERS, math.inf]}
    return st.sampled_from(options.get(type(parameter.default), [parameter.default]))


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
@settings(max_examples=60)
@given(data=st.data())
def test_value_and_gradient_are_finite_or_refused(kind, data):
    parameters = inspect.signature(kind).parameters.values()
    asked = {p.name: data.draw(values_of(p)) for p in parameters if data.draw(st.booleans())}
    sizes, weight = data.draw(st.tuples(SIZES, SIZES)), data.draw(st.sampled_from([None, *NUMBERS]))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    z = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    z[1] = data.draw(st.sampled_from([z[1], z[0], -z[0]]))
    z *= torch.tensor(sizes, dtype=z.dtype)[:, None, None]
    z = z.to(data.draw(st.sampled_from([z.dtype, torch.float32])))
    try:
        loss = kind(**asked)
        value = (loss if weight is None else weight * loss)(z.requires_grad_())
    except ValueError:
        return
    assert value.isfinite() and slope(value, z).isfinite().all(), (asked, weight)


@pytest.mark.parametrize("kind", [InfoNCE, SupCon])
def test_the_own_place_is_zero_at_any_temperature(kind):
    """Where positives point the other way, one's own similarity is far above all that is compared."""
    z = torch.tensor([[[1.0, 0.5], [0.2, -1.0]], [[-1.0, -0.5], [-0.2, 1.0]], [[1.0, -1.0], [-1.0, 0.1]]])
    for temperature in (1e-2, 1e-4, 1e-6, 1e-9):
        found = kind(temperature=temperature).assignment(z)
        assert found.isfinite().all() and (found.diagonal() == 0).all()

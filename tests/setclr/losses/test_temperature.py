"""Temperatures that are learnt, and settings that are changed."""

import copy
import pickle

import pytest
import torch
from every_loss import normal, slope
from torch import nn

from setclr import losses
from setclr.losses import IOT, LOSSES, InfoNCE, LinearAssignment, QARe, learnable, parse
from setclr.losses.temperature import learnt_numbers

LEARNED = [IOT, *(kind for kind in LOSSES if hasattr(kind(), "temperature") and kind is not LinearAssignment)]


@pytest.mark.parametrize("kind", LEARNED)
def test_a_temperature_can_be_learned_and_a_learnable_one_stays_in_its_domain(kind):
    """It has the slope τ · ∂L/∂τ in the logarithm, and any step leaves it between 0.01 and 1, as in CLIP."""
    name, tau = (
        "epsilon" if kind is IOT else "temperature",
        nn.Parameter(torch.tensor(0.3, dtype=torch.float64)),
    )
    fixed, loss, z = (lambda tau: kind(**{name: tau})), kind(**{name: tau}), normal(2, 6, 5)
    assert list(loss.parameters()) == [tau] and f"{name}=0.3" in repr(loss)
    torch.testing.assert_close(loss(z), fixed(0.3)(z))
    torch.testing.assert_close(loss.assignment(z), fixed(0.3).assignment(z))
    by_tau, h = slope(loss(z), tau), 1e-6
    assert by_tau.item() == pytest.approx((fixed(0.3 + h)(z) - fixed(0.3 - h)(z)).item() / (2 * h), rel=1e-5)
    assert repr(eval(repr(loss), vars(losses))) == repr(loss)
    assert [p.item() for p in copy.deepcopy(loss).parameters()] == [0.3]
    loss = fixed(learnable(0.3)).double()
    ((place, log),) = loss.named_parameters()
    torch.testing.assert_close(slope(loss(z), log), 0.3 * by_tau)
    assert place == f"{name}.log" and repr(eval(repr(loss), vars(losses))) == repr(loss)
    for step, end in ((100.0, 1.0), (-100.0, 0.01)):
        with torch.no_grad():
            log += step
        assert loss(z).isfinite() and getattr(loss, name).value == pytest.approx(end)
        torch.testing.assert_close(loss(z), fixed(end)(z))
    setattr(loss, name, 0.3)
    assert not list(loss.parameters()) and loss(z) == fixed(0.3)(z)


def test_a_temperature_that_was_optimised_away_is_refused():
    tau = nn.Parameter(torch.tensor(0.1))
    loss = InfoNCE(tau)
    with torch.no_grad():
        tau.fill_(-0.1)
    with pytest.raises(ValueError, match=r"must be > 0, got -0.1.*learnable\(0.07\) is learnt in the log"):
        loss(torch.randn(2, 4, 5))
    there = loss.to("meta")  # where values cannot be seen nothing is asked
    assert there.score(there.points(torch.randn(2, 4, 5, device="meta"))).is_meta


def test_an_optimiser_moves_the_temperature_and_its_value_has_a_name():
    z = torch.randn(4, 8) + 0.3 * torch.randn(2, 4, 8)
    loss = parse("InfoNCE(temperature=learnable(0.5)) + 0.1 * QARe()")
    before, optimiser = loss(z), torch.optim.SGD(loss.parameters(), lr=0.05)
    before.backward()
    optimiser.step()
    tau = loss.losses[0].temperature.value
    assert 0.01 < tau < 0.5 and loss(z) < before and f"learnable({tau:.6g})" in repr(loss)
    loss = loss + nn.Parameter(torch.tensor(0.5)) * QARe()
    assert learnt_numbers(loss) == pytest.approx({"losses.0.temperature": tau, "weight0": 0.5})


def test_a_learned_temperature_under_compile():
    torch._dynamo.reset()
    loss, z = InfoNCE(nn.Parameter(torch.tensor(0.3, dtype=torch.float64))), normal(2, 5, 4)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(z), loss(z), rtol=1e-9, atol=0)


def test_a_changed_setting_is_that_of_a_loss_made_with_it():
    z, loss, other = torch.randn(2, 8, 16), InfoNCE(0.5), InfoNCE(0.2, candidates="other view")
    loss.temperature, loss.candidates = 0.2, "other view"
    assert loss(z) == other(z) and repr(loss) == repr(other) and loss.takes == other.takes
    loss.temperature = nn.Parameter(torch.tensor(0.3))
    assert list(loss.state_dict()) == ["temperature"]
    again = pickle.loads(pickle.dumps(copy.deepcopy(loss)))
    with pytest.raises(ValueError, match="positive_views must be"):
        again.positive_views = 1

"""What a call and a sum understand: weights, each anchor's value, multiples, learned temperatures."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
import torch
from every_loss import EVERY, views
from torch import nn

from setclr import losses
from setclr.losses import (
    HCL,
    IOT,
    LOSSES,
    MMCL,
    AlignUniform,
    DebiasedInfoNCE,
    GroCo,
    HardNegatives,
    InfoNCE,
    InvaSpread,
    LinearAssignment,
    NTLogistic,
    QARe,
    SparseCLR,
    SupCon,
    Triplet,
    capabilities,
    learnable,
    parse,
)
from setclr.losses.baselines import DeepInfoMax
from setclr.losses.temperature import learnt_numbers


def has_values(loss) -> bool:
    z = torch.randn(views(loss, 3), 4, 5)
    try:
        loss(z, reduction="none")
    except ValueError:
        return False
    return True


WITH_VALUES = [loss for loss in EVERY if has_values(loss)]
with_values = pytest.mark.parametrize("loss", WITH_VALUES, ids=repr)


@with_values
def test_the_loss_is_the_mean_of_the_anchors_values(loss):
    z = torch.randn(views(loss, 3), 6, 5, dtype=torch.float64, requires_grad=True)
    values = loss(z, reduction="none")
    assert values.shape == z.shape[:2]
    torch.testing.assert_close(values.mean(), loss(z))
    (of_mean,), (of_loss,) = (torch.autograd.grad(x, z) for x in (loss(z, reduction="none").mean(), loss(z)))
    torch.testing.assert_close(of_mean, of_loss)


@with_values
def test_weights_are_those_of_the_images_in_the_mean(loss):
    V = views(loss, 3)
    z, w = torch.randn(V, 6, 5, dtype=torch.float64), torch.rand(6)
    values = loss(z, reduction="none")
    by_hand = sum(float(w[i]) * float(values[v, i]) for v in range(V) for i in range(6)) / (
        V * float(w.sum())
    )
    assert loss(z, weight=w).item() == pytest.approx(by_hand, rel=1e-6)
    torch.testing.assert_close(loss(z, weight=w, reduction="none"), w * values)
    torch.testing.assert_close(loss(z, weight=torch.full((6,), 3.0)), loss(z))


def test_who_has_no_value_for_each_anchor():
    without = [x for x in EVERY if x not in WITH_VALUES]
    assert {type(x) for x in without} == {LinearAssignment, QARe, IOT, AlignUniform, losses.base.WeightedSum}
    for loss in [LinearAssignment(), QARe(), IOT(uniformity=0.1), InfoNCE() + 0.1 * QARe()]:
        for more in (dict(reduction="none"), dict(weight=torch.ones(4))):
            with pytest.raises(ValueError, match="reduction must be 'mean' and weight None for .*no value"):
                loss(torch.randn(2, 4, 3), **more)
    sums = InfoNCE() + 0.3 * GroCo(negatives=2)
    z = torch.randn(2, 4, 3)
    apart = InfoNCE()(z, reduction="none") + 0.3 * GroCo(negatives=2)(z, reduction="none")
    torch.testing.assert_close(sums(z, reduction="none"), apart)


@pytest.mark.parametrize(
    "more, message",
    [
        (dict(reduction="sum"), "reduction must be one of 'mean', 'none', got 'sum'"),
        (dict(weight=[1.0, 1, 1]), "weight must be a floating tensor of 3 numbers.* got list"),
        (dict(weight=torch.ones(3).long()), r"weight must be .* got torch.int64; use weight.float\(\)"),
        (dict(weight=torch.ones(2)), r"weight must be \(3,\), .* got \(2,\)"),
        (dict(weight=torch.ones(2, 3)), r"weight must be .* got shape \(2, 3\)"),
        (dict(weight=torch.zeros(3)), "weight must be >= 0 and its largest entry 1e-9 to 1e9"),
        (dict(weight=torch.tensor([1.0, -1, 1])), "weight must be >= 0 and its largest entry 1e-9 to 1e9"),
        (dict(weight=torch.tensor([1.0, torch.nan, 1])), "weight must be >= 0 .* nan"),
        (
            dict(weight=torch.full((3,), 1e-40)),
            "weight must be >= 0 and its largest entry 1e-9 to 1e9, got .*e-4",
        ),
        (dict(weight=torch.tensor([1.0, torch.inf, 1]).half()), "its largest entry 1e-9 to 1e9, got .*inf"),
        (dict(weight=torch.tensor([1.0, torch.inf, 1])), "its largest entry 1e-9 to 1e9, got .*inf"),
    ],
)
def test_bad_reductions_and_weights_are_refused(more, message):
    with pytest.raises(ValueError, match=message):
        InfoNCE()(torch.randn(2, 3, 4), **more)


def test_sum_and_division():
    z = torch.randn(2, 4, 5)
    total = sum([InfoNCE(), QARe(), SupCon()])
    torch.testing.assert_close(total(z), InfoNCE()(z) + QARe()(z) + SupCon()(z))
    assert repr(total) == repr(InfoNCE() + QARe() + SupCon())
    half = (InfoNCE() + 3 * QARe()) / 2
    assert repr(half) == repr(0.5 * InfoNCE() + 1.5 * QARe()) == repr(parse(repr(half)))
    torch.testing.assert_close(half(z), InfoNCE()(z) / 2 + 1.5 * QARe()(z))
    for wrong in (lambda: 1 + InfoNCE(), lambda: InfoNCE() / QARe(), lambda: sum([InfoNCE()], start=2)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="divisor must be > 0, got 0"):
        InfoNCE() / 0


def test_a_tensor_times_a_loss_stays_in_the_graph():
    z = torch.randn(2, 4, 5)
    weight = torch.tensor(0.3, requires_grad=True)
    for loss in (weight * InfoNCE(), InfoNCE() * weight, 2 * (weight * InfoNCE() + QARe()) / 2):
        (slope,) = torch.autograd.grad(loss(z), weight)
        torch.testing.assert_close(slope, InfoNCE()(z))
        assert "0.3 * InfoNCE(temperature=0.5)" in repr(loss)
        assert repr(eval(repr(loss), vars(losses))) == repr(loss)
    for wrong in (torch.ones(2), torch.tensor(2)):
        with pytest.raises(ValueError, match="weight must be a number or a 0-d floating tensor, got"):
            wrong * InfoNCE()
    with pytest.raises(ValueError, match="weight must be a finite number, got nan"):
        torch.tensor(torch.nan) * InfoNCE()


def test_a_learned_weight_is_a_parameter_of_the_sum_and_is_read_anew():
    z, weight = torch.randn(2, 4, 5), nn.Parameter(torch.tensor(0.3))
    loss = 0.5 * (weight * (InfoNCE() + 2 * QARe()))
    assert list(loss.parameters()) == [weight]
    with torch.no_grad():
        weight.fill_(0.8)
    torch.testing.assert_close(loss(z), 0.4 * InfoNCE()(z) + 0.8 * QARe()(z))
    twin = copy.deepcopy(loss)
    with torch.no_grad():
        next(twin.parameters()).zero_()
    assert twin(z) == 0 and loss(z) > 0


LEARNED = [InfoNCE, SupCon, NTLogistic, HardNegatives, DebiasedInfoNCE, HCL, InvaSpread, IOT]


@pytest.mark.parametrize("kind", LEARNED)
def test_a_temperature_can_be_learned(kind):
    name = "epsilon" if kind is IOT else "temperature"
    tau = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
    loss, z = kind(**{name: tau}), torch.randn(2, 6, 5, dtype=torch.float64)
    assert list(loss.parameters()) == [tau] and f"{name}=0.3" in repr(loss)
    torch.testing.assert_close(loss(z), kind(**{name: 0.3})(z))
    torch.testing.assert_close(loss.assignment(z), kind(**{name: 0.3}).assignment(z))
    (slope,) = torch.autograd.grad(loss(z), tau)
    h = 1e-6
    near = [kind(**{name: 0.3 + sign * h})(z).item() for sign in (1, -1)]
    assert slope.item() == pytest.approx((near[0] - near[1]) / (2 * h), rel=1e-5)
    assert repr(eval(repr(loss), vars(losses))) == repr(loss)
    assert [p.item() for p in copy.deepcopy(loss).parameters()] == [0.3]


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize(
    "value, message",
    [
        (nn.Parameter(torch.tensor(0.0)), "must be > 0, got 0.0"),
        (nn.Parameter(torch.tensor(torch.nan)), "must be > 0, got nan"),
        (nn.Parameter(torch.ones(2)), r"must be a number or a 0-d floating nn.Parameter, got .* \(2,\)"),
        (nn.Parameter(torch.tensor(1), requires_grad=False), "must be a number or a 0-d .* got torch.int64"),
        (torch.tensor(0.1), r"must be a number or learnable\(0.07\), got a tensor .*x.item"),
    ],
)
def test_a_bad_temperature_is_refused(kind, value, message):
    name = "epsilon" if kind is IOT else "temperature"
    with pytest.raises(ValueError, match=f"{name} {message}"):
        kind(**{name: value})


def test_a_temperature_that_was_optimised_away_is_refused():
    tau = nn.Parameter(torch.tensor(0.1))
    loss = InfoNCE(tau)
    with torch.no_grad():
        tau.fill_(-0.1)
    with pytest.raises(ValueError, match=r"must be > 0, got -0.1.*learnable\(0.07\) is learnt in the log"):
        loss(torch.randn(2, 4, 5))
    there = loss.to("meta")  # where values cannot be seen nothing is asked
    assert there.score(there.points(torch.randn(2, 4, 5, device="meta"))).is_meta


def test_an_optimiser_moves_the_temperature():
    z = torch.randn(4, 8) + 0.3 * torch.randn(2, 4, 8)
    loss = parse("InfoNCE(temperature=learnable(0.5)) + 0.1 * QARe()")
    before = loss(z).item()
    optimiser = torch.optim.SGD(loss.parameters(), lr=0.05)
    for _ in range(5):
        optimiser.zero_grad()
        loss(z).backward()
        optimiser.step()
    tau = loss.losses[0].temperature.value
    assert 0.01 < tau < 0.5 and loss(z) < before and f"learnable({tau:.6g})" in repr(loss)


@pytest.mark.parametrize("kind", LEARNED)
def test_a_temperature_that_is_learnt_stays_in_its_domain(kind):
    """It has the slope τ · ∂L/∂τ in the logarithm, and any step leaves it between 0.01 and 1, as in CLIP."""
    name = "epsilon" if kind is IOT else "temperature"
    loss, z = kind(**{name: learnable(0.3)}).double(), torch.randn(2, 6, 5, dtype=torch.float64)
    ((place, log),) = loss.named_parameters()
    tau = nn.Parameter(log.detach().exp())
    (slope,) = torch.autograd.grad(kind(**{name: tau})(z), tau)
    (found,) = torch.autograd.grad(loss(z), log)
    torch.testing.assert_close(found, tau.detach() * slope)
    assert place == f"{name}.log" and repr(eval(repr(loss), vars(losses))) == repr(loss)
    for step, end in ((100.0, 1.0), (-100.0, 0.01)):
        with torch.no_grad():
            log += step
        assert loss(z).isfinite() and getattr(loss, name).value == pytest.approx(end)
    setattr(loss, name, 0.3)
    assert not list(loss.parameters()) and loss(z) == kind(**{name: 0.3})(z)


def test_learnt_numbers_have_their_values_by_name():
    loss = InfoNCE(learnable(0.2)) + nn.Parameter(torch.tensor(0.5)) * QARe()
    assert learnt_numbers(loss) == pytest.approx({"losses.0.temperature": 0.2, "weight0": 0.5})
    with pytest.raises(ValueError, match="learnable must be >= 0.01 and <= 1, got 5; CLIP starts at 0.07"):
        learnable(5)


def warned(call) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is UserWarning]


def test_more_views_than_images_warns_once():
    z = torch.randn(16, 2, 4)
    for loss in (InfoNCE(), QARe()):
        (message,) = warned(lambda: [loss(z), loss(z), loss(z[:9])])  # noqa: B023
        assert message.startswith("z is (V, N, E): 16 views of 2 images?")
    assert not warned(lambda: InfoNCE()(torch.randn(4, 4, 3)))


def test_groco_warns_once_where_it_finds_fewer_negatives():
    loss = GroCo(negatives=100)
    (message,) = warned(lambda: [loss(torch.randn(2, N, 4)) for N in (16, 16, 12)])
    assert message == "negatives=100 in GroCo, 30 at hand: all are taken"
    assert not warned(lambda: GroCo(negatives=30)(torch.randn(2, 16, 4)))


def learns(kind):
    """What else the constructor needs for keys that learn."""
    return {"stop_gradient": False} if "stop_gradient" in inspect.signature(kind).parameters else {}


def test_the_table_says_what_the_classes_do():
    """Each tick is tried out: what is ticked is taken, what is not is refused."""
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in capabilities().splitlines()
    ]
    assert head[:5] == ["loss", "more than two views", "`keys`", "`memory`", "`labels`"]
    assert head[5:] == ["`positive_views`", "`key_gradient`"]
    assert [row[0] for row in rows] == [f"`{kind.__name__}`" for kind in LOSSES]
    z = torch.randn(3, 6, 4)
    tried = {
        1: lambda kind: kind()(z),
        2: lambda kind: kind()(z[:2], keys=z[:2]),
        3: lambda kind: kind()(z[:2], memory=z[2]),
        4: lambda kind: kind()(z[:2], labels=torch.arange(6) // 2),
        5: lambda kind: kind(positive_views=2)(z),
        6: lambda kind: kind(key_gradient=True, **learns(kind))(z[:2], keys=z[:2]),
    }
    for kind, row in zip(LOSSES, rows):
        for column, call in tried.items():
            if row[column] == "✓":
                assert call(kind).isfinite()
            else:
                with pytest.raises((ValueError, TypeError), match="must|unexpected"):
                    call(kind)


def test_a_learned_temperature_under_compile():
    torch._dynamo.reset()
    tau = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
    loss, z = InfoNCE(tau), torch.randn(2, 5, 4, dtype=torch.float64)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    np.testing.assert_allclose(compiled(z).item(), loss(z).item(), rtol=1e-9)


def three_times(loss):
    """Every way to put another number in the place of a sum's learnt weight."""
    value = torch.tensor(3.0)

    def assigned():
        loss.load_state_dict({"weight0": value}, assign=True)
        return loss

    def set_anew():
        loss.weight0 = nn.Parameter(value.clone())
        return loss

    class Fixed(nn.Module):
        def forward(self, x):
            return 0 * x + 3

    def parametrized():
        nn.utils.parametrize.register_parametrization(loss, "weight0", Fixed())
        return loss

    return {
        "assign": assigned,
        "setattr": set_anew,
        "parametrize": parametrized,
        "functional_call": lambda: lambda z: torch.func.functional_call(loss, {"weight0": value}, z),
        "deepcopy": lambda: copy.deepcopy(assigned()),
    }


@pytest.mark.parametrize("way", ["assign", "setattr", "parametrize", "functional_call", "deepcopy"])
def test_the_weight_of_a_sum_is_held_once(way):
    z = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
    loss = InfoNCE(0.2) + nn.Parameter(torch.tensor(0.5)) * QARe()
    right = InfoNCE(0.2)(z) + 3 * QARe()(z)
    torch.testing.assert_close(three_times(loss)[way]()(z), right)


def test_a_weight_that_was_loaded_learns_and_enters_a_larger_sum():
    z = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
    loss = InfoNCE(0.2) + nn.Parameter(torch.tensor(0.5)) * QARe()
    loss.load_state_dict({"weight0": torch.tensor(3.0)}, assign=True)
    larger = 2 * loss + SparseCLR()
    assert repr(larger).startswith("2.0 * InfoNCE(temperature=0.2) + 6.0 * QARe")
    (found,) = torch.autograd.grad(larger(z), [loss.weight0])
    torch.testing.assert_close(found, 2 * QARe()(z))


CHANGES = [
    (InfoNCE(), "temperature", -0.1, "temperature must be > 0, got -0.1"),
    (InfoNCE(), "temperature", 0, "temperature must be > 0"),
    (InfoNCE(), "temperature", torch.tensor(0.1), "temperature must be a number or learnable"),
    (InfoNCE(), "candidates", "other", "candidates must be one of"),
    (SupCon(), "temperature", float("nan"), "temperature must be > 0, got nan"),
    (Triplet(), "distance", "cosin", "distance must be one of.*did you mean 'cosine'"),
    (GroCo(), "negatives", 0, "negatives must be an integer >= 1"),
    (GroCo(), "pool", "views", "pool must be one of"),
    (IOT(), "epsilon", 0.0, "epsilon must be > 0"),
    (IOT(), "constraint", "column", "constraint must be one of"),
    (SparseCLR(), "margin", -1, "margin must be >= 0"),
    (QARe(), "similarity", "euclid", "similarity must be one of"),
    (MMCL(), "C", 0, "C must be > 0"),
    (MMCL(solver="exact"), "kernel", "tanh", "solver must be 'inv', 'pgd' or 'steps' for kernel='tanh'"),
    (DebiasedInfoNCE(), "prior", 1.0, "prior must be"),
    (HCL(), "hardness", -1, "hardness must be >= 0"),
    (HardNegatives(), "keep", 0, "keep must be > 0"),
    (AlignUniform(), "alpha", 0, "alpha must be > 0"),
    (LinearAssignment(), "mining", "batch", "mining must be one of"),
    (DeepInfoMax(), "locations", 0, "locations must be an integer >= 1"),
]


@pytest.mark.parametrize("loss, name, value, message", CHANGES)
def test_a_setting_is_checked_when_it_is_changed_as_when_it_is_made(loss, name, value, message):
    before, drawn = repr(loss), torch.get_rng_state()
    with pytest.raises(ValueError, match=message):
        setattr(loss, name, value)
    assert repr(loss) == before
    assert torch.equal(torch.get_rng_state(), drawn)


def test_a_changed_setting_is_that_of_a_loss_made_with_it():
    z = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
    loss = InfoNCE(0.5)
    loss.temperature, loss.candidates = 0.2, "other view"
    other = InfoNCE(0.2, candidates="other view")
    assert loss(z) == other(z) and repr(loss) == repr(other) and loss.takes == other.takes
    loss.temperature = nn.Parameter(torch.tensor(0.3))
    assert list(loss.state_dict()) == ["temperature"]
    again = pickle.loads(pickle.dumps(copy.deepcopy(loss)))
    with pytest.raises(ValueError, match="positive_views must be"):
        again.positive_views = 1

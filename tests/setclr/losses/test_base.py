"""The contract that every loss keeps: laws, what it takes, anchors' values, sums and multiples, its text,
learnt temperatures, settings that are changed."""

import copy
import math
import pickle
import warnings

import pytest
import torch
from capabilities import capabilities
from every_loss import EVERY, close, normal, slope, views
from hypothesis import given, settings
from hypothesis import strategies as st
from looks_at_values import why
from torch import nn

from setclr import losses
from setclr.losses import IOT, LOSSES, MMCL, GroCo, InfoNCE, LinearAssignment, QARe, SetLoss, SigLIP, parse
from setclr.losses.temperature import learnt_numbers

every_loss = pytest.mark.parametrize("loss", EVERY, ids=repr)


def rotation():
    return torch.linalg.qr(normal(4, 4)).Q


@every_loss
@settings(max_examples=6)
@given(st.integers(2, 4), st.integers(2, 7))
def test_order_of_images_and_views_rotations_and_lengths_do_not_matter(loss, V, N):
    V = views(loss, V)
    z, points, lengths = normal(V, N, 4), torch.arange(V * N).view(V, N), 10 ** (2 * torch.rand(V, N, 1) - 1)
    of_images, of_views = torch.randperm(N), torch.randperm(V)
    changed = [(z[:, of_images], points[:, of_images]), (lengths * z @ rotation(), points)]
    if "batch-hard" not in repr(loss):
        changed.append((z[of_views], points[of_views]))
    for other, at in changed:
        close(loss(other), loss(z))
        if loss.has_assignment:
            close(loss.assignment(other), loss.assignment(z)[at.flatten()][:, at.flatten()])


@pytest.mark.parametrize("loss", [x for x in EVERY if "keys" in x.takes], ids=repr)
def test_rotating_keys_and_memory_too_does_not_matter(loss):
    (z, keys), R = normal(2, views(loss, 3), 5, 4), rotation()
    extra = {"keys": keys}
    if "memory" in loss.takes and "iterations=None" not in repr(loss):
        extra["memory"] = normal(6, 4)
        A = loss.assignment(z[:2], memory=extra["memory"])
        assert A.shape == (10, 16) and A.min() >= 0 and A[:, :10].diagonal().abs().max() == 0
        assert A[:, 10:].sum() > 0
    turned = {name: x @ R for name, x in extra.items()}
    close(loss(z @ R, **turned), loss(z, **extra))
    close(loss.assignment(z @ R, **turned), loss.assignment(z, **extra))
    assert (loss(z @ R, **extra) - loss(z, **extra)).abs() > 1e-6


@every_loss
def test_two_views_one_by_one_autocast_and_an_assignment_without_gradient(loss):
    z = torch.randn(2, 5, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss(z)
    assert inside.dtype == torch.float32 and torch.equal(inside, loss(z))
    assert torch.equal(loss(z[0], z[1]), loss(z))
    if loss.has_assignment:
        A = loss.assignment(z)
        assert A.shape == (10, 10) and not A.requires_grad and A.dtype == torch.float32
        assert A.min() >= 0 and A.diagonal().abs().max() == 0
        assert torch.equal(loss.assignment(z[0], z[1]), A)


TWICE = (repr(EVERY[-2]), "SparseCLR(margin=0.5)")  # the other sum, and clamped, are compiled


COMPILED = [x for x in EVERY if why(x) is None and repr(x) not in TWICE] + [InfoNCE(losses.learnable(0.3))]


@pytest.mark.parametrize("loss", COMPILED, ids=repr)
def test_compiled_without_a_break_gives_the_same(loss):
    torch._dynamo.reset()
    loss, z = copy.deepcopy(loss).double(), normal(2, 5, 4, grad=True)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    close(compiled(z), loss(z), z, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", [*EVERY, *(kind() for kind in LOSSES), MMCL(C=math.inf)], ids=repr)
def test_repr_evaluates_to_the_same(loss):
    z, evaluated, parsed = torch.randn(2, 4, 5), eval(repr(loss), vars(losses)), parse(repr(loss))
    assert repr(evaluated) == repr(parsed) == repr(copy.deepcopy(loss)) == repr(loss)
    assert torch.equal(parsed(z), loss(z))


@every_loss
def test_the_loss_is_the_mean_of_the_anchors_values_weighed_by_image_or_has_none(loss):
    V = views(loss, 3)
    z, w = normal(V, 6, 5, grad=True), torch.rand(6)
    try:
        values = loss(z, reduction="none")
    except ValueError as error:
        terms = getattr(loss, "losses", [loss])
        assert any(type(term).score is not SetLoss.score for term in terms), error
        with pytest.raises(ValueError, match="reduction must be 'mean' and weight None for .*no value"):
            loss(z, weight=w)
        return
    assert values.shape == (V, 6)
    close(values.mean(), loss(z), z)
    by_hand = sum(float(w[i] * values[v, i]) for v in range(V) for i in range(6)) / (V * float(w.sum()))
    assert loss(z, weight=w).item() == pytest.approx(by_hand, rel=1e-6)
    close(loss(z, weight=w, reduction="none"), w * loss(z, reduction="none"))
    close(loss(z, weight=torch.full((6,), 3.0)), loss(z))


def test_sums_and_multiples():
    z, a, b = torch.randn(2, 4, 5), InfoNCE(0.5), GroCo()
    close((2 * (a + b * 0.5) + b)(z), 2 * a(z) + 2 * b(z))
    apart = a(z, reduction="none") + 0.3 * b(z, reduction="none")
    close((a + 0.3 * b)(z, reduction="none"), apart)
    close((0.5 * b + a).assignment(z), b.assignment(z))
    half = (InfoNCE() + 3 * QARe()) / 2
    assert repr(half) == repr(0.5 * InfoNCE() + 1.5 * QARe()) == repr(parse(repr(half)))
    close(half(z), InfoNCE()(z) / 2 + 1.5 * QARe()(z))
    assert repr(sum([a, QARe(), b])) == repr(a + QARe() + b)
    close((QARe() + a).assignment(z), a.assignment(z))
    for loss in (QARe(), 2.0 * QARe()):
        with pytest.raises(ValueError, match="QARe.* has no assignment"):
            loss.assignment(z)
    for wrong in (lambda: a + 1, lambda: 1 + a, lambda: a * b, lambda: a / b, lambda: sum([a], start=2)):
        with pytest.raises(TypeError):
            wrong()


def test_a_weight_may_be_learnt_and_its_text_makes_one_that_learns():
    """One meaning on both paths: a number learnt in the logarithm, which no step can make 0 or less."""
    z = torch.randn(2, 4, 5)
    half = losses.learnable
    for loss in (half(0.5) * QARe(), parse("learnable(0.5) * QARe()"), QARe() * half(0.5)):
        ((name, log),) = loss.named_parameters()
        assert name == "learnt.0.log" and repr(loss) == "learnable(0.5) * QARe(similarity='cosine')"
        close(slope(loss(z), log), 0.5 * QARe()(z))
        with torch.no_grad():
            log -= 100
        assert float(loss(z)) == pytest.approx(0.01 * float(QARe()(z)), rel=1e-5)
    both = parse("InfoNCE(temperature=learnable(0.3)) + learnable(0.5) * QARe()")
    assert learnt_numbers(both) == pytest.approx({"losses.0.temperature": 0.3, "learnt.1": 0.5})
    larger = 2 * (InfoNCE() + losses.learnable(0.5) * QARe() / 4)
    close(larger(z), 2 * InfoNCE()(z) + 0.25 * QARe()(z))
    for again in (eval(repr(larger), vars(losses)), parse(repr(larger)), copy.deepcopy(larger)):
        assert repr(again) == repr(larger) and len(list(again.parameters())) == 1
    for wrong in (torch.tensor(0.5), nn.Parameter(torch.tensor(0.5))):
        with pytest.raises(ValueError, match="(?s)weight must be .*learnable"):
            InfoNCE() * wrong


def test_the_table_says_what_the_classes_do():
    """Each tick is tried out: what is ticked changes the value, what is not is refused by name."""
    table = capabilities().replace("`", "").splitlines()
    head, _, *rows = [[x.strip() for x in line.strip("|").split("|")] for line in table]
    assert head[:2] == ["loss", "more than two views"]
    of_weights = "weights as positives"
    assert head[2:] == ["keys", "memory", "labels", of_weights, "positive_views", "key_gradient"]
    assert [row[0] for row in rows] == [kind.__name__ for kind in LOSSES]
    z, memory = torch.randn(4, 6, 4), torch.randn(50, 4)  # so many that some are harder than any negative
    more = dict(keys=z[2:], memory=memory, labels=torch.arange(6) // 2)
    for kind, row in zip(LOSSES, rows):
        cells, of_class = dict(zip(head, row)), kind.settings
        plain, two = kind(), z[:2]
        if cells["more than two views"] == "✓":
            assert plain(z).isfinite()
        else:
            with pytest.raises(ValueError, match=rf"z must hold two views for {kind.__name__}\(.*\), got 4"):
                plain(z)
        for name, x in more.items():
            if cells[name] == "✓":
                assert not torch.equal(plain(two, **{name: x}), plain(two))
            else:
                with pytest.raises(ValueError, match=f"{name} must be None for {kind.__name__}"):
                    plain(two, **{name: x})
        if cells[of_weights] == "✓":
            assert not torch.equal(plain(two, positives=torch.rand(12, 12)), plain(two))
        else:
            with pytest.raises(
                ValueError, match=f"positives must (not be weights|be None) for {kind.__name__}"
            ):
                plain(two, positives=torch.rand(12, 12))
        for name in ("positive_views", "key_gradient"):
            assert (cells[name] == "✓") == (name in of_class)
        if "positive_views" in of_class:
            assert not torch.equal(kind(positive_views=2)(z), plain(z))
            with pytest.raises(ValueError, match="positive_views must be an integer >= 2 and <= 4, got 5"):
                kind(positive_views=5)(z)


def test_what_is_odd_is_said_once():
    def warned(call) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [str(w.message) for w in caught if w.category is UserWarning]

    z = torch.randn(16, 2, 4)
    for loss in (InfoNCE(), QARe()):
        (message,) = warned(lambda: [loss(z), loss(z), loss(z[:9])])  # noqa: B023
        assert message.startswith("z is (V, N, E): 16 views of 2 images?")
    groco = GroCo(negatives=100)
    (message,) = warned(lambda: [groco(torch.randn(2, N, 4)) for N in (16, 16, 12)])
    assert message == "negatives=100 in GroCo, 30 at hand: all are taken"
    assert not warned(lambda: [InfoNCE()(torch.randn(4, 4, 3)), GroCo(negatives=30)(torch.randn(2, 16, 4))])


NO_LOSS = ["InfoNCE", "3", "InfoNCE(", "learnable(0.07)", "__import__('os').getcwd()", "\0", 900 * "("]
NO_SUM = [f"InfoNCE() {rest}" for rest in ("+ 3", "* GroCo()", "/ GroCo()", "* 'a'", "- QARe()")]
ARGUMENTS = "10 ** 9", "[1]", "*[1]", "**{'temperature': 1}", "0.5j", "--1"
REFUSED = {
    **dict.fromkeys(NO_LOSS, "loss must be an expression such as"),
    **dict.fromkeys(NO_SUM, "losses are added, and multiplied or divided by a number"),
    **dict.fromkeys([f"InfoNCE({argument})" for argument in ARGUMENTS], "an argument must be a number"),
    "InfoNC()": "loss must be one of .*did you mean 'InfoNCE'",
    "InfoNCE(temprature=1)": "InfoNCE's argument must be one of .*did you mean 'temperature'",
    "InfoNCE(temperature=1, temperature=2)": "must name temperature once, got it 2 times",
    "InfoNCE(" + 400 * "1" + ")": "temperature must be 1e-30 to 1e30",
    "InfoNCE() / 0": "divisor must be > 0, got 0",
    "InfoNCE(learnable(0.0))": "learnable must be >= 0.01 and <= 1, got 0.0",
    "Rotation() + QARe()": "Rotation\\(\\) is a baseline and stands alone",
    "-" * 2000 + "1": "at most 1000 characters, got 2001",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_what_is_not_in_the_language_is_refused_in_words(text):
    with pytest.raises(ValueError, match=REFUSED[text]) as refused:
        parse(text)
    assert len(str(refused.value)) < 1500


def test_old_names_and_where_the_course_is_not_installed_those_of_baselines_are_known(monkeypatch):
    assert repr(parse("DCL(prior=0.2)")) == repr(losses.DebiasedInfoNCE(prior=0.2))
    monkeypatch.setattr(losses, "loaded", lambda group: ())
    with pytest.raises(ValueError, match="got 'Rotation'.*; the papers' baselines come with the course"):
        parse("Rotation()")


WORDS = [*"+*/-(),='1[{.", "1e9", "temperature"]


@given(st.lists(st.sampled_from(WORDS) | st.sampled_from(sorted(losses.BY_NAME)), max_size=30).map("".join))
def test_any_text_is_a_loss_or_a_value_error(text):
    try:
        loss = parse(text)
    except ValueError:
        return
    assert repr(parse(repr(loss))) == repr(loss)


WITHOUT = (LinearAssignment, SigLIP)  # of the first it is not learnt, of the second always
LEARNED = [IOT, *(kind for kind in LOSSES if hasattr(kind(), "temperature") and kind not in WITHOUT)]


@pytest.mark.parametrize("kind", LEARNED)
def test_a_temperature_can_be_learned_and_a_learnable_one_stays_in_its_domain(kind):
    """It has the slope τ · ∂L/∂τ in the logarithm, and any step leaves it between 0.01 and 1, as in CLIP."""
    name, z, h = "epsilon" if kind is IOT else "temperature", normal(2, 6, 5), 1e-6
    fixed = lambda tau: kind(**{name: tau})  # noqa: E731
    loss = fixed(losses.learnable(0.3)).double()
    ((place, log),) = loss.named_parameters()
    close(loss(z), fixed(0.3)(z), rel=1e-6)  # the logarithm was made in float32
    close(loss.assignment(z), fixed(0.3).assignment(z), rel=1e-5)
    by_tau = (fixed(0.3 + h)(z) - fixed(0.3 - h)(z)).item() / (2 * h)
    assert slope(loss(z), log).item() == pytest.approx(0.3 * by_tau, rel=1e-5)
    assert place == f"{name}.log" and repr(eval(repr(loss), vars(losses))) == repr(loss)
    assert repr(copy.deepcopy(loss)) == repr(loss) and f"{name}=learnable(0.3)" in repr(loss)
    for step, end in ((100.0, 1.0), (-100.0, 0.01)):
        with torch.no_grad():
            log += step
        assert loss(z).isfinite() and getattr(loss, name).value == pytest.approx(end)
        close(loss(z), fixed(end)(z))
    setattr(loss, name, 0.3)
    assert not list(loss.parameters()) and loss(z) == fixed(0.3)(z)


def test_a_changed_setting_is_that_of_a_loss_made_with_it():
    z, loss, other = torch.randn(2, 8, 16), InfoNCE(0.5), InfoNCE(0.2, candidates="other view")
    loss.temperature, loss.candidates = 0.2, "other view"
    assert loss(z) == other(z) and repr(loss) == repr(other) and loss.takes == other.takes
    loss.temperature = losses.learnable(0.3)
    assert list(pickle.loads(pickle.dumps(loss)).state_dict()) == ["temperature.log"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_loss
def test_the_gpu_gives_what_the_cpu_gives_and_nan_for_nan(loss):
    z = torch.randn(2, 8, 8, requires_grad=True)
    there = z.detach().cuda().requires_grad_()
    close(loss(there).cpu(), loss(z), rel=1e-4, abs=1e-5)
    close(slope(loss(there), there).cpu(), slope(loss(z), z), rel=1e-3, abs=1e-4)
    for wrong in (torch.nan, 0.0):
        there = z.detach().cuda().index_fill(1, torch.tensor([2], device="cuda"), wrong)
        assert loss(there).isnan()

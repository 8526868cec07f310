"""Every loss on one batch, on a circle and on a sphere: shares, pushes and training are the library's."""

from functools import cache

import numpy as np
import pytest
import torch
from conftest import shifted
from sweep import drag, marks

from setclr.inner import sparsemax, svm_dual
from setclr.losses import GroCo
from setclr_course import panels
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.still import pictured
from setclr_course.panels.family import anchor_list as lists
from setclr_course.panels.family import sphere as ball
from setclr_course.panels.family.batch import ANGLES, FAMILY, MATRICES, SIX, draw_batch
from setclr_course.panels.family.one_idea import ANGLES as BEGIN
from setclr_course.panels.family.one_idea import STEP, STEPS, USUAL, WAYS, trained
from setclr_course.panels.family.plane import CONTROLS, TRAP_ANGLES, N, control
from setclr_course.panels.family.trap_pushes import LONGEST, REST

made = cache(lambda name: getattr(panels, name)())
BATCH, TRAP = (torch.from_numpy(unit(np.array(angles))) for angles in (ANGLES, TRAP_ANGLES))
UNEVEN = tuple((np.ravel(BEGIN) + 0.3 * np.sqrt(np.arange(12))).tolist())  # no two distances are the same


def pushes(loss, z: torch.Tensor) -> np.ndarray:
    """(2, N): minus the gradient of a loss of the library at points z (2, N, 2) of the circle, along it."""
    z = z.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(z), z)
    return (slope[..., 0] * z[..., 1] - slope[..., 1] * z[..., 0]).detach().numpy()


def shares(loss, z: torch.Tensor) -> torch.Tensor:
    """What each ● gives to each ■ by the library, as shares of the row."""
    part = loss.assignment(z)[:N, N:]
    return part / part.sum(1, keepdim=True).clamp(min=1e-12)


def turned(one, other) -> np.ndarray:
    """By how many degrees angles differ."""
    return np.abs((np.asarray(one) - other + 180) % 360 - 180)


# One idea


@pytest.mark.parametrize("softness", [0.0316, 10])
def test_tables_are_the_assignments_of_the_losses(softness):
    idea, six, family = (made(name) for name in ("one_idea", "side_by_side", "family_matrices"))
    for way, name in WAYS.items():
        share = idea.solve(idea.values | {"way": way, "softness": softness}).share
        expected = shares(FAMILY[name].at(softness), torch.from_numpy(unit(np.array(BEGIN))))
        np.testing.assert_allclose(share, expected, atol=1e-9)
    now = six.solve(six.values | {"smoothing": softness})
    for name, loss in SIX.items():
        np.testing.assert_allclose(now.shares[name], shares(loss.at(softness), TRAP), atol=1e-9)
    matrices = family.solve(family.values | {"smoothing": softness})
    for name in MATRICES:
        A = FAMILY[name].at(softness).assignment(BATCH)
        np.testing.assert_allclose(matrices[name], A, atol=1e-9)
    assert "●1 at 75°" in pictured(draw_batch, "batch", (2.8, 3)).alt


@pytest.mark.parametrize("way", WAYS)
def test_training_is_gradient_descent_on_the_loss_and_finds_the_partners(way):
    """Each step is the one that autograd takes from there, what the loss holds constant being held constant.

    The angles are kept to four digits, so a step is off by half of the last one. For support vectors, which
    weigh negatives, the softmax says who is found.
    """
    loss = FAMILY[WAYS[way]].at(USUAL)
    for step in range(STEPS):
        before = trained(UNEVEN, way, step).ravel()
        angles = torch.tensor(before, dtype=torch.float64).deg2rad().requires_grad_()
        z = torch.stack([angles.cos(), angles.sin()], dim=-1).view(2, N, 2)
        (slope,) = torch.autograd.grad(loss(z), angles)
        after = before - STEP * (slope / slope.abs().max()).numpy()
        assert turned(trained(UNEVEN, way, step + 1).ravel(), after).max() < 0.5e-4 + 1e-6
    panel = made("one_idea")
    after = panel.solve(panel.values | {"way": way, "step": STEPS}).z
    assert (panel.solve(panel.values).share.argmax(1) == np.arange(N)).sum() <= 2
    assert ((after[0] @ after[1].T).argmax(1) == np.arange(N)).sum() >= 5


@pytest.mark.parametrize("softness", [0.05, 2.5, 10])
def test_softness_does_not_change_who_is_preferred(softness):
    """● rocket is as near to another ■ as to its own: no partner found, however shares are rounded."""
    assert ": 1 of 6 photographs find" in panels.one_idea(softness=softness).alt


@pytest.mark.parametrize("step", [0, 12])
def test_points_that_are_moved_one_after_the_other_all_stay(step):
    """At any step: the others stay where they are seen, to the degree, and training begins anew."""
    panel = panels.one_idea(step=step)
    seen = panel.solve(panel.values).angles.ravel()
    for name, angle in ((control(0, 0), 271), (control(1, 3), 17)):
        drag(panel, name, *(RADII[int(name[-1]) - 1] * unit(np.array(angle))))
    places = dict(zip(CONTROLS, seen)) | {control(0, 0): 271, control(1, 3): 17}
    now = panel.solve(panel.values).angles.ravel()
    assert panel.values["step"] == 0 and turned(now, list(places.values())).max() <= 0.5
    assert [panel.values[name] for name in CONTROLS] == now.tolist()


# All losses side by side


@pytest.mark.parametrize("smoothing", [0.01, 0.3])
def test_arrows_lead_downhill_and_are_as_long_as_the_gradient_says(smoothing):
    panel = panels.trap_pushes(FAMILY, 5, [(1, 2)], smoothing=smoothing)
    for name, member in FAMILY.items():
        push = pushes(member.at(smoothing), BATCH).ravel()
        np.testing.assert_allclose(panel.solve(panel.values).forces[name].ravel(), push, atol=2 * REST)
        share = np.where(np.abs(push) > REST, push, 0) / max(np.abs(push).max(), REST)
        (arrows,) = marks(panel, name.replace(" ", "-"), "arrows")
        x, y, u, v = (np.array(arrows[side]) for side in "xyuv")
        way = x * (v - y) - y * (u - x)  # to the left where positive
        np.testing.assert_allclose(np.sign(way) * np.hypot(u - x, v - y), LONGEST * share, atol=2e-4)
    assert ("LinearAssignment is at rest" in panel.alt) == (smoothing == 0.01)


def test_at_the_trap_each_for_itself_is_fooled_and_counting_is_not():
    panel = made("side_by_side")
    assert "goes to ■ astronaut by InfoNCE and SparseCLR and GroCo, to its own ■ rocket by" in panel.alt
    away = panel.seen(panel.values | {"rocket 1": 150}).sentence
    assert "InfoNCE" in away.split("to its own ■ rocket by ")[1]


def test_at_the_trap_a_hard_assignment_rests_and_the_others_push():
    panel = panels.trap_pushes(smoothing=0.0316)
    assert "assignment is at rest" in panel.alt and "InfoNCE pushes" in panel.alt
    found = panel.solve(panel.values).forces
    assert np.abs(found["assignment"]).max() == 0 < REST < np.abs(found["InfoNCE"]).max()


# The sphere


def test_the_sphere_is_trained_by_gradient_descent_and_partners_meet():
    for name in ("SparseCLR", "GroCo", "IOT"):
        z = torch.from_numpy(ball.trained(name, 3)).requires_grad_()
        (slope,) = torch.autograd.grad(SIX[name].at(ball.SMOOTHING)(z), z)
        z = z.detach() - ball.RATE * slope / slope.norm(dim=-1).max()
        expected = torch.nn.functional.normalize(z, dim=-1)
        np.testing.assert_allclose(ball.trained(name, 4), expected, atol=1e-8)
    panel = made("sphere")
    for name in panel.knobs["loss"].names:
        seen = panel.seen(panel.values | {"loss": name, "step": ball.STEPS})
        assert f"by {name}: 6 of 6 photographs find" in seen.sentence


@pytest.mark.parametrize(("turn", "tilt"), [(30, -50), (64, 80)])
def test_the_sphere_follows_its_handle_and_no_point_moves_on_it(turn, tilt):
    panel = panels.sphere(turn=turn, tilt=tilt)
    R, seen = ball.rotation(panel.values), panel.solve(panel.values).seen
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(panel.handles["sphere"].point, R[:2, 2], atol=1e-5)
    assert np.linalg.det(R) > 0 and ball.turned_to(*R[:2, 2]) == pytest.approx([turn, tilt])
    still = made("sphere").solve(made("sphere").values).seen
    np.testing.assert_allclose(seen[0] @ seen[1].T, still[0] @ still[1].T, atol=1e-12)
    drag(panel, "sphere", 0.5, -0.5)
    np.testing.assert_allclose(panel.handles["sphere"].point, [0.5, -0.5], atol=0.02)
    drag(panel, "sphere", 9, 9)
    assert (panel.values["turn"], panel.values["tilt"]) == (ball.END, ball.END)


# The list of an anchor


@pytest.mark.parametrize(("anchor", "value"), [(0, 0.1), (5, 1.0)])
def test_rows_are_what_groco_the_sparsemax_and_the_machine_give_to_the_list(anchor, value):
    """The second view comes last, and the machine gives it nothing."""
    z, bound = torch.randn(2, 8, 5, generator=shifted(0), dtype=torch.float64), 100 * value
    z = torch.nn.functional.normalize(z, dim=-1)
    views = torch.zeros(*z.shape[:2], 3, 2, 2, dtype=torch.uint8)
    panel = panels.anchor_list({"some": z}, views, anchor=anchor, beta=10 * value, temperature=value, C=bound)
    column = lists.listed(z.flatten(0, 1).numpy(), anchor)[0]
    shown = panel.solve(panel.values)
    rows = shown.rows[:, [shown.pictures[1:].tolist().index(c) for c in column]]
    assert column[-1] == 8 + anchor and (np.diff(rows[0, :-1]) >= 0).all()
    groco = GroCo(beta=10 * value, negatives=lists.NEGATIVES).assignment(z)[anchor]
    np.testing.assert_allclose(rows[1], groco[column], atol=1e-12)
    cosines = (z.flatten(0, 1) @ z[0, anchor]).index_fill(0, torch.tensor(anchor), -torch.inf)
    sparse = sparsemax(cosines / value)
    np.testing.assert_allclose(rows[2], sparse[column], atol=1e-12)
    pool = z.flatten(0, 1)[[anchor, *column[:-1]]]
    K = torch.exp(-torch.cdist(pool, pool).square() / 2)
    np.testing.assert_allclose(rows[3, :-1], svm_dual(K, C=bound).alpha[1:], atol=1e-9)
    assert rows[3, -1] == 0 < rows[3].max() and rows.shape[1] == lists.NEGATIVES + 1


def test_the_list_says_what_the_anchor_sees():
    views, same = torch.zeros(2, 8, 3, 2, 2, dtype=torch.uint8), torch.eye(8).expand(2, 8, 8)
    panel = panels.anchor_list({"exact": same}, views, anchor=3, beta=1000, temperature=0.1, C=1)
    assert "exact, anchor 3: its second view is number 1 of 11 in its list, at cosine 1.00" in panel.alt
    assert "sparsemax gives it 1.00 and something to 0 negatives" in panel.alt
    assert [lists.in_short(x) for x in (0.001, 0.5, -0.25, 1.0, 12.3)] == ["", ".50", "−.25", "1.00", "12"]

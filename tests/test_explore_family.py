"""Every loss on one batch: the formulas are the library's losses, and the pictures show what they say."""

from functools import cache

import numpy as np
import pytest
import torch
from conftest import shifted

from setclr.inner import sparsemax, svm_dual
from setclr.losses import IOT, MMCL, GroCo, InfoNCE, SparseCLR
from setclr_course import panels
from setclr_course.kit.circle import unit
from setclr_course.kit.few_patches import augmented_pair, few_patches
from setclr_course.kit.losses import gradient
from setclr_course.kit.palette import GREY, VERMILION
from setclr_course.kit.scene import SHADES
from setclr_course.kit.still import pictured
from setclr_course.panels.family import anchor_list as lists
from setclr_course.panels.family import sphere as ball
from setclr_course.panels.family.batch import ANGLES, FAMILY, MATRICES, NAMES, SIX, draw_batch
from setclr_course.panels.family.plane import POINTS, TRAP_ANGLES, N, control, forces
from setclr_course.panels.family.trap_pushes import FOUR, LONGEST, QUIET, REST

made = cache(lambda name: getattr(panels, name)())
BOTH = [*FAMILY.items(), *SIX.items()]
BATCH = torch.from_numpy(unit(ANGLES))


def pushes(loss, z: torch.Tensor) -> np.ndarray:
    """(2, N): minus the gradient of a loss of the library at points z (2, N, 2) of the circle, along it."""
    z = z.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(z), z)
    return (slope[..., 0] * z[..., 1] - slope[..., 1] * z[..., 0]).detach().numpy()


def plot_of(panel, name: str, **values) -> dict:
    scene = panel.seen(panel.values | values).scene
    return next(plot for plot in scene["plots"] if plot["name"] == name)


def marks(plot: dict, kind: str) -> list[dict]:
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


def words(plot: dict) -> dict[str, dict]:
    return {said: mark for mark in marks(plot, "text") for said in mark["said"]}


def normalised(*shape: int) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.randn(*shape, generator=shifted(0), dtype=torch.float64), dim=-1
    )


@pytest.mark.parametrize("smoothing", [0.01, 0.3, 1, 10])
@pytest.mark.parametrize(("name", "loss"), BOTH)
def test_the_formulas_are_the_librarys_losses(name, loss, smoothing):
    """Assignments and gradients; what the library holds constant is held constant."""
    theirs = loss.at(smoothing)
    for shape in ((2, 5, 2), (2, 6, 3)):
        z = normalised(*shape).requires_grad_()
        answer = loss.solved(z.detach().numpy(), smoothing)
        if theirs.has_assignment:
            np.testing.assert_allclose(answer.shares, theirs.assignment(z), atol=1e-9)
        (slope,) = torch.autograd.grad(theirs(z), z)
        ours = gradient(answer, z.detach().numpy().reshape(-1, shape[-1]))
        np.testing.assert_allclose(ours, slope.flatten(0, 1), atol=1e-6 * max(1e-3, slope.abs().max()))


def test_all_but_the_regulariser_have_a_matrix():
    assert [name for name in FAMILY if FAMILY[name].at(1).has_assignment] == MATRICES


def test_usual_values_stand_at_smoothing_1():
    assert repr(FAMILY["InfoNCE"].at(1)) == repr(InfoNCE(0.5))
    assert repr(FAMILY["GroCo"].at(0.1)) == repr(GroCo(10.0, negatives=4))
    assert repr(FAMILY["IOT both"].at(2)) == repr(IOT("both", 1.0, iterations=8))
    assert repr(FAMILY["MMCL"].at(1)) == repr(MMCL(bandwidth=1.0, solver="exact"))
    assert repr(SIX["SparseCLR"].at(1)) == repr(SparseCLR(margin=0.0))


def test_pushes_of_a_loss_are_those_of_its_formula():
    for loss in FAMILY.values():
        theirs = pushes(loss.at(0.3), BATCH)
        np.testing.assert_allclose(forces(loss.solved(BATCH.numpy(), 0.3), BATCH.numpy()), theirs, atol=1e-8)


def test_the_drawn_matrices_are_the_assignments():
    panel = panels.family_matrices(smoothing=0.1)
    for name in MATRICES:
        member, plot = FAMILY[name], plot_of(panel, name.replace(" ", "-"))
        A = member.at(0.1).assignment(BATCH).numpy()
        np.testing.assert_allclose(panel.solve(panel.values)[name], A, atol=1e-9)
        A = A / A.sum(1, keepdims=True) if name == "MMCL" else A
        shades = (SHADES * A).astype(int).clip(max=SHADES - 1)
        found = np.array(marks(plot, "cells")[0]["shades"])
        assert np.abs(shades.ravel() - found).max() <= 1  # rounding, at an edge
        assert plot["title"] == f"{name}\n{member.symbol} = {member.parameter(0.1):.3g}"


def test_pointing_at_a_cell_lights_up_all_matrices():
    scene = made("family_matrices").scene
    link = next(link for link in scene["links"] if link[0].startswith("●4 to ■3: Triplet 1.00"))
    cells = {scene["plots"][plot]["marks"][mark]["kind"] for plot, mark, _ in link[1]}
    assert len(link[1]) == len(MATRICES) and cells == {"cells"} and {piece[2] for piece in link[1]} == {37}


def test_the_batch_has_a_picture():
    picture = pictured(draw_batch, "batch", (2.8, 3))
    assert "●1 at 75°" in picture.alt and "■5 at 285°" in picture.alt and len(picture.png) > 2000


def arrow_lengths(plot: dict) -> np.ndarray:
    (arrows,) = marks(plot, "arrows")
    x, y, u, v = (np.array(arrows[side]) for side in "xyuv")
    return np.hypot(u - x, v - y)


def test_arrows_lead_downhill_and_are_as_long_as_the_gradient_says():
    panel = panels.trap_pushes(FAMILY, 5, [(1, 2)], smoothing=0.3)
    for name, member in FAMILY.items():
        plot, push = plot_of(panel, name.replace(" ", "-")), pushes(member.at(0.3), BATCH).ravel()
        share = np.abs(push) / np.abs(push).max()
        np.testing.assert_allclose(arrow_lengths(plot), LONGEST * share, atol=1e-4)  # a push under REST is 0
        (arrows,) = marks(plot, "arrows")
        x, y, u, v = (np.array(arrows[side]) for side in "xyuv")
        turn = x * (v - y) - y * (u - x)  # to the left where positive
        assert (np.sign(turn) == np.sign(push))[share > 1e-3].all()
        assert plot["xlabel"] == f"longest {np.abs(push).max():.2g}"
        assert f"{name} pushes {(share > QUIET).sum()} of 10 points" in panel.alt


def test_a_loss_at_rest_has_no_arrows():
    panel = panels.trap_pushes(FAMILY, 5, [(1, 2)], smoothing=0.01)
    plot = plot_of(panel, "LinearAssignment")
    assert "LinearAssignment is at rest" in panel.alt and plot["xlabel"] == "at rest"
    assert arrow_lengths(plot).max() == 0


def test_the_third_square_can_be_dragged_in_any_circle():
    panel = panels.trap_pushes(FAMILY, 5, [(1, 2)])
    assert set(panel.values) == {"smoothing", "astronaut 2"} and len(panel.handles) == len(FAMILY)
    for name in FAMILY:
        panel.on_event({"event": "", "handle": f"astronaut 2 {name}", "x": 0.0, "y": -0.3})
        assert panel.values["astronaut 2"] == 270
        panel.reset()
    squares = next(dots for dots in marks(plot_of(panel, "QARe", **{"astronaut 2": 90}), "dots")[1:])
    np.testing.assert_allclose([squares["x"][2], squares["y"][2]], [0, 0.76], atol=1e-9)
    assert NAMES[7] == "■3" and panel.values["astronaut 2"] == ANGLES[1][2]


@pytest.mark.parametrize("smoothing", [0.0316, 1.0])
def test_six_tables_are_the_assignments_of_six_losses(smoothing):
    panel, z = made("side_by_side"), torch.from_numpy(unit(np.array(TRAP_ANGLES)))
    now = panel.solve(panel.values | {"smoothing": smoothing})
    for name, loss in SIX.items():
        part = loss.at(smoothing).assignment(z)[:N, N:]
        np.testing.assert_allclose(
            now.shares[name], part / part.sum(1, keepdim=True).clamp(min=1e-12), atol=1e-9
        )


def test_at_the_trap_each_for_itself_is_fooled_and_counting_is_not():
    alt = made("side_by_side").alt
    assert "goes to ■ astronaut by InfoNCE and SparseCLR and GroCo, to its own ■ rocket by" in alt
    away = made("side_by_side").seen(made("side_by_side").values | {"rocket 1": 150}).sentence
    assert "InfoNCE" in away.split("to its own ■ rocket by ")[1]


@pytest.mark.parametrize("name", ["side_by_side", "trap_pushes"])
def test_points_that_are_dragged_one_after_the_other_both_stay(name):
    panel = getattr(panels, name)()
    suffix = " support vectors (MMCL)" if name == "trap_pushes" else ""
    panel.on_event({"event": "", "handle": control(0, 3) + suffix, "x": 0.0, "y": 1.0})
    panel.on_event({"event": "", "handle": control(1, 0) + suffix, "x": -0.5, "y": -1e-6})
    moved = {control(0, 3): 90, control(1, 0): 180}
    assert panel.values == panel.start | moved


def test_at_the_trap_a_hard_assignment_rests_and_the_others_push():
    panel = panels.trap_pushes(smoothing=0.0316)
    assert "assignment is at rest" in panel.alt and "InfoNCE pushes" in panel.alt
    assert plot_of(panel, "assignment")["xlabel"] == "at rest"
    found = panel.solve(panel.values).forces
    assert np.abs(found["assignment"]).max() == 0 < REST < np.abs(found["InfoNCE"]).max()
    z = torch.from_numpy(unit(np.array(TRAP_ANGLES)))
    for name, member in FOUR.items():
        np.testing.assert_allclose(found[name], pushes(member.at(0.0316), z), atol=2 * REST)
    soft = {
        name: force.ravel() for name, force in panel.solve(panel.values | {"smoothing": 10}).forces.items()
    }
    for name in ("assignment", "transport (IOT)"):
        both = soft[name], soft["InfoNCE"]
        assert both[0] @ both[1] > 0.9 * np.linalg.norm(both[0]) * np.linalg.norm(both[1])


def test_a_point_lights_up_in_all_four_circles():
    link = made("trap_pushes").scene["links"][POINTS.index((1, 4))]
    assert link[0].startswith("■ temple: InfoNCE ") and [piece[0] for piece in link[1]] == [0, 1, 2, 3]


def test_the_sphere_is_trained_by_gradient_descent():
    for name in ("SparseCLR", "GroCo", "IOT"):
        z = torch.from_numpy(ball.trained(name, 3)).requires_grad_()
        (slope,) = torch.autograd.grad(SIX[name].at(ball.SMOOTHING)(z), z)
        z = z.detach() - ball.RATE * slope / slope.norm(dim=-1).max()
        z = torch.nn.functional.normalize(z, dim=-1)
        np.testing.assert_allclose(ball.trained(name, 4), z, atol=1e-8)


def test_training_on_the_sphere_joins_the_partners():
    panel = made("sphere")
    for name in panel.knobs["loss"].names:
        values = panel.values | {"loss": name, "step": ball.STEPS}
        assert f"by {name}: 6 of 6 photographs find" in panel.seen(values).sentence
    (lines,) = marks(plot_of(panel, "sphere", step=0), "segments")
    right = panel.solve(panel.values).share.argmax(1) == np.arange(N)
    assert [c == VERMILION for c in lines["colour"]] == right.tolist() and GREY in lines["colour"]


@pytest.mark.parametrize(("turn", "tilt"), [(0, 0), (30, -50), (-80, 10), (64, 80)])
def test_the_sphere_follows_its_handle(turn, tilt):
    """Where the handle is put, the sphere is turned so that the same point of it lies there."""
    panel = panels.sphere(turn=turn, tilt=tilt)
    x, y = panel.handles["sphere"].point
    R = ball.rotation(panel.values)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose([x, y], R[:2, 2], atol=1e-5)
    assert np.linalg.det(R) > 0 and ball.turned_to(*R[:2, 2]) == pytest.approx([turn, tilt])
    panel.on_event({"event": "", "handle": "sphere", "x": 0.5, "y": -0.5})
    np.testing.assert_allclose(panel.handles["sphere"].point, [0.5, -0.5], atol=0.02)
    panel.on_event({"event": "", "handle": "sphere", "x": 9.0, "y": 9.0})
    assert (panel.values["turn"], panel.values["tilt"]) == (ball.END, ball.END)


def test_turning_the_sphere_moves_no_point_on_it():
    panel = made("sphere")
    one, two = (panel.solve(panel.values | {"turn": turn}) for turn in (0, 40))
    np.testing.assert_allclose(one.seen[0] @ one.seen[1].T, two.seen[0] @ two.seen[1].T, atol=1e-12)


def rows_of(z: torch.Tensor, **values) -> tuple[np.ndarray, np.ndarray]:
    """What the panel gives to whom: columns of the list, the second view last, and the rows in that order."""
    panel = panels.anchor_list({"some": z}, torch.zeros(*z.shape[:2], 3, 2, 2, dtype=torch.uint8), **values)
    column = lists.listed(z.flatten(0, 1).numpy(), panel.values["anchor"])[0]
    shown = panel.solve(panel.values)
    return column, shown.rows[:, [shown.pictures[1:].tolist().index(c) for c in column]]


@pytest.mark.parametrize(("anchor", "beta"), [(0, 1.0), (5, 20.0)])
def test_the_list_is_the_one_that_groco_sorts(anchor, beta):
    z = normalised(2, 8, 5)
    column, rows = rows_of(z, anchor=anchor, beta=beta)
    row = GroCo(beta=beta, negatives=lists.NEGATIVES).assignment(z)[anchor]
    np.testing.assert_allclose(rows[1], row[column], atol=1e-12)
    assert column[-1] == 8 + anchor and (np.diff(rows[0, :-1]) >= 0).all()


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_sparsemax_is_that_of_sparseclr_without_its_margin(temperature):
    z = normalised(2, 6, 5)
    for anchor in range(6):
        column, rows = rows_of(z, anchor=anchor, temperature=temperature)
        cosines = (z.flatten(0, 1) @ z[0, anchor]).index_fill(0, torch.tensor(anchor), -torch.inf)
        np.testing.assert_allclose(rows[2], sparsemax(cosines / temperature)[column], atol=1e-12)
        if temperature == 1:
            row = SparseCLR(margin=0.0).assignment(z)[anchor]
            np.testing.assert_allclose(rows[2], row[column], atol=1e-12)


@pytest.mark.parametrize("bound", [0.1, 100.0])
def test_the_weights_are_the_machines_and_the_second_view_has_none(bound):
    z = normalised(2, 8, 5)
    column, rows = rows_of(z, anchor=3, C=bound)
    pool = z.flatten(0, 1)[[3, *column[:-1]]]
    K = torch.exp(-torch.cdist(pool, pool).square() / 2)
    np.testing.assert_allclose(rows[3, :-1], svm_dual(K, C=bound).alpha[1:], atol=1e-9)
    assert rows[3, -1] == 0 and rows.shape[1] == lists.NEGATIVES + 1
    assert 0 < rows[3].max() <= bound * (1 + 1e-9)


def test_the_anchor_sees_what_its_sentence_says():
    views = augmented_pair(few_patches().images[:8])
    same = torch.eye(8).expand(2, 8, 8)
    panel = panels.anchor_list({"exact": same}, views, anchor=3, beta=1000, temperature=0.1, C=1)
    assert "exact, anchor 3: its second view is number 1 of 11 in its list, at cosine 1.00" in panel.alt
    assert "sparsemax gives it 1.00 and something to 0 negatives" in panel.alt
    assert [lists.in_short(x) for x in (0.001, 0.5, -0.25, 1.0, 12.3)] == ["", ".50", "−.25", "1.00", "12"]


def test_the_list_shows_the_pictures_nearest_first():
    views = augmented_pair(few_patches().images[:8])
    z = {"some": normalised(2, 8, 5)}
    panel = panels.anchor_list(z, views, anchor=2)
    similarity = (z["some"].flatten(0, 1) @ z["some"][0, 2]).numpy()
    order = [k for k in np.argsort(-similarity) if k not in (2, 10)][: lists.NEGATIVES]
    order = sorted([*order, 10], key=lambda k: -similarity[k])
    (faces,) = marks(panel.scene["plots"][0], "photographs")
    shown = [panel.pictures[face] for face in faces["faces"]]
    expected = views.flatten(0, 1).permute(0, 2, 3, 1).numpy()[[2, *order]]
    np.testing.assert_array_equal(shown, expected)
    signs = [sign for _, sign in panel.scene["plots"][0]["xticks"]]
    assert signs[0] == "★" and signs.index("✚") == 1 + order.index(10) and signs.count("✕") == lists.NEGATIVES

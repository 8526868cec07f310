"""The panels of page 06: what they draw is what `IOT` and `sinkhorn` compute."""

import re

import numpy as np
import pytest
import torch
from conftest import shifted
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.patches import StepPatch

from setclr.inner import sinkhorn
from setclr.losses import IOT, InfoNCE
from setclr_course import panels
from setclr_course.panels.couplings.buckets import THICKEST, bucket_places, cost, shares


def moving(panel, kind) -> list:
    return [artist for artist in panel.artists if isinstance(artist, kind)]


@pytest.mark.parametrize("epsilon, rounds", [(0.5, 1), (0.05, 8), (0.005, 30)])
def test_a_round_is_sinkhorns(epsilon, rounds):
    from setclr_course.panels.couplings.sinkhorn_rounds import made_up_cost, path_of

    panel = panels.sinkhorn_rounds(epsilon=epsilon, rounds=rounds)
    made = sinkhorn(made_up_cost(), epsilon, iterations=rounds)
    (mesh,), (columns, rows) = moving(panel, QuadMesh), moving(panel, StepPatch)
    np.testing.assert_allclose(mesh.get_array(), np.log10((64 * made.P.numpy()).clip(1 / 640, 1)), atol=1e-9)
    np.testing.assert_allclose(columns.get_data().values, (64 * made.P.sum(0)).numpy().clip(max=3))
    np.testing.assert_allclose(rows.get_data().values, np.ones(64))
    path = path_of(made_up_cost(), epsilon)
    assert path.errors[rounds] == pytest.approx(made.error.item(), rel=1e-6, abs=1e-12)
    assert panel.controls["rounds"].max == len(path.errors) - 1


def test_round_0_is_the_coupling_under_U1():
    from setclr_course.panels.couplings.sinkhorn_rounds import made_up_cost, path_of

    P = path_of(made_up_cost(), 0.2).coupling(0)
    np.testing.assert_allclose(P, (-made_up_cost() / 0.2).flatten().softmax(0).view(64, 64), rtol=1e-9)


def test_a_cost_and_names_of_ones_own():
    cost = torch.rand(12, 12, generator=shifted(0))
    panel = panels.sinkhorn_rounds(cost, ("left", "right"), rounds=2)
    assert moving(panel, QuadMesh)[0].get_array().shape == (12, 12)
    assert {"left", "right"} <= {t.get_text() for axis in panel.figure.axes for t in axis.get_yticklabels()}


@pytest.mark.parametrize("values", [{}, {"epsilon": 0.05, "hub": 245}, {"rounds": 1, "hub": 5}])
def test_the_family_is_drawn_as_it_is(values):
    from setclr_course.panels.couplings.constraint_family import ANGLES, FAMILY, MOST
    from setclr_course.pixels.circle import on_circle

    panel = panels.constraint_family(**values)
    z = on_circle((ANGLES[0], (panel.values["hub"], *ANGLES[1][1:])))
    meshes, steps = moving(panel, QuadMesh), moving(panel, StepPatch)
    for k, (constraint, name) in enumerate(FAMILY.items()):
        loss = IOT(constraint, panel.values["epsilon"], panel.values["rounds"])
        A = loss.assignment(z).numpy()
        np.testing.assert_allclose(meshes[k].get_array(), A)
        columns, rows, image1 = (step.get_data().values for step in steps[3 * k : 3 * k + 3])
        np.testing.assert_allclose(columns, A.sum(0).clip(max=MOST))
        np.testing.assert_allclose(image1[[0, 4]], columns[[0, 4]])
        np.testing.assert_allclose(rows, A.sum(1).clip(max=MOST))
        assert f"{name}: loss {loss(z):.3f}, ■1 receives {A[:, 4].sum():.3f}" in panel.alt
    torch.testing.assert_close(IOT("rows", 0.3)(z), InfoNCE(0.3)(z))


@pytest.mark.parametrize("constraint", ["total", "rows", "both"])
def test_lines_are_as_thick_as_the_coupling_with_memory(constraint):
    from setclr_course.panels.couplings.matching_lines import ROUNDS, THICKEST, N, coupling, made_up

    z = torch.nn.functional.normalize(made_up(), dim=-1)
    loss = IOT(constraint, 0.5, ROUNDS)
    panel = panels.matching_lines(constraint=constraint, queue=3)
    A = loss.assignment(z[: 2 * N].unflatten(0, (2, N)), memory=z[2 * N : 2 * N + 3])[:N, N:].numpy()
    np.testing.assert_allclose(N * coupling(1 - z[:N] @ z[N:].T, 0.5, 3, constraint), A, atol=1e-12)
    lines = moving(panel, LineCollection)[1]
    widths = np.reshape(lines.get_linewidths(), (N, -1))
    np.testing.assert_allclose(widths[:, : N + 3], THICKEST * A.clip(max=1.5), atol=1e-9)
    assert not widths[:, N + 3 :].any()
    assert f"hold {A[range(N), range(N)].sum() / N:.1%}" in panel.alt
    assert constraint == "total" or "send 1.00 to 1.00" in panel.alt


def test_without_a_queue_the_batch_has_its_own_negatives():
    from setclr_course.panels.couplings.matching_lines import coupling

    cost = torch.rand(5, 13, dtype=torch.float64)
    torch.testing.assert_close(coupling(cost, 0.2, 0, "rows"), (-cost[:, :5] / 0.2).softmax(1) / 5)


def test_pictures_and_their_embeddings_come_together():
    images, z = torch.zeros(18, 3, 8, 8, dtype=torch.uint8), torch.randn(18, 7)
    assert len(panels.matching_lines(images, z).figure.axes[0].images) == 18
    for wrong in ((images, None), (None, z), (images[1:], z[1:])):
        with pytest.raises(ValueError, match="images and z must be 18 each, or neither given"):
            panels.matching_lines(*wrong)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_the_penalty_is_that_of_the_loss(epsilon):
    from setclr_course.panels.couplings.even_negatives import COSINES, approach, batch_with

    found = approach(epsilon)
    for k in (0, 7, 19, 30, 38):
        z = batch_with(COSINES[k])
        for target in ("mean", "max"):
            plain, more = IOT("rows", epsilon), IOT("rows", epsilon, 1, 1.0, target)
            assert getattr(found, target)[k] == pytest.approx((more(z) - plain(z)).item(), abs=1e-9)
    assert found.mean.min() > -1e-12 and abs(found.mean[19]) < 1e-12 and abs(found.max[19]) < 1e-12
    assert (found.whole >= 1 - 1e-12).all() and (found.max >= found.mean - 1e-12).all()


@pytest.mark.parametrize("epsilon, presses", [(0.2, 2), (0.05, 6), (1.0, 40)])
def test_presses_in_turn_are_sinkhorns_rounds(epsilon, presses):
    from setclr_course.panels.couplings.buckets import BUCKETS, cost, shares

    d = cost(BUCKETS)
    made = sinkhorn(torch.from_numpy(d), epsilon, iterations=presses // 2)
    np.testing.assert_allclose(shares(d, epsilon, presses, "columns"), 6 * made.P.numpy(), atol=1e-9)
    np.testing.assert_allclose(
        shares(d, epsilon, 1, "rows"), (-torch.from_numpy(d) / epsilon).softmax(1).numpy()
    )
    total = (-torch.from_numpy(d) / epsilon).flatten().softmax(0).view(6, 6)
    np.testing.assert_allclose(shares(d, epsilon, 0, "rows"), 6 * total.numpy())


def test_a_button_pressed_twice_moves_nothing_and_a_press_draws_once():
    panel, drawn = panels.sand(), []
    panel.front.observe(lambda change: drawn.append(change["new"]["sentence"]), names="shown")
    for side, presses in (("rows", 1), ("rows", 1), ("columns", 2), ("columns", 2), ("rows", 3)):
        panel.buttons[side].click()
        assert panel.values["presses"] == presses and panel.values["first"] == "rows"
    assert len(drawn) == 3 and "the last of them rows!" in drawn[-1]
    panel.reset()
    panel.buttons["columns"].click()
    assert panel.values["first"] == "columns" and "Buckets hold 1.00 to 1.00" in panel.alt


def test_a_hub_exists_unless_buckets_are_asked_too():
    panel = panels.hub()
    received = [float(x) for x in re.findall(r"bucket gets ([\d.]+) shares", panel.alt)]
    assert received[0] > received[1] > 2 and received[2] == 1
    panel.controls["coffee x"].value = 1.0
    assert re.findall(r"bucket gets ([\d.]+) shares", panel.alt)[2] == "1.00"


def test_a_line_is_as_wide_as_the_sand_that_it_carries():
    panel = panels.sand()
    lines = [artist for artist in panel.artists if isinstance(artist, LineCollection)]
    (flows,) = (one for one in lines if len(one.get_segments()) == 36)
    share = shares(cost(bucket_places(panel.values)), panel.values["epsilon"], 0, "columns")
    shown = np.where(share < 0.01, 0, share).clip(max=2).ravel()
    np.testing.assert_allclose(flows.get_linewidth(), THICKEST * shown)
    assert shown.max() > 0.5

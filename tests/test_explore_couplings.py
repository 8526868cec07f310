"""The panels of page 06: what they compute is what `IOT` and `sinkhorn` compute, and it is what they draw."""

import re

import numpy as np
import pytest
import torch
from conftest import shifted
from torch.nn.functional import normalize

from setclr.inner import sinkhorn
from setclr.losses import IOT
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.kit.few_patches import augmented_pair, few_patches
from setclr_course.kit.scene import Page
from setclr_course.panels.couplings.buckets import PILES, THICKEST, cost, places
from setclr_course.panels.couplings.coupled_patches import cost_of
from setclr_course.panels.couplings.even_negatives import COSINES, batches, scores
from setclr_course.panels.couplings.fair_shares import MOST, constrained, sum_bars
from setclr_course.panels.couplings.matching_lines import ROUNDS, N
from setclr_course.panels.couplings.matching_lines import THICKEST as WIDEST
from setclr_course.panels.couplings.sinkhorn_rounds import after, made_up_cost


def marks(panel, name: str, kind: str) -> list[dict]:
    """The marks of that kind in one of the panel's plots."""
    plot = next(plot for plot in panel.scene["plots"] if plot["name"] == name)
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


def dragged(panel, handle: str, x: float, y: float) -> None:
    panel.on_event({"event": "", "handle": handle, "x": x, "y": y})


@pytest.mark.parametrize("epsilon, rounds", [(0.3, 1), (0.1, 4), (1.0, 20)])
def test_the_three_constraints_are_the_losss(epsilon, rounds):
    z = normalize(torch.randn(2, 5, 3, generator=shifted(1), dtype=torch.float64), dim=-1)
    x = z.flatten(0, 1).numpy()
    found = constrained(1 - x @ x.T + np.diag(np.full(10, np.inf)), epsilon, rounds)
    for constraint, shares in found.items():
        np.testing.assert_allclose(shares, IOT(constraint, epsilon, rounds).assignment(z), atol=1e-12)


def test_a_bar_is_cut_off_where_it_is_too_long():
    plot = Page(["plot"]).plot("plot", (0, 3), (0, 9))
    sum_bars(plot, np.array([0.5, 1, MOST + 2]), 0, 2, words=True)
    bars, gaps, fair, words = plot.marks
    assert bars["v"] == [1, 2, 2 * MOST] and fair["y"] == [2, 2, 2]
    assert gaps["x"] == [1.5] and gaps["u"] == [2.5] and words["said"] == ["0.50", "1.00", "5.00"]
    assert words["y"] == [2, 2, 2 * MOST]


@pytest.mark.parametrize("epsilon, rounds", [(0.5, 1), (0.05, 8), (0.005, 30)])
def test_a_round_is_sinkhorns(epsilon, rounds):
    panel = panels.sinkhorn_rounds(epsilon=epsilon, rounds=rounds)
    made = sinkhorn(torch.from_numpy(made_up_cost()), epsilon, iterations=rounds)
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.P, made.P, atol=1e-12)
    assert now.errors[rounds] == pytest.approx(made.error.item(), rel=1e-6, abs=1e-12)
    columns, rows = marks(panel, "matrix", "boxes")
    np.testing.assert_allclose(-np.subtract(columns["v"], columns["y"]) / 4, 64 * made.P.sum(0), rtol=1e-4)
    np.testing.assert_allclose(np.subtract(rows["u"], rows["x"]) / 4, 1, rtol=1e-4)


def test_round_0_is_the_coupling_under_U1():
    cost = torch.from_numpy(made_up_cost())
    now = after(cost.numpy(), 0.2, 0)
    np.testing.assert_allclose(now.P, (-cost / 0.2).flatten().softmax(0).view(64, 64), rtol=1e-9)
    sums = np.concatenate([now.P.sum(0), now.P.sum(1)])
    assert now.errors[0] == pytest.approx(abs(64 * sums - 1).max())


def test_a_cost_and_names_of_ones_own():
    cost = torch.rand(12, 12, generator=shifted(0))
    panel = panels.sinkhorn_rounds(cost, ("left", "right"), rounds=2)
    assert len(marks(panel, "matrix", "cells")[0]["shades"]) == 144
    (plot, _), P = panel.scene["plots"], panel.solve(panel.values).P
    assert [word for _, word in plot["yticks"]] == ["left", "right"]
    said = {said: over for said, over, *_ in panel.scene["links"]}
    (piece,) = said[f"left to right: {2 * P[:6, 6:].sum():.0%} of its sand"]
    block = plot["marks"][piece[1]]
    assert [block[way][piece[2]] for way in "xyuv"] == [5.5, -0.5, 11.5, 5.5]


def test_the_dot_on_the_curve_is_dragged_to_another_round():
    panel = panels.sinkhorn_rounds()
    dragged(panel, "rounds", 6.8, 0.5)
    assert panel.values["rounds"] == 7 and "7 rounds" in panel.alt
    assert panel.handles["rounds"].point[0] == 7


@pytest.mark.parametrize("constraint", ["total", "rows", "both"])
def test_lines_are_as_thick_as_the_coupling_with_memory(constraint):
    images = torch.zeros(18, 3, 8, 8, dtype=torch.uint8)
    z = normalize(torch.randn(18, 3, generator=shifted(3), dtype=torch.float64), dim=-1)
    loss = IOT(constraint, 0.5, ROUNDS)
    panel = panels.matching_lines(images, z, constraint=constraint, queue=3)
    A = loss.assignment(z[: 2 * N].unflatten(0, (2, N)), memory=z[2 * N : 2 * N + 3])[:N, N:].numpy()
    np.testing.assert_allclose(panel.solve(panel.values), A, atol=1e-12)
    lines = marks(panel, "plot", "segments")[-1]
    np.testing.assert_allclose(lines["width"], (WIDEST * A.clip(max=1.5)).ravel(), rtol=1e-4, atol=1e-12)
    assert f"hold {A[range(N), range(N)].sum() / N:.1%}" in panel.alt
    assert constraint == "total" or "send 1.00 to 1.00" in panel.alt
    said = [said for said, *_ in panel.scene["links"]]
    assert f"picture 2 and queue entry 1: {A[1, 5]:.0%} of a row" in said
    assert not any("picture 2 and second view 1" in one for one in said)


def test_without_a_queue_the_batch_has_its_own_negatives():
    panel = panels.matching_lines(epsilon=0.2)
    cost = torch.from_numpy(panel.cost)
    np.testing.assert_allclose(panel.solve(panel.values), (-cost[:, :5] / 0.2).softmax(1), atol=1e-12)


def test_pictures_and_their_embeddings_come_together():
    images, z = torch.zeros(18, 3, 8, 8, dtype=torch.uint8), torch.randn(18, 7)
    shown = marks(panels.matching_lines(images, z, queue=2), "plot", "photographs")
    assert [len(mark["faces"]) for mark in shown] == [10, 2]
    for wrong in ((images[1:], z), (images, z[1:]), (images[1:], z[1:])):
        with pytest.raises(ValueError, match="images and z must be 18 each"):
            panels.matching_lines(*wrong)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_the_penalty_is_that_of_the_loss(epsilon):
    found = scores(epsilon)
    for k in (0, 7, 19, 30, 38):
        z = torch.from_numpy(batches()[k]).expand(2, -1, -1)
        for target in ("mean", "max"):
            plain, more = IOT("rows", epsilon), IOT("rows", epsilon, 1, 1.0, target)
            assert getattr(found, target)[k] == pytest.approx((more(z) - plain(z)).item(), abs=1e-9)
    assert found.mean.min() > -1e-12 and abs(found.mean[19]) < 1e-12 and abs(found.max[19]) < 1e-12
    assert (found.max >= found.mean - 1e-12).all()


def test_the_cosine_is_dragged_and_the_curves_stay_within_their_axis():
    panel = panels.even_negatives()
    dragged(panel, "cosine", -0.52, 1)
    assert panel.values["cosine"] == pytest.approx(-0.5) and "at cosine -0.50" in panel.alt
    top = max(scores(epsilon).max.max() for epsilon in (0.05, 0.5, 5.0))
    assert top < panel.scene["plots"][1]["y"][1]
    assert COSINES[[0, -1]].tolist() == [panel.knobs["cosine"].low, panel.knobs["cosine"].high]


def test_a_coupling_has_the_sums_that_were_asked_for():
    z = torch.randn(2, 9, 4, generator=shifted(2))
    panel = panels.coupled_patches({"own": z}, torch.zeros(2, 9, 1, 8, 8, dtype=torch.uint8), epsilon=0.3)
    rows, both = (panel.solve({**panel.values, "constraint": name}) for name in ("rows", "both"))
    for P in (rows, both):
        np.testing.assert_allclose(P.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(both.sum(0), 1, atol=1e-4)
    made = sinkhorn(torch.from_numpy(cost_of(z)), 0.3, iterations=100)
    np.testing.assert_allclose(both, 9 * made.P, atol=1e-9)
    assert np.abs(rows.sum(0) - 1).max() > 0.05


def test_coupled_patches_say_how_many_find_their_second_view():
    views = augmented_pair(few_patches().images[:8])
    z = torch.eye(8).expand(2, 8, 8).clone()
    z[1, [0, 1]] = z[1, [1, 0]]
    panel = panels.coupled_patches({"swapped": z}, views, epsilon=0.1)
    assert "6 of 8 patches give their largest share to their own second view" in panel.alt
    (crosses,) = marks(panel, "matrix", "dots")
    assert (crosses["x"], crosses["y"]) == ([1, 0], [0, 1])
    patch, takes, own = marks(panel, "mistakes", "photographs")[0]["faces"]
    for face, view in ((patch, views[0, 0]), (takes, views[1, 1]), (own, views[1, 0])):
        np.testing.assert_array_equal(panel.pictures[face], view.permute(1, 2, 0))


@pytest.mark.parametrize("epsilon, presses", [(0.2, 2), (0.05, 6), (1.0, 40)])
def test_presses_in_turn_are_sinkhorns_rounds(epsilon, presses):
    panel = panels.sand(epsilon=epsilon)
    shares = lambda **values: panel.solve({**panel.values, **values}).shares  # noqa: E731
    d = torch.from_numpy(cost(places({})))
    made = sinkhorn(d, epsilon, iterations=presses // 2)
    np.testing.assert_allclose(shares(presses=presses), 6 * made.P.numpy(), atol=1e-9)
    np.testing.assert_allclose(shares(presses=1, first="rows"), (-d / epsilon).softmax(1).numpy())
    np.testing.assert_allclose(shares(), 6 * (-d / epsilon).flatten().softmax(0).view(6, 6).numpy())


def test_a_button_pressed_twice_moves_nothing():
    panel = panels.sand()
    for button, presses in (("rows!", 1), ("rows!", 1), ("columns!", 2), ("columns!", 2), ("rows!", 3)):
        panel.on_event({"event": "", "button": button})
        assert panel.values["presses"] == presses and panel.values["first"] == "rows"
    assert "the last of them rows!" in panel.alt
    panel.reset()
    panel.on_event({"event": "", "button": "columns!"})
    assert panel.values["first"] == "columns" and "Buckets hold 1.00 to 1.00" in panel.alt


def test_the_second_pull_keeps_the_first():
    panel = panels.sand()
    dragged(panel, "cat", 0.52, -0.98)
    dragged(panel, "temple", 9, 0)
    buckets = panel.solve(panel.values).buckets
    assert buckets[NAMES.index("cat")].tolist() == [0.5, -1.0]
    assert buckets[NAMES.index("temple")].tolist() == [1.25, 0]
    others = [j for j, name in enumerate(NAMES) if name not in ("cat", "temple")]
    np.testing.assert_array_equal(buckets[others], places({})[others])
    assert panel.handles["cat"].point == (0.5, -1.0)


def test_a_hub_exists_unless_buckets_are_asked_too():
    panel = panels.hub()
    received = [float(x) for x in re.findall(r"bucket gets ([\d.]+) shares", panel.alt)]
    assert received[0] > received[1] > 2 and received[2] == 1
    dragged(panel, "coffee rows", 1.0, 0.05)
    assert panel.values["coffee x"] == 1 and all(at.point == (1, 0.05) for at in panel.handles.values())
    received = [float(x) for x in re.findall(r"bucket gets ([\d.]+) shares", panel.alt)]
    assert received[1] < 2 and received[2] == 1


def test_a_line_is_as_wide_as_the_sand_that_it_carries():
    panel = panels.sand()
    share = panel.solve(panel.values).shares
    (flows,) = marks(panel, "plane", "segments")
    shown = np.where(share < 0.01, 0, share).clip(max=2).ravel()
    np.testing.assert_allclose(flows["width"], THICKEST * shown, rtol=1e-4)
    assert shown.max() > 0.5 and [flows["x"][7], flows["y"][7]] == PILES[1].tolist()
    cells = [word for mark in marks(panel, "table", "cells") for word in mark["words"]]
    assert cells[:2] == [f"{x:.2f}".lstrip("0") for x in share[0, :2]]

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
from setclr_course.panels.couplings.buckets import BUCKETS, PILES, THICKEST, cost
from setclr_course.panels.couplings.fair_shares import MOST, sum_bars
from setclr_course.panels.couplings.sinkhorn_rounds import after, made_up_cost


def marks(panel, name: str, kind: str) -> list[dict]:
    """The marks of that kind in one of the panel's plots."""
    plot = next(plot for plot in panel.scene["plots"] if plot["name"] == name)
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


def dragged(panel, handle: str, x: float, y: float) -> None:
    panel.on_event({"event": "", "handle": handle, "x": x, "y": y})


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
    np.testing.assert_allclose(now.shares, 64 * made.P, atol=1e-10)
    assert now.errors[rounds] == pytest.approx(made.error.item(), rel=1e-6, abs=1e-12)
    columns, rows = marks(panel, "matrix", "boxes")
    np.testing.assert_allclose(-np.subtract(columns["v"], columns["y"]) / 4, 64 * made.P.sum(0), rtol=1e-4)
    np.testing.assert_allclose(np.subtract(rows["u"], rows["x"]) / 4, 1, rtol=1e-4)


def test_round_0_is_the_coupling_under_U1():
    cost = torch.from_numpy(made_up_cost())
    now = after(cost.numpy(), 0.2, 0)
    shares = 64 * (-cost / 0.2).flatten().softmax(0).view(64, 64)
    np.testing.assert_allclose(now.shares, shares, rtol=1e-9)
    assert now.errors[0] == pytest.approx(abs(torch.cat([shares.sum(0), shares.sum(1)]) - 1).max().item())


def test_a_cost_and_names_of_ones_own():
    cost = torch.rand(12, 12, generator=shifted(0))
    panel = panels.sinkhorn_rounds(cost, ("left", "right"), rounds=2)
    assert len(marks(panel, "matrix", "cells")[0]["shades"]) == 144
    assert panel.scene["plots"][0]["yticks"] == [[2.5, "left"], [8.5, "right"]]


def test_the_dot_on_the_curve_is_dragged_to_another_round():
    panel = panels.sinkhorn_rounds()
    dragged(panel, "rounds", 6.8, 0.5)
    assert panel.values["rounds"] == 7 and "7 rounds" in panel.alt
    assert panel.handles["rounds"].point[0] == 7


@pytest.mark.parametrize("constraint", ["rows", "both"])
def test_a_queue_is_the_memory_of_the_loss(constraint):
    z = normalize(torch.randn(13, 3, generator=shifted(3), dtype=torch.float64), dim=-1)
    faces = torch.zeros(13, 3, 8, 8, dtype=torch.uint8)
    panel = panels.coupled_patches({"own": (z[:5], z[5:])}, (faces[:5], faces[5:]), constraint=constraint)
    panel.controls["queue"].value = 2
    loss = IOT(constraint, 0.5, 100)
    A = loss.assignment(z[:10].unflatten(0, (2, 5)), memory=z[10:12])[:5, 5:].numpy()
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now, A, atol=1e-9)
    assert len(marks(panel, "matrix", "photographs")[1]["faces"]) == 7
    assert f"all of them together {A.trace() / 5:.0%} of their mass; second views and 2 of" in panel.alt
    received = 7 / 5 * now.sum(0)
    assert f"between {received.min():.2f} and {received.max():.2f} fair shares" in panel.alt


def test_a_coupling_has_the_sums_that_were_asked_for():
    z = torch.randn(2, 9, 4, generator=shifted(2))
    panel = panels.coupled_patches({"own": z}, torch.zeros(2, 9, 1, 8, 8, dtype=torch.uint8), epsilon=0.3)
    rows, both = (panel.solve({**panel.values, "constraint": name}) for name in ("rows", "both"))
    for P in (rows, both):
        np.testing.assert_allclose(P.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(both.sum(0), 1, atol=1e-4)
    one, two = normalize(z.double(), dim=-1)
    made = sinkhorn(1 - one @ two.T, 0.3, iterations=100)
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
    d = torch.from_numpy(cost(BUCKETS))
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
    assert panel.values["first"] == "columns" and "Buckets hold 1.00 shares each" in panel.alt


def test_the_second_pull_keeps_the_first():
    panel = panels.sand()
    dragged(panel, "cat", 0.52, -0.98)
    dragged(panel, "temple", 9, 0)
    buckets = panel.solve(panel.values).buckets
    assert buckets[NAMES.index("cat")].tolist() == [0.5, -1.0]
    assert buckets[NAMES.index("temple")].tolist() == [1.25, 0]
    others = [j for j, name in enumerate(NAMES) if name not in ("cat", "temple")]
    np.testing.assert_array_equal(buckets[others], BUCKETS[others])
    assert panel.handles["cat"].point == (0.5, -1.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_three_constraints_of_the_hub(epsilon):
    panel = panels.hub(epsilon=epsilon)
    now = panel.solve(panel.values)
    d = torch.from_numpy(cost(BUCKETS))
    shares = {
        "total": 6 * (-d / epsilon).flatten().softmax(0).view(6, 6),
        "rows": (-d / epsilon).softmax(1),
        "both": 6 * sinkhorn(d, epsilon, iterations=100).P,
    }
    for way, share in shares.items():
        np.testing.assert_allclose(now.shares[way], share, atol=1e-9)
        assert f"loss {-share.diagonal().log().mean():.2f}" in panel.alt


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

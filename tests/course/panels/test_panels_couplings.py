"""The panels of page 06: what they compute is what `IOT` and `sinkhorn` compute, and it is what they draw."""

import re

import numpy as np
import pytest
import torch
from conftest import shifted
from sweep import drag, marks
from torch.nn.functional import normalize

from setclr.inner import sinkhorn
from setclr.losses import IOT
from setclr_course import panels
from setclr_course.panels.couplings.buckets import BUCKETS, cost
from setclr_course.panels.couplings.sinkhorn_rounds import after, made_up_cost

COST = torch.from_numpy(cost(BUCKETS))


def constrained(d, epsilon: float, rounds: int = 100) -> dict[str, torch.Tensor]:
    """The shares by the library if their total is asked for, or rows too, or rows and columns."""
    return {
        "total": len(d) * (-d / epsilon).flatten().softmax(0).view(d.shape),
        "rows": (-d / epsilon).softmax(1),
        "both": len(d) * sinkhorn(d, epsilon, iterations=rounds).P,
    }


@pytest.mark.parametrize("epsilon, rounds", [(0.5, 1), (0.05, 8), (0.005, 30)])
def test_a_round_is_sinkhorns(epsilon, rounds):
    panel, d = panels.sinkhorn_rounds(epsilon=epsilon, rounds=rounds), torch.from_numpy(made_up_cost())
    made, now = sinkhorn(d, epsilon, iterations=rounds), panel.solve(panel.values)
    np.testing.assert_allclose(now.shares, 64 * made.P, atol=1e-10)
    assert now.errors[rounds] == pytest.approx(made.error.item(), rel=1e-6, abs=1e-12)
    begun, shares = after(d.numpy(), epsilon, 0), constrained(d, epsilon)["total"]
    np.testing.assert_allclose(begun.shares, shares, rtol=1e-9)
    assert begun.errors[0] == pytest.approx(abs(torch.cat([shares.sum(0), shares.sum(1)]) - 1).max().item())


@pytest.mark.parametrize("constraint", ["rows", "both"])
@pytest.mark.parametrize("queue", [0, 2])
def test_a_coupling_is_that_of_the_loss_and_a_queue_its_memory(constraint, queue):
    z = normalize(torch.randn(13, 3, generator=shifted(3), dtype=torch.float64), dim=-1)
    faces = torch.zeros(13, 3, 8, 8, dtype=torch.uint8)
    panel = panels.coupled_patches({"own": (z[:5], z[5:])}, (faces[:5], faces[5:]), constraint=constraint)
    panel.controls["queue"].value = queue
    now = panel.solve(panel.values)
    if queue:
        loss = IOT(constraint, 0.5, 100)
        A = loss.assignment(z[:10].unflatten(0, (2, 5)), memory=z[10:12])[:5, 5:].numpy()
    else:
        A = constrained(1 - z[:5] @ z[5:10].T, 0.5)[constraint]
    np.testing.assert_allclose(now, A, atol=1e-9)
    who = "second views and 2 of" if queue else "second views receive"
    assert f"all of them together {now.trace() / 5:.0%} of their mass; {who}" in panel.alt
    received = (5 + queue) / 5 * now.sum(0)
    assert f"between {received.min():.2f} and {received.max():.2f} fair shares" in panel.alt


def test_coupled_patches_say_how_many_find_their_second_view():
    views = torch.zeros(2, 8, 3, 8, 8, dtype=torch.uint8)
    z = torch.eye(8).expand(2, 8, 8).clone()
    z[1, [0, 1]] = z[1, [1, 0]]
    panel = panels.coupled_patches({"swapped": z}, views, epsilon=0.1)
    assert "6 of 8 patches give their largest share to their own second view" in panel.alt
    (crosses,) = marks(panel, "matrix", "dots")
    assert (crosses["x"], crosses["y"]) == ([1, 0], [0, 1])


@pytest.mark.parametrize("epsilon, presses", [(0.2, 2), (0.05, 6), (1.0, 40)])
def test_presses_in_turn_are_sinkhorns_rounds(epsilon, presses):
    panel, wanted = panels.sand(epsilon=epsilon), constrained(COST, epsilon, presses // 2)
    states = {"both": {"presses": presses}, "rows": {"presses": 1, "first": "rows"}, "total": {}}
    for way, values in states.items():
        np.testing.assert_allclose(panel.solve({**panel.values, **values}).shares, wanted[way], atol=1e-9)


def test_a_button_pressed_twice_moves_nothing():
    panel = panels.sand()
    for button, presses in (("rows!", 1), ("rows!", 1), ("columns!", 2), ("columns!", 2), ("rows!", 3)):
        panel.on_event({"event": "", "button": button})
        assert panel.values["presses"] == presses and panel.values["first"] == "rows"
    panel.reset()
    panel.on_event({"event": "", "button": "columns!"})
    assert panel.values["first"] == "columns" and "Buckets hold 1.00 shares each" in panel.alt


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_three_constraints_of_the_hub(epsilon):
    panel = panels.hub(epsilon=epsilon)
    for way, share in constrained(COST, epsilon).items():
        np.testing.assert_allclose(panel.solve(panel.values).shares[way], share, atol=1e-9)
        assert f"loss {-share.diagonal().log().mean():.2f}" in panel.alt


def test_a_hub_exists_unless_buckets_are_asked_too():
    panel = panels.hub()
    received = [float(x) for x in re.findall(r"bucket gets ([\d.]+) shares", panel.alt)]
    assert received[0] > received[1] > 2 and received[2] == 1
    drag(panel, "coffee rows", 1.0, 0.05)
    assert all(at.point == (1, 0.05) for at in panel.handles.values())
    received = [float(x) for x in re.findall(r"bucket gets ([\d.]+) shares", panel.alt)]
    assert received[1] < 2 and received[2] == 1

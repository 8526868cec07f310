"""The first panel of the course: shares and training are the library's, a drag leaves all points in place."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sweep import arrow

from setclr_course import panels
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.palette import GREY, VERMILION
from setclr_course.panels.family.batch import FAMILY
from setclr_course.panels.family.one_idea import ANGLES, STEP, STEPS, USUAL, WAYS, N, trained
from setclr_course.panels.family.plane import CONTROLS, control

UNEVEN = tuple((np.ravel(ANGLES) + 0.3 * np.sqrt(np.arange(12))).tolist())  # no two distances are the same


@pytest.fixture
def panel():
    return panels.one_idea()


def drag(panel, name: str, degrees: float) -> None:
    x, y = RADII[int(name[-1]) - 1] * unit(np.array(degrees))
    panel.on_event({"event": "", "handle": name, "x": x, "y": y})


def turned(one, other) -> np.ndarray:
    """By how many degrees angles differ."""
    return np.abs((np.asarray(one) - other + 180) % 360 - 180)


def test_the_front_page_needs_no_torch():
    code = """
import sys
from setclr_course.panels.family.one_idea import one_idea
panel = one_idea(way="sort")
panel.controls["step"].value = 2
panel._repr_mimebundle_()
print("torch" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("softness", [0.04, 0.4, 10])
def test_the_table_is_the_share_that_the_loss_gives_to_the_other_view(panel, way, softness):
    part = FAMILY[WAYS[way]].at(softness).assignment(torch.from_numpy(unit(np.array(ANGLES))))[:N, N:]
    share = panel.solve(panel.values | {"way": way, "softness": softness}).share
    np.testing.assert_allclose(share, part / part.sum(1, keepdim=True), atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_training_is_gradient_descent_on_the_loss(way):
    """Each step is the one that autograd takes from there, what the loss holds constant being held constant.

    The angles are kept to four digits, so a step is off by half of the last one.
    """
    loss = FAMILY[WAYS[way]].at(USUAL)
    for step in range(STEPS):
        before = trained(UNEVEN, way, step).ravel()
        angles = torch.tensor(before, dtype=torch.float64).deg2rad().requires_grad_()
        z = torch.stack([angles.cos(), angles.sin()], dim=-1).view(2, N, 2)
        (slope,) = torch.autograd.grad(loss(z), angles)
        after = before - STEP * (slope / slope.abs().max()).numpy()
        assert turned(trained(UNEVEN, way, step + 1).ravel(), after).max() < 0.5e-4 + 1e-6


@pytest.mark.parametrize("way", WAYS)
def test_training_finds_the_partners(panel, way):
    """By every way; for support vectors, which weigh negatives, the softmax says so."""
    before = panel.solve(panel.values).share
    after = panel.solve(panel.values | {"way": way, "step": STEPS}).z
    assert (before.argmax(1) == np.arange(N)).sum() <= 2
    assert ((after[0] @ after[1].T).argmax(1) == np.arange(N)).sum() >= 5


@pytest.mark.parametrize("softness", [0.05, 2.5, 10])
def test_softness_does_not_change_who_is_preferred(panel, softness):
    """● rocket is as near to another ■ as to its own: no partner found, however shares are rounded."""
    panel.controls["softness"].value = softness
    assert ": 1 of 6 photographs find" in panel.alt


@pytest.mark.parametrize("step", [0, 12, STEPS])
def test_points_that_are_dragged_one_after_the_other_all_stay(panel, step):
    """At any step: the others stay where they are seen, to the degree, and training begins anew."""
    panel.controls["step"].value = step
    seen = panel.solve(panel.values).angles.ravel()
    drag(panel, control(0, 0), 271)
    drag(panel, control(1, 3), 17)
    places = dict(zip(CONTROLS, seen)) | {control(0, 0): 271, control(1, 3): 17}
    now = panel.solve(panel.values).angles.ravel()
    assert panel.values["step"] == 0 and turned(now, list(places.values())).max() <= 0.5
    assert [panel.values[name] for name in CONTROLS] == now.tolist()


def test_another_way_stays_at_its_step(panel):
    panel.controls["step"].value = STEPS
    panel.on_event({"event": "", "set": {"way": list(WAYS).index("transport")}})
    assert panel.values["step"] == STEPS and panel.alt.startswith(f"Step {STEPS}, transport")


@pytest.mark.parametrize("step", [0, 5])
def test_an_arrow_key_moves_one_point(panel, step):
    panel.controls["step"].value = step
    seen = panel.solve(panel.values).angles
    arrow(panel, control(0, 4), 0, -1)
    moved = turned(panel.solve(panel.values).angles, seen)
    assert 0.5 < moved[0, 4] < 2 and np.delete(moved, 4).max() <= 0.5 and panel.values["step"] == 0


def test_it_plays_the_training(panel):
    assert panel.play == "step"
    panel.on_event({"event": "", "set": {"step": 1}})
    assert panel.values["step"] == 1


def test_lines_are_as_wide_as_shares_and_orange_between_partners(panel):
    plane = panel.scene["plots"][0]
    (lines,) = (mark for mark in plane["marks"] if mark["kind"] == "segments")
    share, width = panel.solve(panel.values).share.ravel(), np.array(lines["width"])
    np.testing.assert_allclose(width / width.max(), share / share.max(), atol=1e-5)
    colours, partners = np.array(lines["colour"]), np.eye(N).ravel() == 1
    assert set(colours[partners]) == {VERMILION} and set(colours[~partners]) == {GREY}


def test_pointing_at_a_cell_lights_up_its_pair(panel):
    link = next(link for link in panel.scene["links"] if link[0].startswith("coffee to rocket"))
    plane = panel.scene["plots"][0]["marks"]
    lit = {plane[mark]["kind"] + plane[mark].get("sign", ""): piece for _, mark, piece in link[2]}
    assert link[1][0][2] == 1 * N + 3 and lit == {"dots●": 1, "dots■": 3, "segments": 1 * N + 3}

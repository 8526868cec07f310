"""The first panel of the course: the matrix is a loss's own, training mends it, a drag begins again."""

import numpy as np
import pytest

from setclr.losses import InfoNCE
from setclr_course import panels
from setclr_course.panels.family.one_idea import ANGLES, WAYS, N, control, state
from setclr_course.panels.family.trap_pushes import forces
from setclr_course.pixels.circle import on_circle
from setclr_course.pixels.handles import place_of


@pytest.fixture
def panel():
    return panels.one_idea()


def test_the_matrix_is_the_share_that_the_loss_gives_to_the_other_view(panel):
    share = InfoNCE(0.5 * panel.values["softness"]).assignment(on_circle(ANGLES))[:N, N:]
    drawn = panel.figure.axes[1].collections[0].get_array()
    np.testing.assert_allclose(drawn, share / share.sum(1, keepdim=True), atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_training_finds_the_partners(panel, way):
    """By every way; for support vectors, which weigh negatives, the softmax says so."""
    panel.controls["way"].value = way
    before = state(panel.values | {"way": "softmax"}).share
    after = state(panel.values | {"step": panel.controls["step"].max})
    assert (before.argmax(1) == np.arange(N)).sum() <= 2
    assert ((after.z[0] @ after.z[1].T).argmax(1) == np.arange(N)).sum() >= 5


@pytest.mark.parametrize("softness", [-1.3, 0.4, 1.0])
def test_softness_does_not_change_who_is_preferred(panel, softness):
    """● rocket is as near to another ■ as to its own: no partner found, however shares are rounded."""
    panel.controls["softness"].value = softness
    assert ": 1 of 6 photographs find" in panel.alt


def test_a_point_that_is_dragged_begins_training_anew(panel):
    panel.controls["step"].value = 20
    left = panel.figure.axes[0]
    x, y = place_of(left, (0.0, -1.0))
    panel.on_event({"event": "", "handle": control(0, 0), "x": x, "y": y})
    assert panel.values["step"] == 0 and panel.values[control(0, 0)] == 270


def test_it_plays_the_training(panel):
    panel.on_event({"event": "", "play": True})
    assert panel.values["step"] == 1


def test_at_the_trap_a_hard_assignment_rests_and_the_others_push():
    panel = panels.trap_pushes(smoothing=0.0316)
    assert "assignment is at rest" in panel.alt and "InfoNCE pushes" in panel.alt
    found = forces(panel.values)
    assert np.abs(found["LinearAssignment"]).max() < 1e-6 < np.abs(found["InfoNCE"]).max()
    panel.controls["smoothing"].value = 10
    soft = {name: force.ravel() for name, force in forces(panel.values).items()}
    for name in ("LinearAssignment", "IOT"):
        both = soft[name], soft["InfoNCE"]
        assert both[0] @ both[1] > 0.9 * np.linalg.norm(both[0]) * np.linalg.norm(both[1])

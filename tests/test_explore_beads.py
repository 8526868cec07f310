"""The panels of page 01 draw what the library computes."""

import numpy as np
import pytest
import torch

from setclr_course import panels
from setclr_course.panels.sorting import downhill as film
from setclr_course.panels.sorting import five_numbers as losses
from setclr_course.panels.sorting.five import FIVE, spread


@pytest.mark.parametrize("temperature", [0.1, 0.5, 5.0])
def test_the_bars_are_a_softmax_and_stand_on_the_beads(temperature):
    panel = panels.beads(temperature=temperature, rocket=-0.2)
    s = torch.tensor([panel.values[name] for name in FIVE], dtype=torch.float64)
    bars = panel.figure.axes[0].patches
    share = (s / temperature).softmax(0)
    np.testing.assert_allclose([bar.get_height() for bar in bars], share)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in bars], s)
    assert f"the loss is {-share[0].log():.2f}" in panel.alt


def test_spread_keeps_the_order_and_the_middle():
    np.testing.assert_allclose(spread([0.0, 1.0, 5.0], 1.0), [0, 1, 5])
    np.testing.assert_allclose(spread([2.0, 2.0, 2.0], 1.0), [1, 2, 3])
    apart = spread([0.3, -0.1, 0.2, 0.25, 4.0], 0.5)
    assert (np.diff(np.sort(apart)) > 0.5 - 1e-9).all() and apart.argsort().tolist() == [1, 2, 3, 0, 4]


def test_the_pushes_are_what_autograd_says():
    generator = np.random.default_rng(0)
    for _ in range(10):
        s, knob = generator.normal(size=5), float(10 ** generator.uniform(-1, 1))
        x = torch.tensor([*s[1:], s[0]], requires_grad=True)  # the losses want the positive last
        for loss, push in (
            (losses.info_nce(x, knob), film.info_nce_push(s, knob)),
            (losses.groco(knob * x, 1.0), film.groco_push(s, knob)),
        ):
            (slope,) = torch.autograd.grad(loss, x)
            np.testing.assert_allclose(push, -slope.roll(1), rtol=1e-6, atol=1e-10)


def test_the_film_says_who_moved_and_who_leads():
    panel = panels.downhill()
    far = {
        loss: places[-1, film.LAST] + 1.5 for loss, places in film.paths(panel.values, film.LOSSES).items()
    }
    assert far["InfoNCE"] < -0.3 and -0.05 < far["GroCo"] < 0
    panel.controls["cat"].value = -2.0
    first = [
        int((p[:, 0] > p[:, 1:].max(1)).argmax()) for p in film.paths(panel.values, film.LOSSES).values()
    ]
    assert 5 * first[0] < first[1]
    shown = [text.get_text() for axis in panel.figure.axes for text in axis.texts]
    assert [text.split()[-1] for text in shown] == [str(step) for step in first]
    panel.front.moved = {"event": "a:1", "play": True}
    assert panel.values["step"] == 0 and "After 0 steps" in panel.alt
    alone = panels.downhill(losses=["InfoNCE"])
    assert "sharpness" not in alone.controls and "GroCo" not in alone.alt and len(alone.figure.axes) == 1
    with pytest.raises(ValueError, match="losses must be one of 'InfoNCE', 'GroCo', got 'MMCL'"):
        panels.downhill(losses=["MMCL"])

"""The panels of page 01 draw what the library computes."""

import numpy as np
import pytest
import torch

from setclr_course import panels
from setclr_course.panels.sorting.five import FIVE, spread


def marks(plot: dict, kind: str) -> list[dict]:
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


@pytest.mark.parametrize("temperature", [0.1, 0.5, 5.0])
def test_the_bars_are_a_softmax_and_stand_on_the_beads(temperature):
    panel = panels.beads(temperature=temperature, rocket=-0.2)
    s = torch.tensor([panel.values[name] for name in FIVE], dtype=torch.float64)
    share = (s / temperature).softmax(0)
    line, unit = panel.scene["plots"]
    (bars,) = marks(line, "boxes")
    np.testing.assert_allclose(bars["v"], share, rtol=1e-5)
    np.testing.assert_allclose(np.add(bars["x"], bars["u"]) / 2, s, atol=1e-6)
    (pieces,) = marks(unit, "boxes")
    np.testing.assert_allclose(np.subtract(pieces["v"], pieces["y"]), share, atol=1e-5)
    assert f"the loss is {-share[0].log():.2f}" in panel.alt
    assert {name: handle.point for name, handle in panel.handles.items()} == {
        name: (panel.values[name], 0) for name in FIVE
    }


def test_photographs_of_beads_at_one_place_stand_beside_one_another_within_the_picture():
    for place in (-1.0, 1.0):
        line = panels.beads(**dict.fromkeys(FIVE, place)).scene["plots"][0]
        x = np.sort(marks(line, "photographs")[1]["x"])
        assert np.diff(x).min() > 0.22 and line["x"][0] < x[0] - 0.11 and x[-1] + 0.11 < line["x"][1]


def test_spread_keeps_the_order_and_the_middle():
    np.testing.assert_allclose(spread([0.0, 1.0, 5.0], 1.0), [0, 1, 5])
    np.testing.assert_allclose(spread([2.0, 2.0, 2.0], 1.0), [1, 2, 3])
    np.testing.assert_allclose(spread([2.0, 2.0, 0.0], 1.0, 0.5, 2.9), [1.5, 2.5, 0.5])
    apart = spread([0.3, -0.1, 0.2, 0.25, 4.0], 0.5)
    assert (np.diff(np.sort(apart)) > 0.5 - 1e-9).all() and apart.argsort().tolist() == [1, 2, 3, 0, 4]


def test_the_film_says_who_moved_and_who_leads():
    panel = panels.downhill()
    far = {loss: places[-1, 3] + 1.5 for loss, places in panel.solve(panel.values).items()}
    assert far["InfoNCE"] < -0.3 and -0.05 < far["GroCo"] < 0
    panel.controls["cat"].value = -2.0
    first = [int((p[:, 0] > p[:, 1:].max(1)).argmax()) for p in panel.solve(panel.values).values()]
    assert 5 * first[0] < first[1]
    said = [marks(plot, "text")[0]["said"][0] for plot in panel.scene["plots"]]
    assert [text.split()[-1] for text in said] == [str(step) for step in first]
    panel.on_event({"event": "a:1", "set": {"step": 0}})
    assert panel.values["step"] == 0 and "After 0 steps" in panel.alt


def test_a_film_can_be_of_one_loss():
    alone = panels.downhill(losses=["InfoNCE"])
    assert "sharpness" not in alone.controls and "GroCo" not in alone.alt and len(alone.scene["plots"]) == 1
    with pytest.raises(ValueError, match="losses must be one of 'InfoNCE', 'GroCo', got 'MMCL'"):
        panels.downhill(losses=["MMCL"])


@pytest.mark.parametrize(
    "values", [{}, {"temperature": 3.0, "cat": 2.5}, {"sharpness": 10.0, "rocket": -2.5}]
)
def test_the_axes_hold_the_walks(values):
    panel = panels.downhill(**values)
    for plot, places in zip(panel.scene["plots"], panel.solve(panel.values).values(), strict=True):
        assert plot["y"][0] < places.min() and places.max() < plot["y"][1]
        ends = [line["y"][-1] for line in marks(plot, "line")[1:]]
        np.testing.assert_allclose(ends, places[-1], atol=0.0051)  # drawn with two decimals

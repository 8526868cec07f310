"""The panels and pictures of page 14, and the estimate of page 12, show what is counted and measured."""

import numpy as np
import pytest
from sweep import marks

from setclr import losses
from setclr.losses import InfoNCE, QARe
from setclr_course import costs, panels
from setclr_course.kit.scene import Page
from setclr_course.panels.costs.cost_pictures import apart, cost_lines
from setclr_course.panels.costs.step_shares import quick_steps
from setclr_course.panels.costs.training_costs import DAYS, cost, count, paper_utilisation

SECONDS = {"InfoNCE": {32: 1e-3, 64: 4e-3}, "QARe": {32: 2e-3, 64: 2e-3}, "MMCL": {32: 1e-3, 64: 8e-3}}
RUNS = {name: {N: [s, 0.9 * s, 1.2 * s] for N, s in row.items()} for name, row in SECONDS.items()}
KEPT = {"InfoNCE": {32: 10_000, 64: 40_000}, "QARe": {32: 5_000, 64: 9_000}, "MMCL": {32: 2_000, 64: 9_000}}


def test_the_tables_are_shown_and_said():
    panel = panels.loss_costs(RUNS, KEPT, "a test", images=32, loss="MMCL")
    assert panel.alt.startswith("At N = 32, MMCL takes 1 ms, 1.00 times InfoNCE, and keeps 0.002 MB")
    panel.controls["images"].value = 64
    assert panel.alt == "At N = 64, MMCL takes 8 ms, 2.00 times InfoNCE, and keeps 0.009 MB for the way back."
    for plot, y in (("time", [4, 2, 8]), ("memory", [0.04, 0.009, 0.009])):
        now = marks(panel, plot, "dots")[-1]
        assert now["x"] == [64] * 3 and now["y"] == pytest.approx(y)
    other = panel.seen({**panel.values, "loss": "InfoNCE"})
    assert "InfoNCE takes 4 ms and keeps 0.04 MB for the way back" in other.sentence
    between = panels.loss_costs(RUNS, KEPT, images=45.0)  # the nearest batch that was measured
    assert between.alt.startswith("At N = 32,") and between.handles["time"].point[0] == 32


def test_the_shares_of_a_step_are_those_of_its_parts():
    panel = panels.step_shares(encoder="Conv-4", batch=8)
    step = quick_steps()["time"]["Conv-4"][8]
    shared, loss = sum(step.parts.values()), step.losses["GroCo"]
    assert step.share("GroCo")[1] == pytest.approx(np.median(100 * loss / (shared + loss)))
    assert f"GroCo {step.share('GroCo')[1]:.2g} %" in panel.alt
    bars, reach = marks(panel, "plot", "boxes"), marks(panel, "plot", "segments")
    ratios = np.array([np.median(part) for part in step.parts.values()])
    for name, box, line in zip(step.losses, bars, reach, strict=True):
        low, share, high = step.share(name)
        widths = [*(100 - share) * ratios / ratios.sum(), share]
        np.testing.assert_allclose(np.subtract(box["u"], box["x"]), widths, rtol=1e-4, atol=1e-3)
        assert (line["x"], line["u"]) == (pytest.approx([100 - high]), pytest.approx([100 - low]))
    panel.controls["measure"].value = "memory"
    kept, encoder = costs.kept_bytes(losses.GroCo(), costs.points(8, 64)), costs.encoder_cost("conv4", 8)[1]
    assert f"GroCo {100 * kept / (kept + encoder):.2g} %" in panel.alt


def test_a_regulariser_is_added_to_the_loss_that_it_stands_beside():
    steps = quick_steps()
    step, kept = steps["time"]["Conv-4"][8], steps["memory"]["Conv-4"][8]
    assert "QARe" not in step.losses and (step.losses["InfoNCE + QARe"] > step.losses["InfoNCE"]).all()
    z = costs.points(8, 64)
    more = costs.kept_bytes(QARe(), z) / (kept.parts["encoder forward"] + costs.kept_bytes(InfoNCE(), z))
    assert kept.added("InfoNCE + QARe")[1] == pytest.approx(100 * more)
    assert "ms, reckoned from a step of 2 images" in panels.step_shares(steps).alt
    assert "reckoned" not in panels.step_shares(steps, encoder="Conv-4").alt
    slow = steps["time"]["ResNet-18"]
    np.testing.assert_allclose(slow[16].parts["views"], 2 * slow[8].parts["views"])
    np.testing.assert_allclose(slow[16].parts["optimiser"], slow[8].parts["optimiser"])


@pytest.mark.parametrize("log", ["x", "x y"])
def test_words_are_moved_apart_in_their_order(log):
    plot = Page(["costs"]).plot("costs", (1, 2), (1, 1000), log=log)
    ends = np.array([990.0, 300, 301, 305, 980])
    moved, last = apart(plot, ends), 950 if log == "x" else 1000**0.95
    np.testing.assert_array_equal(np.argsort(moved), np.argsort(ends))
    assert moved.max() == pytest.approx(last, rel=0.01)
    shares = np.sort(moved) / 999 if log == "x" else np.log(np.sort(moved)) / np.log(1000)
    assert np.diff(shares).min() > 0.05 - 1e-9
    np.testing.assert_allclose(apart(plot, np.array([500.0, 5])), [500, 5])


def test_still_pictures_say_what_they_show():
    added = {"GroCo": {32: costs.Middle(4.0, 5.0, 6.0), 64: costs.Middle(-0.5, -0.4, 0.0)}}
    more = cost_lines(added, "% more", "a step", log="x", stars=[(128, 2.3)])
    assert more.alt == "a step: % more at N = 32 to 64: GroCo 5 to -0.4; the paper's star: +2.3 at 128."


def test_operations_are_those_of_the_literature_and_the_estimate_that_of_the_papers_22_hours():
    """torchvision counts 4.09 billion multiply-adds for a ResNet-50; backwards is about twice that."""
    assert count()[224] / 1e9 == pytest.approx(3 * 2 * 4.09, rel=0.02)
    assert count()[96] / count()[224] == pytest.approx((96 / 224) ** 2, rel=0.03)
    used = paper_utilisation()
    for gpus, epochs, views, gpu, hours in (
        (8, 100, "2x224", "A6000", 22), (16, 200, "2x224", "A6000", 22), (8, 100, "4x224", "A6000", 44),
        (8, 100, "2x224", "H100", 22 * 155 / 989),
    ):  # fmt: skip
        assert 24 * cost(gpus, epochs, used, views, gpu).days == pytest.approx(hours)
    low, high = DAYS
    assert low < 0.8 * cost(128, 100, 50, "2x224", "H100").days
    assert cost(1, 800, 1, "4x224", "A6000").days * 1.25 < high
    assert cost(90, 800, 6.4, "2x224+6x96", "A6000").days > 1 > cost(91, 800, 6.4, "2x224+6x96", "A6000").days


def test_estimates_are_said():
    said = panels.training_costs().alt
    assert "6.2e+18 operations. 8 A6000 at 6.4 % of 155 Tflop/s would need 22 hours" in said

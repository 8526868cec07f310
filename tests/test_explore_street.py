"""The panels of page 07 that one can touch: the machines they draw are those of the library."""

import numpy as np
import pytest
import torch

from setclr.inner import kernel, svm_dual
from setclr_course import panels
from setclr_course.panels.machines.ray import WAYS
from setclr_course.panels.machines.street import OTHERS, PLACES, RIDGE, TOP


@pytest.fixture(scope="module")
def street():
    return panels.street()


def marks(scene, plot, kind):
    (found,) = (found for found in scene["plots"] if found["name"] == plot)
    return [mark for mark in found["marks"] if mark["kind"] == kind]


def dropped(panel, seed: int) -> dict:
    """The values of a panel whose points lie anywhere."""
    drawn = np.random.default_rng(seed)
    return {name: knob.stop(drawn.integers(knob.stops)) for name, knob in panel.knobs.items()}


@pytest.mark.parametrize("seed", range(8))
def test_the_street_is_that_of_the_library(street, seed):
    values = dropped(street, seed)
    now = street.solve(values)
    pool = torch.tensor(now.points[[5, 0, 1, 2, 3, 4]])
    solved = svm_dual(
        kernel(pool, pool, "linear"), 0, C=values["bound"], ridge=RIDGE, solver="exact", rounds=200
    )
    np.testing.assert_allclose(now.alpha, solved.alpha[1:], atol=1e-6)
    np.testing.assert_allclose(
        now.normal, solved.alpha[1:].numpy() @ (now.points[5] - now.points[:5]), atol=1e-5
    )
    np.testing.assert_allclose(now.alpha, np.clip((1 + now.f[:5]) / RIDGE, 0, values["bound"]), atol=1e-5)
    assert now.f[5] == pytest.approx(1)


def test_the_lines_and_bands_are_where_f_says(street):
    values = dropped(street, 3)
    seen, now = street.seen(values), street.solve(values)
    (kerbs, middle) = marks(seen.scene, "plane", "segments")
    for ends, level in (((kerbs["x"], kerbs["y"]), [-1, 1]), ((middle["u"], middle["v"]), [0])):
        np.testing.assert_allclose(np.transpose(ends) @ now.normal + now.offset, level, atol=1e-4)
    levels = [
        np.array(area["rings"][0]).T @ now.normal + now.offset for area in marks(seen.scene, "plane", "area")
    ]
    for f, low, high in zip(levels, (None, -1, 0, 1), (-1, 0, 1, None)):
        assert low is None or min(f) == pytest.approx(low, abs=1e-4)
        assert high is None or max(f) == pytest.approx(high, abs=1e-4)


def test_a_hollow_negative_that_stays_behind_its_kerb_changes_nothing(street):
    before, values = street.solve(street.values), street.values
    hollow = OTHERS[int(np.argmin(before.alpha))]
    assert before.alpha.min() == 0 < before.alpha.max()
    values[f"{hollow} x"] -= 0.3
    np.testing.assert_allclose(street.solve(values).normal, before.normal, atol=1e-9)
    assert street.seen(values).sentence == street.alt


@pytest.mark.parametrize("bound", [0.1, 10.0])
def test_bars_signs_and_sentence_are_the_weights(street, bound):
    values = {**street.values, "bound": bound, "astronaut x": 0.9, "astronaut y": 0.5}
    seen, alpha = street.seen(values), street.solve(values).alpha
    (bars,), heads = marks(seen.scene, "bars", "boxes"), marks(seen.scene, "bars", "area")
    np.testing.assert_allclose(bars["v"], alpha.clip(max=TOP), rtol=1e-5)
    np.testing.assert_array_equal(
        [np.mean(head["rings"][0][0]) for head in heads], np.flatnonzero(alpha > TOP)
    )
    said = [mark["said"][0] for mark in marks(seen.scene, "bars", "text")]
    assert said[-5:] == [f"{a:.2f}" if 0 < a < 10 else f"{a:.0f}" for a in alpha]
    assert (max(alpha) == 10 and len(heads) > 0) if bound == 10 else max(alpha) == 0.1
    crosses = marks(seen.scene, "plane", "dots")[0]
    np.testing.assert_array_equal(np.array(crosses["colour"]) != "#ffffff", alpha > 0)
    held = seen.sentence.split("held open by ")[1].split(";")[0]
    assert {name for name in OTHERS if name in held} == {n for n, a in zip(OTHERS, alpha) if a > 0}


def test_every_point_can_be_dragged_and_stays_where_it_was_put():
    panel = panels.street()
    assert set(panel.handles) == set(PLACES)
    for k, name in enumerate(PLACES):
        panel.on_event({"event": "a:1", "handle": name, "x": 0.3 * k, "y": 5})
    for k, name in enumerate(PLACES):
        assert panel.handles[name].point == pytest.approx((0.3 * k, 2))


@pytest.mark.parametrize(
    "near, far, ridge", [(1.0, 2.0, 0.1), (1.0, 1.0, 0.1), (2.5, 0.5, 1.0), (0.2, 3.0, 0.01)]
)
def test_the_three_ways_on_a_ray_are_those_of_the_library(near, far, ridge):
    gram = kernel(*[torch.tensor([[0.0], [near], [far]], dtype=torch.float64)] * 2, "linear")
    now = panels.ray().solve({"near": near, "far": far, "ridge": ridge})
    for alpha, solver in ((now.alpha[0], "exact"), (now.alpha[2], "inv")):
        found = svm_dual(gram, 0, C=1e9, ridge=ridge, solver=solver).alpha[1:].numpy()
        np.testing.assert_allclose(alpha, found, rtol=1e-6, atol=1e-6)
    assert WAYS == ("exact", "without bounds", "clipped")
    assert now.g[0] <= min(0, now.g[2]) and now.g[1] <= now.g[0] + 1e-9


def test_behind_another_one_clipping_is_worse_than_nothing():
    panel = panels.ray()
    assert "worse than doing nothing" in panel.alt and "coffee alone holds" in panel.alt
    panel.controls["far"].value = 1.0
    assert "better than nothing" in panel.alt


def test_bars_beyond_the_axis_are_arrows_with_their_numbers():
    panel = panels.ray(near=2.5, far=0.2, ridge=0.01)
    now = panel.solve(panel.values)
    for plot, values in (("alpha", now.alpha.T.ravel()), ("g", now.g[::2])):
        low, high = next(found["y"] for found in panel.scene["plots"] if found["name"] == plot)
        heads = [area["rings"][0][1][2] for area in marks(panel.scene, plot, "area")]
        assert heads and low < min(heads) and max(heads) < high
        said = [mark["said"][0] for mark in marks(panel.scene, plot, "text") if "within" not in mark]
        shown = [float(word.replace("−", "-")) for word in said]
        np.testing.assert_allclose(shown, values, rtol=0.05, atol=0.005)

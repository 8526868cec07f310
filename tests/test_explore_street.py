"""The panels of page 07 that one can touch: the machines they draw are those of the library."""

import numpy as np
import pytest
import torch

from setclr.inner import kernel, svm_dual
from setclr_course import panels
from setclr_course.panels.machines.ray import solve
from setclr_course.panels.machines.street import OTHERS, RIDGE, machine, place


@pytest.fixture(scope="module")
def street():
    return panels.street()


def test_the_street_is_that_of_the_machine(street):
    now = machine(street.values)
    points = np.array([place(street.values, name) for name in OTHERS])
    f = np.array([now.f(point) for point in points])
    np.testing.assert_allclose(now.alpha, np.clip((1 + f) / RIDGE, 0, street.values["bound"]), atol=1e-5)
    assert now.f(place(street.values, "positive")) == pytest.approx(1)
    assert (now.alpha > 0).any() and (now.alpha == 0).any()


def test_a_hollow_negative_that_stays_behind_its_kerb_changes_nothing(street):
    before, said = machine(street.values), street.alt
    hollow = OTHERS[int(np.argmin(before.alpha))]
    street.controls[f"{hollow} x"].value -= 0.3
    after = machine(street.values)
    np.testing.assert_allclose(after.normal, before.normal, atol=1e-9)
    assert street.alt == said
    street.reset()


def test_bars_and_sentence_are_the_weights(street):
    now = machine(street.values)
    bars = [patch.get_height() for patch in street.figure.axes[1].patches]
    np.testing.assert_allclose(bars, now.alpha)
    held = street.alt.split(". ")[1].split(" hold")[0].lower()
    assert {name for name in OTHERS if name in held} == {n for n, a in zip(OTHERS, now.alpha) if a > 0}


@pytest.mark.parametrize(
    "near, far, ridge", [(1.0, 2.0, 0.1), (1.0, 1.0, 0.1), (2.5, 0.5, 1.0), (0.2, 3.0, 0.01)]
)
def test_the_three_ways_on_a_ray_are_those_of_the_library(near, far, ridge):
    gram = kernel(*[torch.tensor([[0.0], [near], [far]], dtype=torch.float64)] * 2, "linear")
    now = solve(near, far, ridge)
    for way, solver in (("exact", "exact"), ("clipped", "inv")):
        found = svm_dual(gram, 0, C=1e9, ridge=ridge, solver=solver).alpha[1:].numpy()
        np.testing.assert_allclose(now.alpha[way], found, rtol=1e-6, atol=1e-6)
    assert now.g["exact"] <= min(0, now.g["clipped"]) and now.g["without bounds"] <= now.g["exact"] + 1e-9


def test_behind_another_one_clipping_is_worse_than_nothing():
    panel = panels.ray()
    assert "worse than doing nothing" in panel.alt and "coffee alone holds" in panel.alt
    panel.controls["far"].value = 1.0
    assert "better than nothing" in panel.alt

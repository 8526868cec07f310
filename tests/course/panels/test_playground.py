"""The playground: its losses in JavaScript are the library's, it trains, its text keeps its state, and its
cards can be solved."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from in_browser import IMPORT, differences, opened
from playwright.sync_api import expect

from setclr import losses as library
from setclr_course import panels
from setclr_course.kit.front import joined
from setclr_course.panels.family.plane import TRAP_ANGLES
from setclr_course.panels.play import rules

pytestmark = pytest.mark.browser
STATES, NEAR = 2000, 1e-6
TIE = 1e-6  # where a step so long turns what is sorted or chosen, there is a tie
START = panels.playground().values
LOOKED = """(states) => JSON.stringify(JSON.parse(states).map(({ x, labels, views, knobs }) => {
  const { value, gradient } = window.module.look(x, window.module.setOf(labels, views), knobs);
  return { value, gradient };
}))"""
MADE = {
    "InfoNCE": lambda v: library.InfoNCE(v["temperature"]),
    "SparseCLR": lambda v: library.SparseCLR(v["margin"]),
    "GroCo": lambda v: library.GroCo(v["beta"], v["negatives"]),
    "IOT": lambda v: library.IOT("both", v["temperature"], v["rounds"]),
    "MMCL": lambda v: library.MMCL(v["kernel"], v["width"], v["C"], solver="exact"),
    "LinearAssignment": lambda v: library.LinearAssignment(v["margin"]),
    "Triplet": lambda v: library.Triplet(v["margin"]),
    "NTLogistic": lambda v: library.NTLogistic(v["temperature"]),
    "SupCon": lambda v: library.SupCon(v["temperature"]),
}


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    page.evaluate(IMPORT, joined(Path(rules.__file__).with_name("playground.js")))
    return page


def some_state(name: str, by: np.random.Generator) -> dict:
    """Points that are anywhere, views near them or far away, and every knob at one of its stops."""
    n, E = by.integers(4, 9), by.integers(2, 4)
    views = 2 if name in rules.OF_TWO_VIEWS else by.integers(2, 4)
    x = by.normal(size=(n, E)) + by.choice([0.1, 0.5, 2]) * by.normal(size=(views, n, E))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    knobs = {one: knob.stop(int(by.integers(knob.stops))) for one, knob in panels.playground.knobs.items()}
    labels = by.permutation(n) % by.integers(2, n + 1)
    knobs |= {"loss": name, "qare": float(by.choice([0, 0.5]))}
    return {"x": x.reshape(-1, E).tolist(), "views": int(views), "labels": labels.tolist(), "knobs": knobs}


def by_the_library(given: dict, x: np.ndarray) -> tuple[float, np.ndarray]:
    v, z = given["knobs"], torch.tensor(x.reshape(given["views"], -1, x.shape[1]), requires_grad=True)
    loss = MADE[v["loss"]](v)
    value = loss(z, labels=torch.tensor(given["labels"])) if v["loss"] == "SupCon" else loss(z)
    value = value + v["qare"] * library.QARe()(z)
    return value.item(), torch.autograd.grad(value, z)[0].reshape(x.shape).numpy()


@pytest.mark.filterwarnings("ignore:negatives=")  # a small batch has fewer
@pytest.mark.parametrize("name", MADE)
def test_a_loss_in_javascript_is_the_librarys(page, name):
    """With QARe or without: value and gradient along the sphere, but for one tie in a thousand states."""
    by, ties = np.random.default_rng(7), 0
    states = [some_state(name, by) for _ in range(STATES)]
    for given, found in zip(states, json.loads(page.evaluate(LOOKED, json.dumps(states))), strict=True):
        x = np.array(given["x"])
        value, slope = by_the_library(given, x)
        assert found["value"] == pytest.approx(value, rel=NEAR, abs=NEAR)
        most = NEAR * max(np.abs(slope).max(), 1e-3)
        if np.abs(np.array(found["gradient"]) - slope).max() > most:
            near = x + TIE * by.normal(size=x.shape)
            other = by_the_library(given, near / np.linalg.norm(near, axis=1, keepdims=True))[1]
            assert np.abs(other - slope).max() > 1e3 * most, given
            ties += 1
    assert ties <= STATES / 1000


TRAINED = """([values, told, steps]) => {
  const m = window.module;
  let points = m.opened(values);
  for (let k = 0; k < steps; k += 1) points = m.after(points, m.sidesOf(values, points));
  const pinned = points.pinned.map((_, a) => a === 1);
  const now = { ...values, points: m.written({ ...points, pinned }, values) };
  const { scene, sentence } = new m.Page(told).seen(m.draw, now);
  return [now.points, scene, sentence];
}"""


@pytest.mark.parametrize("surface", ["circle", "sphere"])
@pytest.mark.parametrize("name", MADE)
def test_a_trained_state_is_kept_as_text_that_python_draws_alike(page, name, surface):
    values = START | {
        "loss": name,
        "loss 2": "IOT",
        "surface": surface,
        "views": 3,
        "same": "yes",
        "qare 2": 0.5,
    }
    text, scene, sentence = page.evaluate(TRAINED, [values, panels.playground().atlas().told, 150])
    panel = panels.playground(**values | {"points": text})
    assert panel.alt == sentence and sentence.startswith("Step 150.")
    assert not differences(json.loads(json.dumps(panel.scene)), scene)


def test_text_that_is_broken_or_of_another_version_is_refused():
    panel = panels.playground.at(TRAP_ANGLES)
    text = panel.values["points"]
    np.testing.assert_allclose(panel.solve(panel.values)[0].begun.ravel() / 100, TRAP_ANGLES.ravel())
    for wrong in ("v2" + text[2:], text[: len(text) // 2], text + "x", 3):
        with pytest.raises(ValueError, match="points must be as a panel wrote it"):
            panels.playground(points=wrong)
    assert panels.playground(points=text, things=5).alt == panels.playground(things=5).alt  # of another set


# For each card what its reader changes, how many steps they train, and which points they pin.
SOLVED = {
    "Collapse": ({"loss": "SupCon"}, 200, []),
    "A rate at which QARe helps": ({"rate": 1.0}, 20, []),
    "… and one at which it harms": ({"rate": 10**1.5}, 30, []),
    "Three classes apart": ({"loss": "SparseCLR"}, 20, []),
    "Bring the hub down": ({"loss": "IOT", "rounds": 20}, 0, []),
    "Spread, and no grey line": ({"temperature": 0.1}, 400, []),
    "One thing, photographed twice": ({"loss": "SupCon"}, 100, []),
    "Make it come to you": ({}, 200, [0]),
    "Quiet machines": ({"width": 1.0}, 0, []),
}
PLAYED = """([name, start, more, steps, pins]) => {
  const m = window.module;
  const card = m.CARDS.find((one) => one.name === name);
  const begun = m.opening(card, start);
  const still = (values) => values.points === begun.points;
  const done = (values, points) =>
    Boolean(card.done({ ...points, sides: m.sidesOf(values, points), still: still(values) }));
  const values = { ...begun, ...more };
  let points = m.opened(values);
  points = { ...points, pinned: points.pinned.map((_, a) => pins.includes(a)) };
  for (let k = 0; k < steps; k += 1) points = m.after(points, m.sidesOf(values, points));
  return [done(begun, m.opened(begun)), done(values, points)];
}"""


def test_each_card_can_be_solved_and_none_is_when_it_opens(page):
    assert page.evaluate("window.module.CARDS.map((card) => card.name)") == list(SOLVED)
    for name, (more, steps, pins) in SOLVED.items():
        assert page.evaluate(PLAYED, [name, START, more, steps, pins]) == [False, True], name


def test_it_trains_and_points_are_pinned_and_added(browser):
    """And the kernel hears of it. Where less motion is wanted, it trains twenty steps a click."""
    page = opened(browser, panel := panels.playground(), height=1500)
    said, third = page.locator(".setclr-sentence").first, page.locator('[data-name="3 0"]')

    def press(name: str, step: int, group: str = "") -> None:
        (page.get_by_role("group", name=group) if group else page).get_by_role(
            "button", name=name, exact=True
        ).click()
        expect(said).to_have_text(re.compile(rf"^Step {step}\."))

    press("step", 1)
    third.focus()
    press("pin", 1)
    place = third.bounding_box()
    press("▶ train", 21)
    assert third.bounding_box() == place
    press("add", 0)
    press("GroCo", 0, "and beside it")
    press("step", 1)
    page.wait_for_timeout(500)
    pinned = panel.values["points"].split(":")[2].split(".")[3]
    assert panel.values["things"] == 7 and pinned.endswith("p")
    assert panel.alt == said.inner_text() and "GroCo" in panel.alt
    press("⇤ begin again", 0)
    assert not page.errors
    page.close()

"""The playground: its losses in JavaScript are the library's, its cards can be solved, its link keeps the state."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import shifted
from in_browser import chromium, opened
from test_panels_family import slope

from setclr import losses as library
from setclr_course import panels
from setclr_course.kit.front import joined
from setclr_course.panels.play import board, points, rules

pytestmark = pytest.mark.browser
FOLDER = Path(rules.__file__).parent
STATES, NEAR = 200, 1e-6
TIE = 1e-7  # cosines that differ by less are a tie, at which a sort, a hinge or a support may turn either way
IMPORT = """async (code) => {
  window.module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
}"""
SOLVED = """(states) => JSON.stringify(JSON.parse(states).map(({ x, labels, views, knobs }) => {
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
def page():
    with chromium() as browser:
        page = browser.new_page()
        page.evaluate(IMPORT, joined(FOLDER / "playground.js"))
        yield page


def some_state(name: str, by: np.random.Generator) -> dict:
    """Points that are anywhere, and every knob at one of its stops."""
    n, views, E = by.integers(4, 9), 2 if name in rules.OF_TWO_VIEWS else by.integers(2, 4), by.integers(2, 4)
    x = by.normal(size=(n, E)) + by.choice([0.1, 0.5, 2]) * by.normal(size=(views, n, E))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    knobs = {one: knob.stop(int(by.integers(knob.stops))) for one, knob in panels.playground.knobs.items()}
    labels = by.integers(0, 3, size=n) if by.random() < 0.5 else np.arange(n)
    labels[0], labels[1] = 0, 1  # of one class alone there is no negative
    if name == "SupCon" and by.random() < 0.5:
        labels = np.arange(n)
    return {"x": x.reshape(-1, E).tolist(), "views": int(views), "labels": labels.tolist(),
            "knobs": knobs | {"loss": name, "qare": float(by.choice([0.0, 0.5]))}}  # fmt: skip


def tied(name: str, S: np.ndarray, state: dict) -> bool:
    """Whether a step away of TIE would change what is chosen."""
    v, apart = state["knobs"], S[np.triu_indices(len(S), 1)]
    if name in ("GroCo", "Triplet") and np.diff(np.sort(apart)).min() < TIE:
        return True
    if name == "SparseCLR":
        ...
    return False


@pytest.mark.parametrize("name", MADE)
def test_a_loss_in_javascript_is_the_librarys(page, name):
    """Value and gradient along the sphere at 2,000 random states, but for ties, which are few."""
    by = np.random.default_rng(7)
    ties, states = 0, [some_state(name, by) for _ in range(STATES)]
    found = json.loads(page.evaluate(SOLVED, json.dumps(states)))
    for state, answer in zip(states, found, strict=True):
        v, x = state["knobs"], np.array(state["x"])
        z = x.reshape(state["views"], -1, x.shape[1])
        loss, labels = MADE[name](v), torch.tensor(state["labels"]) if name == "SupCon" else None
        whole = loss + v["qare"] * library.QARe() if v["qare"] else loss
        z = torch.tensor(z, requires_grad=True)
        value = whole(z, labels=labels) if labels is not None else whole(z)
        (downhill,) = torch.autograd.grad(value, z)
        downhill = downhill.reshape(x.shape).numpy()
        off = np.abs(np.array(answer["gradient"]) - downhill).max()
        right = abs(answer["value"] - value.item()) <= NEAR * max(1, abs(value.item()))
        right &= off <= NEAR * max(1e-3, np.abs(downhill).max())
        if not right:
            ties += 1
            if ties < 4:
                print(
                    name,
                    ties,
                    answer["value"],
                    value.item(),
                    off,
                    np.abs(downhill).max(),
                    x.shape,
                    state["views"],
                    {k: v[k] for k in rules.RULES[name][1:]},
                )
    assert ties == 0, ties

"""Questions that answer back: a pick shows why and opens the picture; an answer is right, or gets a hint."""

import html
import itertools
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from notebook_tools import FOLDER
from scipy import stats
from scipy.optimize import linear_sum_assignment
from torch.nn.functional import normalize, one_hot

from setclr.losses import InfoNCE
from setclr_course import costs
from setclr_course.kit.controls import slider
from setclr_course.kit.palette import OF_LOSS
from setclr_course.kit.panel import Panel
from setclr_course.teach import asked, card, check, predict, predictions
from setclr_course.teach.answers import is_right, passes
from setclr_course.teach.asked import Exercise, Question
from setclr_course.teach.cards import CARDS
from setclr_course.teach.sheets import RIGHT, sheet

CHOICES = {"the largest": "It has the most to lose.", "the <smallest>": "It weighs nothing."}


@pytest.fixture(autouse=True)
def page(monkeypatch):
    """A page of the course that is made up."""
    exercises = {
        "1": Exercise("a number", 2.5, "Count again.", why="Half of five."),
        "2": Exercise("a list of 3 numbers", [1.0, 0.0, -2.0], "Sort them.", 0.1),
        "3": Exercise("a word", "rows", "Which sums are 1?"),
        "4": Exercise("a function of x", passes(lambda x: 2 * x, 1.0, torch.arange(3.0)), "Try x = 1."),
        "5": Exercise("a function of z", passes(InfoNCE(0.5), torch.randn(2, 4, 3)), "Normalise first."),
    }
    questions = {"1": Question("Which?", CHOICES, "the largest")}
    made = SimpleNamespace(QUESTIONS=questions, EXERCISES=exercises)
    monkeypatch.setattr(asked, "PAGES", ["77"])
    monkeypatch.setattr(asked, "module", lambda page: made)
    monkeypatch.setattr(predictions, "PICKED", {})


class dot(Panel):
    size, knobs = (3, 2), {"x": slider("x", 0, 0, 3, 1)}

    def draw(self, page, values, now):
        page.plot("plot", (0, 3), (0, 1)).dots([(values["x"], 0.5)])

    def say(self, values, now):
        return f"x is {values['x']}."


def test_a_pick_is_marked_explained_and_opens_the_picture_and_is_there_when_its_cell_runs_again(monkeypatch):
    shown = predict("77.1", dot())
    assert not shown.opened.children and not shown.said.value
    shown.buttons["the largest"].click()
    assert shown.buttons["the largest"].icon == "check" and "most to lose" in shown.said.value
    (opened,) = shown.opened.children
    assert "setclr-panel" in opened._dom_classes
    shown.pick("the <smallest>")
    assert shown.buttons["the <smallest>"].icon == "times" and "weighs nothing" in shown.said.value
    assert shown.opened.children == (opened,)
    again = predict("77.1", dot().still)
    (column,) = again.opened.children[0].told["columns"]
    assert column["scene"] == again.picture.columns[0].scene and column["sentence"] == "x is 0."
    alone = predict("77.1")
    assert not alone.opened.children and "<img" not in alone.page() and "weighs nothing" in alone.said.value
    monkeypatch.setitem(asked.module("77").QUESTIONS, "1", Question("Who?", CHOICES, "the largest"))
    assert not predict("77.1").said.value


@pytest.mark.parametrize("kind", [dot, lambda: dot().still])
def test_where_no_kernel_runs_it_folds(kind):
    bundle, _ = predict("77.1", kind())._repr_mimebundle_()
    assert "model_id" in bundle["application/vnd.jupyter.widget-view+json"]
    before, folded = bundle["text/html"].split("<details>")
    assert "Which?" in before and "the &lt;smallest&gt;" in before
    assert "most to lose" not in before and "<img" not in before
    for words in "✔ <b>the largest", "✘ <b>the &lt;smallest&gt;", "data:image/png":
        assert words in folded
    assert bundle["text/plain"] == "Which? the largest / the <smallest>"


@pytest.mark.parametrize("call, said", [
    (lambda: Question("Which?", CHOICES, right="largest"), "right must be one of 'the largest'.* 'largest'"),
    (lambda: Question("Which?", {"one": "It is."}, right="one"), "choices must be two to five, got 1"),
    (lambda: predict("77.2"), "question must be one of '1', got '2'"),
    (lambda: check("78.1", 1), "page must be one of '77', got '78'.*such as '02.1'"),
    (lambda: check("77.6", 1), "exercise must be one of '1', '2', '3', '4', '5', got '6'"),
    (lambda: card("SimCLR"), "name must be one of .* got 'SimCLR'"),
    (lambda: sheet({"SimCLR": (..., ..., ..., ...)}), "losses must be among InfoNCE, .*; got SimCLR"),
    (lambda: sheet({"IOT": ("transport",)}), "IOT must have 4 words, find, where, softly by, .*; got 1"),
    (lambda: sheet({"IOT": ("rows", ..., ..., ...)}), "a word of 'find' must be one of .*; got 'rows'"),
    (lambda: sheet({"IOT": (1, ..., ..., ...)}), "a word of 'find' must be one of candidate, .*; got 1"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_what_there_is(call, said):
    with pytest.raises(ValueError, match=said):
        call()


@pytest.mark.parametrize("name, answer, said", [
    ("77.1", 2.51, "✔ 77.1 is right. Half of five.$"),
    ("77.1", torch.tensor(2.5), "✔"),
    ("77.1", 2.53, "✘ 77.1 is not right yet. Hint: Count again."),
    ("77.1", -2.5, "✘"),
    ("77.2", np.array([1.05, 0.05, -2.1]), "✔"),
    ("77.2", [1, 0.2, -2], "✘"),
    ("77.3", " Rows", "✔"),
    ("77.3", "columns", "✘"),
    ("77.4", lambda x: x + x, "✔"),
    ("77.4", lambda x: x**2, "✘"),
    ("77.1", ..., "77.1 waits for a number instead of the three dots"),
    ("77.1", "many", "77.1 wants a number; this str cannot be checked"),
    ("77.2", [1, 2], r"77.2 wants a list of 3 numbers; .* its shape is \(2,\), not \(3,\)"),
    ("77.3", 3, "77.3 wants a word"),
    ("77.4", 3, "77.4 wants a function of x; this int cannot be checked: it is no function but 3"),
    ("77.4", lambda x: x.nothing, "77.4 wants a function of x; this function cannot be checked"),
])  # fmt: skip
def test_an_answer_is_right_or_gets_a_hint_or_is_told_its_kind(name, answer, said):
    checked = check(name, answer)
    assert re.match(said, repr(checked)) and html.escape(checked.said) in checked._repr_html_()
    assert bool(checked) == (said[0] == "✔") and ("Hint" in repr(checked)) == (said[0] == "✘")


asked_of, PAGES = asked.module, asked.PAGES  # the real pages, whatever a test makes up


def test_what_the_pages_ask_is_whole():
    for written in map(asked_of, PAGES):
        assert len(written.QUESTIONS) >= 2
        for one in written.QUESTIONS.values():
            assert one.text[-1] == "?" and {why[-1] for why in one.choices.values()} == {"."}
        for one in written.EXERCISES.values():
            assert one.wants[0] == "a" and one.hint[-1] in ".?" and one.why[-1] == "."


def test_an_answer_that_calls_the_library_is_no_answer():
    before = sys.getprofile()
    said = check("77.5", lambda z: InfoNCE(0.5)(z)).said
    assert "calls setclr; write it without" in said and sys.getprofile() is before
    assert passes(InfoNCE(0.5), torch.randn(2, 4, 3), alone=False)(InfoNCE(0.5))


def cosines(a, b):
    return normalize(a, dim=-1) @ normalize(b, dim=-1).T


def with_itself(z):
    """InfoNCE with τ = 0.5 over all views, the anchor too."""
    x = normalize(z, dim=-1).flatten(0, 1)
    logits = x @ x.T / 0.5
    return (logits.logsumexp(1) - logits.roll(len(x) // 2, dims=1).diagonal()).mean()


def with_ones(z):
    return torch.cat([z, torch.ones_like(z[..., :1])], -1)


def of_spectra(Z):
    first, second = torch.linalg.eigvalsh(Z.mT @ Z)
    return first @ second / Z.shape[1] ** 2


both_halves = asked_of("05").both_halves


def carried(d, n, m):
    T = (-d / 0.2).exp()
    for _ in range(50):
        T = normalize(normalize(T, 1, 0) / m, 1, 1) / n
    return T


def matched(ab, cost):
    """The share of rows of `cost` that are matched one to one with their own column."""
    column = linear_sum_assignment(cost(cosines(*ab)))[1]
    return torch.tensor((column == range(ab.shape[1])).mean())


def voted(bank, labels, queries, weight):
    """The class of each query by the vote of its ten nearest."""
    near = cosines(queries, bank).topk(10, dim=1)
    return (weight(near.values)[..., None] * one_hot(labels[near.indices])).sum(1).argmax(1)


def ends(gap, t, lost):
    """Of an interval of the mean gap."""
    half = t * gap.std(ddof=lost) / len(gap) ** 0.5
    return gap.mean() - half, gap.mean() + half


def equal_weights(z, views=(0, 1)):
    """MMCL where every weight is C = 0.001."""
    n, total = z.shape[1], 0
    for view, i in itertools.product((0, 1), range(n)):
        negatives = z[[(view + v) % 2 for v in views]][:, torch.arange(n) != i]
        near, plus = ((-(x - z[1 - view, i]).square().sum(-1) / 2).exp() for x in (negatives, z[view, i]))
        total = total + 0.001 * (near - plus).sum()
    return total / (2 * n)


def meeting(name, dimensions=64, back=True):
    """The batch at which InfoNCE does as many flops as that encoder."""
    loss, z = InfoNCE(0.5), costs.points(256, dimensions)
    done = costs.work(lambda: loss(z).backward() if back else loss(z))
    return 256 * costs.encoder_cost(name, 256)[0] / done.flops


# Exercise, what the misconception gives, the misconception. Of numbers there is the one that comes nearest to
# the right answer, and none where that is far beyond the tolerance.
MISCONCEPTIONS = [
    ("00.1", 1.58, "the last stop at which they still hold 40 %"),
    ("00.2", math.log(12), "an anchor is its own candidate"),
    ("00.3", lambda z: (cosines(*z) / 0.2).T.log_softmax(1).diagonal().neg().mean(), "■ asks, not ●"),
    ("01.1", 0.8, "the stop below"),
    ("01.3", with_itself, "an anchor is its own candidate"),
    ("02.1", 3.72, "the greedy rule finds the shortest matching"),
    ("02.3", lambda distance: distance.amin(1).sum(), "each takes its nearest, taken or not"),
    ("03.1", 0.45, "the level of the water before the coffee is pulled down"),
    ("03.2", 1 / 11, "the eleventh shares, too"),
    ("03.3", lambda scores: scores.softmax(-1), "shares by a softmax"),
    ("04.1", 84, "the largest sum itself"),
    ("04.3", lambda z: of_spectra(normalize(z, dim=-1)), "no column of ones"),
    ("04.3", lambda z: of_spectra(normalize(with_ones(z), dim=-1)), "the ones written before dividing"),
    ("05.1", 0.318, "the last stop before"),
    ("05.3", lambda x: 2 * both_halves(x), "the sum of both halves, not their mean"),
    ("05.3", lambda x: both_halves(x.sort().values), "positives and negatives sorted together first"),
    ("06.1", 16, "the last press before"),
    ("06.2", math.log(126), "the partner does not count"),
    ("06.3", lambda d: carried(d, len(d.T), len(d)), "rows hold 1/m, columns 1/n"),
    ("06.3", lambda d: carried(d, 1, 1), "each pile and bucket holds 1"),
    ("07.1", -0.8, "the first place at which it is hollow"),
    ("07.3", lambda z: equal_weights(z) * 2 * z.shape[1], "summed over the anchors, not averaged"),
    ("07.3", lambda z: equal_weights(z, views=(1,)), "negatives of the anchor's view alone"),
    ("07.3", lambda z: -equal_weights(z), "near less far"),
    ("08.1", 168, "the middle of its path, not of the two candidates"),
    ("08.2", 1.1235, "the anchors that are right count below 0"),
    ("08.3", lambda s: (s / 0.5).softmax(1), "the rows alone sum to 1"),
    ("09.3", lambda ab: matched(ab, lambda cosine: 1 - cosine), "cosines for costs"),
    ("09.3", lambda ab: (cosines(*ab).argmax(1) == torch.arange(ab.shape[1])).double().mean(), "nearest"),
    ("10.2", math.log(254), "the partner is no candidate"),
    ("10.3", lambda *sets: voted(*sets, lambda cosine: cosine * 0 + 1), "all ten weigh the same"),
    ("10.3", lambda *sets: voted(*sets, lambda cosine: (cosine * 0.1).exp()), "times 0.1"),
    ("11.1", 0.022, "the adjusted p-value, and not a stop"),
    ("11.3", lambda p: (len(p) * p).clip(max=1), "all are multiplied by m"),
    ("11.3", lambda p: ((len(p) - p.argsort().argsort()) * p).clip(max=1), "below the one before"),
    ("12.3", lambda a, b: ends(a - b, 1.96, 1), "as if there were many runs"),
    ("12.3", lambda a, b: ends(a - b, stats.t.ppf(0.975, len(a) - 1), 0), "the scatter divided by n"),
    ("12.3", lambda a, b: ends(a - b, stats.t.ppf(0.95, len(a) - 1), 1), "5 % at each end"),
    ("13.1", "camera", "the diagonal"),
    ("13.3", lambda shown, asked: cosines(asked, shown.mean(1)).argmax(1), "cosines"),
    ("14.3", lambda name: meeting(name, back=False), "the loss forward alone"),
    ("14.3", lambda name: meeting(name, 128), "embeddings of 128 numbers, as in the first cell"),
    ("14.3", lambda name: meeting(name) / 256, "how many times the flops, not at which batch"),
    ("15.1", 70.04, "the mean over molecules"),
    ("15.2", 86.2, "atoms and bonds, counted"),
    ("15.3", lambda x, edges, keep: (x[keep], edges[:, keep[edges].all(0)]), "numbers as they were"),
    ("16.1", 20, "never the same clip twice"),
    ("16.2", 100 / 18, "guessing"),
    ("16.3", lambda flow: flow.flip(-1), "what goes to the right still does"),
    ("16.3", lambda flow: torch.stack([-flow[0], flow[1]]), "the pixels stay in place"),
]


@pytest.mark.parametrize("name, answer, misconception", MISCONCEPTIONS)
def test_what_a_misconception_gives_is_wrong(name, answer, misconception):
    page, number = name.split(".")
    assert not is_right(asked_of(page).EXERCISES[number], answer), misconception


@pytest.mark.parametrize("name", CARDS)
def test_every_loss_has_a_card(name):
    bundle, _ = card(name)._repr_mimebundle_()
    assert OF_LOSS[name] in bundle["text/html"] and "data:image/png" in bundle["text/html"]
    assert bundle["text/plain"].startswith(f"{name}\ninner problem: ")
    assert (FOLDER / f"{card(name).page}.ipynb").exists()


def test_a_sheet_marks_what_is_filled_in():
    started = sheet({"InfoNCE": RIGHT["InfoNCE"], "MMCL": ("street", "rows", ..., ...)})
    assert started.right == 5 and repr(started) == "5 of 28 cells are right."
    page = started._repr_html_()
    assert page.count("✔") == 5 and page.count("✘") == 1 and page.count("…") == 22
    assert sorted(RIGHT) == sorted(CARDS) == sorted(OF_LOSS) and "the sheet to print" in repr(sheet(RIGHT))

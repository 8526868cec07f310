"""Questions that answer back: a pick shows why and opens the picture; an answer is right, or is told more.

All of it in the course, and in the students' pack, where answers are sealed.
"""

import html
import re
import shutil
import sys
import tomllib
from functools import partial
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from notebook_tools import FOLDER, notebooks

from setclr.losses import InfoNCE
from setclr_course.kit.controls import slider
from setclr_course.kit.palette import OF_LOSS
from setclr_course.kit.panel import Panel
from setclr_course.teach import answers, asked, card, check, computed, predict, predictions
from setclr_course.teach.answers import equals
from setclr_course.teach.asked import Question, exercise
from setclr_course.teach.cards import CARDS
from setclr_course.teach.sheets import RIGHT, sheet

MADE_UP = """
[questions.1]
text = "Which?"
right = "the largest"
[questions.1.choices]
"the largest" = "It has the most to lose."
"the <smallest>" = "It weighs nothing."

[exercises]
1 = {wants = "a number", right = 2.5, hint = "Count again.", why = "Half of five.", mistakes = [
    {answer = 5, reason = "That is the whole."}]}
2 = {wants = "a list of 3 numbers", right = [1.0, 0.0, -2.0], hint = "Sort them.", tolerance = 0.1}
3 = {wants = "a word", right = "rows", hint = "Which sums are 1?", mistakes = [
    {answer = "diagonal", reason = "One cell of each."}]}
4 = {wants = "a function of x", function = "double", hint = "Try 1.", without = ["setclr"], mistakes = [
    {function = "square", reason = "That is the square."},
    {function = "double", with = {by = 0.5}, reason = "That is half."}]}
5 = {wants = "a function of z", function = "infonce", hint = "Normalise first.", without = ["setclr"]}
6 = {wants = "a function of x and y", function = "both", hint = "Two things.", any_order = true}
7 = {wants = "a function of x", function = "square", hint = "Try 2.", steps = 9, widest = 3}
"""


def both(x, y):
    return x.sum(), torch.stack([x, y])


@pytest.fixture(params=["course", "pack"])
def page(request, monkeypatch, tmp_path):
    """A page of the course that is made up, as it is written and as students have it."""
    made_up = {
        "77.4": [1.0, torch.arange(3.0)], "77.5": [torch.randn(2, 4, 3)],
        "77.6": [(torch.tensor([1, 2]), torch.tensor([0, 4]))], "77.7": [torch.arange(10.0)],
    }  # fmt: skip
    functions = {"double": lambda x, by=2: by * x, "square": lambda x: x**2, "both": both}
    monkeypatch.setattr(computed, "inputs", lambda: made_up)
    for name, function in functions.items():
        monkeypatch.setattr(computed, name, function, raising=False)
    file = tmp_path / "pages" / "77.toml"
    file.parent.mkdir()
    file.write_text(MADE_UP, encoding="utf-8")
    if request.param == "pack":
        file = seal(tmp_path) / "pages" / "77.sealed"
        monkeypatch.setitem(sys.modules, computed.__name__, None)
    monkeypatch.setattr(asked, "pages", lambda: {"77": file})
    monkeypatch.setattr(predictions, "PICKED", {})


def seal(teach: Path) -> Path:
    """The same folder as a students' pack has it."""
    shutil.copy(computed.__file__, teach)
    computed.seal(teach)
    assert not [*teach.glob("pages/*.toml"), *teach.glob("*.py")]
    return teach


in_both = pytest.mark.usefixtures("page")


class dot(Panel):
    size, knobs = (3, 2), {"x": slider("x", 0, 0, 3, 1)}

    def draw(self, page, values, now):
        page.plot("plot", (0, 3), (0, 1)).dots([(values["x"], 0.5)])

    def say(self, values, now):
        return f"x is {values['x']}."


@in_both
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
    monkeypatch.setitem(asked.found("question", "77.1"), "text", "Who?")
    assert not predict("77.1").said.value


@in_both
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
    assert "<img" in predict("77.1", kind(), beside=kind()).page().split("<details>")[0]
    assert predict("77.1", beside=kind()).first.children[0].told["columns"]  # painted, on a dark page too


CHOICES = {"the largest": "It has the most to lose.", "the smallest": "It weighs nothing."}


@in_both
@pytest.mark.parametrize("call, said", [
    (lambda: Question("Which?", CHOICES, right="largest"), "right must be one of 'the largest'.* 'largest'"),
    (lambda: Question("Which?", {"one": "It is."}, right="one"), "choices must be two to five, got 1"),
    (lambda: predict("77.2"), "question must be one of '1', got '2'"),
    (lambda: check("78.1", 1), "page must be one of '77', got '78'.*such as '02.1'"),
    (lambda: sheet({"SimCLR": (..., ..., ..., ...)}), "losses must be among InfoNCE, .*; got SimCLR"),
    (lambda: sheet({"IOT": ("transport",)}), "IOT must have 4 words, find, where, softly by, .*; got 1"),
    (lambda: sheet({"IOT": ("rows", ..., ..., ...)}), "a word of 'find' must be one of .*; got 'rows'"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_what_there_is(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def spoils(x):
    x *= 2
    return x


@in_both
@pytest.mark.parametrize("name, answer, said", [
    ("77.1", 2.51, "✔ 77.1 is right. Half of five.$"),
    ("77.1", torch.tensor(2.5), "✔"),
    ("77.1", 2.53, "✘ 77.1 is not right yet. Hint: Count again."),
    ("77.1", -2.5, "✘"),
    ("77.1", 4.96, "✘ 77.1 is not right yet. That is the whole.$"),
    ("77.2", np.array([1.05, 0.05, -2.1]), "✔"),
    ("77.2", [1, 0.2, -2], "✘"),
    ("77.3", " Rows", "✔"),
    ("77.3", "columns", "✘ .* Hint"),
    ("77.3", "Diagonal", "✘ 77.3 is not right yet. One cell of each.$"),
    ("77.4", lambda x: x + x, "✔"),
    ("77.4", spoils, "✔"),
    ("77.4", lambda x: x + 1, "✘ .* Hint: Try 1."),
    ("77.4", lambda x: x * x, "✘ .* That is the square.$"),
    ("77.4", lambda x: 0.5 * x, "✘ .* That is half.$"),
    ("77.6", lambda x, y: (3, torch.stack([x, y]).flip(1)), "✔"),
    ("77.6", lambda x, y: (3, torch.stack([y, x])), "✘"),
    ("77.6", lambda x, y: (2, torch.stack([x, y])), "✘"),
    ("77.1", ..., "77.1 waits for a number instead of the three dots"),
    ("77.1", "many", "77.1 wants a number; this str cannot be checked"),
    ("77.2", [1, 2], r"77.2 wants a list of 3 numbers; .* its shape is \(2,\), not \(3,\)"),
    ("77.3", 3, "77.3 wants a word"),
    ("77.4", 3, "77.4 wants a function of x; this int cannot be checked: it is no function but 3"),
    ("77.4", lambda x: x.nothing, "77.4 wants a function of x; this function cannot be checked"),
    ("77.4", lambda x: [2 * x], r"77.4 wants a function of x; .* its shape is \(1,\), not \(\)"),
    ("77.5", lambda z: InfoNCE(0.5)(z), "✘ .* right yet. It calls setclr.losses.*; write it without.$"),
    ("77.5", lambda z: computed.infonce(z), "✘ 77.5 is not right yet. It calls setclr"),
    ("77.7", lambda x: x * x, "✔"),
    ("77.7", lambda x: torch.stack([a * a for a in x]), "✘ .* It takes 12 steps of torch; .* 9 are enough"),
    ("77.7", lambda x: (x[:, None] * x).diagonal(), "✘ .* It makes a table of 100 numbers from 10"),
    ("77.7", lambda x: torch.tensor([a * a for a in x.tolist()]), "✘ .* It leaves torch"),
    ("77.6", lambda x, y: [x], "77.6 wants a function of x and y; .* it returns 1 things, not 2"),
])  # fmt: skip
def test_an_answer_is_right_or_gets_a_hint_or_is_told_its_mistake_or_its_kind(name, answer, said):
    before = sys.getprofile()
    checked = check(name, answer)
    assert re.match(said, repr(checked)) and html.escape(checked.said) in checked._repr_html_()
    assert bool(checked) == (said[0] == "✔") and sys.getprofile() is before


NAMES = [f"{page}.{k}" for page, file in asked.pages().items() for k in asked.content(file)["exercises"]]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """The pages as students have them."""
    teach = tmp_path_factory.mktemp("teach")
    shutil.copytree(asked.FOLDER, teach / "pages")
    return seal(teach) / "pages"


def test_students_are_asked_the_same_and_nothing_can_be_read_in_their_files(sealed, monkeypatch):
    questions = [asked.content(file)["questions"] for file in asked.pages().values()]
    exercises = list(map(exercise, NAMES))
    monkeypatch.setattr(asked, "FOLDER", sealed)
    monkeypatch.setitem(sys.modules, computed.__name__, None)
    assert questions == [asked.content(file)["questions"] for file in asked.pages().values()]
    assert exercises == list(map(exercise, NAMES))
    assert all(re.fullmatch(r"[\w+/]+=*", file.read_text()) for file in asked.pages().values())


def test_what_the_pages_ask_is_whole():
    """A right choice is told yes, and a wrong one never. Question 9 is one of two pages before."""
    for page, file in asked.pages().items():
        written = asked.content(file)
        assert len(written["questions"]) >= 2 and ("9" in written["questions"]) == (page > "01")
        for number in written["questions"]:
            one = asked.question(f"{page}.{number}")
            assert one.text[-1] == "?" and {why[-1] for why in one.choices.values()} == {"."}
            agrees = [text for text, why in one.choices.items() if why.startswith("Yes")]
            assert agrees == [one.right], f"{page}.{number}"


@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_is_whole_and_each_likely_mistake_is_another_one(name):
    one = exercise(name)
    assert one.wants[0] == "a" and one.hint[-1] in ".?" and one.why[-1] == "."
    assert 2 <= len(one.mistakes) <= 4 and not re.search(r"\w\(", one.hint), "a hint calls nothing"
    for mistake in one.mistakes:
        assert mistake.reason[-1] == "." and not equals(mistake.answer, one.right, one)
        assert [equals(mistake.answer, other.answer, one) for other in one.mistakes].count(True) == 1


def solved(path):
    """The code of a page's solutions by the name of the exercise; from page 13 on without the data of all."""
    setup, *cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    if path.name >= "13":
        setup = "\n".join(re.findall(r"(?m)^(?:import|from) .*$", setup))
    for cell in cells:
        if name := re.search(r'assert check\("([\d.]+)", answer\)', cell):
            yield name[1], f"{setup}\n{cell[: name.end()]}"


QUICK = {f"{page:02}.{k}" for page in range(13) for k in (2, 3)} | {f"{page}.3" for page in range(13, 17)}
SOLVED = [(name, code) for path in notebooks("solutions") for name, code in solved(path) if name in QUICK]


@pytest.mark.parametrize("name, code", SOLVED, ids=[name for name, _ in SOLVED])
def test_what_the_solutions_give_is_right(name, code):
    """Those that need neither data nor a panel; all of them run with their pages (make test-careful)."""
    exec(code, {})


PLANTED = tomllib.loads(Path(__file__).with_name("planted.toml").read_text(encoding="utf-8"))
CODE = dict(found for path in notebooks("solutions") for found in solved(path))
SEEDS = {name: (0, 1, 2) if name[3:] == "3" and name != "14.3" else (0,) for name in NAMES}
TRIED = [(name, seed) for name in NAMES for seed in SEEDS[name]]


@pytest.mark.parametrize("name, seed", TRIED)
def test_a_planted_wrong_answer_is_told_why_and_the_solution_is_right(name, seed, monkeypatch):
    """With other batches, too. At least four an exercise, and all its likely mistakes among them."""
    monkeypatch.setattr(computed, "inputs", partial(computed.inputs, seed))
    one, right, said = exercise(name), CODE[name], set()
    monkeypatch.setattr(answers, "exercise", {name: one}.__getitem__)  # computed once
    page, number = name.split(".")
    for wrong, *slip, told in PLANTED[page][number]:
        made = {"answer": wrong}
        if slip:
            assert right.count(wrong) == 1, f"{name}: {wrong}"
            exec(right[: right.index("assert check(")].replace(wrong, *slip), made)
        found = check(name, made["answer"])
        assert not found and told in found.said, f"{wrong}, {slip}: {found}"
        said.add(found.said.removeprefix(f"✘ {name} is not right yet. "))
    assert {mistake.reason for mistake in one.mistakes} <= said and len(PLANTED[page][number]) >= 4
    if number == "3":
        exec(right, {})


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

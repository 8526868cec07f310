"""What is made of the pages to hand out: decks of slides, and the exercises as otter-grader's assignments."""

import itertools
import json
import re
import subprocess
import sys

import nbformat
import pytest
from in_browser import chromium
from notebook_tools import ROOT, notebooks
from playwright.sync_api import expect
from test_site import served

from setclr_course.kit.panel import Panel

sys.path.insert(0, str(ROOT / "site"))
import grading
import slides

ALL = pytest.mark.parametrize("page", notebooks(), ids=lambda path: path.stem)
(FIRST,) = [page for page in notebooks() if page.name.startswith("01")]


@ALL
def test_a_deck_has_every_picture_and_question_of_its_page(page):
    notebook = nbformat.read(page, as_version=4)
    cells = slides.deck(notebook).cells
    shown = [cell.source for cell in cells if cell.metadata.slideshow.slide_type == "slide"]
    end = next(i for i, cell in enumerate(notebook.cells) if "## Exercises" in cell.source)
    pictures = [slides.picture_of(cell) for cell in notebook.cells[:end] if cell.cell_type == "code"]
    for picture in filter(None, pictures):
        assert all(any(piece in text for text in shown) for piece in slides.apart(picture))
    assert not any("setclr-prediction" in text and "<img" in text for text in shown)
    assert shown[0].startswith("# ") and any(text.startswith("## What we saw") for text in shown)
    assert not any("check(" in text or text.startswith("## Exercises") for text in shown)
    assert not any(re.fullmatch(r"#+ .*\s*", text) for text in shown), "a slide has a title only"
    assert [cell.metadata.slideshow.slide_type for cell in cells].count("notes") > 5


@pytest.mark.browser
def test_a_deck_opens_and_goes_on(tmp_path):
    slides.write([FIRST], tmp_path, tmp_path)
    wrong = []
    with served(tmp_path) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("request", lambda asked: asked.url.startswith((address, "data:")) or wrong.append(asked.url))
        page.goto(address)  # which lists the decks
        page.get_by_role("link", name="Five numbers").click()
        expect(page.locator("section.present h1")).to_have_text(re.compile("Five numbers"), timeout=100_000)
        page.keyboard.press("ArrowRight")
        expect(page.locator("section.present .setclr-prediction")).to_be_visible(timeout=100_000)
        page.wait_for_url("**#/1")
        page.reload()
        expect(page.locator("section.present .setclr-prediction")).to_be_visible(timeout=100_000)
        slide = page.locator("section.present").last
        while page.locator(".navigate-right.enabled").count():
            page.keyboard.press("ArrowRight")
            assert slide.inner_text().strip()
            assert slide.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), slide.inner_text()
        expect(slide.locator("h2")).to_have_text("What we saw")
    assert not wrong


@ALL
def test_the_master_has_every_exercise_of_the_page_with_its_solution(page):
    cells = grading.master(page).cells
    begun = [re.search("name: (.*)", cell.source)[1] for cell in cells if "BEGIN QUESTION" in cell.source]
    assert begun == [f"exercise_{page.name[:2]}_{k}" for k in (1, 2, 3)]
    solved = [cell.source for cell in cells if "BEGIN SOLUTION NO PROMPT" in cell.source]
    assert len(solved) == 3 and not any("check(" in code for code in solved)
    assert all(re.search(r"\banswer\b.*[=:]", code) for code in solved)
    asked = [cell.source for cell in cells if cell.source.startswith("★")]
    assert len(asked) == 3 and not any("](../" in text for text in asked)
    for k in [k for k, cell in enumerate(cells) if cell.source == "# BEGIN TESTS"]:
        shown, hidden = cells[k + 1].source, cells[k + 2].source  # shown: whether it is answered, no more
        assert "check" not in shown and "check(" in hidden and "hidden: true" in hidden


@ALL
def test_a_task_has_the_panel_that_it_speaks_of_or_names_its_page(page):
    """On the pages of the losses no panel waits for what other cells compute."""
    cells = grading.master(page).cells
    for before, cell in itertools.pairwise(cells):
        if before.cell_type == "markdown" and (said := re.search(grading.PANEL, before.source)):
            if f"{said[0]} of page {page.name[:2]}" in before.source:
                assert page.name[:2] > "08"
            else:
                names: dict = {}
                exec(cell.source, names)
                (panel,) = (one for one in names.values() if isinstance(one, Panel))
                panel.close()


@pytest.mark.careful
def test_otter_gives_a_point_for_a_right_answer_and_none_for_a_wrong_one(tmp_path):
    grading.assign(FIRST, tmp_path)
    handed = nbformat.read(tmp_path / "student" / "page.ipynb", as_version=4)
    assert not any("0.8432" in cell.source or "SOLUTION" in cell.source for cell in handed.cells)
    assert "not answered yet" in str(handed.metadata) and "check(" not in str(handed.metadata)
    for cell in handed.cells:
        for answer in ("answer_01_1 = 0.8433", "answer_01_2 = 1.0"):
            cell.source = cell.source.replace(f"{answer[:13]} ...", answer)
    nbformat.write(handed, tmp_path / "back.ipynb")
    (archive,) = (tmp_path / "autograder").glob("*.zip")
    otter = [sys.executable, "-m", "otter", "run", "back.ipynb", "-a", str(archive), "-o", "."]
    subprocess.run(otter, cwd=tmp_path, check=True, capture_output=True)
    tests = json.loads((tmp_path / "results.json").read_text())["tests"]
    scores = {test["name"]: test["score"] for test in tests if "score" in test}
    assert scores == {"exercise_01_1": 1, "exercise_01_2": 0, "exercise_01_3": 0}

"""What is made to hand out: decks of slides, the lab sheet, the exercises as otter-grader's assignments."""

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
import abroad
import builder
import grading
import lab_sheet
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


def test_the_lab_sheet_expects_what_is_seen_and_students_read_no_answer():
    text = lab_sheet.TEXT.read_text()
    assert not lab_sheet.unseen(text) and len(lab_sheet.unseen(text.replace("0.84", "0.83"))) == 1
    assert f"{sum(map(int, re.findall(r'[(]([0-9]+) minute', text)))} minutes in all" in text
    assert "0.84" not in lab_sheet.sheet(text, answers=False)


FITS = "(slide) => slide.scrollHeight <= slide.clientHeight + 1"


@pytest.mark.browser
def test_decks_open_and_go_on_and_keep_the_slide(tmp_path, monkeypatch):
    """That of a page whose panels are alive, and the lecture, where those of other pages are pictures."""
    monkeypatch.setattr(slides, "SITE", tmp_path / "site")
    builder.made(FIRST, tmp_path, tmp_path / "site")
    slides.write([FIRST], tmp_path / "slides", tmp_path)
    wrong = []
    with served(tmp_path) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(100_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("request", lambda asked: asked.url.startswith((address, "data:")) or wrong.append(asked.url))
        slide, forward = page.locator("section.present").last, page.locator(".navigate-right.enabled")
        for name in ("Five numbers", "The lecture of 90 minutes"):
            page.goto(f"{address}/slides/")  # which lists the decks
            page.get_by_role("link", name=name).click()
            slide.locator("h1").wait_for()
            for number in itertools.takewhile(lambda _: forward.count(), itertools.count(1)):
                page.keyboard.press("ArrowRight")
                for panel in slide.locator("[data-atlas*='/01']").all():
                    page.wait_for_url(f"**#/{number}")
                    panel.locator("input[type=range]").first.press("Home")
                    page.wait_for_timeout(400)  # on a page of the site the address then says where it stands
                    page.reload()
                    panel.locator(".setclr-stage").wait_for()
                page.wait_for_function(FITS, arg=slide.element_handle())
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
                assert any(isinstance(one, Panel) for one in names.values())


def test_programs_find_a_page_and_readers_github_once_there_is_an_address():
    assert abroad.told(FIRST) == ("01 · Five numbers", "Does a loss go on pushing what lost long ago?")
    addresses = {}, {"Repository": "https://github.com/some/body"}
    assert [abroad.links("01", urls).count("/some/body/") for urls in addresses] == [0, 2]


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

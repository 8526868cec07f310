"""Decks of slides: what a page gives to its deck, and that a deck opens with nothing from elsewhere."""

import re
import sys

import nbformat
import pytest
from in_browser import chromium
from notebook_tools import ROOT, notebooks
from playwright.sync_api import expect
from test_site import served

sys.path.insert(0, str(ROOT / "site"))
import slides


@pytest.mark.parametrize("page", notebooks(), ids=lambda path: path.stem)
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
    told = [cell for cell in cells if cell.metadata.slideshow.slide_type == "notes"]
    assert len(told) > 5


@pytest.mark.browser
def test_a_deck_opens_and_goes_on(tmp_path):
    slides.write([page for page in notebooks() if page.name.startswith("01")], tmp_path, tmp_path)
    wrong = []
    with served(tmp_path) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("request", lambda asked: asked.url.startswith((address, "data:")) or wrong.append(asked.url))
        page.goto(f"{address}/01_five_numbers.html")
        expect(page.locator("section.present h1")).to_have_text(re.compile("Five numbers"), timeout=100_000)
        page.keyboard.press("ArrowRight")
        expect(page.locator("section.present .setclr-prediction")).to_be_visible(timeout=100_000)
        slide = page.locator("section.present").last
        while page.locator(".navigate-right.enabled").count():
            page.keyboard.press("ArrowRight")
            assert slide.inner_text().strip()
            assert slide.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), slide.inner_text()
        expect(slide.locator("h2")).to_have_text("What we saw")
    assert not wrong

"""Panels on a static page, in Chromium: no kernel, an atlas, and all that the reader does is answered."""

import functools
import http.server
import re
import shutil
import threading

import pytest
from notebook_tools import HERE
from playwright.sync_api import expect, sync_playwright
from test_browser import CHROMIUM, FLAGS

from setclr import explore
from setclr.explore.kit.front import FOLDER as KIT

pytestmark = pytest.mark.browser
HANGS = 100  # seconds: nothing here is computed, so whatever takes longer hangs
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>panels</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="panel.css">
<link rel="stylesheet" href="panels.css"></head><body>
<div class="setclr-panel" data-atlas="beads"></div>
<div style="height: 3000px"></div>
<div class="setclr-panel" data-atlas="sinkhorn"></div>
<script type="module" src="panels.js"></script></body></html>"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A static server of a page with two panels."""
    folder = tmp_path_factory.mktemp("site")
    explore.beads().atlas().write(folder / "beads")
    explore.sinkhorn_rounds().atlas().write(folder / "sinkhorn")
    for path in (KIT / "panel.js", KIT / "panel.css", *(HERE.parent / "site").glob("panels.*")):
        shutil.copy(path, folder)
    (folder / "index.html").write_text(PAGE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.fail("the browser tests need Chromium: install it (on Debian: apt install chromium)")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture
def page(browser, address):
    """The page, opened; afterwards nothing went wrong in it, and nothing was asked of another host."""
    page, wrong = browser.new_page(viewport={"width": 1000, "height": 900}), []
    page.set_default_timeout(1000 * HANGS)
    expect.set_options(timeout=1000 * HANGS)
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on("request", lambda request: "127.0.0.1" in request.url or wrong.append(request.url))
    page.goto(address)
    page.locator(".setclr-panel[data-alive]").first.wait_for()
    yield page
    assert not [text for text in wrong if not text.startswith(("data:", "blob:"))]
    page.close()


def said(panel, text):
    expect(panel.locator(".setclr-sentence")).to_have_text(re.compile(text))


def test_a_panel_wakes_when_it_comes_into_view(page):
    expect(page.locator(".setclr-panel[data-alive]")).to_have_count(1)
    last = page.locator(".setclr-panel").last
    last.scroll_into_view_if_needed()
    expect(page.locator(".setclr-panel[data-alive]")).to_have_count(2)
    said(last, "1 round:")


def test_a_slider_a_choice_of_a_handle_and_reset_are_answered(page):
    panel = page.locator(".setclr-panel").first
    picture = panel.locator(".setclr-picture")
    began = picture.get_attribute("src")
    said(panel, "^At temperature 0.5 ")
    panel.locator("input[type=range]").first.press("ArrowLeft")
    said(panel, r"^At temperature 0\.35 ")
    assert picture.get_attribute("src") != began
    expect(page).to_have_url(re.compile("#panel-1=0:5$"))
    panel.get_by_role("button", name="reset").click()
    said(panel, "^At temperature 0.5 ")
    assert picture.get_attribute("src") == began
    expect(page).to_have_url(re.compile("^[^#]*$"))
    cat = panel.locator('[data-name="cat"]')
    before = cat.bounding_box()
    page.mouse.move(before["x"] + 14, before["y"] + 14)
    page.mouse.down()
    page.mouse.move(before["x"] + 114, before["y"] + 14, steps=5)
    page.mouse.up()
    expect(picture).not_to_have_attribute("src", began)
    page.wait_for_function("document.querySelector('.setclr-stage').getAttribute('aria-busy') === 'false'")
    after = cat.bounding_box()
    assert 60 < after["x"] - before["x"] < 140 and abs(after["y"] - before["y"]) < 2


def test_what_is_not_pictured_is_not_shown_as_another(page):
    panel = page.locator(".setclr-panel").first
    panel.locator("summary").click()
    sliders = panel.locator("input[type=range]")
    sliders.nth(2).press("ArrowRight")  # coffee, then temple: no picture of both
    coffee = sliders.nth(2).input_value()
    sliders.nth(4).press("ArrowRight")
    said(panel, "This page has no picture of that combination; the other controls went back")
    assert sliders.nth(2).input_value() != coffee
    sliders.nth(4).press("ArrowRight")
    said(panel, "went back")  # as long as the same control moves


def test_keys_walk_on_over_what_is_not_pictured(page):
    """Temperature and cat are pictured together, at fewer stops than each alone."""
    panel = page.locator(".setclr-panel").first
    panel.locator("summary").click()
    temperature, cat = (panel.locator("input[type=range]").nth(k) for k in (0, 1))
    cat.press("Home")
    seen, remarks = [], 0
    while not seen or seen[-1] > 0:
        temperature.press("ArrowLeft")
        seen.append(int(temperature.input_value()))
        remarks += "Shown is the nearest" in panel.locator(".setclr-sentence").inner_text()
        assert len(seen) == 1 or seen[-1] < seen[-2]
    assert remarks and cat.input_value() == "0"


def test_an_address_opens_a_panel_as_it_was_set(page, address):
    page.goto("about:blank")
    page.goto(f"{address}#panel-2=1:3")
    said(page.locator(".setclr-panel").last, r"\b[2-9]\d* rounds:")


def test_a_step_is_played_at_a_click_where_less_motion_is_wanted(page):
    page.emulate_media(reduced_motion="reduce")
    panel = page.locator(".setclr-panel").last
    panel.scroll_into_view_if_needed()
    said(panel, "1 round:")
    panel.get_by_role("button", name=re.compile("▶")).click()
    said(panel, r"\b[2-9]\d* rounds:")

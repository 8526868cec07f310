"""The site in Chromium: no kernel, and all that the reader does is answered.

Two pages are run for it; SETCLR_SITE=build/site (`make test-site`) takes a whole site instead.
"""

import functools
import gzip
import http.server
import json
import os
import re
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from in_browser import CHROMIUM, FLAGS
from notebook_tools import ROOT
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(ROOT / "site"))
import builder

pytestmark = pytest.mark.browser
HANGS = 100  # seconds: nothing here is computed, so whatever takes longer hangs
RUN = ["01", "06"]  # these two, where no site is given
OURS = 1_000_000  # bytes before the first panel moves, packed as served, theme and formulas apart
THEIRS = re.compile("_static/(?!panel|questions|names|site)|searchindex")  # theme, formulas, search
GIVEN = os.environ.get("SETCLR_SITE")


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A browser that leaves a page closes what it was loading."""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def site(tmp_path_factory, work):
    """The folder of the pages."""
    if GIVEN:
        return Path(GIVEN).resolve()
    folder = tmp_path_factory.mktemp("site")
    builder.build(RUN, 2, work, folder)
    return folder


@pytest.fixture(scope="module")
def address(site):
    """A static server of the site."""
    server = Server(("127.0.0.1", 0), functools.partial(Silent, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.fail("the browser tests need Chromium: install it (on Debian: apt install chromium)")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture
def opened(browser, address):
    """open(page) in a new browser; afterwards nothing went wrong in it, nothing was asked of another host."""
    context, wrong = browser.new_context(viewport={"width": 1000, "height": 900}), []
    context.set_default_timeout(1000 * HANGS)
    expect.set_options(timeout=1000 * HANGS)
    page = context.new_page()
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    # What is on its way when the page is left is given up.
    page.on("requestfailed", lambda request: "ABORTED" in request.failure or wrong.append(request.url))
    page.on("request", lambda request: request.url.startswith(address) or wrong.append(request.url))

    def open_page(name, scheme="light"):
        page.goto("about:blank")
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{address}/{name}")
        return page

    yield open_page
    assert not [text for text in wrong if not text.startswith(("data:", "blob:"))]
    context.close()


def alive(site):
    """The pages that have panels which answer."""
    pages = [
        path for path in sorted(site.rglob("*.html")) if 'class="setclr-panel" data-atlas' in path.read_text()
    ]
    assert pages
    return [str(path.relative_to(site)) for path in pages]


def open_questions(page):
    for question in page.locator(".setclr-prediction").all():
        question.locator("button").first.click()


def said(panel, text):
    expect(panel.locator(".setclr-sentence")).to_have_text(re.compile(text))


def beads(opened):
    page = opened("01_five_numbers.html")
    open_questions(page)
    panel = page.locator(".setclr-panel").first
    panel.scroll_into_view_if_needed()
    panel.locator(".setclr-stage").wait_for()
    return page, panel


def test_each_panel_of_each_page_moves(opened, site):
    panels = 0
    for name in alive(site):
        page = opened(name)
        open_questions(page)
        for panel in page.locator(".setclr-panel").all():
            panel.scroll_into_view_if_needed()
            panel.locator(".setclr-stage").wait_for()
            stage, sentence = panel.locator(".setclr-stage"), panel.locator(".setclr-sentence")
            before = stage.inner_html(), sentence.inner_text()
            sliders = panel.locator("input[type=range]:visible")
            choices = panel.locator(".setclr-choice[aria-pressed=false]:visible")
            control = (sliders if sliders.count() else choices).first
            if control.get_attribute("type") == "range":
                control.press("End" if control.input_value() == "0" else "Home")
            else:
                control.click()
            expect(sentence).not_to_have_text(before[1])
            assert stage.inner_html() != before[0], f"{name}: {before[1]}"
            panels += 1
        assert not page.locator(".katex-error").count(), name
    print(f"{panels} panels")
    assert panels >= len(alive(site))


LOADED = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .map((entry) => entry.name)"""


def test_what_comes_before_the_first_panel_moves_is_light(opened, site):
    for name in alive(site):
        page = opened(name)
        if page.locator(".setclr-panel").first.locator("xpath=ancestor::details").count():
            page.locator(".setclr-prediction button").first.click()
        page.locator(".setclr-panel").first.scroll_into_view_if_needed()
        page.locator(".setclr-panel[data-alive]").first.wait_for()
        loaded = {urlsplit(url).path for url in page.evaluate(LOADED) if url.startswith("http")}
        files = [site / unquote(path).lstrip("/") for path in loaded if not THEIRS.search(path)]
        ours = {str(path): len(gzip.compress(path.read_bytes(), 6)) for path in files if path.is_file()}
        assert 0 < sum(ours.values()) < OURS, f"{name}: {json.dumps(ours, indent=1)}"


# The theme sets light or dark when the page has loaded, and its buttons fade from one to the other.
AT_REST = "document.getAnimations().every((one) => one.playState !== 'running')"


def test_no_page_shuts_anybody_out(opened, site, work):
    """axe-core finds nothing serious, in the light and in the dark."""
    axe = (builder.from_npm("axe-core@4.14.1", work / "npm") / "axe.min.js").read_text()
    names = [*alive(site), "index.html", "course.html", "library.html", "api/losses.html", "coverage.html"]
    for name in names:
        for scheme in ("light", "dark"):
            page = opened(name, scheme)
            open_questions(page)
            page.wait_for_function(AT_REST)
            page.evaluate(axe)
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            shown = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in serious]
            assert not serious, f"{name}, {scheme}: {shown}"


class Links(HTMLParser):
    """The addresses that a page leads to or loads, and the names of its places."""

    def __init__(self):
        super().__init__()
        self.to, self.places = [], set()

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.to += [told[key] for key in ("href", "src", "data-atlas") if told.get(key)]
        self.places |= {told[key] for key in ("id", "name") if told.get(key)}


def test_links_inside_lead_somewhere(site):
    read = {}
    for path in set(site.rglob("*.html")) - set(site.rglob("_static/*.html")):
        read[path] = Links()
        read[path].feed(path.read_text())
    for path, links in read.items():
        for link in links.to:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:  # to read: loading from elsewhere fails the other tests
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.relative_to(site)}: {link}"
            if parts.fragment and target in read and not parts.fragment.startswith("panel-"):
                assert unquote(parts.fragment) in read[target].places, f"{path.relative_to(site)}: {link}"


def test_a_slider_a_choice_of_a_handle_and_reset_are_answered(opened):
    page, panel = beads(opened)
    said(panel, "^At temperature 0.5 ")
    panel.locator("input[type=range]").first.press("ArrowLeft")
    said(panel, r"^At temperature 0\.45 ")
    expect(page).to_have_url(re.compile("#panel-1=0:19$"))
    panel.get_by_role("button", name="reset").click()
    said(panel, "^At temperature 0.5 ")
    expect(page).to_have_url(re.compile("^[^#]*$"))
    moved = drag(page, panel, "cat", 60)
    assert 30 < moved[0] < 90 and abs(moved[1]) < 2


def drag(page, panel, name, right, up=0):
    """Pull a handle; by how much it has moved when it was let go."""
    grip, stage = panel.locator(f'[data-name="{name}"]'), panel.locator(".setclr-stage")
    grip.scroll_into_view_if_needed()
    before = grip.bounding_box()
    page.mouse.move(before["x"] + 14, before["y"] + 14)
    page.mouse.down()
    page.mouse.move(before["x"] + 14 + right, before["y"] + 14 - up, steps=5)
    page.mouse.up()
    expect(stage).not_to_have_attribute("aria-busy", "true")
    page.wait_for_timeout(400)  # until it has glided there
    after = grip.bounding_box()
    return after["x"] - before["x"], before["y"] - after["y"]


def test_a_second_pull_keeps_the_first(opened):
    """The cat, then the coffee: this panel has a twin, which shows every state."""
    page, panel = beads(opened)
    drag(page, panel, "cat", -120)
    after_one = panel.locator('[data-name="cat"]').bounding_box()
    drag(page, panel, "coffee", -60)
    assert panel.locator('[data-name="cat"]').bounding_box() == pytest.approx(after_one)
    assert "no picture" not in panel.locator(".setclr-sentence").inner_text()


def second(opened):
    """The second panel of page 01, which has an atlas."""
    page, _ = beads(opened)
    panel = page.locator(".setclr-panel").nth(1)
    panel.scroll_into_view_if_needed()
    panel.locator(".setclr-stage").wait_for()
    return page, panel


def test_what_is_not_in_the_atlas_is_not_shown_as_another(opened):
    """No three things are moved together there: the page says so, as long as the same control moves."""
    _, panel = second(opened)
    panel.locator("summary").click()
    sliders = panel.locator(".setclr-more input[type=range]")
    before = panel.locator(".setclr-sentence").inner_text()
    for k in range(3):
        sliders.nth(k).press("End" if sliders.nth(k).input_value() == "0" else "Home")
    said(panel, "no picture of that combination|the nearest combination")
    sliders.nth(2).press("ArrowRight")
    said(panel, "no picture of that combination|the nearest combination")
    panel.get_by_role("button", name="reset").click()
    expect(panel.locator(".setclr-sentence")).to_have_text(before)


def test_an_address_opens_a_panel_as_it_was_set(opened):
    for address, text in (
        ("#panel-1=0:3", r"^At temperature 0\.07"),
        ("#panel-1=0:30,1:0", "^At temperature 1.6 "),
    ):
        page = opened(f"01_five_numbers.html{address}")
        panel = page.locator(".setclr-panel").first
        panel.locator(".setclr-stage").wait_for()
        said(panel, text)


def test_a_step_is_played_at_a_click_where_less_motion_is_wanted(opened):
    page, panel = second(opened)
    page.emulate_media(reduced_motion="reduce")
    play = panel.get_by_role("button", name=re.compile("▶"))
    said(panel, "^After 200 steps")
    play.click()  # from the end to the beginning
    said(panel, "^After 0 steps")
    play.click()
    said(panel, r"^After [1-9]\d* steps")


def test_an_answer_is_said_opens_the_picture_and_stays(opened):
    page = opened("01_five_numbers.html")
    question = page.locator(".setclr-prediction").first
    panel = question.locator(".setclr-panel")
    expect(panel).not_to_be_visible()
    question.get_by_role("button", name="✚ alone").click()
    expect(question.locator(".setclr-said")).to_have_text(re.compile("^✘ Its bar shrinks, but"))
    expect(panel).to_be_visible()
    page.reload()
    expect(question.locator(".setclr-said")).to_have_text(re.compile("^✘ Its bar shrinks, but"))
    expect(panel).to_be_visible()


def test_an_exercise_is_checked_and_stays(opened):
    page = opened("01_five_numbers.html")
    form = page.locator('.setclr-exercise[data-name="01.1"]')
    field, answer = form.locator("input"), form.locator(".setclr-said")
    for text, wanted in [
        ("", "01.1 waits for a number"),
        ("far", "cannot be read as a number"),
        ("0,2", "✘ 01.1 is not right yet. Hint: Read the share"),
        ("0,84", "✔ 01.1 is right."),
    ]:
        field.fill(text)
        field.press("Enter")
        expect(answer).to_have_text(re.compile(re.escape(wanted)))
    page.reload()
    expect(answer).to_have_text("✔ 01.1 is right.")
    assert page.get_by_text("01.3 wants a function of z. It is checked in JupyterLab").count() == 1


def test_a_phone_reads_it(opened):
    """Nothing is wider than the screen; all of a picture is in sight."""
    page, _ = beads(opened)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for part in ("input[type=range]", ".setclr-plot", ".setclr-handle"):
        for one in page.locator(f".setclr-panel {part}:visible").all():
            box = one.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390, part

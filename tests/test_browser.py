"""A real JupyterLab in Chromium: run a notebook, move a slider by keyboard, see the picture change."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import papermill
import pytest
import yaml
from notebook_tools import FOLDER, TOOLS, notebooks
from playwright.sync_api import expect, sync_playwright
from touchable import TOUCHABLE

pytestmark = pytest.mark.browser
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HANGS = 600  # seconds: whatever takes longer hangs
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def page():
    if CHROMIUM is None:
        pytest.fail("the browser tests need Chromium: install it (on Debian: apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(1000 * HANGS)
        expect.set_options(timeout=1000 * HANGS)
        yield page
        browser.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on fast-parameter copies of the notebooks; gives the address of one by its name."""
    project = tmp_path_factory.mktemp("project")
    for stored in (
        Path("data", "checkpoints"),
        Path("data", "results"),
    ):  # without them some train for minutes
        shutil.copytree(FOLDER.parent / stored, project / stored)
    folder = project / "notebooks"
    folder.mkdir()
    parameters = yaml.safe_load((TOOLS / "notebook_parameters.yml").read_text())
    for path in FOLDER.glob("*.ipynb"):
        runs = str(project / "runs" / path.stem)
        fast = {k: runs if v == "TEMPORARY" else v for k, v in parameters[path.stem].items()}
        papermill.execute_notebook(str(path), str(folder / path.name), fast, prepare_only=True)
        notebook = nbformat.read(folder / path.name, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = []
        nbformat.write(notebook, folder / path.name)
    nbformat.write(page_of(TOUCHABLE), folder / "handles.ipynb")
    nbformat.write(page_of(["feature_maps"]), folder / "map.ipynb")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--notebook-dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    command += ["--allow-root"] if os.getuid() == 0 else []
    with (folder / "server.log").open("w") as log:
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # the browser needs a core too
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=one_thread)
    try:
        for _ in range(2 * HANGS):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status?token={token}")
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail(f"JupyterLab did not start: {(folder / 'server.log').read_text()[-2000:]}")
        yield lambda name: f"http://127.0.0.1:{port}/lab/tree/{name}.ipynb?token={token}&reset"
    finally:
        server.terminate()
        server.wait(HANGS)


def page_of(names):
    """A notebook that shows these panels."""
    page = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    page.cells = [nbformat.v4.new_code_cell("from setclr_course import panels\n\nshown = []")]
    page.cells += [nbformat.v4.new_code_cell(f"shown.append(panels.{name}())\nshown[-1]") for name in names]
    return page


NOTEBOOK = "jupyterapp.shell.currentWidget.context.model.toJSON()"


def run_all(page, address: str) -> None:
    """Open a notebook, run its cells and wait for the last one, or for one that fails."""
    page.goto(address)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.get_by_text(re.compile(r"\| Idle")).first.wait_for()
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    code = f"{NOTEBOOK}.cells.filter(c => c.cell_type == 'code')"
    failed = f"{code}.some(c => c.outputs.some(o => o.output_type == 'error'))"
    page.wait_for_function(f"() => {code}.at(-1).execution_count > 0 || {failed}")
    assert_no_cell_failed(page)


# A key on the first slider of a notebook's first panel, and what the sentence says after it.
MOVES = {
    "00_start_here": ("ArrowLeft", r"softness 0\.36"),
    "01_five_numbers": ("ArrowLeft", r"At temperature 0\.45"),
    "02_pairs_and_assignments": ("ArrowRight", r"Its lines: cat to astronaut"),
    "03_sparse_support": ("ArrowLeft", r"together 0\.40, not yet 1"),
    "04_sets_and_eigenvalues": ("ArrowLeft", r"= 61\. Of 120"),
    "05_sorting_networks": ("ArrowLeft", r"β = 6\.35"),
    "06_couplings": ("ArrowRight", r"1 press, the last of them columns!"),
    "07_support_vectors": ("Home", r"C is 0\.1,"),
    "08_one_family": ("ArrowLeft", r"Smoothing 0\.0251 times"),
    "09_matching_views": ("ArrowLeft", r"partner of patch 16"),
    "10_pretrain_small": ("ArrowRight", r"epoch 1:"),
    "11_pretrain_cifar": ("ArrowLeft", r"after epoch 4 of 20"),
    "12_pretrain_imagenet": ("ArrowRight", r"shows 32 %"),
    "13_what_was_learned": ("ArrowRight", r"patch 8 is of"),
    "14_what_a_loss_costs": ("ArrowRight", r"At N = 38,"),
    "15_molecules": ("ArrowRight", r"In draw 2"),
    "16_what_moves": ("ArrowRight", r"Frame 5, camera pan right"),
}


def test_every_notebook_has_a_slider_to_move():
    assert sorted(MOVES) == [path.stem for path in notebooks()]


@pytest.mark.parametrize("notebook", MOVES)
def test_a_slider_moved_by_keyboard_changes_the_picture(page, lab, notebook):
    key, after = MOVES[notebook]
    run_all(page, lab(notebook))
    asked = page.locator(".setclr-prediction").first
    if asked.count():
        asked.get_by_role("button").first.click()
        asked.locator(".setclr-panel").wait_for()  # the picture opens
    panel = page.locator(".setclr-panel").first
    panel.scroll_into_view_if_needed()
    picture, sentence = panel.locator("img"), panel.locator("p[aria-live]")
    before, said, drawn = picture.get_attribute("src"), sentence.text_content(), picture.screenshot()

    panel.locator(".noUi-handle").first.focus()
    page.keyboard.press(key)
    expect(picture).not_to_have_attribute("src", before)
    expect(sentence).to_contain_text(re.compile(after))
    assert sentence.text_content() != said
    picture.evaluate("image => image.decode()")  # until the new picture is on the screen
    assert picture.screenshot() != drawn

    panel.get_by_role("button", name="reset").click()
    expect(sentence).not_to_contain_text(re.compile(after))
    assert_no_cell_failed(page)
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


def readouts(panel) -> list[str]:
    """What the sliders of a panel say, those that are folded too."""
    return panel.locator(".widget-readout").all_text_contents()


@pytest.fixture(scope="module")
def handles(page, lab):
    run_all(page, lab("handles"))
    yield page.locator(".setclr-panel")
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


@pytest.mark.parametrize("name", TOUCHABLE)
def test_a_handle_that_is_dragged_moves_control_picture_and_sentence(page, handles, name):
    panel = handles.nth(TOUCHABLE.index(name))
    panel.scroll_into_view_if_needed()
    grips = panel.locator(".setclr-handle")
    assert grips.count() > 0
    said = panel.locator(".setclr-sentence").text_content()
    sentences = {said, *(drag_and_press(page, panel, grips.nth(number)) for number in range(grips.count()))}
    assert len(sentences) > 1, "the sentence says nothing of what is dragged"


def still(element) -> dict[str, float]:
    """Where an element is when it has stopped moving: JupyterLab lays cells out while they come into view."""
    element.scroll_into_view_if_needed()
    element.element_handle().wait_for_element_state("stable")
    return element.bounding_box()


def drag_and_press(page, panel, grip) -> str:
    """Drag a handle towards the middle of the picture and move it on by the arrow keys; what is said then."""
    picture, sentence = panel.locator(".setclr-picture"), panel.locator(".setclr-sentence")
    before, said, set_to = picture.get_attribute("src"), sentence.text_content(), readouts(panel)
    box, stage = still(grip), panel.locator(".setclr-stage").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    aim = stage["x"] + 0.45 * stage["width"], stage["y"] + 0.45 * stage["height"]
    way = [0.35 * (to - at) if abs(to - at) > 60 else 20 for at, to in zip(middle, aim)]
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + way[0], middle[1] + way[1], steps=5)
    expect(picture).not_to_have_attribute("src", before)
    page.mouse.up()
    answered(panel)
    after, moved = sentence.text_content(), readouts(panel)
    assert moved != set_to

    grip.focus()
    for keys in (("ArrowRight", "ArrowUp"), ("ArrowLeft", "ArrowDown")):  # back where a slider has ended
        for key in keys:
            page.keyboard.press(key)
        answered(panel)
        if readouts(panel) != moved:
            break
    assert readouts(panel) != moved
    panel.get_by_role("button", name="reset").click()
    for readout, text in zip(panel.locator(".widget-readout").all(), set_to):
        expect(readout).to_have_text(text)
    expect(sentence).to_have_text(said)
    return after


def answered(panel) -> None:
    """Wait until no event of the reader is under way."""
    expect(panel.locator(".setclr-stage")).to_have_attribute("aria-busy", "false")


def test_three_seconds_of_dragging_leave_no_picture_behind(page, handles):
    panel = handles.nth(TOUCHABLE.index("street"))
    panel.scroll_into_view_if_needed()
    grip, picture = panel.locator('.setclr-handle[data-name="rocket"]'), panel.locator(".setclr-picture")
    count = """image => { window.pictures = 0; const more = changes => window.pictures += changes.length;
               new MutationObserver(more).observe(image, {attributes: true, attributeFilter: ['src']}) }"""
    picture.evaluate(count)
    grip.hover()  # once it stands still; refuses to press on anything else
    box = grip.bounding_box()
    page.mouse.down()
    began, moves = time.monotonic(), 0
    while time.monotonic() < began + 3 or not page.evaluate("window.pictures"):
        assert time.monotonic() < began + HANGS, "no picture follows the drag"
        moves += 1
        page.mouse.move(box["x"] + 14 + moves % 90, box["y"] + 14 + moves % 70)
    # Chromium hands out a frame's moves together: two frames later the panel has had the last one. Then one
    # event is under way and one waits, however slow the kernel is.
    frames = "new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)))"
    drawn = page.evaluate(f"{frames}.then(() => window.pictures)")
    answered(panel)
    late = page.evaluate("window.pictures") - drawn
    page.mouse.up()
    assert late <= 2, f"{moves} moves, {drawn} pictures while dragging, {late} after it"
    panel.get_by_role("button", name="reset").click()


def test_pointing_at_a_thing_lights_up_all_its_places(page, handles):
    panel = handles.nth(TOUCHABLE.index("street"))
    panel.scroll_into_view_if_needed()
    lights, tip = panel.locator(".setclr-lights > *"), panel.locator(".setclr-tip")
    panel.locator('.setclr-handle[data-name="coffee"]').hover()
    expect(lights).to_have_count(2)
    expect(tip).to_have_text(re.compile("coffee: weight"))
    page.mouse.move(5, 5)
    expect(lights).to_have_count(0)


def test_pointing_at_a_dot_of_the_map_shows_its_patch(page, lab):
    run_all(page, lab("map"))
    panel = page.locator(".setclr-panel")
    panel.scroll_into_view_if_needed()
    picture, sentence = panel.locator("img"), panel.locator("p[aria-live]")
    for number in (40, 61):
        before = picture.get_attribute("src")
        box = panel.locator(".scatterlayer .point").nth(number).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
        expect(picture).not_to_have_attribute("src", before)
        expect(sentence).to_contain_text(f"patch {number} is of")
        named = panel.locator(".hoverlayer .hovertext").text_content()
        assert f"patch {number} is of {named}" in sentence.text_content()
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


def assert_no_cell_failed(page) -> None:
    cells = [cell for cell in page.evaluate(NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    assert not [o for cell in cells for o in cell["outputs"] if o["output_type"] == "error"]
    assert all(cell["execution_count"] for cell in cells)

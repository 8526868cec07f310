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

import nbformat
import papermill
import pytest
from in_browser import opened
from notebook_tools import FOLDER, METADATA, notebooks
from playwright.sync_api import expect
from sweep import TOUCHABLE
from test_notebooks import small

from setclr_course import panels

pytestmark = pytest.mark.browser
HANGS = 240  # seconds: whatever takes longer hangs
ALONE = {"street": "rocket", "pairings": "rocket"}  # panels with and without a twin, and a handle of each
WHOLE = "00_start_here"  # runs to its end here; of the others `make test` runs every cell, without a browser


@pytest.fixture(scope="module")
def page(browser):
    expect.set_options(timeout=1000 * HANGS)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(1000 * HANGS)
    return page


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on fast-parameter copies of the notebooks; gives the address of one by its name."""
    project = tmp_path_factory.mktemp("project")
    for stored in ("data/checkpoints", "data/results"):  # without them some train for minutes
        shutil.copytree(FOLDER.parent / stored, project / stored)
    folder = project / "notebooks"
    folder.mkdir()
    for path in FOLDER.glob("*.ipynb"):
        fast = small(path, project / "runs" / path.stem)
        papermill.execute_notebook(str(path), str(folder / path.name), fast, prepare_only=True)
        notebook = nbformat.read(folder / path.name, as_version=4)
        if path.stem != WHOLE:
            first = re.compile("batch$" if path.stem == OWN else r".*panels\.", re.S)
            shown = [bool(first.match(cell.source) and cell.get("outputs")) for cell in notebook.cells]
            del notebook.cells[shown.index(True) + 1 :]
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = []
        nbformat.write(notebook, folder / path.name)
    for name in ALONE:
        cell = nbformat.v4.new_code_cell(f"from setclr_course import panels\n\npanels.{name}()")
        nbformat.write(nbformat.v4.new_notebook(metadata=METADATA, cells=[cell]), folder / f"{name}.ipynb")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--notebook-dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True"]
    command += ["--ServerApp.kernel_websocket_connection_class=setclr_course.at_once.AtOnce"]  # as make lab
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
    "03_sparse_support": ("ArrowRight", r"gets 71\.2% of the push"),
    "04_sets_and_eigenvalues": ("ArrowRight", r"turned by 5°"),
    "05_sorting_networks": ("ArrowLeft", r"β = 6\.35"),
    "06_couplings": ("ArrowRight", r"1 press, the last of them columns!"),
    "07_support_vectors": ("Home", r"C is 0\.1,"),
    "08_one_family": ("End", r"InfoNCE: loss 1\.97"),
    "09_matching_views": ("ArrowLeft", r"partner of patch 16"),
    "10_pretrain_small": ("ArrowRight", r"epoch 1:"),
    "11_pretrain_cifar": ("ArrowLeft", r"after epoch 4 of 20"),
    "12_pretrain_imagenet": ("ArrowRight", r"shows 32 %"),
    "13_what_was_learned": ("ArrowRight", r"patch 8 is of"),
    "14_what_a_loss_costs": ("ArrowRight", r"At N = 64,"),
    "15_molecules": ("ArrowRight", r"in draw 2"),
    "16_what_moves": ("ArrowRight", r"Frame 5, camera pan right"),
}


OWN = "17_bring_your_own_batch"  # whose sliders are ipywidgets


def test_every_notebook_has_a_slider_to_move():
    assert sorted([*MOVES, OWN]) == [path.stem for path in notebooks()]


def test_a_batch_of_ones_own_answers_a_slider_a_list_and_a_pointer(page, lab):
    """A key on the temperature changes the heatmap; a second loss opens two more; a cell names its pair."""

    def until(seen, act) -> None:
        for step in range(HANGS):
            act(step)
            page.wait_for_timeout(1000)
            if seen():
                return
        raise TimeoutError

    run_all(page, lab(OWN))
    cells = "document.querySelector('.js-plotly-plot')?.data?.[0]?.z?.slice(0, 9).join()"
    page.wait_for_function(f"() => {cells}")
    before, plots = page.evaluate(cells), page.locator(".js-plotly-plot:visible")
    temperature, shown = page.get_by_role("slider").first, plots.count()
    until(lambda: page.evaluate(cells) != before, lambda _: temperature.press("ArrowRight"))
    page.locator(".jupyter-widgets select").nth(1).select_option("GroCo()")
    expect(plots).to_have_count(shown + 2)
    heatmap = plots.first.locator(".nsewdrag")
    said = page.get_by_text(re.compile(r"image \d+ .*gives.*share \d\.\d+, cosine"))
    until(said.count, lambda step: heatmap.hover(position={"x": 60 + 7 * step % 120, "y": 90}))
    expect(said.first.locator("img")).to_have_count(2)
    assert_no_cell_failed(page)
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


@pytest.mark.parametrize("notebook", MOVES)
def test_a_slider_moved_by_keyboard_changes_the_picture(page, lab, notebook):
    key, after = MOVES[notebook]
    run_all(page, lab(notebook))
    asked = page.locator(".setclr-prediction").first
    if asked.count():
        asked.get_by_role("button").first.click()
        asked.locator(".setclr-panel, img").first.wait_for()  # the picture opens
    panel = page.locator(".setclr-panel").first
    panel.scroll_into_view_if_needed()
    stage, sentence = panel.locator(".setclr-stage"), panel.locator(".setclr-sentence")
    said, drawn = sentence.text_content(), stage.inner_html()

    panel.locator("input[type=range]").first.focus()
    page.keyboard.press(key)
    expect(sentence).to_contain_text(re.compile(after))
    expect(stage).not_to_have_js_property("innerHTML", drawn)  # it is drawn with the next frame
    assert sentence.text_content() != said

    panel.get_by_role("button", name="reset").click()
    expect(sentence).not_to_contain_text(re.compile(after))
    assert_no_cell_failed(page)
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


def readouts(panel) -> list[str]:
    """What the controls of a panel say, those that are folded too; the playground's places stand in none."""
    pressed = panel.locator(".setclr-choice[aria-pressed=true]").all_text_contents()
    said = panel.locator(".setclr-value").all_text_contents() + pressed
    plays = panel.locator(".setclr-said").count()  # below its challenges
    places = panel.locator(".setclr-handle").evaluate_all("all => all.map((one) => one.style.transform)")
    return said + (places if plays else [])


@pytest.mark.parametrize("name", TOUCHABLE)
def test_a_handle_that_is_dragged_moves_control_picture_and_sentence(browser, name):
    page = opened(browser, getattr(panels, name)(), 1000)
    panel = page.locator(".setclr-scene")
    grips = panel.locator(".setclr-handle:visible")
    assert grips.count() > 0
    said = panel.locator(".setclr-sentence").text_content()
    names = [grip.get_attribute("data-name") for grip in grips.all()]
    sentences = {said, *(drag_and_press(page, panel, panel.locator(f'[data-name="{n}"]')) for n in names)}
    assert len(sentences) > 1, "the sentence says nothing of what is dragged"
    assert not page.errors
    page.close()


def drag_and_press(page, panel, grip) -> str:
    """Drag a handle towards the middle of the picture and move it on by the arrow keys; what is said then."""
    stage, sentence = panel.locator(".setclr-stage"), panel.locator(".setclr-sentence")
    said, set_to = sentence.text_content(), readouts(panel)
    box, around = grip.bounding_box(), stage.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    aim = around["x"] + 0.45 * around["width"], around["y"] + 0.45 * around["height"]
    x, y = (0.35 * (to - at) if abs(to - at) > 60 else 20 for at, to in zip(middle, aim))
    for way in ((x, y), (-3 * y, 3 * x), (150, 150), (-150, -150)):  # some go across, some snap, some end
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + way[0], middle[1] + way[1], steps=5)
        page.mouse.up()
        answered(panel)
        after, moved = sentence.text_content(), readouts(panel)
        if moved != set_to:
            break
    assert moved != set_to

    grip.focus()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):  # until one moves it: a way may end
        page.keyboard.press(key)
        answered(panel)
        if readouts(panel) != moved:
            break
    assert readouts(panel) != moved
    panel.get_by_role("button", name="reset").click()
    answered(panel)
    expect(sentence).to_have_text(said)
    assert readouts(panel) == set_to
    return after


def answered(panel) -> None:
    """Wait until no event of the reader is under way."""
    expect(panel.locator(".setclr-stage")).not_to_have_attribute("aria-busy", "true")


def test_a_panel_with_a_twin_moves_while_the_kernel_is_busy_and_tells_it_where_it_came_to_rest(browser):
    panel, told = panels.street(bound=1.234), []  # between two stops
    answer, panel.on_event = panel.on_event, told.append  # the kernel is busy
    page = opened(browser, panel)
    sentence, grip = page.locator(".setclr-sentence"), page.locator('[data-name="coffee"]')

    def resting(press: str) -> dict:
        """What the kernel is told in the end, after that key."""
        told.clear()
        said, shown = sentence.text_content(), panel.values
        grip.press(press)
        for _ in range(2 * HANGS):
            page.wait_for_timeout(500)
            known = shown | told[-1]["values"] if told else {}
            if known and panel.seen(known).sentence == sentence.text_content() != said:
                return told[-1]
        raise TimeoutError

    event = resting("Shift+ArrowRight")
    assert panel.values == panel.start  # so the twin has moved
    assert event["values"] == {"coffee x": -0.35}  # whatever moved the others meanwhile stays
    answer(event)
    assert sentence.text_content() == panel.alt
    panel.on_event = lambda event: answer(event | {"values": {**event["values"], "bound": 0.777}})
    grip.press("ArrowRight")
    expect(sentence).to_contain_text("C is 0.777")  # the kernel has the last word
    panel.on_event = told.append
    resting("Shift+ArrowRight")
    assert "C is 0.777" in sentence.text_content()
    assert not page.errors
    page.close()


def test_a_page_is_not_changed_by_being_opened(page, lab):
    """JupyterLab writes into it what the kernel says of its language."""
    page.goto(lab("pairings"))
    page.get_by_text(re.compile(r"\| Idle")).first.wait_for()
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")  # it is while it loads


@pytest.mark.parametrize("name", ALONE)
def test_in_jupyterlab_a_drag_leaves_no_scene_behind(page, lab, name):
    run_all(page, lab(name))
    panel = page.locator(".setclr-panel")
    panel.scroll_into_view_if_needed()
    grip, sentence = panel.locator(f'[data-name="{ALONE[name]}"]'), panel.locator(".setclr-sentence")
    count = """sentence => { window.scenes = 0; const more = changes => window.scenes += changes.length;
               new MutationObserver(more).observe(sentence, {childList: true}) }"""
    sentence.evaluate(count)
    grip.hover()  # once it stands still; refuses to press on anything else
    box = grip.bounding_box()
    page.mouse.down()
    began, moves = time.monotonic(), 0
    while time.monotonic() < began + 3 or not page.evaluate("window.scenes"):
        assert time.monotonic() < began + HANGS, "no scene follows the drag"
        moves += 1
        page.mouse.move(box["x"] + 14 + moves % 90, box["y"] + 14 + moves % 70)
    # Chromium hands out a frame's moves together: two frames later the panel has had the last one. Then one
    # event is under way and one waits, however slow the kernel is.
    frames = "new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)))"
    drawn = page.evaluate(f"{frames}.then(() => window.scenes)")
    answered(panel)
    late = page.evaluate("window.scenes") - drawn
    page.mouse.up()
    answered(panel)
    assert late <= 2, f"{moves} moves, {drawn} scenes while dragging, {late} after it"
    page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")


def test_pointing_at_a_thing_lights_up_all_its_places(browser):
    page = opened(browser, panels.street())
    panel = page.locator(".setclr-scene")
    lights, tip = panel.locator(".setclr-lights > *"), panel.locator(".setclr-tip")
    panel.locator('.setclr-handle[data-name="coffee"]').hover()
    expect(lights.nth(1)).to_have_count(1)  # itself, and its bar
    expect(tip).to_have_text(re.compile("coffee: weight"))
    page.mouse.move(5, 5)
    expect(lights).to_have_count(0)
    page.close()


def assert_no_cell_failed(page) -> None:
    cells = [cell for cell in page.evaluate(NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    assert not [o for cell in cells for o in cell["outputs"] if o["output_type"] == "error"]
    assert all(cell["execution_count"] for cell in cells)

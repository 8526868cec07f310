"""Panels: live and still in one output, no new figure by an event, errors that reach the cell."""

import ast
import base64
import io
import re
from functools import cache
from pathlib import Path

import ipywidgets
import matplotlib.figure
import numpy as np
import pytest
from PIL import Image
from touchable import TOUCHABLE

from setclr_course import panels
from setclr_course.kit.png import still
from setclr_course.panels.sorting.five_numbers import descend, groco, info_nce
from setclr_course.pixels.controls import log_slider, options, same_stop, slider
from setclr_course.pixels.panel import Drawing, Panel


@cache
def made(name: str) -> Panel:
    return getattr(panels, name)()


@pytest.fixture(params=panels.__all__)
def panel(request):
    panel = made(request.param)
    panel.reset()
    return panel


def ends(control) -> list:
    """The values that a test sweeps: both ends and the middle of a slider, all of a choice."""
    if isinstance(control, ipywidgets.FloatLogSlider):
        return [10**x for x in (control.min, (control.min + control.max) / 2, control.max)]
    if hasattr(control, "min"):
        return [control.min, control.min + (control.max - control.min) // 2, control.max]
    return list(control.options)


def opened(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def stops(panel: Panel, name: str) -> list:
    """The `ends` of a control in sight; of one that is folded away, mostly a thing's place, the farther."""
    control = panel.controls[name]
    found = ends(control)
    if list(panel.controls).index(name) < panel.in_sight:
        return found
    if hasattr(control, "min"):
        return [max(found, key=lambda value: abs(value - control.value))]
    return [value for value in found if value != control.value][-1:]


def test_every_control_moves_the_picture_and_its_sentence(panel):
    for name, control in panel.controls.items():
        values = stops(panel, name)
        pictures = {(panel.front.shown["picture"], panel.alt)} if len(values) == 1 else set()
        for value in values:
            control.value = value
            pictures.add((panel.front.shown["picture"], panel.alt))
        assert not values or len(pictures) == max(2, len(set(values))), f"{name} moves nothing"
        panel.reset()


def test_an_event_makes_no_figure_and_draws_once(panel, monkeypatch):
    made, drawn = [], []
    init, draw = matplotlib.figure.FigureBase.__init__, panel.figure.canvas.restore_region
    monkeypatch.setattr(matplotlib.figure.FigureBase, "__init__",
                        lambda self, *a, **k: (made.append(1), init(self, *a, **k))[1])  # fmt: skip
    monkeypatch.setattr(panel.figure.canvas, "restore_region", lambda *a: (drawn.append(1), draw(*a))[1])
    monkeypatch.setattr(panel.figure.canvas, "draw", lambda: pytest.fail("the still part was drawn again"))
    for name, control in panel.controls.items():
        for value in stops(panel, name):
            before, changed = len(drawn), value != control.value and not same_stop(control.value, value)
            control.value = value
            assert len(drawn) - before == changed
    assert not made


def test_it_is_live_and_still_in_one_output(panel):
    bundle, metadata = panel._repr_mimebundle_()
    assert "model_id" in bundle["application/vnd.jupyter.widget-view+json"]
    shown = opened(base64.b64decode(bundle["image/png"]))
    width, height = panel.figure.get_size_inches()
    assert shown.shape == (round(height * panel.figure.dpi), round(width * panel.figure.dpi), 3)
    assert shown.std() > 10 and metadata["image/png"]["width"] == pytest.approx(96 * width, abs=1)
    assert bundle["text/plain"] == panel.alt and panel.alt.endswith(".") and len(panel.alt) > 40


def test_it_looks_the_same_on_a_dark_page(panel):
    """Nothing shines through, and what stands on the white ground is dark enough to be read there."""
    for png in (panel.png(), panel.png(small=False)):
        image = Image.open(io.BytesIO(png))
        assert image.convert("RGBA").getextrema()[3] == (255, 255)
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def test_colours_are_of_the_palette_that_everybody_can_tell_apart():
    """Hues have names in palette.py; elsewhere stand only greys, and cividis for what is measured."""
    words = {
        (path.name, node.value)
        for path in Path(panels.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(words) > 1000
    for name, word in words:
        for hue in re.findall(r"#[0-9a-fA-F]{6}\b", word):
            assert hue[1:3] == hue[3:5] == hue[5:7], f"{name}: {hue} is no grey"
        assert not re.fullmatch(r"tab:\w+|C\d|red|green|blue|orange|jet|rainbow|RdBu\w*|viridis", word), name


def test_the_browser_test_knows_which_panels_can_be_touched(panel, request):
    assert bool(panel.handles) == (request.node.callspec.params["panel"] in TOUCHABLE)


def test_a_handle_put_where_it_is_moves_nothing(panel):
    """Its way from the controls to the picture and back are the same way."""
    for name, handle in panel.handles.items():
        before, (x, y) = panel.values, handle.place(panel.values)
        panel.on_event({"event": "", "handle": name, "x": x, "y": y})
        assert panel.values == pytest.approx(before), name


def test_the_quick_picture_has_the_pixels_of_the_canvas(panel):
    quick = panel.png(small=False)
    Image.open(io.BytesIO(quick)).verify()
    assert np.array_equal(Image.open(io.BytesIO(quick)), panel.figure.canvas.buffer_rgba())
    assert panel.front.shown["picture"] == quick


def test_sliders_start_on_their_grid(panel):
    """A front end moves a value that lies between two steps."""
    for name, control in panel.controls.items():
        if hasattr(control, "step"):
            value = (
                np.log10(control.value) if isinstance(control, ipywidgets.FloatLogSlider) else control.value
            )
            steps = (value - control.min) / control.step
            assert steps == pytest.approx(round(steps), abs=1e-6), name


def test_reset_goes_back(panel):
    start = dict(panel.values)
    with panel._one_picture(""):
        for control in panel.controls.values():
            control.value = ends(control)[-1]
    panel.reset()
    assert panel.values == start


def test_row_shows_three_values(panel):
    name = next(n for n, c in panel.controls.items() if hasattr(c, "min"))
    picture = panel.row(name, ends(panel.controls[name]))
    columns = np.array_split(opened(picture.png), 3, axis=1)
    assert not np.array_equal(columns[0], columns[2])
    assert picture.alt.count(".") >= 3
    with pytest.raises(ValueError, match="name must be one of"):
        panel.row("colour", [1])


def test_initial_values_and_unknown_ones():
    assert panels.pair_curves(beta=8.0).values["beta"] == 8
    with pytest.raises(ValueError, match="control must be one of .*got 'betta'; did you mean 'beta'"):
        panels.pair_curves(betta=8.0)


def test_values_beyond_a_slider_are_refused_not_clipped():
    with pytest.raises(ValueError, match="temperature must be .* got 0.001; the slider ends there"):
        panels.five_numbers(temperature=1e-3)
    with pytest.raises(ValueError, match="start must be .* got 4"):
        panels.five_numbers().row("start", [1, 4])


def test_an_exception_reaches_the_cell_and_shows_in_the_panel():
    def build(figure, compact):
        def update(values):
            if values["x"] > 1:
                raise ZeroDivisionError("x is too large")
            return "A line."

        return Drawing([figure.subplots().plot([], [])[0]], update)

    panel = Panel(build, {"x": slider("x", 0, 0, 3, 1)})
    with pytest.raises(ZeroDivisionError, match="x is too large"):
        panel.controls["x"].value = 2
    assert "x is too large" in panel.front.shown["sentence"] and panel.front.shown["failed"]
    panel.controls["x"].value = 1
    assert panel.front.shown["sentence"] == "A line." and not panel.front.shown["failed"]


def test_sliders_are_described_and_marked():
    tau = log_slider("temperature τ", 0.5, 0.1, 10, marks={1: "one"})
    assert (tau.min, tau.max, tau.value) == (-1, 1, 0.5) and tau.marks == {0.5: "one"}
    assert isinstance(slider("n", 1, 0, 5, 1), ipywidgets.IntSlider)
    assert isinstance(slider("r", 0.5, 0.0, 2.0, 0.1), ipywidgets.FloatSlider)
    assert options("loss", ["a", "b"]).value == "a"


def test_still_pictures():
    picture = still(lambda figure: figure.subplots().plot([0, 1])[0] and "A line.", (3, 2))
    assert opened(picture.png).shape == (240, 360, 3)
    assert picture._repr_mimebundle_()[0]["text/plain"] == "A line."


def test_five_numbers_are_one_row_of_the_losses():
    """A list of one positive and four negatives is a row of a batch of two views of three images."""
    import torch

    from setclr.losses import GroCo, InfoNCE

    z = torch.randn(2, 3, 4, dtype=torch.float64)
    x = torch.nn.functional.normalize(z, dim=-1).flatten(0, 1)
    rows = []
    for a in range(6):
        negatives = [x[a] @ x[c] for c in range(6) if c % 3 != a % 3]
        rows.append(torch.stack([*negatives, x[a] @ x[(a + 3) % 6]]))
    rows = torch.stack(rows)
    torch.testing.assert_close(info_nce(rows, 0.3).mean(), InfoNCE(0.3)(z))
    torch.testing.assert_close(groco(rows, 2.0).mean(), GroCo(2.0, negatives=4)(z))


def test_descent_is_gradient_descent():
    import torch

    x = torch.tensor([1.0, -2.0], dtype=torch.float64)
    path = descend(lambda x: 0.5 * x.square(), x, 0.1, steps=3)
    torch.testing.assert_close(path, torch.stack([x * 0.9**k for k in range(4)]))


def test_a_film_is_recorded_kept_and_cut_where_its_run_goes_on(tmp_path, monkeypatch):
    import torch

    from setclr import pretrain
    from setclr.data import ImageSet
    from setclr.recipes import ImageRecipe
    from setclr_course.panels.trained.film import Film

    images = torch.randint(0, 256, (60, 3, 32, 32), dtype=torch.uint8)
    few = ImageSet(images, torch.arange(60) % 3, tuple("abc"))
    recipe = ImageRecipe("InfoNCE()", views="photo", epochs=3, batch=20)
    film = Film(few, few, tmp_path / "film.npz")
    run = pretrain(recipe, tmp_path, on_epoch=film, data=few)
    assert len(film) == 4 and list(run.history.knn) == film.accuracy[1:]

    again = Film(few, few, tmp_path / "film.npz")
    assert len(again) == 4
    np.testing.assert_array_equal(again.positions, film.positions)
    run.rows = run.rows[:2]
    again(run)
    assert len(again) == 3
    with pytest.raises(ValueError, match="film must hold the 2 frames before this epoch, got 0"):
        Film(few, few)(run)
    panel = panels.training_film({"InfoNCE": film})
    assert panel.controls["epoch"].max == 3
    assert panel.row("loss", ["InfoNCE"]).alt
    with pytest.raises(ValueError, match="films must have two frames or more, got 0"):
        panels.training_film({"InfoNCE": Film(few, few)})


def test_the_drawn_matrices_are_the_assignments_and_moves_chooses_whose():
    from setclr_course.panels.family.batch import FAMILY, MATRICES, batch

    panel = panels.family_matrices(smoothing=0.1)
    drawn = {axis.get_title("left").split(" ÷")[0]: axis for axis in panel.figure.axes}
    assert len(MATRICES) == 9
    for moves in ("all", "GroCo"):
        panel.controls["moves"].value = moves
        for name in MATRICES:
            member = FAMILY[name]
            follows = member.power and moves in ("all", name)
            A = member.at(0.1 if follows else 1).assignment(batch()).numpy()
            A = A / A.sum(1, keepdims=True) if name == "MMCL" else A
            np.testing.assert_array_equal(drawn[name].collections[0].get_array(), A)
            (number,) = (
                t
                for t in drawn[name].texts
                if t.get_text() == f"{member.parameter(0.1 if follows else 1):.3g}"
            )
            assert (number.get_weight() == "bold") == bool(follows)


def test_usual_values_stand_at_smoothing_1():
    from setclr.losses import IOT, MMCL, GroCo, InfoNCE
    from setclr_course.panels.family.batch import FAMILY

    assert repr(FAMILY["InfoNCE"].at(1)) == repr(InfoNCE(0.5))
    assert repr(FAMILY["GroCo"].at(0.1)) == repr(GroCo(10.0, negatives=4))
    assert repr(FAMILY["IOT both"].at(2)) == repr(IOT("both", 1.0, iterations=8))
    assert repr(FAMILY["MMCL"].at(1)) == repr(MMCL(bandwidth=1.0, solver="exact"))


def test_arrows_lead_downhill_and_are_as_long_as_the_gradient_says():
    from setclr_course.panels.family.along import LONGEST, pushes
    from setclr_course.panels.family.batch import ANGLES, FAMILY, batch

    for name in ("InfoNCE", "SparseCLR", "IOT both", "QARe"):  # those without a detached part
        loss, step = FAMILY[name].at(0.3), np.rad2deg(1e-6)
        slopes = np.zeros((2, 5))
        for v, i in np.ndindex(2, 5):
            angles = np.array([ANGLES, ANGLES], float)
            angles[0, v, i] -= step
            angles[1, v, i] += step
            slopes[v, i] = (loss(batch(angles[1])) - loss(batch(angles[0]))).item() / 2e-6
        np.testing.assert_allclose(pushes(loss, batch()), -slopes, atol=1e-6)

    panel = panels.family_gradients(smoothing=0.3)
    (arrows,) = (a for a in panel.artists if hasattr(a, "set_UVC"))
    lengths = np.hypot(arrows.U, arrows.V).reshape(len(FAMILY), 10)
    for name, length in zip(FAMILY, lengths):
        push = np.abs(pushes(FAMILY[name].at(0.3), batch())).ravel()
        np.testing.assert_allclose(length, LONGEST * push / push.max(), atol=1e-9)
    hollow = sum((dots.get_facecolors() == 1).all(1).sum() for dots in panel.artists[1:3])
    assert hollow == (lengths < 0.05 * LONGEST).sum() > 0
    assert f"{hollow} of the 100 points get less than 5 %" in panel.alt


def test_a_loss_at_rest_has_no_arrows():
    panel = panels.family_gradients(smoothing=0.01)
    (arrows,) = (a for a in panel.artists if hasattr(a, "set_UVC"))
    assert "LinearAssignment at rest" in panel.alt
    assert np.hypot(arrows.U, arrows.V).reshape(10, 10)[1].max() == 0

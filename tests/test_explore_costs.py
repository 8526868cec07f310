"""What is counted, kept and timed of a loss, and the panel and pictures of notebook 14 that show it."""

import gc
import time

import numpy as np
import pytest
import torch

from setclr import losses, models
from setclr.losses import IOT, MMCL, InfoNCE, QARe
from setclr.recipes.image import ImageRecipe
from setclr.training.devices import Precision
from setclr.training.grad_cache import GradCache
from setclr_course import costs, panels
from setclr_course.kit.palette import WHITE
from setclr_course.kit.scene import Page
from setclr_course.panels.costs.cost_pictures import apart, cost_lines, in_words
from setclr_course.panels.costs.step_shares import quick_steps
from setclr_course.panels.costs.training_costs import DAYS, PLANS, cost, count, paper_utilisation

SECONDS = {"InfoNCE": {32: 1e-3, 64: 4e-3}, "QARe": {32: 2e-3, 64: 2e-3}, "MMCL": {32: 1e-3, 64: 8e-3}}
RUNS = {name: {N: [s, 0.9 * s, 1.2 * s] for N, s in row.items()} for name, row in SECONDS.items()}
KEPT = {"InfoNCE": {32: 10_000, 64: 40_000}, "QARe": {32: 5_000, 64: 9_000}, "MMCL": {32: 2_000, 64: 9_000}}


def marks(scene, plot, kind):
    (found,) = (found for found in scene["plots"] if found["name"] == plot)
    return [mark for mark in found["marks"] if mark["kind"] == kind]


def test_products_are_counted_forth_and_back():
    a, b = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    found = costs.work(lambda: (a @ b).sum().backward())
    assert found.flops == 3 * 2 * 3 * 5 * 7
    assert found.side == 0 and costs.work(lambda: None) == (0, 0, 0)


def test_numbers_written_leave_out_views():
    x = torch.zeros(4, 6)
    assert costs.work(lambda: x.T[1:].unsqueeze(0)).numbers == 0
    assert costs.work(lambda: x + 1).numbers == 24
    assert costs.work(lambda: x.sum(0)).numbers == 6
    assert costs.work(lambda: torch.empty_like(x)).numbers == 0
    assert costs.work(lambda: torch.zeros(2, 4, 6) @ x.T).numbers == 48 + 32, "zeros and product, once each"


@pytest.mark.parametrize(
    "call",
    [torch.linalg.eigvalsh, torch.linalg.cholesky, torch.linalg.inv, lambda A: torch.linalg.solve(A, A)],
)
def test_the_side_of_what_is_factorised(call):
    assert costs.work(lambda: call(torch.eye(9))).side == 9


def test_the_losses_sides_are_those_of_their_docstrings():
    def side(loss):
        return costs.work(lambda: loss(costs.points(12, 5)).backward()).side

    assert [side(loss) for loss in (QARe(), QARe("euclidean"), MMCL(), InfoNCE())] == [6, 12, 24, 0]


def test_what_is_kept_is_counted_once_and_released():
    x = torch.randn(10, requires_grad=True)
    with costs.Kept() as kept:
        y = x.exp()  # keeps its result
        total = (y * y).sum()  # keeps y twice more
        assert kept.now == kept.peak == 40
        total.backward()
        gc.collect()
        assert kept.now == 0 and kept.peak == 40
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).exp())


@pytest.mark.parametrize("loss", [kind() for kind in losses.LOSSES], ids=lambda loss: type(loss).__name__)
def test_watching_a_loss_changes_neither_it_nor_its_gradient(loss):
    z = costs.points(16, 8)
    (expected,) = torch.autograd.grad(loss(z), z)
    with costs.Kept() as kept:
        value = loss(z)
        (found,) = torch.autograd.grad(value, z)
    torch.testing.assert_close(found, expected)
    assert kept.peak == costs.kept_bytes(loss, z) >= 4 * 16 * 8
    assert costs.work(lambda: loss(z).backward()) == costs.work(lambda: loss(z).backward())


def test_rounds_of_sinkhorn_cost_work_and_hardly_memory():
    z = costs.points(32, 8)
    kept = [costs.kept_bytes(IOT("both", 0.5, K), z) for K in (1, 2, 3)]
    assert kept[2] - kept[1] == kept[1] - kept[0] == 4 * 2 * 64, "two potentials of 2N float32 a round"


def test_seconds_are_measured_for_every_loss_and_size():
    slow = torch.ones(300, 300)
    contestants = {"fast": lambda z: z.sum(), "slow": lambda z: z.sum() + 0 * (slow @ slow @ slow).sum()}
    table = costs.seconds(contestants, [2, 4], 3, budget=0.01)
    assert list(table) == ["fast", "slow"] and all(list(row) == [2, 4] for row in table.values())
    assert all(5 <= len(table[name][N]) <= 50 for name in table for N in (2, 4))
    assert all(0 < min(table["fast"][N]) < min(table["slow"][N]) < 1 for N in (2, 4))


def test_a_first_call_that_loads_something_does_not_count():
    calls = []

    def lazy(z):
        calls.append(time.sleep(0 if calls else 0.3))
        return z.sum()

    (taken,) = costs.seconds({"lazy": lazy}, [4], 3, budget=0.01, least=1)["lazy"][4]
    assert 0 < taken < 0.3 and len(calls) == 2


def test_half_of_the_runs_lie_between_the_quartiles():
    assert costs.middle([5.0, 1.0, 2.0, 3.0, 4.0]) == (2.0, 3.0, 4.0)


def test_a_step_has_its_parts_and_each_loss_its_time():
    recipe = ImageRecipe("InfoNCE(0.5)", batch=4, hidden=8, embedding=4)
    parts, alone = costs.parts_of_a_step(recipe, {"a": InfoNCE(), "b": QARe()}, steps=2)
    assert list(parts) == ["views", "encoder forward", "encoder backward", "optimiser"]
    assert list(alone) == ["a", "b"]
    assert all(len(runs) == 2 and min(runs) > 0 for runs in [*parts.values(), *alone.values()])


def test_the_step_trains_as_the_trainer_would():
    """The clock's way round the loss gives the gradient that backward gives."""
    encoder, width = models.encoder("conv4")
    recipe = ImageRecipe("InfoNCE(0.5)", batch=4, hidden=8, embedding=4)
    trainer = costs.noise_trainer(recipe, 3, torch.device("cpu"))
    assert len(trainer.source) == 12 and width == 64
    x = next(trainer.view_batches)
    trainer.grad_cache.backward(x, trainer.loss)
    expected = [p.grad.clone() for p in trainer.model.parameters()]
    trainer.optimiser.zero_grad()

    def score(z):
        leaf = z.detach().requires_grad_()
        return (z * torch.autograd.grad(trainer.loss(leaf), leaf)[0]).sum()

    trainer.grad_cache.backward(x, score)
    for p, grad in zip(trainer.model.parameters(), expected):
        torch.testing.assert_close(p.grad, grad, rtol=1e-4, atol=1e-6)


def test_an_encoder_is_counted_without_being_computed():
    encoder, _ = models.encoder("conv4")
    x = torch.rand(2 * 3, 3, 32, 32)
    flops, kept = costs.encoder_cost("conv4", 3)
    assert costs.work(lambda: encoder(x).sum().backward()).flops == flops
    with costs.Kept() as really:
        encoder(x).sum().backward()
    assert really.peak == pytest.approx(kept, rel=0.02)
    assert costs.encoder_cost("conv4", 6)[0] == 2 * flops


def test_chunks_keep_less():
    encoder, width = models.encoder("conv4")
    embedder = {
        chunk: GradCache(encoder, models.head(width, 8, 4), Precision("float32", torch.device("cpu")), chunk)
        for chunk in (None, 4)
    }
    peaks = {}
    for chunk, one in embedder.items():
        with costs.Kept() as kept:
            one.backward([torch.rand(2, 16, 3, 32, 32)], InfoNCE())
        peaks[chunk] = kept.peak
    assert peaks[4] < 0.35 * peaks[None]


def test_the_panel_shows_the_tables():
    panel = panels.loss_costs(RUNS, KEPT, "a test", images=32, loss="MMCL")
    assert panel.alt.startswith("At N = 32, MMCL takes 1 ms, 1.00 times InfoNCE, and keeps 0.002 MB")
    panel.controls["images"].value = 64
    assert panel.alt == "At N = 64, MMCL takes 8 ms, 2.00 times InfoNCE, and keeps 0.009 MB for the way back."
    for plot, rows in (
        ("time", ([1, 4], [2, 2], [1, 8])),
        ("memory", ([0.01, 0.04], [0.005, 0.009], [0.002, 0.009])),
    ):
        *measured, now = marks(panel.scene, plot, "dots")
        assert now["x"] == [64] * 3 and now["y"] == pytest.approx([row[-1] for row in rows])
        for dots, row in zip(measured, rows, strict=True):
            assert (dots["x"], dots["y"]) == ([32, 64], pytest.approx(row))
        curves = [line for line in marks(panel.scene, plot, "line") if line["x"] == [32, 64]]
        assert [line["y"] for line in curves] == [pytest.approx(row) for row in rows]
        assert [line["width"] for line in curves] == [2, 2, 4] and curves[1]["dash"] == "dash"
        beside = [f"{name} {in_words(row[-1])}" for name, row in zip(RUNS, rows)]
        assert marks(panel.scene, plot, "text")[0]["said"] == beside
    band = np.array(marks(panel.scene, "time", "area")[2]["rings"][0])
    np.testing.assert_allclose(band, [[32, 64, 64, 32], [0.95, 7.6, 8.8, 1.1]])
    panel.controls["loss"].value = "InfoNCE"
    assert "InfoNCE takes 4 ms and keeps 0.04 MB for the way back" in panel.alt
    assert panel.scene["links"][2][0] == "MMCL at N = 64: 8 ms, 0.009 MB"
    titles = [plot["title"] for plot in panels.loss_costs(RUNS, KEPT, images=64, loss="MMCL").scene["plots"]]
    assert titles == ["time: MMCL is 2 times InfoNCE", "memory: MMCL is 0.225 times InfoNCE"]


def test_all_runs_lie_on_their_axes_and_a_form_of_a_loss_is_hollow():
    tables = ({**table, "MMCL exact": table["MMCL"]} for table in (RUNS, KEPT))
    panel = panels.loss_costs(*tables, images=64)
    for plot in panel.scene["plots"]:
        (low, high), found = plot["y"], [mark for mark in plot["marks"] if mark["kind"] in ("line", "dots")]
        heights = [y for mark in found for y in mark["y"]]
        heights += [y for mark in plot["marks"] if mark["kind"] == "area" for y in mark["rings"][0][1]]
        assert low <= min(heights) and max(heights) <= high
        fills = [mark["colour"] for mark in plot["marks"] if mark["kind"] == "dots"][:4]
        assert fills[3] == WHITE and WHITE not in fills[:3]


def test_a_row_shows_the_times_as_bars():
    panel = panels.loss_costs(RUNS, KEPT)
    (plot,) = panel.seen({**panel.values, "images": 64}, row=True).scene["plots"]
    boxes = next(mark for mark in plot["marks"] if mark["kind"] == "boxes")
    assert boxes["u"] == pytest.approx([4, 2, 8]) and set(boxes["x"]) == {plot["x"][0]}
    assert [word for _, word in plot["yticks"]] == list(RUNS)


def test_the_line_is_dragged_along_the_curves_to_a_batch():
    panel = panels.loss_costs(RUNS, KEPT, images=32)
    assert set(panel.handles) == {"time", "memory"}
    for name in panel.handles:
        panel.on_event({"event": "a:1", "handle": name, "x": 60, "y": 1})
        assert panel.values["images"] == pytest.approx(64)  # the nearest stop
        panel.reset()


def test_the_shares_of_a_step_are_those_of_its_parts():
    panel = panels.step_shares(encoder="Conv-4", batch=8)
    step = quick_steps()["time"]["Conv-4"][8]
    assert list(step.parts) == ["views", "encoder forward", "encoder backward", "optimiser"]
    shared, loss = sum(step.parts.values()), step.losses["GroCo"]
    assert step.share("GroCo")[1] == pytest.approx(np.median(100 * loss / (shared + loss)))
    assert f"GroCo {step.share('GroCo')[1]:.2g} %" in panel.alt
    bars, reach = marks(panel.scene, "plot", "boxes"), marks(panel.scene, "plot", "segments")
    for y, (name, box, line) in enumerate(zip(step.losses, bars, reach, strict=True)):
        low, share, high = step.share(name)
        widths = np.subtract(box["u"], box["x"])
        ratios = [np.median(part) for part in step.parts.values()]
        np.testing.assert_allclose(
            widths[:4], (100 - share) * np.divide(ratios, sum(ratios)), rtol=1e-4, atol=1e-3
        )
        assert (box["x"][0], box["u"][-1]) == (0, 100) and widths[-1] == pytest.approx(share, abs=1e-3)
        assert (line["x"], line["u"]) == (pytest.approx([100 - high]), pytest.approx([100 - low]))
        assert {*box["y"], *box["v"]} == {y - 0.35, y + 0.35}
    panel.controls["measure"].value = "memory"
    kept, encoder = costs.kept_bytes(losses.GroCo(), costs.points(8, 64)), costs.encoder_cost("conv4", 8)[1]
    assert f"GroCo {100 * kept / (kept + encoder):.2g} %" in panel.alt
    assert f"GroCo: {in_words(1e-6 * kept)} MB" in [said for said, *_ in panel.scene["links"]]


def test_a_regulariser_is_added_to_the_loss_that_it_stands_beside():
    steps = quick_steps()
    step, kept = steps["time"]["Conv-4"][8], steps["memory"]["Conv-4"][8]
    assert "QARe" not in step.losses and (step.losses["InfoNCE + QARe"] > step.losses["InfoNCE"]).all()
    z = costs.points(8, 64)
    more = costs.kept_bytes(QARe(), z) / (kept.parts["encoder forward"] + costs.kept_bytes(InfoNCE(), z))
    assert kept.added("InfoNCE + QARe")[1] == pytest.approx(100 * more)
    assert "ms, reckoned from a step of 2 images" in panels.step_shares(steps).alt
    assert "reckoned" not in panels.step_shares(steps, encoder="Conv-4").alt
    slow = steps["time"]["ResNet-18"]
    np.testing.assert_allclose(slow[16].parts["views"], 2 * slow[8].parts["views"])
    np.testing.assert_allclose(slow[16].parts["optimiser"], slow[8].parts["optimiser"])


def test_between_measured_batches_the_nearest_is_shown():
    panel = panels.loss_costs(RUNS, KEPT, images=45.0)
    assert panel.solve(panel.values).N == 32 and panel.alt.startswith("At N = 32,")
    assert panel.handles["time"].point[0] == 32


@pytest.mark.parametrize("log", ["x", "x y"])
def test_words_are_moved_apart_in_their_order(log):
    plot = Page(["costs"]).plot("costs", (1, 2), (1, 1000), log=log)
    ends = np.array([990.0, 300, 301, 305, 980])
    moved, last = apart(plot, ends), 950 if log == "x" else 1000**0.95
    np.testing.assert_array_equal(np.argsort(moved), np.argsort(ends))
    assert moved.max() == pytest.approx(last, rel=0.01)
    shares = np.sort(moved) / 999 if log == "x" else np.log(np.sort(moved)) / np.log(1000)
    assert np.diff(shares).min() > 0.05 - 1e-9
    np.testing.assert_allclose(apart(plot, np.array([500.0, 5])), [500, 5])


def test_still_pictures_say_what_they_show():
    ms = {name: {N: 1e3 * s for N, s in row.items()} for name, row in SECONDS.items()}
    picture = cost_lines(ms, "ms", "a test")
    assert picture.alt == "a test: ms at N = 32 to 64: InfoNCE 1 to 4, QARe 2 to 2, MMCL 1 to 8."
    added = {"GroCo": {32: costs.Middle(4.0, 5.0, 6.0), 64: costs.Middle(-0.5, -0.4, 0.0)}}
    more = cost_lines(added, "% more", "a step", log="x", stars=[(128, 2.3)])
    assert more.alt == "a step: % more at N = 32 to 64: GroCo 5 to -0.4; the paper's star: +2.3 at 128."


def test_operations_are_those_of_the_literature():
    """torchvision counts 4.09 billion multiply-adds for a ResNet-50; backwards is about twice that."""
    assert count()[224] / 1e9 == pytest.approx(3 * 2 * 4.09, rel=0.02)
    assert count()[96] / count()[224] == pytest.approx((96 / 224) ** 2, rel=0.03)


def test_the_estimate_is_calibrated_on_the_papers_22_hours():
    used = paper_utilisation()
    assert 24 * cost(8, 100, used, "2x224", "A6000").days == pytest.approx(22)
    assert cost(16, 200, used, "2x224", "A6000").days * 24 == pytest.approx(22)
    assert cost(8, 100, used, "4x224", "A6000").days * 24 == pytest.approx(44)
    assert cost(8, 100, used, "2x224", "H100").days * 24 == pytest.approx(22 * 155 / 989)


@pytest.mark.parametrize("plan", PLANS)
def test_costs_are_said_and_drawn(plan):
    panel = panels.training_costs(views=plan, gpus=16)
    values = panel.values
    plans = [line for line in marks(panel.scene, "days", "line") if line["x"] == [1, 128]]
    for name, line in zip(PLANS, plans, strict=True):
        ends = [cost(**values | {"views": name, "gpus": gpus}).days for gpus in (1, 128)]
        assert line["y"] == pytest.approx(ends, rel=1e-5)
        assert (line["width"] == 4) == (name == plan)
    dot, own = marks(panel.scene, "days", "dots")
    assert (dot["x"], dot["y"]) == ([16], pytest.approx([cost(**values).days], rel=1e-5))
    assert own["y"] == pytest.approx([22 / 24], rel=1e-5)
    assert dot["colour"] == plans[list(PLANS).index(plan)]["colour"]
    panel.on_event({"event": "a:1", "handle": "gpus", "x": 100, "y": 1})
    assert "128 A6000" in panel.alt


def test_the_bars_are_the_operations_and_a_click_chooses_a_plan():
    panel = panels.training_costs()
    assert "6.2e+18 operations. 8 A6000 at 6.4 % of 155 Tflop/s would need 22 hours" in panel.alt
    assert panel.alt.startswith("Estimate:")
    bars = marks(panel.scene, "images", "boxes")
    full, small = (np.subtract(bar["u"], bar["x"]) for bar in bars)
    assert full == pytest.approx([k * count()[224] / 1e9 for k in (2, 3, 4, 2)], rel=1e-5)
    assert small == pytest.approx([0, 0, 0, 6 * count()[96] / 1e9], abs=1e-3)
    plans = [line["colour"] for line in marks(panel.scene, "days", "line") if line["x"] == [1, 128]]
    assert bars[0]["colour"] == plans
    options = panel.knobs["views"]
    assert [options.stop(sets["views"]) for *_, sets in panel.scene["links"]] == list(PLANS)


def test_the_slowest_and_the_fastest_run_lie_on_the_axis():
    low, high = DAYS
    assert low < 0.8 * cost(128, 100, 50, "2x224", "H100").days
    assert cost(1, 800, 1, "4x224", "A6000").days * 1.25 < high
    assert cost(90, 800, 6.4, "2x224+6x96", "A6000").days > 1 > cost(91, 800, 6.4, "2x224+6x96", "A6000").days

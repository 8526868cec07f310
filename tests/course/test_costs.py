"""What is counted, kept and timed of a loss and of a step, and the panels and pictures of pages 12 and 14.

There the costs are these, and crops are the library's.
"""

import gc

import numpy as np
import pytest
import torch
from small_runs import tensors
from sweep import marks

from setclr import data, losses, models, views
from setclr.data.patches import PHOTOGRAPHS
from setclr.experiments.kinds.image import views_of
from setclr.inner.svms import BORDER
from setclr.losses import MMCL, InfoNCE, QARe
from setclr.recipes import RECIPES, ImageRecipe
from setclr.seeding import seeded
from setclr_course import costs, panels
from setclr_course.panels.costs import batch_tables, step_shares
from setclr_course.panels.costs.training_costs import DAYS, cost, count, paper_utilisation
from setclr_course.panels.trained import multi_crop, photo_tree

X = torch.zeros(4, 6)


@pytest.mark.parametrize("call, numbers", [
    (lambda: None, 0), (lambda: X.T[1:].unsqueeze(0), 0), (lambda: X + 1, 24), (lambda: X.sum(0), 6),
    (lambda: torch.empty_like(X), 0), (lambda: torch.zeros(2, 4, 6) @ X.T, 48 + 32),
])  # fmt: skip
def test_products_are_counted_and_numbers_written_without_views(call, numbers):
    assert costs.work(call) == (2 * 8 * 6 * 4 * (numbers == 80), numbers, 0)


def test_the_side_of_what_is_factorised():
    linalg = torch.linalg
    for call in (linalg.eigvalsh, linalg.cholesky, linalg.inv, lambda A: linalg.solve(A, A)):
        assert costs.work(lambda call=call: call(torch.eye(9))).side == 9


SIDES = [(QARe(), 6), (QARe("euclidean"), 12), (MMCL(), 24 + BORDER), (InfoNCE(), 0)]


@pytest.mark.parametrize("loss, side", SIDES, ids=repr)
def test_the_losses_sides_are_those_of_their_docstrings(loss, side):
    assert costs.work(lambda: loss(costs.points(12, 5)).backward()).side == side


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


def test_seconds_are_measured_for_every_loss_and_size_without_the_first_call():
    slow = torch.ones(300, 300)
    contestants = {"fast": lambda z: z.sum(), "slow": lambda z: z.sum() + 0 * (slow @ slow @ slow).sum()}
    table = costs.seconds(contestants, [2, 4], 3, budget=0.01)
    assert {name: list(row) for name, row in table.items()} == {"fast": [2, 4], "slow": [2, 4]}
    for N in (2, 4):
        assert all(5 <= len(runs[N]) <= 50 for runs in table.values())
        assert 0 < min(table["fast"][N]) < min(table["slow"][N]) < 1
    assert costs.middle([5.0, 1.0, 2.0, 3.0, 4.0]) == (2.0, 3.0, 4.0)


def test_a_step_has_its_parts_and_each_loss_its_time_and_trains_as_the_trainer_would(monkeypatch):
    recipe, trainers = ImageRecipe("InfoNCE(0.5)", batch=4, hidden=8, embedding=4), []
    for _ in range(2):
        torch.manual_seed(0)
        trainers.append(costs.noise_trainer(recipe, 2 + 2, torch.device("cpu")))
    monkeypatch.setattr(costs, "noise_trainer", lambda *_: trainers[0])
    parts, alone = costs.parts_of_a_step(recipe, {"a": InfoNCE(), "b": QARe()}, steps=2)
    assert list(parts | alone) == ["views", "encoder forward", "encoder backward", "optimiser", "a", "b"]
    assert all(len(runs) == 2 and min(runs) > 0 for runs in [*parts.values(), *alone.values()])
    assert len(list(trainers[1].epoch())) == 4 and len(trainers[1].source) == 16
    assert all(map(torch.equal, *map(tensors, trainers)))


def test_an_encoder_is_counted_without_being_computed_and_chunks_keep_less():
    encoder, width = models.encoder("conv4")
    x, (flops, kept) = torch.rand(2 * 3, 3, 32, 32), costs.encoder_cost("conv4", 3)
    assert costs.work(lambda: encoder(x).sum().backward()).flops == flops and width == 64
    with costs.Kept() as really:
        encoder(x).sum().backward()
    assert really.peak == pytest.approx(kept, rel=0.02)
    assert costs.encoder_cost("conv4", 6)[0] == 2 * flops


# Panels of costs

SECONDS = {"InfoNCE": {32: 1e-3, 64: 4e-3}, "QARe": {32: 2e-3, 64: 2e-3}, "MMCL": {32: 1e-3, 64: 8e-3}}
RUNS = {name: {N: [s, 0.9 * s, 1.2 * s] for N, s in row.items()} for name, row in SECONDS.items()}
KEPT = {"InfoNCE": {32: 10_000, 64: 40_000}, "QARe": {32: 5_000, 64: 9_000}, "MMCL": {32: 2_000, 64: 9_000}}


def test_the_tables_are_shown_and_said():
    panel = panels.loss_costs(RUNS, KEPT, "a test", images=32, loss="MMCL")
    assert panel.alt.startswith("At N = 32, MMCL takes 1 ms, 1.00 times InfoNCE, and keeps 0.002 MB")
    panel.controls["images"].value = 64
    assert panel.alt == "At N = 64, MMCL takes 8 ms, 2.00 times InfoNCE, and keeps 0.009 MB for the way back."
    for plot, y in (("time", [4, 2, 8]), ("memory", [0.04, 0.009, 0.009])):
        now = marks(panel, plot, "dots")[-1]
        assert now["x"] == [64] * 3 and now["y"] == pytest.approx(y)
    between = panels.loss_costs(RUNS, KEPT, images=45.0)  # the nearest batch that was measured
    assert between.alt.startswith("At N = 32,") and between.handles["time"].point[0] == 32


def test_the_shares_of_a_step_are_those_of_its_parts():
    panel = panels.step_shares(encoder="Conv-4", batch=8)
    step = step_shares.quick_steps()["time"]["Conv-4"][8]
    shared, loss = sum(step.parts.values()), step.losses["GroCo"]
    assert step.share("GroCo")[1] == pytest.approx(np.median(100 * loss / (shared + loss)))
    assert f"GroCo {step.share('GroCo')[1]:.2g} %" in panel.alt
    bars, reach = marks(panel, "plot", "boxes"), marks(panel, "plot", "segments")
    ratios = np.median([*step.parts.values()], axis=1)
    for name, box, line in zip(step.losses, bars, reach, strict=True):
        low, share, high = step.share(name)
        widths = [*(100 - share) * ratios / ratios.sum(), share]
        np.testing.assert_allclose(np.subtract(box["u"], box["x"]), widths, rtol=1e-4, atol=1e-3)
        assert [*line["x"], *line["u"]] == pytest.approx([100 - high, 100 - low])
    panel.controls["measure"].value = "memory"
    kept, encoder = costs.kept_bytes(losses.GroCo(), costs.points(8, 64)), costs.encoder_cost("conv4", 8)[1]
    assert f"GroCo {100 * kept / (kept + encoder):.2g} %" in panel.alt


def test_a_regulariser_is_added_to_the_loss_that_it_stands_beside():
    steps = step_shares.quick_steps()
    step, kept = steps["time"]["Conv-4"][8], steps["memory"]["Conv-4"][8]
    assert "QARe" not in step.losses and (step.losses["InfoNCE + QARe"] > step.losses["InfoNCE"]).all()
    z = costs.points(8, 64)
    more = costs.kept_bytes(QARe(), z) / (kept.parts["encoder forward"] + costs.kept_bytes(InfoNCE(), z))
    assert kept.added("InfoNCE + QARe")[1] == pytest.approx(100 * more)
    assert "ms, reckoned from a step of 2 images" in panels.step_shares(steps).alt
    assert "reckoned" not in panels.step_shares(steps, encoder="Conv-4").alt
    slow = steps["time"]["ResNet-18"]
    for part, times in (("views", 2), ("optimiser", 1)):
        np.testing.assert_allclose(slow[16].parts[part], times * slow[8].parts[part])


def test_operations_are_those_of_the_literature_and_the_estimate_that_of_the_papers_22_hours():
    """torchvision counts 4.09 billion multiply-adds for a ResNet-50; backwards is about twice that. A
    batch of the paper keeps some 270 gigabytes.
    """
    assert count()[224] / 1e9 == pytest.approx(3 * 2 * 4.09, rel=0.02)
    assert count()[96] / count()[224] == pytest.approx((96 / 224) ** 2, rel=0.03)
    used = paper_utilisation()
    said = "6.2 · 10¹⁸ operations. 8 A6000 at 6.4 % of 155 Tflop/s would need 22 hours"
    assert said in panels.training_costs().alt
    for gpus, epochs, plan, gpu, hours in ((8, 100, "2x224", "A6000", 22), (16, 200, "2x224", "A6000", 22),
                                           (8, 100, "4x224", "A6000", 44),
                                           (8, 100, "2x224", "H100", 22 * 155 / 989)):  # fmt: skip
        assert 24 * cost(gpus, epochs, used, plan, gpu).days == pytest.approx(hours)
    kept = sum(costs.encoder_cost("resnet50-imagenet", 1024, *plan)[1] for plan in ((2, 224), (6, 96)))
    assert kept / 1e9 == pytest.approx(270, rel=0.05)
    assert DAYS[0] < 0.8 * cost(128, 100, 50, "2x224", "H100").days
    assert cost(1, 800, 1, "4x224", "A6000").days * 1.25 < DAYS[1]
    assert cost(90, 800, 6.4, "2x224+6x96", "A6000").days > 1 > cost(91, 800, 6.4, "2x224+6x96", "A6000").days


# Crops


def test_the_crops_are_those_of_the_recipe_and_of_their_draw():
    wanted, cat = views_of(RECIPES["groco-table5-groco-2x224+6x96"], side=224), PHOTOGRAPHS["cat"]()
    assert [(view.size, view.scale) for view in wanted] == 2 * [(224, (0.14, 1))] + 6 * [(96, (0.05, 0.14))]
    found, image = multi_crop.crops(cat, "as the encoder sees them"), torch.tensor(cat).permute(2, 0, 1)
    for k in (0, 5):
        drawn = views.draw(wanted, 1, seeded(k))
        seen = [x for group in views.apply_all(image[None], wanted, drawn) for x in group[:, 0]]
        for got, x in zip(found[k].pixels, seen, strict=True):
            np.testing.assert_allclose(got / 255, x.permute(1, 2, 0), atol=0.51 / 255)
        np.testing.assert_array_equal(found[k].boxes, views.boxes(wanted, drawn, 300, 451)[:, 0])


def test_the_panel_says_its_pixels_and_numbers_stand_in_corners_of_their_boxes():
    panel = panels.multi_crop()
    assert "155,648 pixels, 1.55 times" in panel.alt
    for now in panel.draws["as they were cut"]:
        places = multi_crop.apart(now.boxes)
        far = np.abs(places[:, None] - places) > multi_crop.LETTER
        assert (far.any(2) | np.eye(8, dtype=bool)).all()
        low, size = now.boxes[:, 1::-1], now.boxes[:, :1:-1]
        assert ((low < places) & (places < low + size)).all()


@pytest.mark.parametrize("places", [(34, 25, 80, 60), (50, 50, 50, 50), (0, 0, 100, 100)])
def test_what_two_crops_share_is_their_intersection(places):
    """Counted in pixels of a fine grid."""
    panel = panels.crop_pair(**dict(zip(("small x", "small y", "full x", "full y"), places)))
    now, at = panel.solve(panel.values), np.mgrid[0:451:0.25, 0:300:0.25].T + 0.125
    inside = {kind: ((at > low) & (at < low + now.side[kind])).all(2) for kind, low in now.low.items()}
    both = inside["full"] & inside["small"]
    for kind, part in inside.items():
        assert now.share[kind] == pytest.approx(both.sum() / part.sum(), abs=0.015)
    assert inside["full"].mean() == pytest.approx(0.3, rel=0.02)


def test_pictures_count_pairs_that_processes_see_and_views_that_must_be_found():
    z = torch.randn(2, 6, 8)
    for processes, pairs in ((2, 60), (3, 36)):
        assert f"see {pairs} of 132 pairs" in batch_tables.gather_picture(z, InfoNCE(0.2), processes).alt
    allowed = (torch.arange(8) < 2) & ~torch.eye(8, dtype=torch.bool)
    for n, pairs in ((8, "14 of 56"), (3, "4 of 6")):
        picture = batch_tables.positives_picture(allowed[:n, :n], full=2)
        assert picture.alt.startswith(f"{pairs} ordered pairs")


def test_the_tree_is_one_that_data_loads_and_stays(tmp_path):
    path, file = photo_tree.photo_tree(tmp_path / "tree", each=4, side=48), "train/cat/0000.jpg"
    train, test = (data.load(f"folder:{path}", split=split) for split in ("train", "test"))
    assert train.images.shape == (18 * 4, 3, 48, 48) and len(test) == 18
    assert train.classes == test.classes and {"cat", "moon"} < set(train.classes)
    written = (path / file).stat().st_mtime_ns
    _, again = (photo_tree.photo_tree(folder, each=4, side=48) for folder in (path, tmp_path / "again"))
    assert (path / file).stat().st_mtime_ns == written
    assert (again / file).read_bytes() == (path / file).read_bytes()
    with pytest.raises(ValueError, match="side must be .* got 97; a quarter of the smallest"):
        photo_tree.photo_tree(tmp_path / "large", side=97)

"""The panels and pictures of notebook 12: crops are the library's, costs are the formula's."""

import re

import numpy as np
import pytest
import torch
from conftest import shifted
from PIL import Image
from test_explore import opened

from setclr import data, views
from setclr.experiments.kinds.image import views_of
from setclr.losses import InfoNCE
from setclr.recipes import RECIPES
from setclr.seeding import seeded
from setclr_course import panels
from setclr_course.costs import encoder_cost
from setclr_course.panels.costs.gather_picture import gather_picture
from setclr_course.panels.costs.positives_picture import positives_picture
from setclr_course.panels.costs.training_costs import DAYS, PLANS, STYLES, cost, count, paper_utilisation
from setclr_course.panels.trained import crop_pair as pair
from setclr_course.panels.trained import multi_crop as multi
from setclr_course.panels.trained.coarse import coarse
from setclr_course.panels.trained.photo_tree import photo_tree


def test_the_crops_are_those_of_the_recipe_and_of_their_draw():
    wanted = multi.views_of("14 % (GroCo)", "as the encoder sees them")
    assert wanted == views_of(RECIPES["groco-table5-groco-2x224+6x96"], side=224)
    found = multi.crops(multi.cat(), "14 % (GroCo)", "as the encoder sees them")
    for k in (0, 5):
        draws = views.draw(wanted, 1, seeded(k))
        for got, x in zip(found.pixels, views.apply_all(multi.cat()[None], wanted, draws), strict=True):
            np.testing.assert_allclose(got[:, k] / 255, x[:, 0].permute(0, 2, 3, 1), atol=0.51 / 255)
        np.testing.assert_array_equal(found.boxes[k], views.boxes(wanted, draws, 300, 451)[:, 0])


def test_uncoloured_crops_are_cut_from_the_same_boxes():
    plain, seen = (multi.crops(multi.cat(), "30 %", how) for how in reversed(multi.SEEN))
    np.testing.assert_array_equal(plain.boxes, seen.boxes)
    top, left, height, width = plain.boxes[0, 0]
    box = (left, top, left + width, top + height)
    photograph = Image.fromarray(multi.cat().permute(1, 2, 0).numpy()).crop(box).resize((224, 224))
    shown = plain.pixels[0][0, 0].astype(int)
    off = [np.abs(shown[:, ::turn] - np.asarray(photograph)).mean() for turn in (1, -1)]
    assert min(off) < 4 < max(off)


def test_the_panel_draws_so_many_boxes_and_says_their_pixels():
    panel = panels.multi_crop()
    for local in (0, 3, 6):
        panel.controls["local"].value = local
        lines, _, *words = panel.artists
        assert len(lines.get_segments()) == 2 + local
        assert [word.get_visible() for word in words] == [v < 2 + local for v in range(8)] * 2
        assert f"{2 * 224**2 + local * 96**2:,} pixels" in panel.alt
    assert "1.55 times" in panel.alt
    panel.controls["area"].value = "100 %"
    assert "up to 100 %" in panel.alt
    panel.controls["local"].value = 1
    assert "the small crop, up to 100 %, shows 30 %." in panel.alt


def test_what_small_crops_share_depends_on_the_photographs_shape():
    """Notebook 12 states how many crops share nothing with a full view, and how many lie inside one."""
    wanted = views.multi_crop("groco", full=2, local=6, size=224)
    for W, widest, nothing, inside in ((451, 0.89, (0.04, 0.055), (0.4, 0.48)),
                                       (300, 1, (0.005, 0.015), (0.52, 0.6))):  # fmt: skip
        draws = views.draw(wanted, 4000, seeded(1))
        low = views.boxes(wanted, draws, 300, W)
        area, high = low[..., 2:].prod(-1), low[..., :2] + low[..., 2:]
        shared = torch.minimum(high[2:, None], high[:2]) - torch.maximum(low[2:, None, :, :2], low[:2, :, :2])
        shared = shared.clamp(min=0).prod(-1).amax(1)
        assert widest - 0.01 < (area[:2] / (300 * W)).max() <= widest
        assert nothing[0] < (shared == 0).double().mean() < nothing[1]
        assert inside[0] < (shared == area[2:]).double().mean() < inside[1]


def test_another_photograph():
    grey = torch.full((3, 200, 260), 90, dtype=torch.uint8)
    panel = panels.multi_crop(grey, colours="as they were cut", local=2)
    page = panel.artists[1].get_array()
    assert set(np.unique(page)) == {int(coarse(np.array(90))), 255}


def test_what_two_crops_share_is_their_intersection():
    """Counted in pixels of a fine grid."""
    panel = panels.crop_pair()
    for places in ((34, 25, 80, 60), (50, 50, 50, 50), (0, 0, 100, 100), (70, 80, 90, 20)):
        for name, place in zip(("small x", "small y", "full x", "full y"), places):
            panel.controls[name].value = place
        inside = []
        for kind in ("full", "small"):
            left, top, side = pair.box_of(kind, panel.values, (300, 451))
            y, x = np.mgrid[0:300:0.25, 0:451:0.25] + 0.125
            inside.append((x > left) & (x < left + side) & (y > top) & (y < top + side))
        both, (full, small) = (inside[0] & inside[1]).sum(), (part.sum() for part in inside)
        said = re.search(r"Of the small crop (\d+)% is in the full view, of the full view (\d+)%", panel.alt)
        assert float(said[1]) == pytest.approx(100 * both / small, abs=1.5)
        assert float(said[2]) == pytest.approx(100 * both / full, abs=1.5)
        assert full / x.size == pytest.approx(0.3, rel=0.02)


def test_the_common_part_is_the_same_place_in_both_crops():
    now = {"full": (100.0, 50.0, 200.0), "small": (80.0, 60.0, 100.0)}
    now["common"] = pair.shared(now["full"], now["small"])
    np.testing.assert_array_equal(now["common"], [100, 60, 180, 160])
    np.testing.assert_allclose(pair.on_sheet("full", now), np.array([0, 10, 80, 110]) * 1.12)
    small = np.array([20, 0, 100, 100]) * 0.96 + [pair.LEFT["small"], 0] * 2
    np.testing.assert_allclose(pair.on_sheet("small", now), small)
    assert not pair.shared((0, 0, 10), (10, 0, 5)).any()


def test_operations_are_those_of_the_literature():
    """torchvision counts 4.09 billion multiply-adds for a ResNet-50; backwards is about twice that."""
    assert count()[224] / 1e9 == pytest.approx(3 * 2 * 4.09, rel=0.02)
    assert count()[96] / count()[224] == pytest.approx((96 / 224) ** 2, rel=0.03)


def test_a_batch_of_the_paper_keeps_some_270_gigabytes():
    kept = sum(encoder_cost("resnet50-imagenet", 1024, *plan)[1] for plan in ((2, 224), (6, 96)))
    assert kept / 1e9 == pytest.approx(270, rel=0.05)


def test_the_estimate_is_calibrated_on_the_papers_22_hours():
    used = paper_utilisation()
    assert 24 * cost(8, 100, used, "2x224", "A6000").days == pytest.approx(22)
    assert cost(16, 200, used, "2x224", "A6000").days * 24 == pytest.approx(22)
    assert cost(8, 100, used, "4x224", "A6000").days * 24 == pytest.approx(44)
    assert cost(8, 100, used, "2x224", "H100").days * 24 == pytest.approx(22 * 155 / 989)


def test_costs_are_said_and_drawn():
    panel = panels.training_costs()
    assert "6.2e+18 operations. 8 A6000 at 6.4 % of 155 Tflop/s would need 22 hours" in panel.alt
    assert panel.alt.startswith("Estimate:")
    for plan in PLANS:
        panel.controls["views"].value = plan
        dots = panel.artists[len(PLANS) : 2 * len(PLANS)]
        assert [dot.get_visible() for dot in dots] == [name == plan for name in PLANS]
        days = cost(8, 100, panel.values["utilisation"], plan, "A6000").days
        assert dots[list(PLANS).index(plan)].get_ydata()[0] == pytest.approx(days)
    panel.controls["gpus"].value = 2**7
    assert "128 A6000" in panel.alt


def test_the_slowest_and_the_fastest_run_lie_on_the_axis():
    low, high = DAYS
    assert low < 0.8 * cost(128, 100, 50, "2x224", "H100").days
    assert cost(1, 800, 1, "4x224", "A6000").days * 1.25 < high
    assert cost(90, 800, 6.4, "2x224+6x96", "A6000").days > 1 > cost(91, 800, 6.4, "2x224+6x96", "A6000").days


def test_each_plan_has_the_mark_of_its_line_beside_its_bar():
    bars = panels.training_costs().figure.axes[1]
    names = [label.get_text() for label in bars.get_yticklabels()]
    beside = {
        names[int(y)]: line for line in bars.lines for y in line.get_ydata() if line.get_marker() != "<"
    }
    assert {name: (line.get_color(), line.get_marker()) for name, line in beside.items()} == STYLES


def test_alone_two_processes_see_their_blocks_only():
    z = torch.randn(2, 6, 8, generator=shifted(0))
    picture = gather_picture(z, InfoNCE(0.2))
    assert "see 60 of 132 pairs" in picture.alt and opened(picture.png).std() > 10
    assert "see 24 of 132 pairs" not in picture.alt
    assert "see 36 of 132 pairs" in gather_picture(z, InfoNCE(0.2), processes=3).alt


def test_every_view_must_find_the_full_ones():
    allowed = (torch.arange(8) < 2) & ~torch.eye(8, dtype=torch.bool)
    picture = positives_picture(allowed, full=2)
    assert picture.alt.startswith("14 of 56 ordered pairs") and opened(picture.png).std() > 10
    fewer = positives_picture(allowed[:3, :3], full=2)
    assert fewer.alt.startswith("4 of 6 ordered pairs")


def test_the_tree_is_one_that_data_loads_and_stays(tmp_path):
    path = photo_tree(tmp_path / "tree", each=8, side=48)
    train, test = (data.load(f"folder:{path}", split=split) for split in ("train", "test"))
    assert train.images.shape == (18 * 8, 3, 48, 48) and len(test) == 18 * 2
    assert train.classes == test.classes and {"cat", "moon"} < set(train.classes)
    file = path / "train" / "cat" / "0000.jpg"
    written = file.stat().st_mtime_ns
    photo_tree(path, each=8, side=48)
    assert file.stat().st_mtime_ns == written
    again = photo_tree(tmp_path / "again", each=8, side=48)
    assert (again / "train" / "cat" / "0000.jpg").read_bytes() == file.read_bytes()
    with pytest.raises(ValueError, match="side must be .* got 97; a quarter of the smallest"):
        photo_tree(tmp_path / "large", side=97)

"""The panels and pictures of notebook 12: crops are the library's, costs are the formula's."""

import numpy as np
import pytest
import torch
from conftest import shifted

from setclr import data, views
from setclr.data.patches import PHOTOGRAPHS
from setclr.experiments.kinds.image import views_of
from setclr.losses import InfoNCE
from setclr.recipes import RECIPES
from setclr.seeding import seeded
from setclr_course import panels
from setclr_course.costs import encoder_cost
from setclr_course.panels.costs.batch_tables import gather_picture, positives_picture
from setclr_course.panels.trained import multi_crop as multi
from setclr_course.panels.trained.photo_tree import photo_tree

CAT = PHOTOGRAPHS["cat"]()


def test_the_crops_are_those_of_the_recipe_and_of_their_draw():
    wanted = views_of(RECIPES["groco-table5-groco-2x224+6x96"], side=224)
    found, image = multi.crops(CAT, "as the encoder sees them"), torch.from_numpy(CAT.copy()).permute(2, 0, 1)
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
        places = multi.apart(now.boxes)
        far = np.abs(places[:, None] - places) > multi.LETTER
        assert (far.any(2) | np.eye(8, dtype=bool)).all()
        low, size = now.boxes[:, 1::-1], now.boxes[:, :1:-1]
        assert ((low < places) & (places < low + size)).all()


def test_what_small_crops_share_depends_on_the_photographs_shape():
    """Notebook 12 states how many crops share nothing with a full view, and how many lie inside one."""
    wanted = views.multi_crop("groco", full=2, local=6, size=224)
    for W, widest, nothing, inside in ((451, 0.89, (0.04, 0.055), (0.4, 0.48)),
                                       (300, 1, (0.005, 0.015), (0.52, 0.6))):  # fmt: skip
        drawn = views.draw(wanted, 4000, seeded(1))
        low = views.boxes(wanted, drawn, 300, W)
        area, high = low[..., 2:].prod(-1), low[..., :2] + low[..., 2:]
        shared = torch.minimum(high[2:, None], high[:2]) - torch.maximum(low[2:, None, :, :2], low[:2, :, :2])
        shared = shared.clamp(min=0).prod(-1).amax(1)
        assert widest - 0.01 < (area[:2] / (300 * W)).max() <= widest
        assert nothing[0] < (shared == 0).double().mean() < nothing[1]
        assert inside[0] < (shared == area[2:]).double().mean() < inside[1]


@pytest.mark.parametrize("places", [(34, 25, 80, 60), (50, 50, 50, 50), (0, 0, 100, 100)])
def test_what_two_crops_share_is_their_intersection(places):
    """Counted in pixels of a fine grid."""
    panel = panels.crop_pair(**dict(zip(("small x", "small y", "full x", "full y"), places)))
    now, inside = panel.solve(panel.values), {}
    y, x = np.mgrid[0:300:0.25, 0:451:0.25] + 0.125
    for kind, (left, top) in now.low.items():
        side = now.side[kind]
        inside[kind] = (x > left) & (x < left + side) & (y > top) & (y < top + side)
    both = inside["full"] & inside["small"]
    for kind, part in inside.items():
        assert now.share[kind] == pytest.approx(both.sum() / part.sum(), abs=0.015)
    assert inside["full"].mean() == pytest.approx(0.3, rel=0.02)


def test_a_batch_of_the_paper_keeps_some_270_gigabytes():
    kept = sum(encoder_cost("resnet50-imagenet", 1024, *plan)[1] for plan in ((2, 224), (6, 96)))
    assert kept / 1e9 == pytest.approx(270, rel=0.05)


def test_pictures_count_pairs_that_processes_see_and_views_that_must_be_found():
    z = torch.randn(2, 6, 8, generator=shifted(0))
    picture = gather_picture(z, InfoNCE(0.2))
    assert "see 60 of 132 pairs" in picture.alt
    assert "see 36 of 132 pairs" in gather_picture(z, InfoNCE(0.2), processes=3).alt
    allowed = (torch.arange(8) < 2) & ~torch.eye(8, dtype=torch.bool)
    picture = positives_picture(allowed, full=2)
    assert picture.alt.startswith("14 of 56 ordered pairs")
    assert positives_picture(allowed[:3, :3], full=2).alt.startswith("4 of 6 ordered pairs")


def test_the_tree_is_one_that_data_loads_and_stays(tmp_path):
    path = photo_tree(tmp_path / "tree", each=4, side=48)
    train, test = (data.load(f"folder:{path}", split=split) for split in ("train", "test"))
    assert train.images.shape == (18 * 4, 3, 48, 48) and len(test) == 18
    assert train.classes == test.classes and {"cat", "moon"} < set(train.classes)
    file = path / "train" / "cat" / "0000.jpg"
    written = file.stat().st_mtime_ns
    photo_tree(path, each=4, side=48)
    assert file.stat().st_mtime_ns == written
    again = photo_tree(tmp_path / "again", each=4, side=48)
    assert (again / "train" / "cat" / "0000.jpg").read_bytes() == file.read_bytes()
    with pytest.raises(ValueError, match="side must be .* got 97; a quarter of the smallest"):
        photo_tree(tmp_path / "large", side=97)

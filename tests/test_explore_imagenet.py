"""The panels and pictures of notebook 12: crops are the library's, costs are the formula's."""

import numpy as np
import pytest
import torch
from conftest import shifted
from PIL import Image
from test_explore import opened

from setclr import data, views
from setclr.data.patches import PHOTOGRAPHS
from setclr.experiments.kinds.image import views_of
from setclr.losses import InfoNCE
from setclr.recipes import RECIPES
from setclr.seeding import seeded
from setclr_course import panels
from setclr_course.costs import encoder_cost
from setclr_course.panels.costs.batch_tables import gather_picture, positives_picture
from setclr_course.panels.trained import crop_pair as pair
from setclr_course.panels.trained import multi_crop as multi
from setclr_course.panels.trained.coarse import coarse
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


def test_uncoloured_crops_are_cut_from_the_same_boxes():
    plain, seen = (multi.crops(CAT, how)[0] for how in reversed(multi.SEEN))
    np.testing.assert_array_equal(plain.boxes, seen.boxes)
    top, left, height, width = plain.boxes[0]
    photograph = Image.fromarray(CAT).crop((left, top, left + width, top + height)).resize((224, 224))
    shown = plain.pixels[0].astype(int)
    off = [np.abs(shown[:, ::turn] - np.asarray(photograph)).mean() for turn in (1, -1)]
    assert min(off) < 4 < max(off)


def test_the_panel_draws_its_boxes_and_says_their_pixels():
    panel = panels.multi_crop()
    (_, boxes, numbers), sheet = (plot["marks"] for plot in panel.scene["plots"])
    shown, found = np.transpose([boxes[way] for way in "yxvu"]), panel.solve(panel.values).boxes
    np.testing.assert_allclose(shown, np.hstack([found[:, :2], found[:, :2] + found[:, 2:]]), rtol=1e-5)
    assert [mark["kind"] for mark in sheet].count("picture") == len(numbers["said"]) == 8
    assert len(panel.scene["links"]) == 8 and "155,648 pixels, 1.55 times" in panel.alt


def test_numbers_stand_in_corners_of_their_boxes_and_not_on_one_another():
    for now in panels.multi_crop().draws["as they were cut"]:
        numbers = multi.apart(now.boxes)
        far = np.abs(numbers[:, None] - numbers) > multi.LETTER
        assert (far.any(2) | np.eye(8, dtype=bool)).all()
        low, size = now.boxes[:, 1::-1], now.boxes[:, :1:-1]
        assert ((low < numbers) & (numbers < low + size)).all()


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


def test_another_photograph():
    grey = np.full((200, 260, 3), 90, np.uint8)
    panel = panels.multi_crop(grey, colours="as they were cut")
    assert sorted(len(picture) for picture in panel.pictures.values()) == [48, 112, 200]
    assert all((picture == coarse(np.array(90))).all() for picture in panel.pictures.values())


@pytest.mark.parametrize("places", [(34, 25, 80, 60), (50, 50, 50, 50), (0, 0, 100, 100), (70, 80, 90, 20)])
def test_what_two_crops_share_is_their_intersection(places):
    """Counted in pixels of a fine grid."""
    names = ("small x", "small y", "full x", "full y")
    panel = panels.crop_pair(**dict(zip(names, places)))
    now = panel.solve(panel.values)
    y, x = np.mgrid[0:300:0.25, 0:451:0.25] + 0.125
    inside = {}
    for kind, (left, top) in now.low.items():
        side = now.side[kind]
        inside[kind] = (x > left) & (x < left + side) & (y > top) & (y < top + side)
    both = inside["full"] & inside["small"]
    for kind, part in inside.items():
        assert now.share[kind] == pytest.approx(both.sum() / part.sum(), abs=0.015)
    assert inside["full"].mean() == pytest.approx(0.3, rel=0.02)


def test_a_crop_is_the_photograph_in_its_square_and_the_common_part_is_the_same_in_all():
    panel = panels.crop_pair()
    photo, *crops = panel.scene["plots"]
    common = photo["marks"][-1]
    for (kind, (name, colour)), crop in zip(pair.KINDS.items(), crops):
        low, side = (part[kind] for part in panel.solve(panel.values)[:2])
        np.testing.assert_allclose([crop["x"], crop["y"][::-1]], np.stack([low, low + side], 1), rtol=1e-5)
        picture, frame, shared = crop["marks"]
        ends = [[mark[end] for end in "xyuv"] for mark in (picture, photo["marks"][0])]
        assert ends == [[[0], [0], [451], [300]]] * 2 and crop["title"] == name
        assert [frame["edge"], shared["edge"]] == [colour, common["edge"]]
        assert all(shared[way] == common[way] for way in "xyuv")
    ((said, over, *_),) = panel.scene["links"]
    assert said == "in both: 22% of the small crop" and [piece[0] for piece in over] == [1, 2, 0]
    apart = panel.seen({**panel.values, "area": 14, "small x": 0})
    assert not apart.scene["links"] and "Of the small crop 0%" in apart.sentence


def test_a_square_goes_where_its_middle_is_dragged():
    panel = panels.crop_pair()
    for kind, middle in (("full", (150.0, 160.0)), ("small", (300.0, 90.0))):
        panel.on_event({"event": "", "handle": kind, "x": middle[0], "y": middle[1]})
        now = panel.solve(panel.values)
        np.testing.assert_allclose(now.low[kind] + now.side[kind] / 2, middle, atol=2)  # half a percent


def test_a_batch_of_the_paper_keeps_some_270_gigabytes():
    kept = sum(encoder_cost("resnet50-imagenet", 1024, *plan)[1] for plan in ((2, 224), (6, 96)))
    assert kept / 1e9 == pytest.approx(270, rel=0.05)


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

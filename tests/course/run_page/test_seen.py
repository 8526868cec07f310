"""The page of a run that has no labels, or is of graphs or videos, and what is measured for it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import shifted
from pictures import striped
from PIL import Image
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from test_page import Seen as Read
from test_page import first_two, scenes_of
from torch import nn

from setclr import pretrain
from setclr.cli import main
from setclr.data import ImageSet
from setclr.graphs import GraphSet, load_graphs
from setclr.graphs.geometric import Data
from setclr.recipes import ImageRecipe, VideoRecipe
from setclr.video import VideoSet
from setclr_course.run_page import seen
from setclr_course.run_page.seen import COLUMNS, look, unlabelled
from setclr_course.run_page.things import drawn, pictures_of

RECIPE = ImageRecipe("InfoNCE(temperature=0.2)", data="folder:mine", views="photo", epochs=2, batch=10)
PICTURES = {"loss", "spread", "views", "nearest", "plane"}


def bare(n: int) -> ImageSet:
    return ImageSet(striped(n).images, torch.full((n,), -1), ())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("sklearn.manifold.TSNE", first_two)


def test_evaluate_says_that_it_made_the_page_of_a_run_without_labels(tmp_path, monkeypatch, capsys):
    """Through the command, on a folder whose train/ holds images alone."""
    out, place = tmp_path / "run", tmp_path / "mine/train"
    place.mkdir(parents=True)
    for i, pixels in enumerate(striped(24).images):
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(place / f"{i}.png")
    words = ["--data", f"folder:{tmp_path / 'mine'}", "--epochs", "2", "--batch", "8", "--size", "16"]
    main(["pretrain", "photo-infonce", "--out", str(out), *words])
    with pytest.raises(ValueError, match="mine must have labels to be measured, got none; `evaluate` shows"):
        main(["evaluate", str(out), "--record", str(tmp_path / "r.json")])
    capsys.readouterr()
    main(["evaluate", str(out)])
    said = capsys.readouterr().out
    assert said.splitlines()[0].split() == " ".join(COLUMNS).split()
    assert said.endswith(f"{out / 'report.html'}\n")
    read = Read((out / "report.html").read_text())
    assert not read.open and scenes_of(read)["told"].keys() == PICTURES
    for words in ("Nothing here has a label", "24 images, without labels", "views of 6 images", "others by"):
        assert words in read.text, words
    assert str(tmp_path) not in (out / "report.html").read_text() and "kNN" not in read.text


def test_what_needs_no_label_is_what_its_formulas_say():
    generator = shifted(3)
    views = torch.randn(9, 3, 2, 2, generator=generator) + torch.randn(2, 9, 3, 2, 2, generator=generator)
    weight = torch.randn(5, 12, generator=generator)
    run = SimpleNamespace(encoder=nn.Flatten(), head=nn.Linear(12, 5, bias=False))
    run.head.weight = nn.Parameter(weight)
    found = unlabelled(run, [views], 9)
    x = views.flatten(0, 1).flatten(1).double().numpy()
    x, z = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (x, x @ weight.double().numpy().T))
    a, b = z[:9], z[9:]
    chosen = linear_sum_assignment(cdist(a, b, "cosine"))[1]
    pairs = [np.exp(-2 * ((a[i] - a[j]) ** 2).sum()) for i in range(9) for j in range(i)]
    ranks = [np.linalg.svd(each, compute_uv=False) ** 2 / len(each) for each in (z, x)]
    ranks = [np.exp(-(p[p > 0] * np.log(p[p > 0])).sum()) for p in ranks]
    found_own = 100 * (chosen == np.arange(9)).mean()
    wanted = [found_own, ((a - b) ** 2).sum(1).mean(), np.log(np.mean(pairs)), *ranks]
    assert 0 < found_own < 100
    np.testing.assert_allclose([found[name] for name in COLUMNS[:3]], wanted[:3], rtol=1e-5)
    np.testing.assert_allclose([found[name] for name in COLUMNS[3:]], wanted[3:], atol=0.0051)  # two digits
    one = unlabelled(run, [views[:1]], 9)
    assert np.isnan([one["matching"], one["alignment"]]).all() and one["uniformity"] == found["uniformity"]


def test_a_thing_is_not_its_own_neighbour_and_its_twin_is(monkeypatch):
    images = bare(20)
    images.images[7] = images.images[3]
    run = pretrain(RECIPE, data=images)
    monkeypatch.setattr("setclr.experiments.kinds.image.load", lambda recipe, root: images)
    monkeypatch.setattr(seen, "SHOWN", 20)
    found = look(run, images, images, "data")
    assert sorted(found.shown.tolist()) == list(range(20)) and found.nearest.shape == (20, seen.NEAR)
    assert not (found.nearest == found.shown[:, None]).any()
    assert found.nearest[found.shown == 3, 0].item() == 7 and found.nearest[found.shown == 7, 0].item() == 3
    assert found.views.shape == (2, seen.VIEWED, seen.SIDE, seen.SIDE, 3) and list(found.table) == [*COLUMNS]


def test_graphs_have_the_page_with_their_accuracy_and_without_labels(tmp_path, capsys):
    out, own = tmp_path / "run", tmp_path / "own.pt"
    main(["pretrain", "graph-infonce", "--out", str(out), "--epochs", "1", "--width", "4"])
    capsys.readouterr()
    main(["evaluate", str(out), "--all"])
    assert capsys.readouterr().out.split()[:2] == ["svm", "matching"]
    read = Read((out / "report.html").read_text())
    assert scenes_of(read)["told"].keys() == PICTURES and "svm, %" in read.text and "kNN" not in read.text
    torch.save([{"x": one.x, "edge_index": one.edge_index} for one in load_graphs("mutag").graphs[:20]], own)
    main(["evaluate", str(out), "--data", str(own)])
    assert "Nothing here has a label" in Read((out / "report.html").read_text()).text


def test_a_drawn_graph_has_a_place_for_every_node():
    alone = Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    apart = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    ring = torch.arange(150)
    large = Data(x=torch.ones(150, 1), edge_index=torch.stack([ring, ring.roll(1)]))
    shown = [drawn(graph, 48) for graph in (alone, apart, large)]
    assert all(one.shape == (48, 48, 3) and one.min() < 200 for one in shown)
    assert np.array_equal(pictures_of(GraphSet([apart]), torch.tensor([0]), 48)[0], shown[1])


@pytest.mark.parametrize("channels", [3, 2])
def test_videos_have_the_page_and_their_frames_are_shown(channels, monkeypatch):
    clips = torch.randint(0, 256, (12, channels, 9, 16, 16), dtype=torch.uint8, generator=shifted(1))
    videos = VideoSet(clips, {}, {})
    run = pretrain(VideoRecipe("InfoNCE(0.2)", data="folder:mine", size=16, epochs=1, batch=6), data=videos)
    monkeypatch.setattr("setclr.experiments.kinds.video.load", lambda recipe, root: videos)
    monkeypatch.setattr("setclr.experiments.kinds.video.clips_of", lambda run, size: (8, 1, size, 1))
    found = look(run, videos, videos, "data")
    assert found.points.shape[0] == 12 and found.views.shape[:2] == (2, seen.VIEWED)
    picture = pictures_of(videos, torch.tensor([5]), 16)[0]
    if channels == 3:
        assert np.array_equal(picture, clips[5, :, 4].permute(1, 2, 0).numpy())
    else:
        assert picture.shape == (16, 16, 3) and picture.std() > 5

"""Images, graphs and videos side by side: one engine does for each of them what it does for the others."""

import json
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from conftest import shifted
from pictures import saved, smooth
from small_runs import killed_at, same
from torch import nn
from torch.utils.data import Dataset
from torch_geometric.nn import global_mean_pool

from setclr.cli import main
from setclr.data import ImageSet
from setclr.evaluation import svm
from setclr.experiments import Run, embed_folder, evaluate, export, load_run, pretrain, watch
from setclr.experiments.kinds import kind_of
from setclr.graphs import GraphSet, load_graphs
from setclr.losses import InfoNCE, SupCon
from setclr.recipes import GraphRecipe, ImageRecipe, Recipe, VideoRecipe
from setclr.training import ImageViews, LoaderViews, Machine, Trainer, checkpoint
from setclr.video import VideoSet
from setclr.views import preset
from setclr_course.search.campaigns import campaign
from setclr_course.search.recorded import summary

INFONCE = "InfoNCE(temperature=0.2)"
RECIPES: dict[str, Recipe] = {
    "image": ImageRecipe(INFONCE, views="photo", epochs=3, batch=16, precision="float32", hidden=32),
    "graph": GraphRecipe(INFONCE, epochs=3, batch=16),
    "video": VideoRecipe(INFONCE, epochs=3, batch=16, frames=4),
}
KINDS = pytest.mark.parametrize("kind", RECIPES)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """One penalty of the support-vector machine in the place of seven."""
    monkeypatch.setattr(svm, "PENALTIES", (1.0,))


@cache
def things(kind: str, n: int = 48) -> ImageSet | GraphSet | VideoSet:
    """n of them, made here, of two classes."""
    labels, names = torch.arange(n) % 2, ("even", "odd")
    if kind == "graph":
        whole = load_graphs("mutag")
        return whole.subset(torch.arange(len(whole)) < n)
    shape = (n, 3, 32, 32) if kind == "image" else (n, 3, 6, 32, 32)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=shifted(0))
    if kind == "image":
        return ImageSet(pixels, labels, names)
    return VideoSet(pixels, {"class": labels}, {"class": names})


class Mean(nn.Module):
    """An encoder of one's own, for each kind: 8 features."""

    def __init__(self, kind: str):
        super().__init__()
        torch.manual_seed(0)
        self.kind, self.layer = kind, nn.Linear(7 if kind == "graph" else 3, 8)

    def forward(self, x):
        if self.kind == "graph":
            return self.layer(global_mean_pool(x.x, x.batch, x.num_graphs))
        return self.layer(x.flatten(2).mean(2))


def own(kind: str) -> tuple[nn.Module, nn.Module]:
    """Encoder and head of one's own."""
    encoder = Mean(kind)
    torch.manual_seed(1)
    return encoder, nn.Linear(8, 4)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """By kind a finished run, with a checkpoint of its second epoch, and its folder."""

    @cache
    def of(kind: str) -> tuple[Run, Path]:
        out = tmp_path_factory.mktemp(kind)
        return pretrain(RECIPES[kind], out, data=things(kind), keep_every=2), out

    return of


@pytest.fixture
def here(monkeypatch):
    """Data of a kind are `things`, however they are asked for; gives the list of how often."""

    def of(kind: str) -> list:
        module, asked = kind_of(RECIPES[kind]), []
        monkeypatch.setattr(module, "load", lambda *_, **__: asked.append(1) or things(kind))
        monkeypatch.setattr(module, "labelled", lambda *_, **__: (things(kind), things(kind)))
        monkeypatch.setattr(module, "watch", lambda *_: None)
        return asked

    return of


@KINDS
def test_killed_and_resumed_is_never_killed(kind, finished, tmp_path):
    killed_at(5, lambda: pretrain(RECIPES[kind], tmp_path, data=things(kind)))  # in the second epoch
    assert checkpoint.read(tmp_path)["step"] <= 5
    assert same(pretrain(RECIPES[kind], tmp_path, data=things(kind)), finished(kind)[0])


def test_graphs_in_bf16_train_and_clips_on_a_cpu_are_refused():
    """torch 2.15's Conv3d gives NaN there, on processors that have bf16, in about half of such runs."""
    run, wide = (
        pretrain(replace(RECIPES["graph"], precision=precision, epochs=1), data=things("graph"))
        for precision in ("bf16", "float32")
    )
    assert run.precision == "bf16" and run.rows[0]["loss"] == pytest.approx(wide.rows[0]["loss"], rel=0.05)
    assert not same(run, wide)
    with pytest.raises(ValueError, match="precision must be float32 for clips on a CPU, got 'bf16': .*a GPU"):
        pretrain(replace(RECIPES["video"], precision="bf16"), data=things("video"), device="cpu")


@KINDS
def test_chunks_without_batch_statistics_change_nothing(kind):
    """As one batch, but for rounding."""
    recipe = replace(RECIPES[kind], optimiser="sgd", lr=1e-3, epochs=1)
    runs = (pretrain(replace(recipe, chunk=n), data=things(kind), models=own(kind)) for n in (None, 5))
    whole, parts = (run.encoder.state_dict() for run in runs)
    torch.testing.assert_close(whole, parts)


@KINDS
def test_ones_own_encoder_is_trained_saved_and_measured(kind, tmp_path):
    some, mine, again = things(kind), own(kind), own(kind)
    run = pretrain(replace(RECIPES[kind], epochs=1), tmp_path, data=some, models=mine)
    assert run.encoder is mine[0] and not torch.equal(again[0].layer.weight, mine[0].layer.weight)
    loaded = load_run(tmp_path, models=again)
    assert same(run, loaded)
    table = kind_of(run.recipe).evaluate(loaded, some, some)
    assert "untrained" not in table.index and table.loc["trained"].between(0, 100).all()


def test_a_trainers_run_without_a_recipe_is_loaded_measured_and_embeds(tmp_path):
    some = things("image")
    source, machine = ImageViews(some, preset("photo")), Machine(precision="float32")
    trainer = Trainer(source, *own("image"), InfoNCE(0.2), epochs=1, batch=16, device=machine)
    trainer.fit(tmp_path)
    assert not trainer.encoder.training
    with pytest.raises(ValueError, match="holds no recipe; the Trainer that wrote it goes on"):
        load_run(tmp_path)
    run = load_run(tmp_path, models=own("image"))
    assert torch.equal(run.encoder.layer.weight, trainer.encoder.layer.weight)
    assert list(evaluate(run, some, some).index) == ["raw pixels", "trained"]
    with pytest.raises(ValueError, match="size must be given: the run has no recipe"):
        embed_folder(run, tmp_path)
    photographs(tmp_path / "own")
    found, paths = embed_folder(run, tmp_path / "own", size=32)
    assert found.shape == (48, 8) and len(paths) == 48


@KINDS
def test_a_run_and_its_numbered_checkpoint_are_loaded_exported_and_begin_another(kind, finished):
    run, out = finished(kind)
    exec(export(run, out / "encoder.pt").rsplit("\n", 1)[0], made := {})  # but for the features
    assert all(map(torch.equal, made["model"].state_dict().values(), run.encoder.state_dict().values()))
    assert {path.name for path in out.glob("*.pt")} - {"encoder.pt"} == {"checkpoint.pt", "epoch-2.pt"}
    second = load_run(out / "epoch-2.pt")
    assert len(second.rows) == 2 and second.rows == run.rows[:2] and same(load_run(out), run)
    for place, wanted in ((out / "epoch-2.pt", second), (out, run)):
        main(["export", str(place)])
        for where in (place, out / "encoder.pt"):
            begun = pretrain(replace(RECIPES[kind], epochs=0, init=str(where)), data=things(kind)).encoder
            assert all(map(torch.equal, begun.state_dict().values(), wanted.encoder.state_dict().values()))
    if kind != "video":
        other = {"image": {"encoder": "resnet18"}, "graph": {"width": 8}}[kind]
        with pytest.raises(
            ValueError, match="init: .* must have the encoder.s .* of shape .*; give the folder"
        ):
            pretrain(replace(RECIPES[kind], init=str(out), **other), data=things(kind))


@KINDS
def test_data_are_loaded_once_and_a_run_is_measured_while_it_trains(kind, here):
    asked = here(kind)
    run = pretrain(RECIPES[kind], on_epoch=watch(RECIPES[kind], "data", 2))
    seen = run.history[{"image": "knn", "graph": "svm", "video": "retrieval@1"}[kind]]
    assert asked == [1] and seen.isna().tolist() == [True, False, True] and 0 <= seen[1] <= 100


@KINDS
def test_other_data_are_refused_and_moved_data_are_not(kind, tmp_path):
    """What the data are counts, not where they lie; labels may be the same."""
    places = {"image": "folder:{}", "graph": "{}/a.pt", "video": "folder:{}"}
    here, moved = (replace(RECIPES[kind], data=places[kind].format(x), epochs=1) for x in ("here", "there"))
    killed_at(2, lambda: pretrain(here, tmp_path, data=things(kind)))
    other = things(kind, 50).subset(torch.arange(50) >= 2)
    if kind == "graph":
        other = GraphSet([copy(graph).update({"x": graph.x.flip(0)}) for graph in things(kind).graphs])
    with pytest.raises(ValueError, match="was trained on 48 .*checksum .* restore the data"):
        pretrain(here, tmp_path, data=other)
    assert pretrain(moved, tmp_path, data=things(kind)).finished
    with pytest.raises(ValueError, match=r"another recipe \(data '.*there.*' there, .*here.*' now"):
        pretrain(here, tmp_path, data=other)  # a finished run does not look at the data


@KINDS
def test_labels_reach_the_loss(kind, finished):
    recipe = replace(RECIPES[kind], loss=repr(SupCon(0.2)), labels=True, images_per_class=2, epochs=1)
    run, some = pretrain(recipe, data=things(kind)), things(kind)
    assert run.rows[0]["loss"] != finished(kind)[0].rows[0]["loss"]
    if kind == "image":
        some = ImageSet(some.images, torch.full((48,), -1), ())
        with pytest.raises(ValueError, match="all images must have a label .*got 48 of 48 without"):
            pretrain(replace(recipe, images_per_class=1), data=some)


@KINDS
def test_a_campaign_records_what_it_measures_and_measures_the_same_again(kind, here, tmp_path):
    here(kind)
    path, kept = tmp_path / "good-seed1.json", []
    for _ in range(2):  # the second time the run is finished
        path.unlink(missing_ok=True)
        list(campaign({"good": replace(RECIPES[kind], epochs=1)}, (1,), tmp_path / "runs", tmp_path))
        kept.append(json.loads(path.read_text()))
    assert kept[0]["accuracy_percent"] == kept[1]["accuracy_percent"] and kept[0]["recipe"]["seed"] == 1
    assert RECIPES[kind].things in kept[0] and "| good |" in summary(tmp_path)


# ------------------------------------------------------------------------ own data, from the command line


def graphs_as_tensors(path: Path) -> str:
    graphs = [{"x": g.x, "edge_index": g.edge_index, "y": g.y} for g in things("graph", 60).graphs]
    torch.save(graphs, path.with_suffix(".pt"))
    return f"{path}.pt"


def photographs(folder: Path, test: str = "val") -> str:
    for split, name in product(("train", test), ("ant", "bee")):
        saved(folder / split / name, smooth(12, 32, 32))
    return f"folder:{folder}"


def films(folder: Path, test: str = "test") -> str:
    for n, (split, name, i) in enumerate(product(("train", test), ("ant", "bee"), range(4))):
        (folder / split / name).mkdir(parents=True, exist_ok=True)
        with av.open(str(folder / split / name / f"{n}.mp4"), "w") as file:
            stream = file.add_stream("mpeg4", rate=10, width=32, height=32)
            for k in range(8):
                pixels = np.full((32, 32, 3), 40 * i + 5 * k, np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels)))
            file.mux(stream.encode())
    return f"folder:{folder}"


OWN = {
    "photographs": ("photo-infonce", photographs, ["--batch", "8", "--size", "32"], "knn", 48),
    "tensors": ("graphs-mutag-groco", graphs_as_tensors, [], "svm", 60),
    "films": ("video-infonce", films, ["--frames", "4", "--batch", "8"], "retrieval@1", 16),
}


@pytest.mark.parametrize("what", OWN)
def test_own_data_are_trained_on_measured_recorded_embedded_and_moved(what, tmp_path, capsys):
    name, make, more, column, count = OWN[what]
    given, run = make(tmp_path / "own"), tmp_path / "run"
    main(["pretrain", name, "--out", str(run), "--device", "cpu", "--epochs", "1", "--data", given, *more])
    assert load_run(run).finished
    record = tmp_path / "results" / "own-seed0.json"
    record.parent.mkdir()
    main(["evaluate", str(run), "--device", "cpu", "--record", str(record)])
    assert column in capsys.readouterr().out
    assert set(json.loads(record.read_text())["accuracy_percent"]) >= {"untrained", "trained"}
    main(["results", str(record.parent)])
    assert "| own |" in capsys.readouterr().out
    place = Path(given.rpartition(":")[2])
    main(["embed", str(run), str(place), "--out", str(tmp_path / "features.npz"), "--device", "cpu"])
    with np.load(tmp_path / "features.npz") as found:
        assert len(found["features"]) == len(found["paths"]) == count
    moved = place.rename(place.with_name("moved" + place.suffix))
    main(["evaluate", str(run), "--device", "cpu", "--data", given.replace(str(place), str(moved))])
    assert column in capsys.readouterr().out


@pytest.mark.parametrize("what, field", [("photographs", "images"), ("films", "videos")])
def test_without_test_data_a_fifth_is_measured_and_a_line_says_so(what, field, tmp_path, capsys):
    name, make, more, *_ = OWN[what]
    given = make(tmp_path / "own", "train")
    run, record = tmp_path / "run", tmp_path / "own-seed0.json"
    main(["pretrain", name, "--out", str(run), "--device", "cpu", "--epochs", "0", "--data", given, *more])
    main(["evaluate", str(run), "--device", "cpu", "--record", str(record)])
    assert "measured on a fifth of each class, which the encoder was trained on" in capsys.readouterr().out
    assert list(json.loads(record.read_text())[field]) == ["train", "held out"]


# ------------------------------------------------------------------------------------- views made elsewhere


class Ready(Dataset):
    """Items of a transform that draws from the generators of torch and numpy, or what `form` makes."""

    def __init__(self, form="list"):
        self.form, self.targets = form, [i % 2 for i in range(24)]

    def __len__(self) -> int:
        return 24

    def __getitem__(self, i: int):
        if callable(self.form):
            return self.form(i)
        one = torch.full((3, 8, 8), i / 24) + torch.rand(1) + float(np.random.rand()) / 8
        two = torch.rand(3, 8, 8) + i / 24
        return {"list": ([one, two], i % 2), "flat": (one, two, i % 2), "bare": [one, two]}[self.form]


def ready(dataset: Dataset, workers: int = 0) -> Trainer:
    how = dict(epochs=2, batch=8, device=Machine(CPU, "float32", workers=workers))
    return Trainer(LoaderViews(dataset), *own("image"), InfoNCE(0.2), **how)


def test_ready_views_are_the_same_in_any_worker_and_form_and_resume_exactly(tmp_path):
    whole = ready(Ready())
    whole.fit()
    killed_at(4, lambda: ready(Ready()).fit(tmp_path))
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    others = [("list", 2, None), ("flat", 0, None), ("bare", 2, None), ("list", 0, tmp_path)]
    for form, workers, out in others:
        trainer = ready(Ready(form), workers)
        trainer.fit(out)
        assert same(trainer, whole)
    assert torch.equal(before[0], torch.get_rng_state()) and (before[1] == np.random.get_state()[1]).all()


@pytest.mark.parametrize("item, said", [
    (lambda i: 7, "item 0 must be a list of views, or begin with one, got int"),
    (lambda i: ([torch.zeros(3, 4, 4).byte()], 1), "a view of item 0 must be a floating tensor, got"),
    (lambda i: [torch.rand(3, 8, 8), torch.rand(3, 8, 8 + (i == 5))],
     "views must have the same shapes for all items, got .* for item 5"),
])  # fmt: skip
def test_items_that_are_no_views_are_named(item, said):
    with pytest.raises(ValueError, match=said):
        ready(Ready(item)).fit()

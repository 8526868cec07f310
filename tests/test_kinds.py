"""Images, graphs and videos side by side: one engine does for each of them what it does for the others."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from conftest import shifted
from PIL import Image
from torch import nn
from torch.utils.data import Dataset
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool

from setclr import data, experiments
from setclr.cli import main
from setclr.data import ImageSet
from setclr.experiments import campaign, load_run, pretrain, watch
from setclr.experiments.kinds import kind_of
from setclr.graphs import GraphSet, GraphViews, load_graphs
from setclr.losses import InfoNCE, SupCon
from setclr.losses.baselines import DeepCluster, DeepInfoMax, Rotation
from setclr.recipes import GraphRecipe, ImageRecipe, Recipe, VideoRecipe
from setclr.training import Batching, ImageViews, LoaderViews, Machine, Trainer
from setclr.training import trainer as engine
from setclr.training.checkpoint import alone, read
from setclr.video import VideoSet
from setclr.views import preset

INFONCE = "InfoNCE(temperature=0.2)"
RECIPES: dict[str, Recipe] = {
    "image": ImageRecipe(INFONCE, views="photo", epochs=3, batch=16, precision="float32", hidden=32),
    "graph": GraphRecipe(INFONCE, epochs=3, batch=16),
    "video": VideoRecipe(INFONCE, epochs=3, batch=16, frames=4),
}
KINDS = pytest.mark.parametrize("kind", RECIPES)
CPU = torch.device("cpu")


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


def head() -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(8, 4)


def same(a, b) -> bool:
    return all(map(torch.equal, a.encoder.state_dict().values(), b.encoder.state_dict().values()))


def dying(kind: str, out: str, step: int) -> None:
    """A run whose process is killed after so many steps, of which each wrote a checkpoint."""
    engine.CHECK_EVERY, engine.CHECKPOINT_SECONDS = 1, 0.0
    update, taken = Trainer.update, []

    def counted(self, x):
        if len(taken) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        taken.append(1)
        return update(self, x)

    Trainer.update = counted
    torch.set_num_threads(1)
    pretrain(RECIPES[kind], out, data=things(kind))


@pytest.mark.processes
@KINDS
@pytest.mark.parametrize("step", [1, 5])
def test_killed_and_resumed_is_never_killed(kind, step, tmp_path):
    process = mp.get_context("spawn").Process(target=dying, args=(kind, str(tmp_path), step))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert read(tmp_path)["step"] <= step
    whole, resumed = (pretrain(RECIPES[kind], out, data=things(kind)) for out in (None, tmp_path))
    assert same(whole, resumed) and whole.history.loss.tolist() == resumed.history.loss.tolist()


@pytest.mark.parametrize("kind", ["image", "graph"])
def test_bf16_trains(kind):
    run, wide = (
        pretrain(replace(RECIPES[kind], precision=precision, epochs=1), data=things(kind))
        for precision in ("bf16", "float32")
    )
    assert run.precision == "bf16" and run.rows[0]["loss"] == pytest.approx(wide.rows[0]["loss"], rel=0.05)
    assert not same(run, wide)


def test_clips_in_bf16_on_a_cpu_are_refused_and_the_message_says_why():
    """torch 2.15's Conv3d gives NaN there, on processors that have bf16, in about half of such runs."""
    with pytest.raises(ValueError, match="precision must be float32 for clips on a CPU, got 'bf16': .*a GPU"):
        pretrain(replace(RECIPES["video"], precision="bf16"), data=things("video"), device="cpu")


@pytest.mark.parametrize("kind", ["image", "video"])
def test_chunks_without_batch_statistics_change_nothing(kind):
    """As one batch, but for rounding."""
    recipe = replace(RECIPES[kind], optimiser="sgd", epochs=1)
    runs = [
        pretrain(replace(recipe, chunk=chunk), data=things(kind), models=(Mean(kind), head()))
        for chunk in (None, 5)
    ]
    for a, b in zip(*(run.encoder.parameters() for run in runs)):
        torch.testing.assert_close(a, b)


def test_chunks_of_graphs_are_graphs():
    recipe = replace(RECIPES["graph"], optimiser="sgd", lr=1e-3, epochs=1)
    runs = [
        pretrain(replace(recipe, chunk=chunk), data=things("graph"), models=(Mean("graph"), head()))
        for chunk in (None, 5)
    ]
    for a, b in zip(*(run.encoder.parameters() for run in runs)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("loss", [Rotation(), DeepInfoMax(), DeepCluster()], ids=repr)
def test_baselines_that_need_images_say_so_on_graphs(loss):
    source = GraphViews(things("graph"), ("same",))
    with pytest.raises(
        ValueError, match="views must be of images|encoder must begin with a map|be images in RAM"
    ):
        Trainer(source, Mean("graph"), head(), loss, epochs=1, batch=16, device=CPU).fit()


def test_graphs_are_not_compiled_and_say_why():
    with pytest.raises(ValueError, match="compiled must be False or 'auto' .* change from batch to batch"):
        pretrain(RECIPES["graph"], data=things("graph"), compiled=True)
    assert pretrain(replace(RECIPES["graph"], epochs=1), data=things("graph")).compiled is False


def test_clips_are_compiled():
    recipe = replace(RECIPES["video"], epochs=1)
    runs = [pretrain(recipe, data=things("video"), compiled=compiled) for compiled in (True, False)]
    assert runs[0].history.loss.tolist() == pytest.approx(runs[1].history.loss.tolist(), rel=1e-3)


@KINDS
def test_ones_own_encoder_is_trained_saved_and_measured(kind, tmp_path):
    some, own = things(kind), (Mean(kind), head())
    before = own[0].layer.weight.clone()
    run = pretrain(RECIPES[kind], tmp_path, data=some, models=own)
    assert run.encoder is own[0] and not torch.equal(before, own[0].layer.weight)
    again = load_run(tmp_path, models=(Mean(kind), head()))
    assert same(run, again)
    table = kind_of(run.recipe).evaluate(again, some, some)
    assert "untrained" not in table.index and table.loc["trained"].between(0, 100).all()
    experiments.export(again, tmp_path / "weights.pt")
    assert torch.load(tmp_path / "weights.pt")["layer.weight"].equal(own[0].layer.weight)


def test_a_trainers_run_without_a_recipe_is_loaded_measured_and_exported(tmp_path):
    some = things("image")
    source, machine = ImageViews(some, preset("photo")), Machine(precision="float32")
    trainer = Trainer(source, Mean("image"), head(), InfoNCE(0.2), epochs=1, batch=16, device=machine)
    trainer.fit(tmp_path)
    run = load_run(tmp_path, models=(Mean("image"), head()))
    assert torch.equal(run.encoder.layer.weight, trainer.encoder.layer.weight)
    assert list(experiments.evaluate(run, some, some).index) == ["raw pixels", "trained"]
    with pytest.raises(ValueError, match="size must be given: the run has no recipe"):
        experiments.embed_folder(run, tmp_path)
    photographs(tmp_path / "own")
    found, paths = experiments.embed_folder(run, tmp_path / "own", size=32)
    assert found.shape == (48, 8) and len(paths) == 48
    with pytest.raises(ValueError, match=r"holds no recipe; .*load_run\(out, models="):
        load_run(tmp_path)


@KINDS
def test_a_run_is_exported_and_begins_another(kind, tmp_path, capsys):
    some = things(kind)
    run = pretrain(RECIPES[kind], tmp_path / "run", data=some)
    main(["export", str(tmp_path / "run")])
    assert run.recipe.encoder in capsys.readouterr().out
    kept = torch.load(tmp_path / "run" / "encoder.pt")
    assert all(torch.equal(x, kept[name]) for name, x in run.encoder.state_dict().items())
    for where in (tmp_path / "run", tmp_path / "run" / "encoder.pt"):
        begun = pretrain(replace(RECIPES[kind], epochs=0, init=str(where)), data=some)
        assert same(run, begun)
    if kind != "video":
        other = {"image": {"encoder": "resnet18"}, "graph": {"width": 8}}[kind]
        with pytest.raises(ValueError, match="init: .*its encoder is not the recipe's"):
            pretrain(replace(RECIPES[kind], init=str(tmp_path / "run"), **other), data=some)
    with pytest.raises(FileNotFoundError, match="no checkpoint there"):
        pretrain(replace(RECIPES[kind], init=str(tmp_path / "nothing")), data=some)


@KINDS
def test_data_are_loaded_once(kind, monkeypatch):
    module, asked = kind_of(RECIPES[kind]), []
    name = {"graph": "load_graphs", "video": "load_videos"}.get(kind, "load")
    where, given = data if kind == "image" else module, things(kind)
    monkeypatch.setattr(where, name, lambda *_, **__: asked.append(1) or given)
    pretrain(replace(RECIPES[kind], epochs=0))
    assert asked == [1]


@KINDS
def test_numbered_checkpoints_stay(kind, tmp_path):
    run = pretrain(RECIPES[kind], tmp_path, data=things(kind), keep_every=2)
    assert {path.name for path in tmp_path.glob("*.pt")} == {"checkpoint.pt", "epoch-2.pt"}
    second = load_run(tmp_path / "epoch-2.pt")
    assert len(second.rows) == 2 and not same(second, run) and same(load_run(tmp_path), run)
    main(["export", str(tmp_path / "epoch-2.pt")])
    kept = torch.load(tmp_path / "encoder.pt").values()
    assert all(map(torch.equal, kept, second.encoder.state_dict().values()))
    with pytest.raises(ValueError, match="keep_every must be"):
        pretrain(RECIPES[kind], data=things(kind), keep_every=0)


@KINDS
def test_it_is_measured_while_it_trains(kind, monkeypatch):
    module = kind_of(RECIPES[kind])
    monkeypatch.setattr(module, "labelled", lambda *_, **__: (things(kind), things(kind)))
    monkeypatch.setattr(module, "watch", lambda *_: None)
    run = pretrain(RECIPES[kind], data=things(kind), on_epoch=watch(RECIPES[kind], "data", 2))
    column = {"image": "knn", "graph": "svm", "video": "retrieval@1"}[kind]
    seen = run.history[column]
    assert seen.isna().tolist() == [True, False, True] and 0 <= seen[1] <= 100


@KINDS
def test_more_epochs_for_a_finished_run_are_refused_with_the_remedy(kind, tmp_path):
    pretrain(RECIPES[kind], tmp_path, data=things(kind))
    with pytest.raises(ValueError, match=r"\(epochs 3 there, 4 now\); .*init=.* starts from its weights"):
        pretrain(replace(RECIPES[kind], epochs=4), tmp_path, data=things(kind))


@KINDS
def test_other_data_are_refused_and_moved_data_are_not(kind, tmp_path):
    """What the data are counts, not where they lie."""
    places = {"image": "folder:{}", "graph": "tu:{}", "video": "folder:{}"}

    def stop(run) -> None:
        if len(run.rows) == 1:
            raise KeyboardInterrupt

    here = replace(RECIPES[kind], data=places[kind].format("here"))
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
        pretrain(here, tmp_path, data=things(kind), on_epoch=stop)
    other = things(kind, 50).subset(torch.arange(50) >= 2)
    with pytest.raises(ValueError, match="was trained on 48 .*checksum .* restore the data"):
        pretrain(here, tmp_path, data=other)
    moved = replace(here, data=places[kind].format("there"))
    assert pretrain(moved, tmp_path, data=things(kind)).finished
    with pytest.raises(ValueError, match=r"another recipe \(data '.*there' there, .*here' now"):
        pretrain(here, tmp_path, data=other)  # a finished run does not look at the data


@KINDS
def test_labels_reach_the_loss(kind):
    recipe = replace(RECIPES[kind], loss=repr(SupCon(0.2)), labels=True, images_per_class=2)
    run, plain = (pretrain(one, data=things(kind)) for one in (recipe, RECIPES[kind]))
    assert run.history.loss.tolist() != plain.history.loss.tolist()
    some = things(kind)
    if kind == "image":
        some = ImageSet(some.images, torch.full((48,), -1), ())
        with pytest.raises(ValueError, match="all images must have a label .*got 48 of 48 without"):
            pretrain(replace(recipe, images_per_class=1), data=some)


@KINDS
def test_a_campaign_resumes_leaves_out_what_is_damaged_and_goes_on_where_one_diverges(
    kind, tmp_path, monkeypatch
):
    module, recipe = kind_of(RECIPES[kind]), replace(RECIPES[kind], epochs=1)
    monkeypatch.setattr(module, "load", lambda recipe, root, given=None: things(kind))
    monkeypatch.setattr(module, "labelled", lambda *_, **__: (things(kind), things(kind)))
    monkeypatch.setattr(module, "watch", lambda *_: None)
    recipes = {"bad": replace(recipe, lr=1e18, loss="NTLogistic()", optimiser="sgd"), "good": recipe}
    said = list(campaign(recipes, (0, 1), tmp_path / "runs", tmp_path))
    assert (
        sum("lower lr" in line for line in said) == 2 and sum(line.startswith("good") for line in said) == 2
    )
    path = tmp_path / "good-seed0.json"
    kept = json.loads(path.read_text())
    assert kept["recipe"]["seed"] == 0 and kept["version"] and recipe.things in kept
    path.write_text("{")
    said = list(campaign({"good": recipe}, (0, 1), tmp_path / "runs", tmp_path))
    assert "is damaged" in said[0] and said[1].endswith("recorded before")
    path.unlink()
    said = list(campaign({"good": recipe}, (0,), tmp_path / "runs", tmp_path))
    assert json.loads(path.read_text())["accuracy_percent"] == kept["accuracy_percent"]
    assert "| good |" in experiments.summary(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file must be a folder that can be written .*choose another"):
        next(campaign({"good": recipe}, (0,), tmp_path / "runs", tmp_path / "file"))


@KINDS
def test_two_campaigns_at_once_do_not_train_one_run_twice(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(kind_of(RECIPES[kind]), "load", lambda recipe, root, given=None: things(kind))
    other = alone(tmp_path / "runs" / "a-seed0")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(other.__enter__).result()
        (said,) = campaign({"a": RECIPES[kind]}, (0,), tmp_path / "runs", tmp_path)
        thread.submit(other.__exit__, None, None, None).result()
    assert "left to another" in said and not list(tmp_path.glob("*.json"))


# ------------------------------------------------------------------------ own data, from the command line


def graphs_as_tensors(path: Path) -> str:
    torch.save([{"x": g.x, "edge_index": g.edge_index, "y": g.y} for g in things("graph", 60).graphs], path)
    return str(path)


def graphs_as_text(folder: Path) -> str:
    """In the TU collection's form: nodes are numbered from 1 over all graphs."""
    folder.mkdir()
    edges, of, kinds, labels, first = [], [], [], [], 1
    for i, g in enumerate(things("graph", 60).graphs, 1):
        edges += [f"{a + first}, {b + first}" for a, b in g.edge_index.T.tolist()]
        of += [str(i)] * g.num_nodes
        kinds += [str(int(k)) for k in g.x.argmax(1)]
        labels.append(str(int(g.y)))
        first += g.num_nodes
    parts = {"A": edges, "graph_indicator": of, "node_labels": kinds, "graph_labels": labels}
    for part, lines in parts.items():
        (folder / f"OWN_{part}.txt").write_text("\n".join(lines) + "\n")
    return f"tu:{folder}"


def photographs(folder: Path, splits=("train", "val")) -> str:
    pixels = torch.randint(0, 256, (48, 32, 32, 3), dtype=torch.uint8, generator=shifted(1)).numpy()
    for i, image in enumerate(pixels):
        place = folder / splits[i % len(splits)] / ("ant", "bee")[i // 2 % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{i}.png")
    return f"folder:{folder}"


def films(folder: Path, splits=("train", "test")) -> str:
    for i in range(24):
        place = folder / splits[i % 2] / ("ant", "bee")[i // 2 % 2]
        place.mkdir(parents=True, exist_ok=True)
        with av.open(str(place / f"{i}.mp4"), "w") as file:
            stream = file.add_stream("mpeg4", rate=10)
            stream.width = stream.height = 32
            for k in range(8):
                pixels = np.full((32, 32, 3), 20 * (i % 8) + 5 * k, np.uint8)
                for packet in stream.encode(av.VideoFrame.from_ndarray(pixels)):
                    file.mux(packet)
            for packet in stream.encode():
                file.mux(packet)
    return f"folder:{folder}"


OWN = {
    "photographs": ("photo-infonce", photographs, ["--batch", "8", "--size", "32"], "knn"),
    "tensors": ("graphs-mutag-groco", lambda path: graphs_as_tensors(path.with_suffix(".pt")), [], "svm"),
    "text files": ("graphs-mutag-groco", graphs_as_text, [], "svm"),
    "films": ("moving-rgb-infonce", films, ["--frames", "4", "--batch", "8"], "retrieval@1"),
}


@pytest.mark.parametrize("what", OWN)
def test_own_data_are_trained_on_measured_recorded_embedded_and_moved(what, tmp_path, capsys):
    name, make, more, column = OWN[what]
    given, run = make(tmp_path / "own"), tmp_path / "run"
    words = ["--out", str(run), "--device", "cpu", "--epochs", "1", "--data", given, *more]
    main(["pretrain", name, *words])
    assert load_run(run).finished
    record = tmp_path / "results" / "own-seed0.json"
    record.parent.mkdir()
    main(["evaluate", str(run), "--device", "cpu", "--record", str(record)])
    assert column in capsys.readouterr().out
    kept = json.loads(record.read_text())
    assert set(kept["accuracy_percent"]) >= {"untrained", "trained"}
    main(["results", str(record.parent)])
    assert "| own |" in capsys.readouterr().out
    place = Path(given.rpartition(":")[2])
    main(["embed", str(run), str(place), "--out", str(tmp_path / "features.npz"), "--device", "cpu"])
    with np.load(tmp_path / "features.npz") as found:
        assert (
            len(found["features"])
            == len(found["paths"])
            == {"graph": 60, "video": 24, "image": 48}[load_run(run).recipe.kind]
        )
    moved = place.rename(place.with_name("moved" + place.suffix))
    there = given.replace(str(place), str(moved))
    main(["evaluate", str(run), "--device", "cpu", "--data", there])
    assert column in capsys.readouterr().out


def test_a_flat_tree_and_a_file_of_graphs_may_be_moved(tmp_path):
    digests = []
    for place in ("here", "there"):
        for i in range(8):
            (tmp_path / place).mkdir(exist_ok=True)
            Image.new("RGB", (32, 32), (i, i, i)).save(tmp_path / place / f"{i}.png")
        digests.append(data.load(f"folder:{tmp_path / place}", stream=True).digest())
    assert digests[0] == digests[1]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
        stop = lambda run: (_ for _ in ()).throw(KeyboardInterrupt) if run.rows else None  # noqa: E731
        pretrain(replace(RECIPES["graph"], data="a.pt"), tmp_path, data=things("graph"), on_epoch=stop)
    assert pretrain(replace(RECIPES["graph"], data="b/a.pt"), tmp_path, data=things("graph")).finished


def test_a_flat_tree_is_listed_and_graphs_without_labels_are_not_measured(tmp_path, capsys):
    for i in range(8):
        (tmp_path / "flat").mkdir(exist_ok=True)
        Image.new("RGB", (32, 32), (i, i, i)).save(tmp_path / "flat" / f"{i}.png")
    main(["data", f"folder:{tmp_path / 'flat'}", "--verify"])
    assert "8 images" in capsys.readouterr().out
    path = tmp_path / "own.pt"
    torch.save([{"x": g.x, "edge_index": g.edge_index} for g in things("graph").graphs], path)
    with pytest.raises(ValueError, match="graphs must have labels to be measured, got none"):
        watch(replace(RECIPES["graph"], data=str(path)), "data", 1)


@pytest.mark.parametrize("name, make", [("photo-infonce", photographs), ("moving-rgb-infonce", films)])
def test_without_test_data_a_fifth_is_measured_and_a_line_says_so(name, make, tmp_path, capsys):
    given = make(tmp_path / "own", ("train", "train"))
    more = OWN["films" if make is films else "photographs"][2]
    run, record = tmp_path / "run", tmp_path / "own-seed0.json"
    main(["pretrain", name, "--out", str(run), "--device", "cpu", "--epochs", "0", "--data", given, *more])
    main(["evaluate", str(run), "--device", "cpu", "--record", str(record)])
    assert "measured on a fifth of each class, which the encoder was trained on" in capsys.readouterr().out
    kept = json.loads(record.read_text())
    assert list(next(kept[key] for key in ("images", "videos") if key in kept)) == ["train", "held out"]


def test_numbers_that_graphs_would_lose_are_refused(tmp_path):
    one = things("graph", 4).graphs[0]
    for key in ("edge_attr", "edge_weight"):
        with pytest.raises(ValueError, match=rf"graphs\[0\] has {key}, which would not be used; delete it"):
            GraphSet([Data(x=one.x, edge_index=one.edge_index, **{key: torch.ones(one.num_edges)})])
    path = tmp_path / "own.pt"
    torch.save([{"x": one.x, "edge_index": one.edge_index, "edge_attr": torch.ones(one.num_edges)}], path)
    with pytest.raises(ValueError, match=r"own.pt: graphs\[0\] has edge_attr, which would not be used"):
        load_graphs(str(path))
    torch.save([one], path)
    with pytest.raises(ValueError, match="own.pt must hold plain tensors .*not Data objects"):
        load_graphs(str(path))
    torch.save({"x": one.x}, path)
    with pytest.raises(ValueError, match="own.pt must hold a list of dicts .*got dict"):
        load_graphs(str(path))
    torch.save([{"x": one.x, "edge_index": one.edge_index, "y": 1}], path)
    with pytest.raises(ValueError, match=r"graphs\[0\].y must be a tensor, got int; torch.tensor makes one"):
        load_graphs(str(path))
    torch.save([{"x": one.x, "edge_index": torch.tensor([[0], [1]])}], path)
    with pytest.raises(ValueError, match=r"graphs\[0\] has a one-way edge; to_undirected"):
        load_graphs(str(path))
    folder = tmp_path / "text"
    given = graphs_as_text(folder)
    assert load_graphs(given).labels.equal(things("graph", 60).labels)
    (folder / "OWN_edge_labels.txt").write_text("1\n")
    with pytest.raises(ValueError, match="OWN_edge_labels.txt would not be used; move it away"):
        load_graphs(given)
    with pytest.raises(FileNotFoundError, match="must hold one file NAME_A.txt, got 0"):
        load_graphs(f"tu:{tmp_path}")
    with pytest.raises(FileNotFoundError, match="nowhere.pt is missing"):
        load_graphs(str(tmp_path / "nowhere.pt"))
    with pytest.raises(ValueError, match=r"num_nodes must be that of x, .*, got 99"):
        GraphSet([Data(x=one.x, edge_index=one.edge_index, num_nodes=99)])


# ------------------------------------------------------------------------------------- views made elsewhere


class Ready(Dataset):
    """Items as a transform makes them that draws from the generators of torch, numpy and Python."""

    def __init__(self, form: str = "list", n: int = 24):
        self.form, self.n, self.targets = form, n, [i % 2 for i in range(n)]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int):
        one = torch.full((3, 8, 8), i / self.n) + torch.rand(1) + float(np.random.rand()) / 8
        two = torch.rand(3, 8, 8) + i / self.n
        return {"list": ([one, two], i % 2), "flat": (one, two, i % 2), "bare": [one, two]}[self.form]


def own(source, epochs: int = 2, **more) -> Trainer:
    machine = Machine(CPU, "float32", workers=more.pop("workers", 0))
    return Trainer(
        source, Mean("image"), head(), InfoNCE(0.2), epochs=epochs, batch=8, device=machine, **more
    )


@pytest.mark.parametrize("form", ["list", "flat", "bare"])
@pytest.mark.parametrize("workers", [0, 2])
def test_ready_views_are_the_same_in_any_worker_and_form(form, workers):
    trainer = own(LoaderViews(Ready(form)), workers=workers)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    rows = trainer.fit()
    assert torch.equal(before[0], torch.get_rng_state()) and (before[1] == np.random.get_state()[1]).all()
    assert [row["loss"] for row in rows] == [row["loss"] for row in own(LoaderViews(Ready())).fit()]


def test_ready_views_resume_exactly(tmp_path):
    whole = own(LoaderViews(Ready()), 4)
    whole.fit()

    def stop(trainer) -> None:
        if len(trainer.rows) == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
        own(LoaderViews(Ready()), 4).fit(tmp_path, on_epoch=stop)
    resumed = own(LoaderViews(Ready()), 4)
    resumed.fit(tmp_path)
    assert torch.equal(whole.encoder.layer.weight, resumed.encoder.layer.weight)


def test_views_of_several_sizes_go_through_the_encoder_size_by_size():
    class Crops(Ready):
        def __getitem__(self, i: int):
            return [torch.rand(3, side, side) for side in (8, 4, 8, 4)]

    groups = next(own(LoaderViews(Crops())).view_batches)
    assert [tuple(x.shape) for x in groups] == [(2, 8, 3, 8, 8), (2, 8, 3, 4, 4)]


@pytest.mark.parametrize(
    "item, said",
    [
        (7, "item 0 must be a list of views, or begin with one, got int"),
        ((), "item 0 must be a list of views"),
        (
            ([torch.zeros(3, 4, 4).byte()], 1),
            r"a view of item 0 must be a floating tensor, got \(3, 4, 4\) of",
        ),
        (["a", "b"], "item 0 must be a list of views, or begin with one, got list"),
    ],
)
def test_items_that_are_no_views_are_named(item, said):
    class Odd(Ready):
        def __getitem__(self, i: int):
            return item

    with pytest.raises(ValueError, match=said):
        LoaderViews(Odd())


def test_views_of_unlike_shapes_and_an_error_of_the_dataset_are_named():
    class Odd(Ready):
        def __getitem__(self, i: int):
            if self.form == "error" and i:
                raise KeyError("no such file")
            return [torch.rand(3, 8, 8), torch.rand(3, 8, 8 + (i == 5))]

    with pytest.raises(ValueError, match=r"views must have the same shapes for all items, got .* for item 5"):
        own(LoaderViews(Odd())).fit()
    with pytest.raises(KeyError, match="item .* of Odd raised KeyError: .*no such file"):
        own(LoaderViews(Odd("error")), workers=1).fit()
    with pytest.raises(
        ValueError, match="this Dataset gives several views; wrap it in setclr.training.LoaderViews"
    ):
        data.image_set(Ready("flat"))
    with pytest.raises(ValueError, match="dataset must be an ImageSet, or a Dataset with a length"):
        LoaderViews(5)


def test_several_of_a_class_stand_together_in_ready_views():
    trainer = own(LoaderViews(Ready()), labels=True)
    assert trainer.batches.batch == 8
    grouped = Trainer(LoaderViews(Ready()), Mean("image"), head(), SupCon(0.2), epochs=1, labels=True,
                      batch=Batching(8, images_per_class=4), device=Machine(CPU, "float32"))  # fmt: skip
    for batch in grouped.batches.of(0):
        assert (batch % 2).view(-1, 4).float().std(1).eq(0).all()

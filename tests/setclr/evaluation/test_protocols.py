"""How the papers measure: their numbers, and each probe on views against plain torch."""

import json
import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from conftest import a_record
from pictures import saved, smooth, striped
from PIL import Image
from torch import nn
from torchvision import transforms

from setclr import models
from setclr.cli import main
from setclr.data import ImageSet
from setclr.evaluation import features, knn, linear_probe, protocols
from setclr.evaluation.protocols import OWN, OnFeatures
from setclr.experiments import evaluate, new_run
from setclr.experiments.kinds.image import labelled
from setclr.experiments.records import read_records
from setclr.recipes import PUBLISHED, RECIPES, ImageRecipe, registry
from setclr.training.optimisers import LARS
from setclr.training.source import Batches, Batching
from setclr.views import View
from setclr_course.papers import probes
from setclr_course.papers import protocols as of_papers
from setclr_course.papers.protocols import OnViews
from setclr_course.run_page.measured import evaluate_all
from setclr_course.search.recorded import ours

WHOLE = View(scale=(1, 1), ratio=(1, 1), flip=0, jitter_p=0, grey=0)
PROTOCOLS = protocols.known_protocols()
ON_VIEWS = {name: PROTOCOLS[name].probe for name in ("groco", "iot-moco", "mmcl", "mmcl-imagenet")}


def test_numbers_that_follow_from_the_papers_rules():
    groco, mmcl = PROTOCOLS["groco"], PROTOCOLS["mmcl-imagenet"]
    assert groco.probe.lr == mmcl.probe.lr == 0.1 * 4096 / 256
    assert mmcl.probe.epochs == round(28_080 * 4096 / 1_281_167)
    assert PROTOCOLS["mmcl-imagenet100"].probe.epochs == round(3_902 * 4096 / 126_689)
    assert groco.centre == mmcl.centre == 224 / 256 == 0.875  # the fraction that MMCL's program crops to
    assert (groco.ks, groco.temperature, PROTOCOLS["mmcl"].ks) == ((1, 10, 20), 0.07, (200,))
    assert replace(groco, projection=True) == PROTOCOLS["groco-projection"] and groco.top5
    assert PROTOCOLS["simclr-cifar10"].temperature > 100, "a vote each"
    of_torchvision = View(scale=(0.08, 1), ratio=(3 / 4, 4 / 3), flip=0.5, jitter_p=0, grey=0)
    assert replace(of_torchvision, jitter=of_papers.CROP.jitter) == of_papers.CROP


def test_rows_of_a_paper_go_by_its_protocol_and_other_recipes_by_our_own():
    of = {name: registry.protocol_of(name) for name in RECIPES if RECIPES.kind(name) == "image"}
    assert set(of.values()) == set(PROTOCOLS)
    rows = {name: row for name, row in PUBLISHED.items() if RECIPES.kind(name) == "image"}
    assert all(of[name].split("-")[0] == name.split("-")[0] for name in rows)
    beside = {name.split("-")[0] for name, by in of.items() if by != OWN and name not in rows}
    assert beside <= {"claim", "column", "variant", "small", "simclr"}
    assert of["compare-conv4-groco"] == OWN == registry.protocol_of("any-other")
    assert (of["column-conv4-cifar10-groco"], of["iot-table5-cifar10-infonce"]) == ("qare", "iot-moco")
    photographs = {"imagenet": "mmcl-imagenet", "imagenet100": "mmcl-imagenet100"}
    for name, row in rows.items():
        if name.startswith("mmcl-"):
            assert of[name] == photographs.get(RECIPES[name].data, "mmcl"), name
        printed = {x for x in row.numbers if x.startswith(("knn", "linear"))}
        assert printed <= set(PROTOCOLS[of[name]].columns), name


def oracle(how: OnViews, encoder: nn.Module, train: ImageSet, seed: int) -> nn.Linear:
    """The classifier in plain torch, on whole images."""
    torch.manual_seed(seed)
    layer = nn.Linear(64, len(train.classes))
    if how.spread is not None:
        nn.init.normal_(layer.weight, std=how.spread), nn.init.zeros_(layer.bias)
    kinds = {"lars": (LARS, {"lr": 0.0}), "sgd": (torch.optim.SGD, {"momentum": 0.9}),
             "adam": (torch.optim.Adam, {"weight_decay": 1e-6})}  # fmt: skip
    kind, settings = kinds[how.optimiser]
    optimiser, encoder = kind(list(layer.parameters()), **settings), encoder.eval()
    batches = Batches(train.labels, Batching(how.batch), seed)
    for step in range(how.epochs * len(batches)):
        epoch, position = divmod(step, len(batches))
        index = batches.of_epoch(epoch)[position]
        factors = {"constant": 1.0, "cosine": (1 + math.cos(math.pi * epoch / how.epochs)) / 2,
                   "linear": 1 - step / (how.epochs * len(batches)),
                   "tenths": [1, 1, 1, 0.1, 0.01][epoch]}  # fmt: skip
        optimiser.param_groups[0]["lr"] = how.lr * factors[how.schedule]
        optimiser.zero_grad()
        with torch.no_grad():
            seen = encoder(train.images[index].float() / 255)
        nn.functional.cross_entropy(layer(seen), train.labels[index]).backward()
        optimiser.step()
    return layer


@pytest.mark.parametrize("name", ON_VIEWS)
def test_each_probe_on_views_is_the_papers_optimiser_in_plain_torch(name):
    """Five epochs of whole images, in batches of 20 of 70."""
    how, encoder = replace(ON_VIEWS[name], view=WHOLE, batch=20, epochs=5), models.encoder("conv4")[0]
    train, test = striped(70, "abcdefg"), striped(50, "abcdefg")
    found = probes.probe_on_views(encoder, train, test, how, seed=2)
    scores = oracle(how, encoder, train, 2)(features(encoder, test.images)).detach().double()
    assert found.shape == (50, 5) and encoder.training is False
    ranks = scores.topk(5).indices
    within = 1e-4 * float(scores.abs().max())  # float32 keeps 7 digits; 15 steps and another BLAS cost some
    torch.testing.assert_close(scores.gather(1, found), scores.gather(1, ranks), rtol=0, atol=within)


@pytest.mark.parametrize("name", ["groco", "mmcl"])
def test_views_are_new_in_every_epoch_and_the_encoder_stays_as_it_was(name):
    encoder, train, seen = models.encoder("conv4")[0], striped(40), []
    encoder[1].train(), encoder[4].eval()
    before = {key: x.clone() for key, x in encoder.state_dict().items()}
    modes = [module.training for module in encoder.modules()]

    def look(module, x):
        assert not any(part.training for part in module.modules())
        if x[0].device.type != "meta":  # on which costs are counted
            seen.append(x[0].clone())

    encoder.register_forward_pre_hook(look)
    how = replace(ON_VIEWS[name], epochs=2, view=replace(ON_VIEWS[name].view, size=12))
    with torch.no_grad():  # as one may call it
        a, b = (probes.probe_on_views(encoder, train, striped(9), how, seed) for seed in (0, 0))
    views = [x for x in seen if x.shape == (40, 3, 12, 12)]  # fewer images than a batch are one
    assert len(views) == 4 and torch.equal(views[0], views[2]) and torch.equal(views[1], views[3])
    assert not torch.equal(views[0].sort(0).values, views[1].sort(0).values) and torch.equal(a, b)
    assert all(torch.equal(x, before[key]) for key, x in encoder.state_dict().items())
    assert [module.training for module in encoder.modules()] == modes
    assert all(p.grad is None and p.requires_grad for p in encoder.parameters())


@pytest.fixture
def short(monkeypatch):
    """One epoch for each probe, of the project's own protocols and of the papers'."""
    for known in (protocols.PROTOCOLS, of_papers.PROTOCOLS):
        for name, how in known.items():
            monkeypatch.setitem(known, name, replace(how, probe=replace(how.probe, epochs=1)))


def percent(found: torch.Tensor, test: ImageSet):
    """How many of these classes are right."""
    return pytest.approx(100 * float((found == test.labels).float().mean()))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_gives_its_columns(name, short):
    """A projection's votes are those of the head's outputs."""
    run, train, test = new_run(ImageRecipe("InfoNCE()"), 3), striped(240, "abcdefgh"), striped(40, "abcdefgh")
    how, table = protocols.known_protocols()[name], evaluate(run, train, test, protocol=name)
    assert list(table.columns) == how.columns and list(table.index) == ["raw pixels", "untrained", "trained"]
    encoders = {"-projection": nn.Sequential(run.encoder, run.head)} if how.projection else {}
    for more, encoder in (encoders | {"": run.encoder}).items():
        bank, queries = (features(encoder, split.images) for split in (train, test))
        for k in how.ks[-1:] if more else how.ks:  # of equal cosines either may come first
            column = table[how.column(k) + more]
            assert column["trained"] == percent(knn(bank, train.labels, queries, k, how.temperature), test)
            assert column.notna().sum() == (1 if more else 3)
    for column, probe in how.probes.items():
        if isinstance(probe, OnFeatures):
            found = linear_probe(bank, train.labels, queries, **vars(probe))
            assert table.loc["untrained", column] == table.loc["trained", column]
        else:
            ranked = probes.probe_on_views(run.encoder, train, test, probe)
            found = ranked[:, 0]
            assert math.isnan(table.loc["untrained", column])
        assert table.loc["trained", column] == percent(found, test)
    if how.top5:
        within = (ranked == test.labels[:, None]).any(1)
        assert table.loc["trained", "linear-top5"] == percent(torch.where(within, test.labels, -1), test)


def test_a_run_on_labels_has_its_own_classifiers_accuracy():
    recipe = ImageRecipe("Supervised()", views="photo", full_views=1, embedding=3, layers=1)
    run, train, test = new_run(recipe, 3), striped(60), striped(30)
    table = evaluate(run, train, test)
    with torch.no_grad():
        outputs = run.head.eval()(run.encoder.eval()(test.images.float() / 255))
    assert table.loc["trained", "classifier"] == percent(outputs.argmax(1), test)
    assert list(table.columns) == ["knn", "linear", "classifier"]


def test_photographs_are_resized_and_cropped_to_the_centre_as_by_torchvision(tmp_path, monkeypatch):
    """Square files of 64 px, from which full views of 14 px are cut."""
    for i, place in enumerate(("train/cat", "train/dog", "val/cat", "val/dog")):
        saved(tmp_path / place, smooth(3, seed=i))
    recipe = ImageRecipe("InfoNCE()", data=f"folder:{tmp_path}", view_size=14, batch=4)
    monkeypatch.setitem(of_papers.PROTOCOLS, "groco", replace(PROTOCOLS["groco"], ks=(3,), centre=14 / 16))
    train, test = labelled(recipe, protocol="groco")
    assert test.images.shape == (6, 3, 16, 16) and labelled(recipe)[1].images.shape == (6, 3, 14, 14)
    run, seen = new_run(recipe, 3), []
    run.encoder[0].register_forward_pre_hook(lambda module, x: seen.append(x[0].clone()))
    evaluate(run, train, test, linear=False, protocol="groco")
    both = transforms.Compose([transforms.Resize(16), transforms.CenterCrop(14), transforms.ToTensor()])
    files = sorted((tmp_path / "val").glob("*/*.png"))
    assert torch.equal(seen[-1], torch.stack([both(Image.open(file)) for file in files]))


GROCO = "groco-table5-groco-2x224"


def test_ours_stand_beside_the_published_only_where_the_protocol_is_the_same(tmp_path, monkeypatch, capsys):
    (tmp_path / "data" / "results").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    untrained, trained = {"knn10": 10.0, "knn20": 11.0}, {"knn10": 30.0, "knn20": 31.0}
    own = "linear 60.0, knn10 30.0, knn20 31.0 (50 images)"
    for by, linear, there in ((None, 1.0, "-"), ("qare", 2.0, "-"), ("groco", 60.0, own)):
        measured = {"untrained": untrained, "trained": trained | {"linear": linear}}
        kept = a_record(RECIPES[GROCO].to_dict(), epochs=RECIPES[GROCO].epochs, accuracy_percent=measured)
        (tmp_path / f"data/results/{by}.json").write_text(json.dumps(kept | ({"protocol": by} if by else {})))
        main(["recipes", GROCO])
        first, *rest = capsys.readouterr().out.splitlines()
        assert first.split("ours: ")[1] == there and "  protocol: groco" in rest
    by = partial(ours, RECIPES[GROCO], read_records(tmp_path / "data/results")[0].values())
    assert by() == "linear 1.0 (50 images)", "records without the field are our own's"
    assert by("groco", ("mAP",)) == "-", "what was published was not measured"


def test_the_command_measures_and_records_by_the_protocol_it_names(tmp_path, short, monkeypatch, capsys):
    monkeypatch.setattr("setclr.data.load", lambda name, root, split, size: striped(40, side=8))
    new_run(ImageRecipe("InfoNCE()"), 3).save(tmp_path / "run")
    main(["evaluate", str(tmp_path / "run"), "--protocol", "groco", "--record", str(tmp_path / "r.json")])
    assert "knn20  linear  linear-top5" in capsys.readouterr().out
    kept = json.loads((tmp_path / "r.json").read_text())
    assert kept["protocol"] == "groco"
    assert list(kept["accuracy_percent"]["trained"]) == PROTOCOLS["groco"].columns


@pytest.mark.parametrize("words, message", [
    (["evaluate", "x", "--protocol", "grocco"], "protocol must be one of 'setclr', .* did you mean 'groco'"),
    (["evaluate", "x", "--protocol", "qare", "--all"], "one of 'setclr', got 'qare'; --all is"),
])  # fmt: skip
def test_other_protocols_are_refused_before_anything_is_done(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        main(words)
    assert not list(tmp_path.iterdir()) and protocols.OWN in PROTOCOLS


@pytest.mark.parametrize("evaluation", [evaluate, evaluate_all])
@pytest.mark.parametrize("train, test, message", [
    ("ab", "a", r"test must have the classes of train; they differ in b\. .*matching_accuracy"),
    ("a", "abc", r"test must have the classes of train; they differ in b, c\."),
    ("ab", "ba", r"test must have the classes of train; they differ in their order\."),
    ("ba", "ba", "train must have images of 'a', got none, and test has some; add them"),
])  # fmt: skip
def test_splits_of_different_classes_are_named(evaluation, train, test, message):
    sets = [replace(striped(2), labels=torch.tensor([0, last]), classes=tuple(names))
            for names, last in ((train, 0), (test, len(test) - 1))]  # fmt: skip
    with pytest.raises(ValueError, match=message):
        evaluation(new_run(ImageRecipe("InfoNCE()"), 3), *sets)

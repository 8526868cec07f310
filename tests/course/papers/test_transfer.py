"""Transfer: torchvision's own readers on made folders, few shots against scikit-learn's centroids, the
table against its parts, and what cannot be had.

The real sets are not downloaded here.
"""

import inspect
import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat
from sklearn.metrics import recall_score
from sklearn.neighbors import NearestCentroid
from torch.nn import functional as F
from torchvision import datasets

from setclr import data
from setclr.data import ImageSet
from setclr.data.photographs import Photographs
from setclr.evaluation import features, knn, linear_probe
from setclr.experiments.run import Run, new_run
from setclr.recipes import ImageRecipe
from setclr.views.pixels import grey
from setclr_course.papers import few_shot, fine_tune
from setclr_course.papers.average_precision import average_precision_11, knn_scores, mean_average_precision
from setclr_course.papers.benchmarks import BENCHMARKS, VOC, dealt, whole
from setclr_course.papers.shots import draw_episodes
from setclr_course.papers.transfers import AnyImages, accuracy, few_shot_transfer, labelled_pair, transfer

RECIPE = ImageRecipe("InfoNCE()", view_size=16)
COLOURS = [(200, 40, 40), (40, 200, 40), (40, 40, 200)]
serial = itertools.count()


def pictures(folder: Path, labels: dict[str, int]) -> None:
    """Pictures with these names, each of its class's colour and of a size of its own."""
    for name, label in labels.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        noise = numpy_shifted(next(serial)).integers(-30, 30, (20 + label, 24, 3))
        Image.fromarray((np.array(COLOURS[label % 3]) + noise).astype(np.uint8)).save(folder / name)


def lines(path: Path, *text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")


def made_folder(root: Path) -> str:
    """A folder:PATH of classes red, green and blue."""
    for split, count in (("train", 8), ("val", 4)):
        for label, name in enumerate(("red", "green", "blue")):
            pictures(root / split / name, {f"{i}.png": label for i in range(count)})
    return f"folder:{root}"


# The sets as torchvision reads them: each made with the files of its own layout, and what it must hold then:
# classes, and the labels of both splits.


def aircraft(root: Path):
    place, kinds = root / "fgvc-aircraft-2013b" / "data", ("A 300", "B 52")
    lines(place / "variants.txt", *kinds)
    for split, ids in (("trainval", range(3)), ("test", range(3, 5))):
        lines(place / f"images_variant_{split}.txt", *(f"{i} {kinds[i % 2]}" for i in ids))
        pictures(place / "images", {f"{i}.jpg": i % 2 for i in ids})
    return kinds, [0, 1, 0], [1, 0]


def caltech101(root: Path):
    place = root / "caltech101" / "101_ObjectCategories"
    for label, (name, count) in enumerate({"ant": 33, "bass": 31}.items()):
        pictures(place / name, {f"image_{i + 1:04d}.jpg": label for i in range(count)})
    (place / "BACKGROUND_Google").mkdir()
    return ("ant", "bass"), [0] * 30 + [1] * 30, [0] * 3 + [1]


def cars(root: Path):
    place, row = root / "stanford_cars", [("fname", "O"), ("class", "O")]
    (place / "devkit").mkdir(parents=True)
    savemat(place / "devkit" / "cars_meta.mat", {"class_names": np.array(["Acura", "BMW"], dtype=object)})
    notes = {"train": "devkit/cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}
    for split, labels in (("train", [2, 1, 2]), ("test", [1, 2])):
        rows = [(f"{i}.jpg", label) for i, label in enumerate(labels)]
        savemat(place / notes[split], {"annotations": np.array(rows, dtype=row)})
        pictures(place / f"cars_{split}", {name: label - 1 for name, label in rows})
    return ("Acura", "BMW"), [1, 0, 1], [0, 1]


def dtd(root: Path):
    place = root / "dtd" / "dtd"
    for split in ("train", "val", "test"):
        names = [f"{name}/{name}_{split}.jpg" for name in ("dotted", "banded")]
        lines(place / "labels" / f"{split}1.txt", *names)
        pictures(place / "images", {name: int(name.startswith("dotted")) for name in names})
    return ("banded", "dotted"), [1, 0, 1, 0], [1, 0]


def flowers(root: Path):
    place = root / "flowers-102"
    pictures(place / "jpg", {f"image_{i + 1:05d}.jpg": i % 3 for i in range(306)})
    savemat(place / "imagelabels.mat", {"labels": np.tile(np.arange(1, 103), 3)})
    savemat(place / "setid.mat", dict(zip(("trnid", "valid", "tstid"), np.arange(1, 307).reshape(3, 102))))
    return tuple(datasets.Flowers102.classes), [*range(102)] * 2, [*range(102)]


def food(root: Path):
    place = root / "food-101"
    for split, count in (("train", 2), ("test", 1)):
        names = {name: [f"{name}/{split}{i}" for i in range(count)] for name in ("waffles", "cake")}
        lines(place / "meta" / f"{split}.json", json.dumps(names))
        for label, name in enumerate(("cake", "waffles")):
            pictures(place / "images", {f"{one}.jpg": label for one in names[name]})
    return ("cake", "waffles"), [1, 1, 0, 0], [1, 0]


def pets(root: Path):
    place = root / "oxford-iiit-pet"
    for split in ("trainval", "test"):
        rows = [(f"american_bulldog_{split}", 2), (f"Abyssinian_{split}", 1)]
        lines(place / "annotations" / f"{split}.txt", *(f"{name} {label} 1 1" for name, label in rows))
        pictures(place / "images", {f"{name}.jpg": label - 1 for name, label in rows})
    return ("Abyssinian", "American Bulldog"), [1, 0], [1, 0]


def sun397(root: Path):
    lines(root / "SUN397" / "ClassName.txt", "/a/abbey", "/b/bar/indoor")
    for label, name in enumerate(("a/abbey", "b/bar/indoor")):
        pictures(root / "SUN397" / name, {f"sun_{i:03d}.jpg": label for i in range(101)})
    return ("abbey", "bar/indoor"), [0] * 50 + [1] * 50, [0] * 50 + [1] * 50


def voc2007(root: Path):
    """Each picture has a small dog, a large object that counts, and a larger one that is difficult."""
    place, labels = root / "VOCdevkit" / "VOC2007", [*range(20)]
    for split in ("trainval", "test"):
        names = [f"{split}{label:02d}" for label in labels]
        lines(place / "ImageSets" / "Main" / f"{split}.txt", *names)
        for label, name in zip(labels, names):
            text = "".join(
                f"<object><name>{one}</name><difficult>{difficult}</difficult><bndbox><xmin>1</xmin>"
                f"<ymin>1</ymin><xmax>{side}</xmax><ymax>{side}</ymax></bndbox></object>"
                for one, difficult, side in (("dog", 0, 5), (VOC[label], 0, 9), ("person", 1, 20))
            )
            lines(place / "Annotations" / f"{name}.xml", f"<annotation>{text}</annotation>")
            pictures(place / "JPEGImages", {f"{name}.jpg": label % 3})
    return VOC, labels, labels


MADE = [aircraft, caltech101, cars, dtd, flowers, food, pets, sun397, voc2007]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """A download is refused by the line, and Flowers102's checksums pass."""

    def refuse(*_, **__):
        raise OSError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr(datasets.flowers102, "check_integrity", lambda path, _: Path(path).exists())


@pytest.mark.parametrize("make", MADE)
def test_torchvision_reads_the_files_of_each_set(make, tmp_path):
    assert [one.__name__ for one in MADE] == list(BENCHMARKS)
    classes, *labels = make(tmp_path / make.__name__)
    pair = labelled_pair(make.__name__, tmp_path, 16)
    paths = [part.images.path(i) for part in pair for i in range(len(part))]
    assert len(set(paths)) == len(paths)
    for part, expected in zip(pair, labels):
        assert part.classes == classes and part.labels.tolist() == expected
        assert isinstance(part.images, Photographs) and part.images.shape[1:] == (3, 16, 16)
        few = torch.arange(0, len(part), max(1, len(part) // 6))
        colours = torch.tensor(COLOURS)[part.labels[few] % 3].float()
        assert (part.images[few].float().mean((2, 3)) - colours).abs().max() < 20


def test_images_are_dealt_out_alike_wherever_they_lie_and_in_whatever_order():
    found = []
    for place, order in (("/one", range(20)), ("/two", range(20)[::-1])):
        files, labels = [f"{place}/{i:02d}" for i in order], [i % 2 for i in order]
        splits = dealt("made", (files, labels, ("a", "b")), 3, 2)
        found.append([([Path(path).name for path in paths], ys) for paths, ys, _ in splits])
    (train, ys), (test, _) = found[0]
    assert found[0] == found[1] and train[:3] != sorted(train[:3]) and ys == [0, 0, 0, 1, 1, 1]
    assert len(test) == 4 and not set(train) & set(test)


def test_what_is_missing_is_downloaded_once(tmp_path, monkeypatch):
    """torchvision's archive, faked: it unpacks into the folder it is told."""
    calls = []

    def fetch(_url, download_root, **_):
        calls.append(Path(download_root))
        dtd(Path(download_root).parent)

    monkeypatch.setattr("torchvision.datasets.dtd.download_and_extract_archive", fetch)
    assert [len(labelled_pair("dtd", tmp_path, 16)[0]) for _ in range(2)] == [4, 4]
    assert calls == [tmp_path / "dtd" / "dtd"]


# Several things in a picture, and sets without splits


def literal_precision(scores, there):
    """As VOC's devkit has it, a place after the other."""
    points, hits = [], 0
    for place, i in enumerate(sorted(range(len(scores)), key=lambda i: -scores[i]), 1):
        hits += there[i]
        points.append((Fraction(hits, sum(there)), hits / place))
    best = [max([p for r, p in points if 10 * r >= tenth], default=0) for tenth in range(11)]
    return sum(best) / 11


@given(st.dictionaries(st.integers(0, 1000), st.booleans(), max_size=30).filter(lambda x: any(x.values())))
def test_the_average_precision_is_the_devkits(some):
    scores, there = list(some), list(some.values())
    found = average_precision_11(torch.tensor(scores), torch.tensor(there))
    assert found == pytest.approx(literal_precision(scores, there))


def test_a_difficult_picture_does_not_count_for_its_class():
    scores = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.9]])
    present = torch.tensor([[-1, 0], [1, 0], [0, 1]])
    assert mean_average_precision(scores, present) == 100
    assert mean_average_precision(scores, present.abs() % 2 * (present != -1)) < 100
    assert mean_average_precision(scores[:, :1], torch.tensor([[1], [0], [0]])) == 100


def test_votes_for_classes_are_those_of_the_neighbours():
    drawn = shifted(3)
    bank, queries = torch.randn(20, 4, generator=drawn), torch.randn(5, 4, generator=drawn)
    labels = torch.randint(3, (20,), generator=drawn)
    scores = knn_scores(bank, F.one_hot(labels, 3), queries, 7, 0.2)
    assert torch.allclose(scores.sum(1), torch.ones(5))
    assert torch.equal(scores.argmax(1), knn(bank, labels, queries, 7, 0.2))


def test_voc_is_measured_by_all_that_its_pictures_show(tmp_path):
    voc2007(tmp_path / "voc2007")
    _, test = labelled_pair("voc2007", tmp_path, 16)
    shown = {"aeroplane": 1, "dog": 1, "person": -1}
    assert test.present[0].tolist() == [shown.get(name, 0) for name in VOC]
    assert test.present[VOC.index("person")].sum() == 2  # there it is not only difficult
    pets(tmp_path / "pets")
    names = ["voc2007", made_folder(tmp_path / "one"), "pets"]
    table = transfer(new_run(RECIPE, 3), names, tmp_path, k=2)
    assert table.index.tolist() == names and table["train"].tolist() == [20, 24, 2]
    assert table["metric"].tolist() == ["11-point mAP", "accuracy", "per class"]
    assert 0 < table.loc["voc2007", "knn"] <= 100 and np.isnan(table.loc["voc2007", "linear"])


@pytest.mark.parametrize("name, place, classes", [
    ("eurosat", "eurosat/eurosat/2750/{0}/{0}_{1}.jpg", ("Forest", "Highway", "River")),
    ("cropdiseases", "cropdiseases/{0}/{1}.JPG", ("Apple___scab", "Corn___rust", "Grape___rot")),
])  # fmt: skip
def test_sets_without_splits_are_read_whole(name, place, classes, tmp_path):
    for label, kind in enumerate(classes):
        pictures(tmp_path, {place.format(kind, i): label for i in range(8)})
    found = whole(name, tmp_path, 16)
    assert found.classes == classes and found.labels.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert found.images.shape == (24, 3, 16, 16)
    names, of_episodes = [name, made_folder(tmp_path / "one")], dict(ways=2, shots=2, queries=2, episodes=20)
    table = few_shot_transfer(new_run(RECIPE, 3), names, tmp_path, **of_episodes)
    assert table["images"].tolist() == [24, 12] and (table["mean"] > 90).all()  # colours differ much


# Few shots


def blobs(classes=7, each=30, D=6, noise=2.0, seed=0):
    """Points around one centre a class, in random order; the labels are 0, 3, 6, …"""
    drawn = shifted(seed)
    labels = torch.arange(classes).repeat_interleave(each)[torch.randperm(classes * each, generator=drawn)]
    centres = 2 * torch.randn(classes, D, generator=drawn)
    return centres[labels] + noise * torch.randn(len(labels), D, generator=drawn), 3 * labels


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # one shot has no variance
@pytest.mark.parametrize("ways, shots, queries", [(5, 20, 10), (2, 1, 1), (7, 5, 15)])
def test_few_shots_equal_nearest_centroids(ways, shots, queries):
    x, y = blobs()
    expected = []
    for episode in draw_episodes(y, ways, shots, queries, 10, seed=3):
        shown, asked = ((x[images.flatten()].numpy(), y[images.flatten()].numpy()) for images in episode)
        expected.append(100 * NearestCentroid().fit(*shown).score(*asked))
    got = few_shot(x, y, ways, shots, queries, 10, seed=3)
    assert 40 < got.mean < 99 and got.half_width > 0
    assert got.mean == pytest.approx(np.mean(expected), abs=1e-4)
    assert got.half_width == pytest.approx(1.96 * np.std(expected) / np.sqrt(10), abs=1e-4)


def test_an_episode_shows_and_asks_other_images_of_the_same_classes():
    _, y = blobs()
    seen = set()
    for shown, asked in draw_episodes(y, 3, 4, 5, 40, seed=0):
        assert shown.shape == (3, 4) and asked.shape == (3, 5)
        both = torch.cat([shown, asked], dim=1)
        of = y[both]
        assert len(both.unique()) == 27 and (of == of[:, :1]).all() and len(of.unique()) == 3
        seen |= set(of[:, 0].tolist())
    assert seen == set(y.tolist())
    one, other = (list(draw_episodes(y, 3, 4, 5, 1, seed)) for seed in (0, 1))
    assert not torch.equal(one[0][0], other[0][0])


def test_features_near_each_other_keep_their_digits():
    """Far from the origin, where distances by a matrix product lose all of them in float32."""
    x, y = blobs(noise=0.01)
    assert few_shot(x + 10_000, y, shots=1, queries=5, episodes=20) == (100, 0)


# The table


def test_the_table_is_made_of_its_parts(tmp_path):
    name = made_folder(tmp_path / "colours")
    run = new_run(RECIPE, 3)
    tuned = dict(epochs=1, batch=6, lr=0.05)
    table = transfer(run, name, k=3, temperature=0.5, tuned=tuned)
    train, test = (data.load(name, split=split, size=16) for split in ("train", "test"))
    bank, queries = (features(run.encoder, part.images) for part in (train, test))
    files = [data.load(name, split=split, size=16, stream=True) for split in ("train", "test")]
    expected = {
        "knn": knn(bank, train.labels, queries, 3, 0.5),
        "linear": linear_probe(bank, train.labels, queries),
        "fine-tuned": fine_tune(run.encoder, *files, **tuned),
    }
    assert table.columns.tolist() == ["classes", "train", "test", "metric", *expected]
    assert table.index.tolist() == [name] and table.loc[name].tolist()[:4] == [3, 24, 12, "accuracy"]
    for column, labels in expected.items():
        assert table.loc[name, column] == pytest.approx(100 * float((labels == test.labels).float().mean()))


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_and_sides_are_made_to_fit(channels, monkeypatch):
    """A run on 16 px images looks at grey ones of 28 px and at coloured ones of 12 px."""
    drawn, run = shifted(0), new_run(RECIPE, channels)
    held = {}
    for name, C, side in (("mnist", 1, 28), ("cifar10", 3, 12)):
        x = torch.randint(0, 256, (12, C, side, side), dtype=torch.uint8, generator=drawn)
        held[name] = ImageSet(x, torch.arange(12) % 3, ("a", "b", "c"))
    monkeypatch.setattr(data, "load", lambda name, *_: held[name])
    table = transfer(run, list(held), k=1, linear=False, tuned=dict(epochs=1, batch=6))
    assert table["knn"].tolist() == [100, 100]  # train and test are the same images
    for one in held.values():
        x = one.images.float() / 255
        x = grey(x) if channels == 1 else x.expand(-1, 3, -1, -1)
        small = F.interpolate(x, (16, 16), mode="bilinear", antialias=True)
        with torch.no_grad():
            expected = run.encoder.eval()(small)
        torch.testing.assert_close(features(AnyImages(run.encoder, channels, 16), one.images), expected)


def test_the_mean_over_classes_is_scikit_learns():
    truth, predicted = torch.tensor([0, 0, 0, 0, 1, 2]), torch.tensor([0, 0, 0, 1, 1, 0])
    for metric, average in (("accuracy", "micro"), ("per class", "macro")):
        theirs = 100 * recall_score(truth, predicted, average=average)
        assert accuracy(predicted, truth, metric) == pytest.approx(theirs)


# What is refused


def test_classes_that_a_split_lacks_are_named(monkeypatch):
    whole = ImageSet(torch.zeros(4, 3, 16, 16, dtype=torch.uint8), torch.arange(4), tuple("abcd"))
    part, other = replace(whole, labels=torch.tensor([0, 0, 2, 2])), replace(whole, classes=tuple("abce"))
    for train, test, said in (
        (whole, part, "its test split has no images of b, d; complete it"),
        (part, whole, "its train split has no images of b, d"),
        (whole, other, "test must have the classes of train; they differ in d, e"),
    ):
        pair = {"train": train, "test": test}
        monkeypatch.setattr(data, "load", lambda name, root, split, pair=pair: pair[split])
        with pytest.raises(ValueError, match=f"svhn: {said}"):
            transfer(new_run(RECIPE, 3), "svhn")


def without_banded(path: Path):
    """DTD, of whose classes the validation part has one alone."""
    dtd(path / "dtd")
    lines(path / "dtd" / "dtd" / "dtd" / "labels" / "val1.txt", "dotted/dotted_val.jpg")
    return transfer(UNSEEN, "dtd", path)


def shot(**changes):
    return few_shot(**{**dict(zip(("features", "labels"), blobs())), "ways": 2, "queries": 10, **changes})


UNSEEN = Run(RECIPE, None, None, 3)  # what is missing is found before its encoder is asked


@pytest.mark.parametrize("call, error, message", [
    (lambda path: transfer(UNSEEN, "foods"), ValueError,
     "names must be one of .*'food'.*got 'foods'; did you mean 'food'"),
    (lambda path: transfer(UNSEEN, [3]), ValueError, "names must be one of .*, got 3"),
    (lambda path: transfer(UNSEEN, "cifar10", size=4), ValueError, "size must be an integer >= 8, got 4"),
    (lambda path: transfer(Run(ImageRecipe("InfoNCE()", data="folder:x"), None, None, 3), "cifar10"),
     ValueError, "size must be given: the run was trained"),
    (lambda path: transfer(UNSEEN, [made_folder(path / "one"), f"folder:{path / 'nowhere'}"]),
     FileNotFoundError, "nowhere"),
    (lambda path: whole("cropdiseases", path, 16), FileNotFoundError,
     "no folder; put the images of cropdiseases there as CLASS/"),
    (lambda path: transfer(UNSEEN, "dtd", path), ConnectionError,
     "^dtd is not under .*dtd, .*datasets.DTD reads$"),
    (lambda path: whole("eurosat", path, 16), ConnectionError, "eurosat is not under"),
    (without_banded, ValueError, "dtd: its parts differ in the classes banded; get the set again"),
    (lambda path: mean_average_precision(torch.ones(3, 2), torch.tensor([[0, -1]] * 3)), ValueError,
     "present must show some class"),
    (lambda path: dealt("x", (list("abc"), [0] * 3, ("y",)), 2, 2), ValueError,
     "x: y has 3 images, 2 for training and 2 for testing"),
    (lambda path: shot(ways=8), ValueError, "ways must be <= 7, the number of classes in labels, got 8"),
    (lambda path: shot(ways=1), ValueError, "ways must be an integer >= 2, got 1"),
    (lambda path: shot(queries=1.5), ValueError, "queries must be an integer >= 1, got 1.5"),
    (lambda path: shot(seed=-1), ValueError, "seed must be an integer >= 0, got -1"),
    (lambda path: shot(features=torch.ones(5, 2, 2)), ValueError, r"features must be \(N, D\)"),
    (lambda path: shot(labels=torch.tensor([3] * 182 + [12] * 28)), ValueError,
     r"class 12 has 28 images, and shots \+ queries need 20 \+ 10; lower"),
])  # fmt: skip
def test_bad_arguments_are_named(call, error, message, tmp_path):
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_the_call_on_the_page_of_training_fits(monkeypatch):
    page = (Path(__file__).resolve().parents[3] / "site/text/training.md").read_text()
    (example,) = re.findall(r"```python\n([^`]*import transfer\b.*?)```", page, re.S)
    called = create_autospec(transfer)
    monkeypatch.setattr("setclr.experiments.load_run", lambda out: out)
    monkeypatch.setattr("setclr_course.papers.transfers.transfer", called)
    exec(example, {})
    (_, (folder, *rest)), how = called.call_args
    assert folder.startswith("folder:") and set(rest) <= set(BENCHMARKS)
    assert set(how["tuned"]) <= set(inspect.signature(fine_tune).parameters)

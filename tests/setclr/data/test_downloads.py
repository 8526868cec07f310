"""Known data sets in small copies: their pixels, what is said offline, damaged and lost files."""

import hashlib
import os
import pickle
import shutil
from dataclasses import replace
from importlib.resources import files
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest
import torch
from pictures import grey_level
from torchvision import datasets

from setclr.data import known, load, patches
from setclr.data_sets import DATA_SETS
from setclr_course.papers import tiny
from setclr_course.papers.collection import PAPERS


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    for place in ("urllib.request.urlopen", "torch.hub.urlopen"):
        monkeypatch.setattr(place, Mock(side_effect=URLError("no network in this test")))


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def written(kind, folder, contents, monkeypatch):
    """Files of a data set of torchvision, which gets their checksums."""
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    for names in ("train_list", "test_list"):
        monkeypatch.setattr(kind, names, [[name, md5(folder / name)] for name, _ in getattr(kind, names)])
    return folder


@pytest.fixture
def mnist(tmp_path):
    raw = tmp_path / "mnist" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, n in (("train", 10), ("t10k", 4)):
        images = np.arange(n * 784).reshape(n, 28, 28) % 251
        for name, array in (("images-idx3", images), ("labels-idx1", np.arange(n))):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (raw / f"{part}-{name}-ubyte").write_bytes(header + array.astype(np.uint8).tobytes())
    return raw


@pytest.fixture
def cifar10(tmp_path, monkeypatch):
    """CIFAR-10 with three images a batch."""
    kind = datasets.CIFAR10
    contents = {"batches.meta": {"label_names": [f"class {i}" for i in range(10)]}}
    for i, (name, _) in enumerate(kind.train_list + kind.test_list):
        contents[name] = {"data": np.full((3, 3072), i, np.uint8), "labels": [0, 9, i]}
    contents["test_batch"]["data"][:, 1024:2048] = 77  # the green channel
    pickled = {name: pickle.dumps(content) for name, content in contents.items()}
    folder = written(kind, tmp_path / "cifar10" / kind.base_folder, pickled, monkeypatch)
    monkeypatch.setattr(kind, "meta", kind.meta | {"md5": md5(folder / "batches.meta")})
    return folder


STL_CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")


@pytest.fixture
def stl10(tmp_path, monkeypatch):
    """STL-10 with 4 training, 3 test and 6 unlabelled images, each of its own grey, its first row dark."""
    contents = {"class_names.txt": "\n".join(STL_CLASSES).encode()}
    for part, first, n in (("train", 10, 4), ("test", 20, 3), ("unlabeled", 30, 6)):
        pixels = np.empty((n, 3, 96, 96), np.uint8)  # as stored: column by column
        pixels[:] = np.arange(first, first + n)[:, None, None, None]
        pixels[:, :, :, 0] = 1
        contents |= {f"{part}_X.bin": pixels.tobytes(), f"{part}_y.bin": bytes([1, 10, 2, 2][:n])}
    kind = datasets.STL10
    return written(kind, tmp_path / "stl10" / kind.base_folder, contents, monkeypatch)


def test_mnist_has_one_channel(mnist, tmp_path):
    train, test = (load("mnist", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (10, 1, 28, 28) and len(test) == 4
    assert train.images[1, 0, 0, 0] == 784 % 251 and train.labels.tolist() == list(range(10))
    assert train.classes[3] == "3 - three"


def test_processed_files_of_mnist_which_nothing_verifies_are_not_read(mnist, tmp_path):
    """torchvision would read them before the raw files."""
    whole = load("mnist", tmp_path)
    processed = mnist.with_name("processed")
    processed.mkdir()
    for name in ("training.pt", "test.pt"):
        torch.save((torch.zeros(5, 28, 28).byte(), torch.zeros(5).long()), processed / name)
    assert torch.equal(load("mnist", tmp_path).images, whole.images)
    shutil.rmtree(mnist)
    with pytest.raises(ConnectionError, match="MNIST is not under .*put there what torchvision"):
        load("mnist", tmp_path)


def test_cifar_has_channels_first(cifar10, tmp_path, capsys):
    train, test = (load("cifar10", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (15, 3, 32, 32) and train.labels[:6].tolist() == [0, 9, 0, 0, 9, 1]
    assert (test.images[:, 1] == 77).all() and (test.images[:, 0] == 5).all()
    assert test.classes[9] == "class 9" and capsys.readouterr() == ("", "")


def test_stl10_has_an_unlabelled_split(stl10, tmp_path):
    train, test, all_of_it = (load("stl10", tmp_path, split) for split in ("train", "test", "unlabelled"))
    assert train.images.shape == (4, 3, 96, 96) and train.labels.tolist() == [0, 9, 1, 1]
    assert train.classes == test.classes == all_of_it.classes == STL_CLASSES
    assert test.labels.tolist() == [0, 9, 1] and test.images[:, 0, 5, 5].tolist() == [20, 21, 22]
    assert (train.images[:, :, 0] == 1).all() and (train.images[:, :, 1:] >= 10).all(), "rows, then columns"
    assert all_of_it.images[:, 2, 9, 9].tolist() == [10, 11, 12, 13, 30, 31, 32, 33, 34, 35]
    assert all_of_it.labels.tolist() == [0, 9, 1, 1] + [-1] * 6
    (stl10 / "class_names.txt").unlink()
    assert load("stl10", tmp_path).classes == tuple("0123456789")


@pytest.mark.parametrize("content", [None, b"", b"<html>no such page</html>"])
@pytest.mark.parametrize("name, file", [
    ("mnist", "train-images-idx3-ubyte"), ("mnist", "t10k-labels-idx1-ubyte"),
    ("cifar10", "test_batch"), ("cifar10", "batches.meta"), ("stl10", "unlabeled_X.bin"),
])  # fmt: skip
def test_a_damaged_file_is_not_used(name, file, content, request, tmp_path):
    """None: all but its last byte. torchvision would download it again; it does not see damage of MNIST."""
    path = request.getfixturevalue(name) / file
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    message = rf"{name.upper()} is not under .*{name}, or damaged, and could not be downloaded"
    if name == "mnist":
        message = f"{file} is truncated or not MNIST's file; delete it"
    with pytest.raises((ValueError, ConnectionError), match=message):
        load(name, tmp_path)


@pytest.mark.parametrize("name, archive", [
    ("mnist", "MNIST/raw/train-images-idx3-ubyte.gz"), ("svhn", "train_32x32.mat"),
    ("cifar100", "cifar-100-python.tar.gz"), ("stl10", "stl10_binary.tar.gz"),
])  # fmt: skip
def test_offline_the_error_says_what_to_put_where_also_for_half_of_it(name, archive, tmp_path, capsys):
    said = f"^{name.upper()} is not under {tmp_path / name}, or damaged, and could not be .*no network in"
    said += f".*put there what torchvision.datasets.{name.upper()} reads, or load 'photo-patches'"
    for content in (None, b"half a download"):
        if content:
            (tmp_path / name / archive).write_bytes(content)
        with pytest.raises(ConnectionError, match=said):
            load(name, tmp_path)
        assert capsys.readouterr().out == ""


# As they are unpacked: tiny-ImageNet and ImageNet


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Two classes in imagenet100, and images of 8 px."""
    listed = tmp_path / "two.txt"
    listed.write_text("n03\nn02")
    for name, of in (("imagenet100", (str(listed),)), ("imagenet", ("",))):
        monkeypatch.setitem(DATA_SETS, name, replace(DATA_SETS[name], of=of, side=8))
    monkeypatch.setitem(PAPERS.sets, "tiny-imagenet", replace(PAPERS.sets["tiny-imagenet"], side=8))


def make_tiny(root):
    place, wnids = root / "tiny-imagenet-200", ("n03", "n01", "n02")
    for label, wnid in enumerate(wnids):
        for i in range(2):
            grey_level(place / "train" / wnid / "images" / f"{i}.JPEG.png", 10 * label + i)
        (place / "train" / wnid / f"{wnid}_boxes.txt").write_text("boxes")
        grey_level(place / "val" / "images" / f"val_{label}.png", 50 + label)
    lines = [f"val_{i}.png\t{wnid}\t0\t0\t62\t62\n" for i, wnid in enumerate(wnids)]
    (place / "val" / "val_annotations.txt").write_text("".join(lines))
    (place / "wnids.txt").write_text("\n".join(wnids))
    return place


def test_tiny_imagenet_is_unpacked_from_an_archive_put_there_and_read(few, tmp_path, monkeypatch, capsys):
    with pytest.raises(ConnectionError, match=r"no network.*fetch https://.*200\.zip and put it into"):
        load("tiny-imagenet", tmp_path)
    assert os.listdir(tmp_path) == ["two.txt"]
    place = make_tiny(tmp_path / "elsewhere")
    archive = tmp_path / f"{place.name}.zip"
    shutil.make_archive(archive.with_suffix(""), "zip", place.parent, place.name)
    with pytest.raises(ConnectionError, match=r"nor whole in .*tiny-imagenet-200\.zip, and could not be"):
        load("tiny-imagenet", tmp_path)
    monkeypatch.setattr(tiny, "TINY_MD5", md5(archive))
    train, test = (load("tiny-imagenet", tmp_path, split) for split in patches.SPLITS)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "tiny-imagenet-200", "tiny-imagenet-200.zip",
                                             "two.txt"]  # fmt: skip
    assert capsys.readouterr().out == ""
    assert train.classes == test.classes == ("n01", "n02", "n03")
    assert train.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21, 0, 1]
    assert train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert test.images[:, 0, 0, 0].tolist() == [51, 52, 50] and test.labels.tolist() == [0, 1, 2]
    assert load("tiny-imagenet", tmp_path, size=4, stream=True).images[:].shape == (6, 3, 4, 4)


def make_imagenet(root):
    for label, wnid in enumerate(("n01", "n02", "n03")):
        for i in range(3 if label == 0 else 2):
            grey_level(root / f"imagenet/train/{wnid}/{i}.png", 10 * label + i, size=(12 + label, 10))
        grey_level(root / "imagenet/val" / wnid / f"val_{label}.png", 50 + label)
    return root / "imagenet"


def test_imagenet_has_a_size_unless_told_another_and_imagenet100_is_a_part_of_it_or_apart(few, tmp_path):
    make_imagenet(tmp_path)
    train, test = (load("imagenet", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (7, 3, 8, 8) and train.labels.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert test.images[:, 0, 0, 0].tolist() == [50, 51, 52]
    assert load("imagenet", tmp_path, size=5).images.shape == (7, 3, 5, 5)
    part = load("imagenet100", tmp_path)
    assert part.classes == ("n02", "n03") and part.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21]
    (tmp_path / "imagenet").rename(tmp_path / "imagenet100")
    assert torch.equal(load("imagenet100", tmp_path).images, part.images)


@pytest.mark.parametrize("name, lost, words", [
    ("tiny-imagenet", "train/n02/images/0.JPEG.png train/n02/images/1.JPEG.png", "n02/images has no images"),
    ("tiny-imagenet", "val/images/val_1.png", r"val_1\.png is no image that can be read .*No such file"),
    ("imagenet", "train", r"train is no folder; get ILSVRC 2012 .*image-net\.org .*train/WNID/ and "),
    ("imagenet100", "train/n02 val/n02", r"all classes of .*two\.txt, got 1 missing, the first is n02; add"),
])  # fmt: skip
def test_what_lacks_in_a_known_set_is_named(few, tmp_path, name, lost, words):
    place = (make_tiny if name == "tiny-imagenet" else make_imagenet)(tmp_path)
    for path in (place / one for one in lost.split()):
        (shutil.rmtree if path.is_dir() else os.remove)(path)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        [load(name, tmp_path, split) for split in patches.SPLITS]


def test_the_classes_of_imagenet100_are_the_published_ones():
    (name,) = known("imagenet100").of
    text = (files("setclr.data") / name).read_text().strip()
    assert hashlib.md5(text.encode()).hexdigest() == "b466a51f4134c8f593cf75cb7f62cdc5"

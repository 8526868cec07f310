"""Data sets that torchvision reads, in small copies: their pixels, what is said offline, damaged files."""

import hashlib
import pickle
import tarfile
from collections import Counter
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
import torch
from torchvision import datasets

from setclr.data import load, patches


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    for place in ("urllib.request.urlopen", "torch.hub.urlopen"):
        monkeypatch.setattr(place, Mock(side_effect=URLError("no network in this test")))


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def of_these_files(kind, folder, monkeypatch):
    """The lists of the data set's files get the checksums of these."""
    for names in ("train_list", "test_list"):
        monkeypatch.setattr(kind, names, [[name, md5(folder / name)] for name, _ in getattr(kind, names)])


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
    """CIFAR-10 with three images a batch and the checksums of these."""
    kind, folder = datasets.CIFAR10, tmp_path / "cifar10" / datasets.CIFAR10.base_folder
    folder.mkdir(parents=True)
    contents = {"batches.meta": {"label_names": [f"class {i}" for i in range(10)]}}
    for i, (name, _) in enumerate(kind.train_list + kind.test_list):
        contents[name] = {"data": np.full((3, 3072), i, np.uint8), "labels": [0, 9, i]}
    contents["test_batch"]["data"][:, 1024:2048] = 77  # the green channel
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content))
    of_these_files(kind, folder, monkeypatch)
    monkeypatch.setattr(kind, "meta", kind.meta | {"md5": md5(folder / "batches.meta")})
    return folder


@pytest.fixture
def svhn(tmp_path, monkeypatch):
    """Five digits of SVHN, whose file says 10 for 0, and the checksums of these."""
    folder, split_list = tmp_path / "svhn", {}
    folder.mkdir()
    for split, (url, name, _) in datasets.SVHN.split_list.items():
        images = (np.arange(32 * 32 * 3 * 5).reshape(32, 32, 3, 5) % 251).astype(np.uint8)
        scipy.io.savemat(folder / name, {"X": images, "y": np.array([[1], [10], [3], [10], [9]])})
        split_list[split] = [url, name, md5(folder / name)]
    monkeypatch.setattr(datasets.SVHN, "split_list", split_list)
    return folder


STL_CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")


@pytest.fixture
def stl10(tmp_path, monkeypatch):
    """STL-10 with 4 training, 3 test and 6 unlabelled images, each of its own grey, its first row dark."""
    kind, folder = datasets.STL10, tmp_path / "stl10" / datasets.STL10.base_folder
    folder.mkdir(parents=True)
    levels = {"train": [10, 11, 12, 13], "test": [20, 21, 22], "unlabeled": [30, 31, 32, 33, 34, 35]}
    for part, values in levels.items():
        pixels = np.empty((len(values), 3, 96, 96), np.uint8)  # as stored: column by column
        pixels[:] = np.array(values)[:, None, None, None]
        pixels[:, :, :, 0] = 1
        (folder / f"{part}_X.bin").write_bytes(pixels.tobytes())
        if part != "unlabeled":
            (folder / f"{part}_y.bin").write_bytes(bytes([1, 10, 2, 2][: len(values)]))
    (folder / "class_names.txt").write_text("\n".join(STL_CLASSES) + "\n")
    of_these_files(kind, folder, monkeypatch)
    return folder


def test_mnist_has_one_channel(mnist, tmp_path):
    train, test = (load("mnist", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (10, 1, 28, 28) and len(test) == 4
    assert train.images[1, 0, 0, 0] == 784 % 251 and train.labels.tolist() == list(range(10))
    assert train.classes[3] == "3 - three"


def test_cifar_has_channels_first_and_is_unpacked_from_an_archive(cifar10, tmp_path, monkeypatch, capsys):
    train, test = (load("cifar10", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (15, 3, 32, 32) and train.labels[:6].tolist() == [0, 9, 0, 0, 9, 1]
    assert (test.images[:, 1] == 77).all() and (test.images[:, 0] == 5).all()
    assert test.classes[9] == "class 9" and capsys.readouterr() == ("", "")
    archive = tmp_path / "cifar10" / datasets.CIFAR10.filename
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(cifar10, cifar10.name)
    for path in cifar10.iterdir():
        path.unlink()
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(archive))
    assert torch.equal(load("cifar10", tmp_path).images, train.images)


def test_svhn_has_digits_and_channels_first(svhn, tmp_path):
    found = load("svhn", tmp_path, "test")
    assert found.images.shape == (5, 3, 32, 32) and found.labels.tolist() == [1, 0, 3, 0, 9]
    assert found.classes == tuple("0123456789")
    place = ((2 * 32 + 7) * 3 + 1) * 5 + 4  # row 2, column 7, green, the last image
    assert found.images[4, 1, 2, 7] == place % 251


def test_stl10_has_an_unlabelled_split(stl10, tmp_path):
    train, test, all_of_it = (load("stl10", tmp_path, split) for split in ("train", "test", "unlabelled"))
    assert train.images.shape == (4, 3, 96, 96) and train.labels.tolist() == [0, 9, 1, 1]
    assert train.classes == test.classes == all_of_it.classes == STL_CLASSES
    assert test.labels.tolist() == [0, 9, 1] and test.images[:, 0, 5, 5].tolist() == [20, 21, 22]
    assert (train.images[:, :, 0] == 1).all() and (train.images[:, :, 1:] >= 10).all(), "rows, then columns"
    assert all_of_it.images[:, 2, 9, 9].tolist() == [10, 11, 12, 13, 30, 31, 32, 33, 34, 35]
    assert all_of_it.labels.tolist() == [0, 9, 1, 1] + [-1] * 6
    (stl10 / "class_names.txt").unlink()
    with pytest.raises(ValueError, match="stl10 lacks the file of class names"):
        load("stl10", tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "stl10", "svhn"])
def test_a_file_is_hashed_once(name, request, tmp_path, monkeypatch):
    """These sets are gigabytes; what torchvision has verified is not verified again."""
    request.getfixturevalue(name)
    hashed, calculate = Counter(), datasets.utils.calculate_md5
    monkeypatch.setattr(
        datasets.utils, "calculate_md5", lambda path, *more: hashed.update([path]) or calculate(path, *more)
    )
    load(name, tmp_path)
    assert hashed and set(hashed.values()) == {1}


@pytest.mark.parametrize("name, file, split", [
    ("mnist", "train-images-idx3-ubyte", "train"), ("mnist", "t10k-labels-idx1-ubyte", "test"),
    ("cifar10", "test_batch", "train"), ("cifar10", "batches.meta", "train"),
    ("svhn", "test_32x32.mat", "test"), ("stl10", "unlabeled_X.bin", "train"),
])  # fmt: skip
@pytest.mark.parametrize("content", [None, b"", b"<html>no such page</html>"])
def test_a_damaged_file_is_named(name, file, split, content, request, tmp_path):
    """None: all but its last byte."""
    path = request.getfixturevalue(name) / file
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    with pytest.raises(ValueError, match=rf"{file} is truncated or not {name.upper()}.*'s .*delete it"):
        load(name, tmp_path, split)
    if name == "svhn":
        assert len(load("svhn", tmp_path)) == 5


@pytest.mark.parametrize("name, archive, where", [
    ("mnist", "train-images-idx3-ubyte.gz", "mnist/MNIST/raw"), ("svhn", "train_32x32.mat", "svhn"),
    ("cifar10", "cifar-10-python.tar.gz", "cifar10"), ("cifar100", "cifar-100-python.tar.gz", "cifar100"),
    ("stl10", "stl10_binary.tar.gz", "stl10"),
])  # fmt: skip
def test_offline_the_error_says_what_to_put_where_or_names_half_of_it(name, archive, where, tmp_path, capsys):
    with pytest.raises(ConnectionError) as caught:
        load(name, tmp_path)
    words = str(caught.value)
    assert words.startswith(f"{name} is not under {tmp_path / name} and could not be downloaded")
    assert "no network in this test" in words and archive in words and f"into {tmp_path / where}," in words
    assert "'photo-patches', which needs no download" in words
    assert capsys.readouterr().out == ""
    (tmp_path / where / archive).write_bytes(b"half a download")
    with pytest.raises(ValueError, match=rf"{archive} is truncated or not {name.upper()}'s"):
        load(name, tmp_path)


def test_an_error_of_the_disk_is_not_called_one_of_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left") as caught:
        load("cifar10", tmp_path)
    assert not isinstance(caught.value, ConnectionError)

"""Folders of class folders; tiny-ImageNet and ImageNet with few classes and images."""

import hashlib
import os
import shutil
from functools import partial
from importlib.resources import files
from pathlib import Path
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest
import torch
from pictures import grey_level, saved

from setclr.data import folders, load, patches
from setclr.data.photographs import Photographs


@pytest.fixture
def tree(tmp_path):
    """Two classes of 8x6 PNG images, their grey level telling them apart."""
    for split, levels in (("train", (10, 20)), ("val", (30,))):
        for label, name in enumerate(("bee", "ant")):
            for level in levels:
                grey_level(tmp_path / split / name / f"{level}.png", level + label)
    return tmp_path


def test_a_folder_is_read_by_sorted_names_and_its_test_split_is_val_or_else_test(tree, monkeypatch):
    monkeypatch.chdir(tree.parent)  # to which a relative path is relative
    train = load(f"folder:{tree.name}", root="elsewhere")
    assert train.images.shape == (4, 3, 6, 8) and train.classes == ("ant", "bee")
    assert train.labels.tolist() == [0, 0, 1, 1]
    assert train.images[:, :, 0, 0].tolist() == [[n, 0, 200] for n in (11, 21, 10, 20)]
    for name in ("val", "test"):
        (tree / "val").rename(tree / name)
        assert load(f"folder:{tree}", split="test").images[:, 0, 0, 0].tolist() == [31, 30]


def test_every_mode_becomes_rgb(tmp_path):
    for mode in ("L", "P", "RGBA", "CMYK", "1", "LA"):
        grey_level(tmp_path / "train/a" / f"{mode}.{'tif' if mode == 'CMYK' else 'png'}", 100, mode=mode)
    assert load(f"folder:{tmp_path}").images.shape == (6, 3, 6, 8)


def test_size_resizes_the_shorter_side_and_crops_the_centre(tmp_path):
    row = np.repeat(np.array([0, 100, 200], np.uint8), [10, 40, 10])
    stripes = np.broadcast_to(row[None, :, None], (40, 60, 3))
    saved(tmp_path / "train/a", [torch.tensor(stripes).permute(axes) for axes in ((2, 0, 1), (2, 1, 0))])
    images = load(f"folder:{tmp_path}", size=20).images
    assert images.shape == (2, 3, 20, 20) and (images[:, :, 2:-2, 2:-2] == 100).all()


def test_too_many_pixels_are_streamed_or_refused_before_they_are_decoded(tree, monkeypatch):
    monkeypatch.setattr(folders, "MOST_BYTES", 500)
    whole = load(f"folder:{tree}")
    assert isinstance(whole.images, Photographs) and whole.images.shape == (4, 3, 6, 8)
    with pytest.raises(ValueError, match="4 images of 8x6 pixels would take .* GB.*smaller size= or stream="):
        load(f"folder:{tree}", stream=False)
    assert isinstance(load(f"folder:{tree}", size=4).images, torch.Tensor)


def test_what_is_streamed_is_what_would_be_decoded_and_its_samples_are_not_decoded(tree, monkeypatch):
    decoded, streamed = load(f"folder:{tree}"), load(f"folder:{tree}", stream=True)
    assert isinstance(streamed.images, Photographs) and repr(streamed) == repr(decoded)
    with monkeypatch.context() as patch:
        patch.setattr(Photographs, "__getitem__", None)
        part = streamed.sample(3, seed=2)
    assert isinstance(part.images, Photographs)
    for mine, theirs in ((streamed, decoded), (part, decoded.sample(3, seed=2))):
        assert torch.equal(mine.images[:], theirs.images) and torch.equal(mine.labels, theirs.labels)
        assert mine.classes == theirs.classes


@pytest.fixture
def few(monkeypatch):
    """What the three sets are known to hold, cut down: 3 classes of 2 (or 2 to 3) and 1 images."""
    each = dict(train=(2, 3), test=(1, 1))
    few = {
        "tiny-imagenet": folders.Expected(3, dict(train=6, test=3), each | {"train": (2, 2)}),
        "imagenet100": folders.Expected(2, dict(train=4, test=2), each, 8, ("n02", "n03")),
        "imagenet": folders.Expected(3, dict(train=7, test=3), each, 8),
    }
    monkeypatch.setattr(folders, "TREES", few)


def make_tiny(root):
    place, wnids = root / "tiny-imagenet-200", ("n03", "n01", "n02")
    for label, wnid in enumerate(wnids):
        for i in range(2):
            grey_level(place / "train" / wnid / "images" / f"{wnid}_{i}.JPEG.png", 10 * label + i)
        (place / "train" / wnid / f"{wnid}_boxes.txt").write_text("boxes")
        grey_level(place / "val" / "images" / f"val_{label}.png", 50 + label)
    lines = [f"val_{i}.png\t{wnid}\t0\t0\t62\t62\n" for i, wnid in enumerate(wnids)]
    (place / "val" / "val_annotations.txt").write_text("".join(lines))
    (place / "wnids.txt").write_text("\n".join(wnids))
    return place


def test_tiny_imagenet_is_unpacked_from_an_archive_put_there_and_read(few, tmp_path, monkeypatch, capsys):
    for place in ("urllib.request.urlopen", "torch.hub.urlopen"):
        monkeypatch.setattr(place, Mock(side_effect=URLError("no network in this test")))
    offline = r"no network.*fetch https://.*tiny-imagenet-200\.zip and put it into"
    with pytest.raises(ConnectionError, match=offline):
        load("tiny-imagenet", tmp_path)
    assert not os.listdir(tmp_path)
    place = make_tiny(tmp_path / "elsewhere")
    archive = shutil.make_archive(tmp_path / "tiny-imagenet-200", "zip", tmp_path / "elsewhere", place.name)
    with pytest.raises(ValueError, match=r"tiny-imagenet-200\.zip is truncated or not http.*delete it"):
        load("tiny-imagenet", tmp_path)
    monkeypatch.setattr(folders, "TINY_SHA256", hashlib.sha256(Path(archive).read_bytes()).hexdigest())
    train, test = (load("tiny-imagenet", tmp_path, split) for split in patches.SPLITS)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "tiny-imagenet-200", "tiny-imagenet-200.zip"]
    assert capsys.readouterr().out == ""
    assert train.classes == test.classes == ("n01", "n02", "n03")
    assert train.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21, 0, 1]
    assert train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert test.images[:, 0, 0, 0].tolist() == [51, 52, 50] and test.labels.tolist() == [0, 1, 2]
    assert load("tiny-imagenet", tmp_path, size=4, stream=True).images[:].shape == (6, 3, 4, 4)


def make_imagenet(root):
    for label, wnid in enumerate(("n01", "n02", "n03")):
        for i in range(3 if label == 0 else 2):
            path = root / "imagenet/train" / wnid / f"{wnid}_{i}.png"
            grey_level(path, 10 * label + i, size=(12 + label, 10))
        grey_level(root / "imagenet/val" / wnid / f"val_{label}.png", 50 + label)
    return root / "imagenet"


def test_imagenet_is_read_at_224_unless_told_otherwise_and_imagenet100_is_a_part_of_it_or_apart(
    few, tmp_path
):
    make_imagenet(tmp_path)
    train, test = (load("imagenet", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (7, 3, 8, 8) and train.labels.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert test.images[:, 0, 0, 0].tolist() == [50, 51, 52]
    assert load("imagenet", tmp_path, size=5).images.shape == (7, 3, 5, 5)
    part = load("imagenet100", tmp_path)
    assert part.classes == ("n02", "n03") and part.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21]
    (tmp_path / "imagenet").rename(tmp_path / "imagenet100")
    assert torch.equal(load("imagenet100", tmp_path).images, part.images)


@pytest.mark.parametrize("name, lost, split, words", [
    ("tiny-imagenet", ["train/n02"], "train", "train/n02/images is missing; get the set again"),
    ("tiny-imagenet", ["train/n02/images/n02_1.JPEG.png"], "train",
     r"2 train images of each class .*got n02 \(1\); unpack"),
    ("tiny-imagenet", ["val/images/val_1.png"], "test",
     r"1 test images of each class .*got n01 \(0\); unpack"),
    ("tiny-imagenet", ["wnids.txt"], "train", r"wnids\.txt is missing; tiny-imagenet must lie as http"),
    ("imagenet", ["train"], "train", r"imagenet/train is no folder; imagenet cannot be downloaded "
     r".*image-net\.org .*train/WNID/ and "),
    ("imagenet", ["val/n02", "train/n02"], "train",
     "the 3 classes of imagenet, got 2; complete it, or load it as folder:"),
    ("imagenet", ["train/n03/n03_1.png"], "train",
     r"2 to 3 train images of each class of imagenet, got n03 \(1\)"),
    ("imagenet", ["train/n01/n01_1.png"], "train", "the 7 train images of imagenet, got 6"),
    ("imagenet100", ["train/n02", "val/n02"], "train",
     "must hold the 2 classes of imagenet100, got 1, without n02; complete it"),
    ("imagenet100", ["val/n03"], "train", "train/n03 has no counterpart in .*val"),
])  # fmt: skip
def test_what_lacks_in_a_known_set_is_named(few, tmp_path, name, lost, split, words):
    place = (make_tiny if name == "tiny-imagenet" else make_imagenet)(tmp_path)
    for path in map(partial(os.path.join, place), lost):
        (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load(name, tmp_path, split)


def test_the_expected_numbers_are_the_published_ones():
    expected = folders.TREES
    assert expected["imagenet"].images == dict(train=1_281_167, test=50_000)
    assert expected["imagenet"].classes == 1000
    assert expected["tiny-imagenet"].images == dict(train=200 * 500, test=200 * 50)
    text = (files("setclr.data") / "imagenet100.txt").read_text().strip()
    assert hashlib.md5(text.encode()).hexdigest() == "b466a51f4134c8f593cf75cb7f62cdc5"
    assert expected["imagenet100"].names == tuple(sorted(text.split()))

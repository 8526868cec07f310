import hashlib
import io
import os
import pickle
import re
import shutil
import tarfile
import urllib.request
from collections import Counter
from importlib.resources import files
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
import torch
from conftest import numpy_shifted
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.optimize import linear_sum_assignment
from torch.nn import functional as F
from torchvision import datasets

from setclr import data
from setclr.data import ImageSet, folders, load, patches, sets
from setclr.data.photographs import Photographs


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def photo(root):
    return {split: load("photo-patches", root, split) for split in patches.SPLITS}


@pytest.fixture(scope="module")
def stereo(root):
    return {split: load("stereo-patches", root, split) for split in patches.SPLITS}


@pytest.fixture
def offline(monkeypatch):
    def refuse(*_, **__):
        raise URLError("no network in this test")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(torch.hub, "urlopen", refuse)


def made(counts=(3, 3), shape=(3, 4, 4)):
    """An ImageSet whose images carry their own index."""
    n = sum(counts)
    images = torch.arange(n, dtype=torch.uint8)[:, None, None, None].expand(n, *shape)
    labels = torch.tensor([label for label, count in enumerate(counts) for _ in range(count)])
    return ImageSet(images, labels, tuple(f"class {i}" for i in range(len(counts))))


def pixels(images):
    """Raw pixels as unit vectors, each image about its own mean."""
    flat = images.flatten(1).float()
    return F.normalize(flat - flat.mean(1, keepdim=True), dim=1)


def knn_accuracy(train, test, k=10, temperature=0.1):
    similarity, nearest = (pixels(test.images) @ pixels(train.images).T).topk(k)
    votes = torch.zeros(len(test), len(train.classes))
    votes.scatter_add_(1, train.labels[nearest], (similarity / temperature).exp())
    return float((votes.argmax(1) == test.labels).float().mean())


def matching_accuracy(left, right, batches=8, size=128):
    """Share of pairs that the best assignment on raw pixels puts together, in random batches."""
    similarity, rng = (pixels(left) @ pixels(right).T).numpy(), numpy_shifted(0)
    batches = [rng.permutation(len(left))[:size] for _ in range(batches)]
    found = [linear_sum_assignment(-similarity[np.ix_(batch, batch)])[1] for batch in batches]
    return float(np.mean([columns == np.arange(size) for columns in found]))


# ImageSet


def test_an_image_set_has_a_length_and_a_short_name():
    assert len(made((2, 3))) == 5
    assert repr(made((2, 3))) == "<ImageSet: 5 images (3, 4, 4), 2 classes>"


@pytest.mark.parametrize(
    "images, labels, words",
    [
        (torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64), "images must be .*float32"),
        (torch.zeros(2, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64), r"images .*\(2, 4, 4\)"),
        (np.zeros((2, 3, 4, 4), np.uint8), torch.zeros(2, dtype=torch.int64), "images must be .*ndarray"),
        (torch.zeros(0, 3, 4, 4, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64), "images .*N >= 1"),
        (
            torch.zeros(2, 3, 4, 4, dtype=torch.uint8),
            torch.zeros(2, dtype=torch.int32),
            "labels must be .*int32",
        ),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2, 1, dtype=torch.int64), "labels must be"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), "as many .*3 .*2"),
        (
            torch.zeros(2, 3, 4, 4, dtype=torch.uint8),
            torch.tensor([0, 2]),
            r"labels must be .*2 classes.*0\.\.2",
        ),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.tensor([-2, 0]), "labels must be .*-2"),
    ],
)
def test_what_does_not_fit_together_is_refused(images, labels, words):
    with pytest.raises(ValueError, match=words):
        ImageSet(images, labels, ("a", "b"))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 9), st.data())
def test_a_sample_is_even_distinct_and_repeatable(counts, seed, draw):
    whole = made(tuple(counts))
    n = draw.draw(st.integers(1, len(whole)))
    part, again = whole.sample(n, seed), whole.sample(n, seed)
    assert torch.equal(part.images, again.images)
    indices = part.images[:, 0, 0, 0].long()
    assert len(set(indices.tolist())) == len(part) == n
    assert torch.equal(part.labels, whole.labels[indices]) and part.classes == whole.classes
    taken = part.labels.bincount(minlength=len(counts)).tolist()
    assert all(t >= max(taken) - 1 or t == count for t, count in zip(taken, counts))


def test_another_seed_gives_another_sample():
    assert not torch.equal(made((50, 50)).sample(20, 0).images, made((50, 50)).sample(20, 1).images)


def test_a_sample_is_not_sorted_by_class():
    labels = made((50, 50)).sample(60).labels
    assert 10 < int((labels[1:] != labels[:-1]).sum()) < 50


@pytest.mark.parametrize("n", [0, 7, 2.0])
def test_a_sample_larger_than_the_set_is_refused(n):
    with pytest.raises(ValueError, match=f"n must be .*{n}.*the set has 6"):
        made((3, 3)).sample(n)


# load


@pytest.mark.parametrize("name, near", [("cifar11", "cifar10"), ("photo_patches", "photo-patches")])
def test_an_unknown_name_gets_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"name must be .*'{name}'; did you mean '{near}'"):
        load(name)


@pytest.mark.parametrize("name", ["places365", None, 3])
def test_other_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match="name must be one of 'photo-patches'"):
        load(name)


@pytest.mark.parametrize("name", ["photo-patches", "folder:nowhere"])
def test_an_unknown_split_is_refused(name):
    with pytest.raises(ValueError, match="split must be .*'val'"):
        load(name, split="val")


@pytest.mark.parametrize("name", ["photo-patches", "mnist"])
@pytest.mark.parametrize("given", [{"size": 32}, {"stream": True}, {"stream": False}])
def test_size_and_stream_are_for_image_files(name, given):
    ((argument, value),) = given.items()
    with pytest.raises(ValueError, match=f"{argument} applies to folder:PATH, tiny.*got {argument}={value}"):
        load(name, **given)


def test_stream_is_a_boolean_or_none(tree):
    with pytest.raises(ValueError, match="stream must be True or False, got 1"):
        load(f"folder:{tree}", stream=1)


# Photo patches


def test_photo_patches_have_400_and_100_images_of_each_photograph(photo):
    for split, n in (("train", 400), ("test", 100)):
        assert photo[split].images.shape == (18 * n, 3, 32, 32)
        assert photo[split].labels.bincount().tolist() == [n] * 18
        assert photo[split].classes == tuple(patches.PHOTOGRAPHS)


def test_everyone_has_the_same_photo_patches(photo):
    assert float(photo["train"].images.double().mean()) == pytest.approx(108.876, abs=1e-2)
    assert float(photo["test"].images.double().mean()) == pytest.approx(109.921, abs=1e-2)


def test_making_photo_patches_twice_gives_the_same(photo):
    images, labels, classes = patches.photo_patches("test")
    assert torch.equal(torch.from_numpy(images), photo["test"].images)
    assert torch.equal(torch.from_numpy(labels), photo["test"].labels) and classes == photo["test"].classes


@pytest.mark.parametrize("name", ["astronaut", "page", "text", "hubble"])
def test_no_photo_window_leaves_the_blocks_of_its_split(name):
    grey = patches.photograph(name)
    rows, columns = ((np.arange(length) + 1) * 4 - 1 for length in grey.shape)
    for_test = patches.blocks_for_test(name)[rows[:, None] // len(rows), columns // len(columns)]
    assert patches.blocks_for_test(name).sum() == 4
    for split, wanted in (("train", False), ("test", True)):
        for top, left, side in patches.photo_windows(name, grey, split):
            assert 32 <= side <= 64
            window = for_test[top : top + side, left : left + side]
            assert window.shape == (side, side) and (window == wanted).all()


def test_no_photo_patch_was_flat():
    grey = patches.photograph("moon")
    windows = patches.photo_windows("moon", grey, "test")
    assert min(patches.cut(grey, window).std() for window in windows) >= 14


def test_a_photograph_that_shows_nothing_is_an_error_not_a_hang(monkeypatch):
    monkeypatch.setattr(patches, "TRIES", 2)
    with pytest.raises(RuntimeError, match="camera: only 0 of 200 .*for test"):
        patches.photo_windows("camera", np.full((512, 512), 7, np.uint8), "test")


def test_a_window_is_resized_without_looking_outside():
    picture = np.zeros((64, 64), np.uint8)
    picture[8:56, 8:56] = 100
    picture[:8], picture[:, 56:] = 255, 255
    assert (patches.cut(picture, (8, 8, 48)) == 100).all()


def test_alteration_stays_within_its_bounds():
    grey, rng = np.full((1, 32, 32), 100.0), numpy_shifted(0)
    levels = np.array([patches.altered(grey, rng)[:, 0, 0] for _ in range(300)])
    assert levels.min() >= 30 and levels.max() <= 170 and (levels.std(1) > 0).all()
    ramp = np.arange(32.0).repeat(32).reshape(1, 32, 32) + 100
    spread = [float(np.ptp(patches.altered(ramp, rng, offset=40)[0].astype(float))) for _ in range(300)]
    assert 31 * 0.6 * 0.5 - 1 <= min(spread) < 15 and 45 < max(spread) <= 31 * 1.4 * 1.5 + 1


def test_photo_patches_are_hard_for_raw_pixels_but_not_hopeless(photo):
    assert 0.20 < knn_accuracy(photo["train"], photo["test"]) < 0.40  # 0.25 measured; chance is 0.056


# Stereo patches


def test_stereo_patches_come_in_pairs_left_views_first(stereo):
    for split, n in (("train", 1141), ("test", 1343)):
        assert stereo[split].images.view(2, -1, 3, 32, 32).shape[1] == n
        assert torch.equal(stereo[split].labels.view(2, n), torch.arange(n).expand(2, n))
        assert len(set(stereo[split].classes)) == n
        assert stereo[split].classes[0].startswith("row 32 column ")


def test_everyone_has_the_same_stereo_patches(stereo):
    again, *_ = patches.stereo_patches("test")
    assert torch.equal(torch.from_numpy(again), stereo["test"].images)
    assert float(stereo["test"].images.double().mean()) == pytest.approx(96.884, abs=1e-2)


def test_stereo_halves_share_no_pixel_and_no_piece_of_the_scene():
    left, right, disparity = patches.photos.stereo_motorcycle()
    covered = {}
    for split in patches.SPLITS:
        for view, windows in zip(("left", "right"), patches.stereo_windows(left, disparity, split)):
            shown = np.zeros(disparity.shape, dtype=bool)
            for top, edge, side in windows:
                assert 16 <= side <= 64 and min(top, edge) >= 0
                assert top + side <= len(shown) and edge + side <= shown.shape[1]
                shown[top : top + side, edge : edge + side] = True
            covered[view, split] = shown
    for view in ("left", "right"):
        assert not (covered[view, "train"] & covered[view, "test"]).any()

    # What the right windows show, where the left picture shows it.
    rows, columns = np.nonzero(np.isfinite(disparity))
    match = np.rint(columns - disparity[rows, columns]).astype(int)
    rows, columns, match = rows[match >= 0], columns[match >= 0], match[match >= 0]
    for split, other in (("train", "test"), ("test", "train")):
        seen = covered["right", split][rows, match]
        assert not covered["left", other][rows[seen], columns[seen]].any()


def test_stereo_centres_are_matched_by_the_disparity():
    left, _, disparity = patches.photos.stereo_motorcycle()
    rows, columns, matches = patches.stereo_centres(left, disparity, "train").T
    assert np.abs(columns - disparity[rows, columns] - matches).max() <= 0.5


def test_hidden_unknown_and_outside_pixels_are_not_seen_by_both():
    disparity = np.full((3, 40), 5.0)
    disparity[:, 20:25] = 12  # a post: it covers right columns 8 to 12, where left columns 13 to 17 fall
    disparity[1, 30] = np.inf
    seen = patches.seen_by_both(disparity)
    assert not seen[:, :5].any()
    assert not seen[:, 13:18].any()
    assert seen[:, 20:25].all()
    assert seen[0, 30] and not seen[1, 30]
    assert seen[:, 5:12].all() and seen[0, 25:].all()


def test_stereo_pairs_match_by_raw_pixels_only_without_the_alterations(stereo):
    left, right, disparity = patches.photos.stereo_motorcycle()
    rows, columns, matches = patches.stereo_centres(left, disparity, "test").T
    plain = [
        torch.from_numpy(
            np.stack([patches.cut(picture, (row - 16, column - 16, 32)) for row, column in zip(rows, where)])
        )
        for picture, where in ((left, columns), (right, matches))
    ]
    assert matching_accuracy(*plain) > 0.9  # 0.96 measured
    assert 0.3 < matching_accuracy(*stereo["test"].images.view(2, -1, 3, 32, 32)) < 0.6  # 0.47 measured


# What is kept


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A small set under a name, counted when it is made; the file it is kept in."""
    calls = []

    def make(split):
        calls.append(split)
        return np.zeros((4, 3, 8, 8), np.uint8), np.array([0, 0, 1, 1]), ("a", "b")

    monkeypatch.setitem(sets.MADE, "photo-patches", make)
    return tmp_path / "photo-patches" / "patches.npz", calls


def test_patches_are_made_once_and_kept_in_one_file(kept):
    path, calls = kept
    for split in ("train", "test", "train"):
        found = load("photo-patches", path.parent.parent, split)
        assert found.images.shape == (4, 3, 8, 8) and found.classes == ("a", "b")
    assert calls == ["train", "test"]
    assert os.listdir(path.parent) == ["patches.npz"]


def test_a_writing_that_fails_leaves_nothing_behind(kept, monkeypatch):
    def fail(file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        load("photo-patches", kept[0].parent.parent)
    assert not os.listdir(kept[0].parent)


@pytest.mark.parametrize(
    "damage", ["truncated", "one byte", "text", "empty", "array", "foreign", "old", "unfit"]
)
def test_a_damaged_or_foreign_file_is_named_and_not_used(kept, damage):
    path, calls = kept
    load("photo-patches", path.parent.parent)
    whole = path.read_bytes()
    arrays = dict(np.load(path))
    if damage == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "one byte":
        path.write_bytes(whole.replace(b"\x00" * 700, b"\x00" * 699 + b"\x01", 1))
    elif damage == "text":
        path.write_text("not an archive")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif damage == "foreign":
        np.savez(path, other=np.zeros(3))
    elif damage == "old":
        np.savez(path, **arrays | {"format": 0})
    else:
        np.savez(path, **arrays | {"labels_train": np.array([0, 1, 2, 3])})
    left = path.read_bytes()
    with pytest.raises(ValueError, match=r"patches\.npz is truncated or not .*delete it"):
        load("photo-patches", path.parent.parent)
    assert path.read_bytes() == left and calls == ["train", "test"]


# Folders


@pytest.fixture
def tree(tmp_path):
    """Two classes of 8x6 PNG images, their grey level telling them apart."""
    for split, levels in (("train", (10, 20)), ("val", (30,))):
        for label, name in enumerate(("bee", "ant")):
            for level in levels:
                save(tmp_path / split / name / f"{level}.png", level + label)
    return tmp_path


def save(path, level, size=(8, 6), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (level, 0, 200)).convert(mode).save(path)


def test_a_folder_is_read_by_sorted_classes_and_names(tree):
    train = load(f"folder:{tree}")
    assert train.images.shape == (4, 3, 6, 8) and train.classes == ("ant", "bee")
    assert train.labels.tolist() == [0, 0, 1, 1]
    assert train.images[:, :, 0, 0].tolist() == [[n, 0, 200] for n in (11, 21, 10, 20)]


def test_the_test_split_is_val_or_else_test(tree):
    assert load(f"folder:{tree}", split="test").images[:, 0, 0, 0].tolist() == [31, 30]
    (tree / "val").rename(tree / "test")
    assert load(f"folder:{tree}", split="test").images[:, 0, 0, 0].tolist() == [31, 30]


def test_a_relative_folder_is_relative_to_the_current_directory(tree, monkeypatch):
    monkeypatch.chdir(tree.parent)
    assert len(load(f"folder:{tree.name}", root="elsewhere")) == 4


def test_every_mode_becomes_rgb(tmp_path):
    for mode in ("L", "P", "RGBA", "CMYK", "1", "LA"):
        save(tmp_path / "train" / "a" / f"{mode}.{'tif' if mode == 'CMYK' else 'png'}", 100, mode=mode)
    assert load(f"folder:{tmp_path}").images.shape == (6, 3, 6, 8)


def test_16_bit_images_are_refused_not_clipped(tmp_path):
    path = tmp_path / "train" / "a" / "deep.png"
    path.parent.mkdir(parents=True)
    Image.fromarray(np.full((6, 8), 3000, np.uint16)).save(path)
    with pytest.raises(ValueError, match=r"deep\.png is no image that can be read .*8 bits"):
        load(f"folder:{tmp_path}")


def test_size_resizes_the_shorter_side_and_crops_the_centre(tmp_path):
    row = np.repeat(np.array([0, 100, 200], np.uint8), [10, 40, 10])
    stripes = np.broadcast_to(row[None, :, None], (40, 60, 3))
    (tmp_path / "train" / "a").mkdir(parents=True)
    Image.fromarray(stripes.copy()).save(tmp_path / "train" / "a" / "wide.png")
    Image.fromarray(stripes.transpose(1, 0, 2).copy()).save(tmp_path / "train" / "a" / "tall.png")
    images = load(f"folder:{tmp_path}", size=20).images
    assert images.shape == (2, 3, 20, 20) and (images[:, :, 2:-2, 2:-2] == 100).all()


def test_large_images_decoded_in_threads_keep_their_order(tmp_path):
    for level in range(12):
        save(tmp_path / "train" / "a" / f"{level:02d}.png", level, size=(160, 130))
    assert load(f"folder:{tmp_path}").images[:, 0, 0, 0].tolist() == list(range(12))
    save(tmp_path / "train" / "a" / "05.png", 5, size=(161, 130))
    with pytest.raises(ValueError, match=r"05\.png of 161x130"):
        load(f"folder:{tmp_path}")


def test_different_sizes_are_named_with_the_remedy(tree):
    save(tree / "train" / "bee" / "20.png", 20, size=(9, 6))
    with pytest.raises(ValueError, match=r"ant/10\.png of 8x6 .*bee/20\.png of 9x6; load them with size="):
        load(f"folder:{tree}")
    assert load(f"folder:{tree}", size=4).images.shape == (4, 3, 4, 4)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "32"])
def test_a_bad_size_is_refused(tree, size):
    with pytest.raises(ValueError, match=f"size must be .*{size}"):
        load(f"folder:{tree}", size=size)


def test_hidden_files_are_ignored(tree):
    (tree / "train" / "bee" / ".DS_Store").write_text("x")
    (tree / "train" / ".ipynb_checkpoints").mkdir()
    assert len(load(f"folder:{tree}")) == 4


def test_a_truncated_jpeg_is_named(tree):
    noise = numpy_shifted(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "jpeg")
    (tree / "train" / "bee" / "cut.jpg").write_bytes(stream.getvalue()[: stream.tell() // 2])
    with pytest.raises(ValueError, match=r"bee/cut\.jpg is no image that can be read .*truncated.*replace"):
        load(f"folder:{tree}")


@pytest.mark.parametrize("name", ["notes.png", "aaa.png"])  # not the first file read, and the first
def test_a_text_file_among_images_is_named(tree, name):
    (tree / "train" / "ant" / name).write_text("these are ants")
    with pytest.raises(ValueError, match=f"ant/{name} is no image that can be read"):
        load(f"folder:{tree}")


def test_a_folder_among_images_is_named(tree):
    (tree / "train" / "ant" / "more").mkdir()
    with pytest.raises(ValueError, match="ant/more is no image that can be read"):
        load(f"folder:{tree}")


def test_a_file_among_class_folders_is_named(tree):
    save(tree / "train" / "stray.png", 1)
    with pytest.raises(ValueError, match=r"train/stray\.png is no folder, among class folders"):
        load(f"folder:{tree}")


@pytest.mark.parametrize("inside, there, missing", [("val", "val", "train"), ("train", "train", "val")])
def test_both_splits_need_the_same_classes(tree, inside, there, missing):
    save(tree / inside / "wasp" / "1.png", 1)
    with pytest.raises(ValueError, match=f"{there}/wasp has no counterpart in .*{missing};"):
        load(f"folder:{tree}", split="test")


def test_missing_and_empty_folders_are_named(tree):
    with pytest.raises(FileNotFoundError, match="nowhere is no folder; folder:PATH takes PATH/train"):
        load("folder:nowhere")
    (tree / "train" / "wasp").mkdir()
    with pytest.raises(ValueError, match="train/wasp has no images"):
        load(f"folder:{tree}")
    (tree / "empty" / "train").mkdir(parents=True)
    with pytest.raises(ValueError, match="empty/train has no class folders"):
        load(f"folder:{tree / 'empty'}")
    (tree / "val").rename(tree / "validation")
    with pytest.raises(FileNotFoundError, match="has no folder val or test; `evaluate`"):
        load(f"folder:{tree}", split="test")


def test_too_many_pixels_are_streamed_or_refused_before_they_are_decoded(tree, monkeypatch):
    monkeypatch.setattr(folders, "MOST_BYTES", 500)
    whole = load(f"folder:{tree}")
    assert isinstance(whole.images, Photographs) and whole.images.shape == (4, 3, 6, 8)
    with pytest.raises(
        ValueError, match="4 images of 8x6 pixels would take .* GB.*smaller size= or stream=True"
    ):
        load(f"folder:{tree}", stream=False)
    assert isinstance(load(f"folder:{tree}", size=4).images, torch.Tensor)


def test_what_is_streamed_is_what_would_be_decoded(tree):
    decoded, streamed = load(f"folder:{tree}"), load(f"folder:{tree}", stream=True)
    assert isinstance(streamed.images, Photographs) and repr(streamed) == repr(decoded)
    assert torch.equal(streamed.images[:], decoded.images) and torch.equal(streamed.labels, decoded.labels)
    assert streamed.classes == decoded.classes


def test_a_sample_of_what_is_streamed_is_not_decoded(tree, monkeypatch):
    whole, streamed = load(f"folder:{tree}"), load(f"folder:{tree}", stream=True)
    with monkeypatch.context() as patch:
        patch.setattr(Photographs, "__getitem__", None)
        part = streamed.sample(3, seed=2)
    assert isinstance(part.images, Photographs) and len(part) == 3
    assert torch.equal(part.images[:], whole.sample(3, seed=2).images)
    assert torch.equal(part.labels, whole.sample(3, seed=2).labels)


# Downloads


@pytest.mark.parametrize(
    "name, archive, where",
    [
        ("mnist", "train-images-idx3-ubyte.gz", "mnist/MNIST/raw"),
        ("cifar10", "cifar-10-python.tar.gz", "cifar10"),
        ("cifar100", "cifar-100-python.tar.gz", "cifar100"),
        ("svhn", "train_32x32.mat", "svhn"),
        ("stl10", "stl10_binary.tar.gz", "stl10"),
    ],
)
def test_offline_the_error_says_what_to_put_where(name, archive, where, tmp_path, offline, capsys):
    with pytest.raises(ConnectionError) as caught:
        load(name, tmp_path)
    words = str(caught.value)
    assert words.startswith(f"{name} is not under {tmp_path / name} and could not be downloaded")
    assert "no network in this test" in words and archive in words and f"into {tmp_path / where}," in words
    assert "'photo-patches', which needs no download" in words
    assert capsys.readouterr().out == ""


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def mnist(tmp_path):
    raw = tmp_path / "mnist" / "MNIST" / "raw"
    for part, n in (("train", 10), ("t10k", 4)):
        write_idx(raw / f"{part}-images-idx3-ubyte", np.arange(n * 784).reshape(n, 28, 28) % 251)
        write_idx(raw / f"{part}-labels-idx1-ubyte", np.arange(n))
    return raw


def test_mnist_has_one_channel(mnist, tmp_path, offline, capsys):
    train, test = (load("mnist", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (10, 1, 28, 28) and len(test) == 4
    assert train.images[1, 0, 0, 0] == 784 % 251 and train.labels.tolist() == list(range(10))
    assert train.classes[3] == "3 - three"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"])
def test_a_damaged_mnist_file_is_named(mnist, tmp_path, offline, name):
    (mnist / name).write_bytes((mnist / name).read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"{name} is truncated or not MNIST's .*delete it"):
        load("mnist", tmp_path, "train" if "train" in name else "test")


def test_a_damaged_archive_of_mnist_is_named_where_it_is_needed(mnist, tmp_path, offline):
    (mnist / "train-images-idx3-ubyte.gz").write_bytes(b"half a download")
    assert len(load("mnist", tmp_path)) == 10
    (mnist / "train-images-idx3-ubyte").unlink()
    with pytest.raises(ValueError, match="train-images-idx3-ubyte.gz is truncated or not MNIST's"):
        load("mnist", tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x00\x00", b"<html>no such page</html>"])
def test_a_foreign_mnist_file_is_named(mnist, tmp_path, content):
    (mnist / "train-labels-idx1-ubyte").write_bytes(content)
    with pytest.raises(ValueError, match="train-labels-idx1-ubyte is truncated or not"):
        load("mnist", tmp_path)


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """CIFAR-10 with three images a batch and the checksums of these."""
    kind, folder = datasets.CIFAR10, tmp_path / "cifar10" / datasets.CIFAR10.base_folder
    folder.mkdir(parents=True)

    def write(name, content):
        (folder / name).write_bytes(pickle.dumps(content))
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    names = [name for name, _ in kind.train_list + kind.test_list]
    batches = {
        name: {"data": np.full((3, 3072), i, np.uint8), "labels": [0, 9, i]} for i, name in enumerate(names)
    }
    batches["test_batch"]["data"][:, 1024:2048] = 77  # the green channel
    sums = {name: write(name, content) for name, content in batches.items()}
    meta = write("batches.meta", {"label_names": [f"class {i}" for i in range(10)]})
    monkeypatch.setattr(kind, "train_list", [[name, sums[name]] for name in names[:-1]])
    monkeypatch.setattr(kind, "test_list", [[names[-1], sums[names[-1]]]])
    monkeypatch.setattr(kind, "meta", kind.meta | {"md5": meta})
    return folder


def test_cifar_has_channels_first(cifar, tmp_path, offline, capsys):
    train, test = (load("cifar10", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (15, 3, 32, 32) and train.labels[:6].tolist() == [0, 9, 0, 0, 9, 1]
    assert (test.images[:, 1] == 77).all() and (test.images[:, 0] == 5).all()
    assert test.classes[9] == "class 9"
    assert capsys.readouterr() == ("", "")


def test_cifar_is_unpacked_from_an_archive_put_there(cifar, tmp_path, offline, monkeypatch):
    archive = tmp_path / "cifar10" / datasets.CIFAR10.filename
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(cifar, cifar.name)
    for path in cifar.iterdir():
        path.unlink()
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", hashlib.md5(archive.read_bytes()).hexdigest())
    assert len(load("cifar10", tmp_path)) == 15


@pytest.mark.parametrize("name", ["cifar10", "stl10", "svhn"])
def test_a_file_is_hashed_once(cifar, stl10, svhn, tmp_path, monkeypatch, name):
    """These sets are gigabytes; what torchvision has verified is not verified again."""
    hashed, calculate = Counter(), datasets.utils.calculate_md5
    monkeypatch.setattr(
        datasets.utils, "calculate_md5", lambda path, *more: hashed.update([path]) or calculate(path, *more)
    )
    load(name, tmp_path)
    assert hashed and set(hashed.values()) == {1}


@pytest.mark.parametrize("name", ["data_batch_3", "test_batch", "batches.meta"])
def test_a_damaged_cifar_file_is_named(cifar, tmp_path, offline, name):
    (cifar / name).write_bytes((cifar / name).read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"{name} is truncated or not CIFAR10's .*delete it"):
        load("cifar10", tmp_path)


def test_a_download_broken_off_is_named(tmp_path, offline):
    archive = tmp_path / "cifar10" / datasets.CIFAR10.filename
    archive.parent.mkdir()
    archive.write_bytes(b"half a download")
    with pytest.raises(ValueError, match=r"cifar-10-python\.tar\.gz is truncated or not CIFAR10's"):
        load("cifar10", tmp_path)


def test_an_error_of_the_disk_is_not_called_one_of_the_network(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(urllib.request, "urlopen", full)
    with pytest.raises(OSError, match="No space left") as caught:
        load("cifar10", tmp_path)
    assert not isinstance(caught.value, ConnectionError)


@pytest.fixture
def svhn(tmp_path, monkeypatch):
    """Five digits of SVHN, whose file says 10 for 0, and the checksums of these."""
    folder, split_list = tmp_path / "svhn", {}
    folder.mkdir()
    for split, (url, name, _) in datasets.SVHN.split_list.items():
        images = np.arange(32 * 32 * 3 * 5).reshape(32, 32, 3, 5) % 251
        scipy.io.savemat(
            folder / name, {"X": images.astype(np.uint8), "y": np.array([[1], [10], [3], [10], [9]])}
        )
        split_list[split] = [url, name, hashlib.md5((folder / name).read_bytes()).hexdigest()]
    monkeypatch.setattr(datasets.SVHN, "split_list", split_list)
    return folder


def test_svhn_has_digits_and_channels_first(svhn, tmp_path, offline, capsys):
    for split in patches.SPLITS:
        found = load("svhn", tmp_path, split)
        assert found.images.shape == (5, 3, 32, 32) and found.labels.tolist() == [1, 0, 3, 0, 9]
        assert found.classes == tuple("0123456789")
        place = ((2 * 32 + 7) * 3 + 1) * 5 + 4  # row 2, column 7, green, the last image
        assert found.images[4, 1, 2, 7] == place % 251
    assert capsys.readouterr() == ("", "")


def test_a_damaged_svhn_file_is_named_for_its_split(svhn, tmp_path, offline):
    (svhn / "test_32x32.mat").write_bytes(b"half a download")
    with pytest.raises(ValueError, match=r"test_32x32\.mat is truncated or not SVHN's"):
        load("svhn", tmp_path, "test")
    assert len(load("svhn", tmp_path)) == 5


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
    for names in ("train_list", "test_list"):
        sums = [[n, hashlib.md5((folder / n).read_bytes()).hexdigest()] for n, _ in getattr(kind, names)]
        monkeypatch.setattr(kind, names, sums)
    return folder


def test_stl10_has_an_unlabelled_split(stl10, tmp_path, offline, capsys):
    train, test, all_of_it = (load("stl10", tmp_path, split) for split in ("train", "test", "unlabelled"))
    assert train.images.shape == (4, 3, 96, 96) and train.labels.tolist() == [0, 9, 1, 1]
    assert train.classes == test.classes == STL_CLASSES
    assert test.labels.tolist() == [0, 9, 1] and test.images[:, 0, 5, 5].tolist() == [20, 21, 22]
    assert (train.images[:, :, 0] == 1).all() and (train.images[:, :, 1:] >= 10).all(), "rows, then columns"
    assert all_of_it.images[:, 2, 9, 9].tolist() == [10, 11, 12, 13, 30, 31, 32, 33, 34, 35]
    assert all_of_it.labels.tolist() == [0, 9, 1, 1] + [-1] * 6
    assert all_of_it.classes == STL_CLASSES
    assert capsys.readouterr() == ("", "")


def test_pretraining_takes_all_images():
    assert data.pretraining_split("stl10") == "unlabelled"
    for name in ("cifar10", "imagenet", "folder:somewhere"):
        assert data.pretraining_split(name) == "train"


def test_only_stl10_has_an_unlabelled_split(tmp_path):
    with pytest.raises(ValueError, match="split must be one of 'train', 'test', got 'unlabelled'"):
        load("svhn", tmp_path, "unlabelled")


@pytest.mark.parametrize("name", ["unlabeled_X.bin", "test_y.bin"])
def test_a_damaged_stl10_file_is_named(stl10, tmp_path, offline, name):
    (stl10 / name).write_bytes((stl10 / name).read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"{name} is truncated or not STL10's .*delete it"):
        load("stl10", tmp_path)


def test_stl10_without_its_class_names_is_refused(stl10, tmp_path, offline):
    (stl10 / "class_names.txt").unlink()
    with pytest.raises(ValueError, match="stl10 lacks the file of class names"):
        load("stl10", tmp_path)


# tiny-ImageNet and ImageNet, with few classes and images


@pytest.fixture
def few(monkeypatch):
    """What the three sets are known to hold, cut down: 3 classes of 2 (or 2 to 3) and 1 images."""
    names = ("n01", "n02", "n03")
    for name, most in (("tiny-imagenet", 2), ("imagenet100", 3), ("imagenet", 3)):
        kept = names[1:] if name == "imagenet100" else ()
        classes = len(kept) or 3
        counts = dict(train=2 * classes if name != "imagenet" else 7, test=classes)
        size = None if name == "tiny-imagenet" else 8
        each = dict(train=(2, most), test=(1, 1))
        monkeypatch.setitem(folders.TREES, name, folders.Expected(classes, counts, each, size, kept))


def make_tiny(root):
    place = root / "tiny-imagenet-200"
    for label, wnid in enumerate(("n03", "n01", "n02")):
        for i in range(2):
            save(place / "train" / wnid / "images" / f"{wnid}_{i}.JPEG.png", 10 * label + i)
        (place / "train" / wnid / f"{wnid}_boxes.txt").write_text("boxes")
        save(place / "val" / "images" / f"val_{label}.png", 50 + label)
    lines = [f"val_{i}.png\t{wnid}\t0\t0\t62\t62\n" for i, wnid in enumerate(("n03", "n01", "n02"))]
    (place / "val" / "val_annotations.txt").write_text("".join(lines))
    (place / "wnids.txt").write_text("n03\nn01\nn02\n")
    return place


def test_tiny_imagenet_is_read_as_it_is_unpacked(few, tmp_path, offline):
    make_tiny(tmp_path)
    train, test = (load("tiny-imagenet", tmp_path, split) for split in patches.SPLITS)
    assert train.classes == test.classes == ("n01", "n02", "n03")
    assert train.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21, 0, 1] and train.labels.tolist() == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    assert test.images[:, 0, 0, 0].tolist() == [51, 52, 50] and test.labels.tolist() == [0, 1, 2]
    assert load("tiny-imagenet", tmp_path, size=4, stream=True).images[:].shape == (6, 3, 4, 4)


def test_tiny_imagenet_is_unpacked_from_an_archive_put_there(few, tmp_path, offline, monkeypatch, capsys):
    place = make_tiny(tmp_path / "elsewhere")
    shutil.make_archive(tmp_path / "tiny-imagenet-200", "zip", tmp_path / "elsewhere", place.name)
    archive = tmp_path / "tiny-imagenet-200.zip"
    with pytest.raises(ValueError, match=r"tiny-imagenet-200\.zip is truncated or not http.*delete it"):
        load("tiny-imagenet", tmp_path)
    monkeypatch.setattr(folders, "TINY_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    assert len(load("tiny-imagenet", tmp_path)) == 6
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "tiny-imagenet-200", "tiny-imagenet-200.zip"]
    assert capsys.readouterr().out == ""


def test_offline_tiny_imagenet_says_what_to_put_where(tmp_path, offline):
    with pytest.raises(
        ConnectionError, match=r"no network.*fetch https://.*tiny-imagenet-200\.zip and put it into"
    ):
        load("tiny-imagenet", tmp_path)
    assert not os.listdir(tmp_path)


def lose(path):
    (shutil.rmtree if path.is_dir() else os.remove)(path)


@pytest.mark.parametrize(
    "lost, split, words",
    [
        ("train/n02", "train", "train/n02/images is missing; get the set again"),
        ("train/n02/images/n02_1.JPEG.png", "train", r"2 train images of each class .*got n02 \(1\); unpack"),
        ("val/images/val_1.png", "test", r"1 test images of each class .*got n01 \(0\); unpack"),
        ("wnids.txt", "train", r"wnids\.txt is missing; tiny-imagenet must lie as http"),
        ("val/val_annotations.txt", "test", r"val_annotations\.txt is missing"),
    ],
)
def test_what_lacks_in_tiny_imagenet_is_named(few, tmp_path, lost, split, words):
    lose(make_tiny(tmp_path) / lost)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load("tiny-imagenet", tmp_path, split)


def make_imagenet(place):
    for label, wnid in enumerate(("n01", "n02", "n03")):
        for i in range(3 if label == 0 else 2):
            save(place / "train" / wnid / f"{wnid}_{i}.png", 10 * label + i, size=(12 + label, 10))
        save(place / "val" / wnid / f"val_{label}.png", 50 + label)


def test_imagenet_is_read_at_224_unless_told_otherwise(few, tmp_path):
    make_imagenet(tmp_path / "imagenet")
    train, test = (load("imagenet", tmp_path, split) for split in patches.SPLITS)
    assert train.images.shape == (7, 3, 8, 8) and train.labels.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert test.images[:, 0, 0, 0].tolist() == [50, 51, 52]
    assert load("imagenet", tmp_path, size=5).images.shape == (7, 3, 5, 5)


def test_imagenet100_is_its_own_folder_or_a_part_of_imagenet(few, tmp_path):
    make_imagenet(tmp_path / "imagenet")
    part = load("imagenet100", tmp_path)
    assert part.classes == ("n02", "n03") and part.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21]
    (tmp_path / "imagenet").rename(tmp_path / "imagenet100")
    assert torch.equal(load("imagenet100", tmp_path).images, part.images)


@pytest.mark.parametrize("name", ["imagenet", "imagenet100"])
def test_imagenet_says_what_to_put_where(name, tmp_path):
    words = rf"imagenet/train is no folder; {name} cannot be downloaded .*image-net\.org .*train/WNID/ and "
    with pytest.raises(FileNotFoundError, match=words):
        load(name, tmp_path)


@pytest.mark.parametrize(
    "name, lost, words",
    [
        ("imagenet", ["val/n02"], "train/n02 has no counterpart in .*val"),
        (
            "imagenet",
            ["val/n02", "train/n02"],
            "the 3 classes of imagenet, got 2; complete it, or load it as folder:",
        ),
        (
            "imagenet",
            ["train/n03/n03_1.png"],
            r"2 to 3 train images of each class of imagenet, got n03 \(1\)",
        ),
        ("imagenet", ["train/n01/n01_1.png"], "the 7 train images of imagenet, got 6"),
        (
            "imagenet100",
            ["train/n02", "val/n02"],
            "must hold the 2 classes of imagenet100, got 1, without n02; complete it",
        ),
        ("imagenet100", ["val/n03"], "train/n03 has no counterpart in .*val"),
    ],
)
def test_what_lacks_in_imagenet_is_named(few, tmp_path, name, lost, words):
    make_imagenet(tmp_path / "imagenet")
    for path in lost:
        lose(tmp_path / "imagenet" / path)
    with pytest.raises(ValueError, match=words):
        load(name, tmp_path)


def test_the_expected_numbers_are_the_published_ones():
    expected = folders.TREES
    assert expected["imagenet"].images == dict(train=1_281_167, test=50_000)
    assert expected["imagenet"].classes == 1000
    assert expected["tiny-imagenet"].images == dict(train=200 * 500, test=200 * 50)
    wnids = expected["imagenet100"].names
    assert len(set(wnids)) == 100 and all(re.fullmatch(r"n\d{8}", wnid) for wnid in wnids)
    assert list(wnids) == sorted(wnids) and {"n02869837", "n02090622"} <= set(wnids)
    text = (files("setclr.data") / "imagenet100.txt").read_text().strip()
    assert hashlib.md5(text.encode()).hexdigest() == "b466a51f4134c8f593cf75cb7f62cdc5"


def test_every_name_is_listed():
    assert data.NAMES[-2:] == ("folder:PATH", "pairs:PATH") and len(set(data.NAMES)) == 12
    assert {"svhn", "stl10", "tiny-imagenet", "imagenet100", "imagenet", "photo-patches"} <= set(data.NAMES)

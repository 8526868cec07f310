"""Sets of images in memory: what they hold, samples, names that are loaded, the files of patches."""

import os
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from unittest.mock import Mock, call

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setclr.data import NAMES, ImageSet, known, load, patches, two_views
from setclr.data.sets import validation_split
from setclr.data_sets import DATA_SETS


def made(labels):
    """An ImageSet whose images carry their own index."""
    images = torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 4, 4)
    return ImageSet(images, torch.tensor(labels), tuple(f"class {i}" for i in range(max(labels) + 1)))


PIXELS, LABELS = torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize("images, labels, words", [
    (PIXELS.float(), LABELS, "images must be .*float32"), (PIXELS[:, 0], LABELS, r"images .*\(2, 4, 4\)"),
    (PIXELS.numpy(), LABELS, "images must be .*ndarray"), (PIXELS[:0], LABELS[:0], "images .*N >= 1"),
    (PIXELS, LABELS + 0.5, "labels must be 2 whole numbers"), (PIXELS, LABELS[:, None], "labels must be"),
    (PIXELS, torch.zeros(3, dtype=torch.int64), r"labels must be 2 .*shape \(3,\)"),
    (PIXELS, torch.tensor([0, 2]), "labels must be indices of the 2 classes, or -1 for no label, got 2"),
    (PIXELS, torch.tensor([-2, 0]), "labels must be .* -1 or more, got -2 at place 0"),
])  # fmt: skip
def test_what_does_not_fit_together_is_refused(images, labels, words):
    with pytest.raises(ValueError, match=words):
        ImageSet(images, labels, ("a", "b"))
    assert ImageSet(PIXELS, LABELS.int(), ("a", "b")).labels.dtype == torch.int64


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 9), st.data())
def test_a_sample_is_even_distinct_and_repeatable(counts, seed, draw):
    whole = made([label for label, count in enumerate(counts) for _ in range(count)])
    n = draw.draw(st.integers(1, len(whole)))
    part, again = whole.sample(n, seed), whole.sample(n, seed)
    assert torch.equal(part.images, again.images)
    indices = part.images[:, 0, 0, 0].long()
    assert len(set(indices.tolist())) == len(part) == n
    assert torch.equal(part.labels, whole.labels[indices]) and part.classes == whole.classes
    taken = part.labels.bincount(minlength=len(counts)).tolist()
    assert all(t >= max(taken) - 1 or t == count for t, count in zip(taken, counts))
    for wrong in (0, len(whole) + 1, 2.0):
        with pytest.raises(ValueError, match=f"n must be .*{wrong}.*the set has {len(whole)}"):
            whole.sample(wrong)


def test_a_sample_is_not_sorted_by_class_and_another_seed_gives_another():
    whole = made([0] * 50 + [1] * 50)
    labels = whole.sample(60).labels
    assert 10 < int((labels[1:] != labels[:-1]).sum()) < 50
    assert not torch.equal(whole.sample(20, 0).images, whole.sample(20, 1).images)


def test_images_without_a_label_are_a_group_of_their_own():
    some = made([-1, 0, 1] * 20)
    assert repr(some).endswith("2 classes, 20 without a label>")
    rest, held = validation_split("folder:x", some)
    for part in (some.sample(12), held):
        assert (part.labels + 1).bincount().tolist() == [4, 4, 4]
    assert len(rest) == 48 and two_views(some).shape == (2, 2, 3, 4, 4)


def test_a_class_of_one_image_is_trained_on():
    rest, held = validation_split("folder:x", made([0, 0, 1, 1, 1, 2]))
    assert set(held.labels.tolist()) <= set(rest.labels.tolist()) and len(held)
    with pytest.raises(ValueError, match="train must have a class of two or more"):
        validation_split("folder:x", made(range(6)))


@pytest.mark.parametrize("given, message", [
    (dict(name="cifar11"), "name must be .*'cifar11'; did you mean 'cifar10'"),
    *((dict(name=name), "name must be one of 'photo-patches'") for name in ("x", None, Path("cifar10"))),
    (dict(name="svhn", split="unlabelled"), "split must be one of 'train', 'test', got 'unlabelled'"),
    (dict(name="mnist", size=32), "size must be left out for mnist, got 32"),
    (dict(name="photo-patches", stream=False), "stream must be left out for photo-patches, got False"),
    (dict(name="folder:x", stream=1), "stream must be True or False, got 1"),
    (dict(name="folder:x", verify=1), "verify must be True or False, got 1"),
])  # fmt: skip
def test_every_wrong_argument_of_load(given, message):
    with pytest.raises(ValueError, match=message):
        load(**given)


def test_only_stl10_is_trained_on_more_than_its_training_split():
    splits = {name: known(name).pretraining for name in NAMES}
    assert len(splits) == 10 and splits == dict.fromkeys(splits, "train") | {"stl10": "unlabelled"}


@pytest.mark.parametrize("name", DATA_SETS)
def test_an_entry_names_functions_that_take_what_it_gives_them(name):
    this = DATA_SETS[name]
    read = resolve_name(f"setclr.data.{this.read}")
    signature(read).bind(*this.of, Path(), "train", **dict.fromkeys(this.takes))
    assert not this.validation or callable(resolve_name(f"setclr.data.{this.validation}"))
    assert bool(this.mirror) == (name == "pairs:")


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A small set under a name: the file it is kept in, and what makes it."""
    make = Mock(return_value=(np.zeros((4, 3, 8, 8), np.uint8), np.array([0, 0, 1, 1]), ("a", "b")))
    monkeypatch.setattr(patches, "photo_patches", make)
    return tmp_path / "photo-patches" / f"train-{patches.FORMAT}.npz", make


def test_patches_are_made_once_and_kept_in_a_file_for_each_split(kept):
    path, make = kept
    for split in ("train", "test", "train"):
        found = load("photo-patches", path.parent.parent, split)
        assert found.images.shape == (4, 3, 8, 8) and found.classes == ("a", "b")
    assert make.mock_calls == [call("train"), call("test")]
    assert sorted(os.listdir(path.parent)) == [path.name.replace("train", "test"), path.name]


DAMAGE = {
    "truncated": lambda path, whole, _: path.write_bytes(whole[: len(whole) // 2]),
    "one byte": lambda path, whole, _: path.write_bytes(whole.replace(bytes(700), bytes(699) + b"\1", 1)),
    "empty": lambda path, *_: path.write_bytes(b""),
    "array": lambda path, *_: np.save(path.open("wb"), np.zeros(3)),
    "foreign": lambda path, *_: np.savez(path, other=np.zeros(3)),
    "unfit": lambda path, _, arrays: np.savez(path, **arrays | {"arr_1": np.arange(4)}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_is_named_and_not_used(kept, damage):
    path, make = kept
    load("photo-patches", path.parent.parent)
    DAMAGE[damage](path, path.read_bytes(), dict(np.load(path)))
    left = path.read_bytes()
    with pytest.raises(ValueError, match=r"train-.*\.npz is damaged .*delete it"):
        load("photo-patches", path.parent.parent)
    assert path.read_bytes() == left and make.call_count == 1

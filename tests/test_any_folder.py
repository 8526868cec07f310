"""Any folder of photographs, and any Dataset: what is read, passed over, or refused in a line."""

import multiprocessing
import os
import traceback
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image
from torch.utils.data import Dataset, Subset, TensorDataset

from setclr.data import ImageSet, image_set, load, two_views
from setclr.data.any_folder import images_below
from setclr.data.streaming import streamed
from setclr.data.validation import validation_split


def fill(folder: Path, count: int = 3, size=(16, 16)) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        Image.new("RGB", size, (i, 9, 9)).save(folder / f"{i}.png")


def litter(folder: Path) -> None:
    """What lies in people's folders and is no photograph."""
    for name in ("Thumbs.db", "notes.txt", "features.h5", "clip.mpg", ".hidden.png", "README"):
        (folder / name).write_bytes(b"no image")
    (folder / "gone.jpg").symlink_to("nowhere")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    (folder / ".cache").mkdir()
    fill(folder / ".cache")


# Three layouts


def test_a_tree_with_splits_is_read_through_any_litter(tmp_path):
    for place in ("train/ant", "train/bee", "val/ant", "val/bee"):
        fill(tmp_path / place)
    for place in (".", "train", "train/ant", "val/bee", "val"):
        litter(tmp_path / place)
    for split in ("train", "test"):
        found = load(f"folder:{tmp_path}", split=split)
        assert (
            len(found) == 6 and found.classes == ("ant", "bee") and found.labels.tolist() == [0] * 3 + [1] * 3
        )


def test_classes_without_splits_are_one_split(tmp_path):
    for name in ("ant", "bee"):
        fill(tmp_path / name)
        litter(tmp_path / name)
    litter(tmp_path)
    found = load(f"folder:{tmp_path}")
    assert len(found) == 6 and found.classes == ("ant", "bee") and found.labels.tolist() == [0] * 3 + [1] * 3
    with pytest.raises(
        FileNotFoundError, match="has no folder val or test; `evaluate` splits the images by a"
    ):
        load(f"folder:{tmp_path}", split="test")
    rest, held = validation_split(f"folder:{tmp_path}", found)
    assert len(rest) + len(held) == 6 and len(held) >= 1 and held.classes == found.classes
    (tmp_path / "wasp").mkdir()
    with pytest.raises(ValueError, match="wasp has no images; fill it or remove it"):
        load(f"folder:{tmp_path}")


def test_a_train_folder_alone_has_no_test_split_either(tmp_path):
    fill(tmp_path / "train" / "ant")
    with pytest.raises(FileNotFoundError, match="has no folder val or test; `evaluate`"):
        load(f"folder:{tmp_path}", split="test")


@pytest.mark.parametrize("places, count", [((".",), 3), (("ant",), 3), ((".", "ant", "bee"), 9),
                                           (("ant", "bee/deep"), 6), (("a/b/c", "a/b/d"), 6)])  # fmt: skip
@pytest.mark.parametrize("stream", [True, False])
def test_any_other_tree_is_images_without_labels(places, count, stream, tmp_path):
    for place in places:
        fill(tmp_path / place)
    litter(tmp_path)
    found = load(f"folder:{tmp_path}", stream=stream)
    assert len(found) == count and found.labels.tolist() == [-1] * count and found.classes == ()
    assert repr(found) == f"<ImageSet: {count} images (3, 16, 16), 0 classes, {count} without a label>"
    with pytest.raises(ValueError, match="must have labels to be measured, got none in .*PATH/CLASS/IMAGE"):
        load(f"folder:{tmp_path}", split="test")


def test_links_are_followed_and_each_folder_is_read_once(tmp_path):
    fill(tmp_path / "far")
    fill(tmp_path / "in" / "real")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "far")
    assert len(load(f"folder:{tmp_path / 'in'}").labels.unique()) == 2
    (tmp_path / "in" / "real" / "up").symlink_to("..")
    assert len(images_below(tmp_path / "in")) == 6


@pytest.mark.parametrize("name", ["val", "test"])
def test_images_to_measure_on_are_not_trained_on(name, tmp_path):
    """A tree without `train` is not a flat one."""
    fill(tmp_path / name / "ant")
    with pytest.raises(FileNotFoundError, match="train is no folder; folder:PATH takes PATH/train/CLASS"):
        load(f"folder:{tmp_path}")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is no folder; folder:PATH takes"):
        load("folder:nowhere")
    litter(tmp_path)
    with pytest.raises(ValueError, match="has no image files .* in it or below"):
        load(f"folder:{tmp_path}")


def test_a_photograph_that_cannot_be_read_is_not_passed_over(tmp_path):
    fill(tmp_path)
    (tmp_path / "9.HEIC").write_bytes(b"\0\0\0\x24ftypheic" + bytes(99))
    with pytest.raises(ValueError, match=r"9\.HEIC is no image that can be read"):
        load(f"folder:{tmp_path}")


def test_mixed_sizes_name_both_remedies(tmp_path):
    fill(tmp_path / "a")
    fill(tmp_path, size=(20, 16))
    with pytest.raises(ValueError, match=r"load them with size=, or pretrain with view_size \(--view-size\)"):
        load(f"folder:{tmp_path}")


# Names


def test_a_path_is_answered_with_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "photos")
    for name in ("./photos", "photos", "~/photos", "/no/such"):
        with pytest.raises(ValueError, match=f"got '{name}'; write folder:{name} for a folder of images"):
            load(name)
    with pytest.raises(ValueError, match="did you mean 'cifar10'"):
        load("cifar11")


def test_the_home_folder_is_known_in_every_path(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    fill(tmp_path / "photos")
    for camera in "12":
        fill(tmp_path / "two" / camera, 14)
    assert len(load("folder:~/photos")) == 3 and len(load("pairs:~/two", size=16)) == 24
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/sets/imagenet/train is no folder"):
        load("imagenet", root="~/sets")


def test_litter_beside_pairs_is_passed_over(tmp_path):
    for camera in "12":
        fill(tmp_path / camera, 14)
        litter(tmp_path / camera)
    litter(tmp_path)
    assert len(load(f"pairs:{tmp_path}", size=16)) == 24


# No label


def test_images_without_a_label_are_a_group_of_their_own():
    pixels = torch.arange(60, dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 8, 8)
    labels = torch.tensor([-1, 0, 1] * 20)
    some = ImageSet(pixels, labels, ("a", "b"))
    assert repr(some).endswith("2 classes, 20 without a label>")
    assert (some.sample(12).labels + 1).bincount().tolist() == [4, 4, 4]
    rest, held = validation_split("folder:x", some)
    assert (held.labels + 1).bincount().tolist() == [4, 4, 4] and len(rest) == 48
    assert two_views(some).shape == (2, 2, 3, 8, 8)
    with pytest.raises(ValueError, match=r"indices of the 2 classes, or -1 for no label, got -2\.\.1"):
        ImageSet(pixels, labels.where(labels >= 0, -2), ("a", "b"))


def test_a_class_of_one_image_is_trained_on():
    pixels = torch.zeros(6, 3, 8, 8, dtype=torch.uint8)
    rest, held = validation_split(
        "folder:x", ImageSet(pixels, torch.tensor([0, 0, 1, 1, 1, 2]), tuple("abc"))
    )
    assert set(held.labels.tolist()) <= set(rest.labels.tolist()) and len(held)
    with pytest.raises(ValueError, match="train must have a class of two or more"):
        validation_split("folder:x", ImageSet(pixels, torch.arange(6), tuple("abcdef")))


# Datasets


class Own(Dataset):
    def __init__(self, give, **more):
        self.give = give
        vars(self).update(more)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int):
        return self.give(i)


def random_image(_) -> torch.Tensor:
    return torch.rand(3, 8, 8)


PICTURE = Image.fromarray(numpy_shifted(0).integers(0, 256, (8, 8, 3), np.uint8))


@pytest.mark.parametrize("item", [(random_image(0), random_image(0)), (PICTURE, PICTURE),
                                  ((random_image(0), random_image(0)), 1), ([PICTURE] * 2, 1),
                                  (torch.zeros(3, 8, 8).byte(),) * 2,
                                  (torch.rand(3, 8, 8), torch.rand(3, 4, 4))])  # fmt: skip
def test_several_views_are_refused_and_not_halved(item):
    with pytest.raises(
        ValueError, match=r"image 0 of Own .*several views; wrap it in setclr\.training\.Loader"
    ):
        image_set(Own(lambda i: item))


def test_what_follows_an_image_may_be_a_label_of_any_kind():
    for label in (3, "a", torch.tensor(3), torch.rand(5), torch.rand(8, 8), None):
        assert len(image_set(Own(lambda i, label=label: (PICTURE, label)))) == 6


@pytest.mark.parametrize("labels", [[0, 1, 1.7, 0, 0, 0], [0, 1, float("nan"), 0, 0, 0], list("abcdef"),
                                    [0, 1], [0, 1, -2, 0, 0, 0], [[0, 1]] * 6])  # fmt: skip
@pytest.mark.parametrize("name", ["targets", "labels"])
def test_labels_are_checked_before_they_are_cast(labels, name):
    with pytest.raises(ValueError, match=f"^{name} must be 6 whole numbers"):
        image_set(Own(random_image, **{name: labels}))


def test_labels_are_found_where_they_are():
    for name in ("targets", "labels"):
        one = Own(random_image, **{name: [0, 1, 2.0, 0, -1, 2]}, classes=["a", "b", "c"])
        assert image_set(one).labels.tolist() == [0, 1, 2, 0, -1, 2]
        part = image_set(Subset(Subset(one, [5, 4, 3, 2]), [3, 1]))
        assert part.labels.tolist() == [2, -1] and part.classes == ("a", "b", "c")
    assert image_set(Own(random_image, targets=[0, 1, 2, 0, 1, 2])).classes == ("0", "1", "2")
    bare = image_set(TensorDataset(torch.rand(6, 3, 8, 8)))
    assert bare.labels.tolist() == [-1] * 6 and bare.classes == ()
    with pytest.raises(ValueError, match="classes must name all labels, got 2 names and the label 2"):
        image_set(Own(random_image, targets=[0, 1, 2, 0, 1, 2], classes=["a", "b"]))


def test_pixels_that_are_nan_are_refused():
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        image_set(Own(lambda i: torch.full((3, 8, 8), torch.nan)))


# Errors of users' code, and workers


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def fails(error: Exception, i: int) -> torch.Tensor:
    if i == 5:
        raise error
    return random_image(i)


def read(images: ImageSet, i: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return images.images[i], [torch.tensor(i)]


ERRORS = [
    KeyError("angle"),
    AttributeError("no attribute 'crop'"),
    MemoryError(),
    OSError("gone"),
    ValueError("v"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_dataset_keeps_its_type_its_item_and_its_line(error, workers):
    images = image_set(Own(partial(fails, error)))
    with pytest.raises(type(error)) as caught:
        list(streamed(partial(read, images), range(6), workers, "cpu"))
    assert type(caught.value) is type(error)
    assert f"item 5 of Own raised {type(error).__name__}" in str(caught.value)
    assert "raise error" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("error", [Odd(1, 2), UnicodeDecodeError("utf8", b"a", 0, 1, "bad")], ids=repr)
@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_that_takes_no_message_is_a_runtime_error_that_names_it(error, workers):
    images = image_set(Own(partial(fails, error)))
    with pytest.raises(RuntimeError, match=f"item 5 of Own raised {type(error).__name__}"):
        list(streamed(partial(read, images), range(6), workers, "cpu"))


def test_an_error_that_cannot_be_sent_does_not_hang():
    error = ValueError("kept")
    error.by = lambda: None
    with pytest.raises(RuntimeError, match="ValueError: kept"):
        list(streamed(partial(fails, error), range(6), 1, "cpu"))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_anything_come_in_order(workers):
    images = ImageSet(
        torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8), torch.arange(6), tuple("abcdef")
    )
    found = list(streamed(partial(read, images), (i for i in range(6)), workers, "cpu"))
    assert [part[1][0].item() for part in found] == list(range(6))
    assert all(torch.equal(part[0], images.images[i]) for i, part in enumerate(found))


@pytest.fixture
def forkserver():
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("forkserver", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


def test_a_dataset_that_cannot_be_pickled_needs_no_workers(forkserver):
    images = image_set(Own(lambda i: random_image(i)))
    with pytest.raises(
        ValueError, match=r"^workers must be 0 for a Dataset that cannot be pickled \("
    ) as caught:
        list(streamed(partial(read, images), range(6), 1, "cpu"))
    assert "\n" not in str(caught.value)
    assert len(list(streamed(partial(read, images), range(6), 0, "cpu"))) == 6


def test_a_function_that_workers_do_not_know_is_told_in_the_same_words(forkserver):
    """As a class of a notebook's cell is: it is sent by its name, and no other process has it."""
    here = os.getpid()
    with pytest.raises(
        ValueError, match=r"^workers must be 0 for a Dataset that cannot be pickled \(not here"
    ):
        list(streamed(OnlyIn(here), range(2), 1, "cpu"))


class OnlyIn:
    def __init__(self, process: int):
        self.process = process

    def __setstate__(self, state: dict) -> None:
        if os.getpid() != state["process"]:
            raise AttributeError("not here")

    def __call__(self, i: int) -> torch.Tensor:
        return torch.tensor(i)

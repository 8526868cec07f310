"""Datasets of users: what is an image, a label or several views, and errors that keep their type."""

import multiprocessing
import os
import traceback
from functools import partial

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image
from torch.utils.data import Dataset, Subset, TensorDataset

from setclr.data import ImageSet, image_set
from setclr.data.streaming import streamed


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


@pytest.mark.parametrize("item", [(PICTURE, PICTURE), ([PICTURE] * 2, 1), (torch.zeros(3, 8, 8).byte(),) * 2,
                                  (torch.rand(3, 8, 8), torch.rand(3, 4, 4))])  # fmt: skip
def test_several_views_are_refused_and_not_halved(item):
    with pytest.raises(ValueError, match="image 0 of Own .*several views; wrap it in"):
        image_set(Own(lambda i: item))


def test_what_follows_an_image_may_be_a_label_of_any_kind_but_pixels_may_not_be_nan():
    for label in (3, "a", torch.tensor(3), torch.rand(5), torch.rand(8, 8), None):
        assert len(image_set(Own(lambda i, label=label: (PICTURE, label)))) == 6
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        image_set(Own(lambda i: torch.full((3, 8, 8), torch.nan)))


@pytest.mark.parametrize("labels", [[0, 1, 1.7, 0, 0, 0], [0, 1, float("nan"), 0, 0, 0], list("abcdef"),
                                    [0, 1], [0, 1, -2, 0, 0, 0], [[0, 1]] * 6])  # fmt: skip
def test_labels_are_checked_before_they_are_cast(labels):
    with pytest.raises(ValueError, match="^labels must be 6 whole numbers"):
        image_set(Own(random_image, labels=labels))


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


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def fails(error: Exception, i: int) -> torch.Tensor:
    if i == 5:
        raise error
    return random_image(i)


def read(images: ImageSet, i: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return images.images[i], [torch.tensor(i)]


ERRORS = [KeyError("angle"), MemoryError(), OSError("gone"), Odd(1, 2)]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_of_a_dataset_keeps_its_type_its_item_and_its_line(error, workers):
    """Its type, if that takes a message; else it is a RuntimeError."""
    images = image_set(Own(partial(fails, error)))
    kept = type(error) if error in ERRORS[:3] else RuntimeError
    with pytest.raises(kept, match=f"item 5 of Own raised {type(error).__name__}") as caught:
        list(streamed(partial(read, images), range(6), workers, "cpu"))
    assert type(caught.value) is kept
    assert "raise error" in "".join(traceback.format_exception(caught.value))


def test_an_error_that_cannot_be_sent_does_not_hang():
    error = ValueError("kept")
    error.by = lambda: None
    with pytest.raises(RuntimeError, match="ValueError: kept"):
        list(streamed(partial(fails, error), range(6), 1, "cpu"))


@pytest.fixture
def forkserver():
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("forkserver", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


def test_a_dataset_that_cannot_be_pickled_needs_no_workers(forkserver):
    """Nor one whose class the workers do not know, as that of a notebook's cell: it is sent by its name."""
    read_it = partial(read, image_set(Own(lambda i: random_image(i))))
    message = r"^workers must be 0 for a Dataset that cannot be pickled \(([^\n]*)"
    for unpicklable in (read_it, OnlyIn(os.getpid())):
        with pytest.raises(ValueError, match=message):
            list(streamed(unpicklable, range(6), 1, "cpu"))
    assert len(list(streamed(read_it, range(6), 0, "cpu"))) == 6


class OnlyIn:
    def __init__(self, process: int):
        self.process = process

    def __setstate__(self, state: dict) -> None:
        if os.getpid() != state["process"]:
            raise AttributeError("not here")

    def __call__(self, i: int) -> torch.Tensor:
        return torch.tensor(i)

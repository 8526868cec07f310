"""The stream of batches: the same bits from any number of workers, or an error, which keeps its type.

Images in memory and in files answer alike.
"""

import multiprocessing
import os
import re
import signal
import time
import traceback
from copy import copy
from dataclasses import replace
from functools import partial

import pytest
import torch
from conftest import shifted
from pictures import grey_level, saved, smooth
from PIL import Image
from torch.utils.data import Dataset

from setclr.data import ImageSet, Photographs, load
from setclr.data.streaming import streamed
from setclr.training import ImageViews
from setclr.training.source import item_of
from setclr.views import View, draw, finish

TWO = (View(size=16), View(size=8), View(size=16, blur=1.0))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for i in range(10):
        saved(folder / str(i), smooth(1, 40 + i, 60 - i, seed=i), "jpg")
    return Photographs(sorted(folder.glob("*/*")), 32)


def batches(count=5, n=4):
    for step in range(count):
        yield torch.randint(10, (n,), generator=shifted(step)), draw(TWO, n, shifted(100 + step))


def seen(files, views, given, workers, device="cpu"):
    """The views of each batch, of photographs in files."""
    images = ImageSet(files, torch.zeros(len(files), dtype=torch.int64), ("one",))
    return images.view_batches(views, given, workers, torch.device(device))


@pytest.mark.parametrize("workers", [0, 2])
def test_what_comes_out_is_a_function_of_the_batches(files, workers):
    state = torch.get_rng_state()
    given = list(batches()) if workers else batches()
    out = list(seen(files, TWO, given, workers))
    assert torch.equal(state, torch.get_rng_state())
    assert len(out) == 5
    for made, (index, draws) in zip(out, batches()):
        assert all(map(torch.equal, made, finish(files.crops(index, TWO, draws), TWO, draws)))
        assert [tuple(x.shape) for x in made] == [(2, 4, 3, 16, 16), (1, 4, 3, 8, 8)]


def test_workers_read_a_few_batches_ahead_and_no_further(files):
    asked = []

    def endless():
        for step in range(10_000):
            asked.append(step)
            yield torch.tensor([step % 10]), draw(TWO, 1, shifted(step))

    made = seen(files, TWO, endless(), 2)
    for _ in range(3):
        next(made)
    made.close()
    assert 3 < len(asked) < 12
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_is_the_same_from_any_process(files, tmp_path, workers):
    bad = tmp_path / "bad.jpg"
    bad.write_text("a letter")
    mixed = Photographs([files.path(0), bad])
    given = [(torch.tensor([i]), draw(TWO, 1, shifted())) for i in (0, 1, 0)]
    made = seen(mixed, TWO, given, workers)
    next(made)
    with pytest.raises(ValueError) as caught:
        next(made)
    assert re.fullmatch(rf"{bad} is no image that can be read .*replace it", str(caught.value))
    with pytest.raises(ValueError, match="workers must be .*got"):
        next(seen(files, TWO, batches(), -1))
    given = [(torch.tensor([0, 1]), draw(TWO, 3, shifted()))]
    with pytest.raises(ValueError, match=r"^draws must be \(2, 3, 36\)"):
        list(seen(files, TWO, given, workers))


def test_signals_to_the_whole_group_leave_the_workers_to_the_parent(files):
    made = seen(files, TWO, batches(12), 2)
    first = [next(made), next(made)]  # one from each worker: both have started
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGINT)
        os.kill(worker.pid, signal.SIGTERM)
    time.sleep(0.1)
    rest = list(made)
    assert len([*first, *rest]) == 12
    index, draws = list(batches(12))[-1]
    assert all(map(torch.equal, rest[-1], finish(files.crops(index, TWO, draws), TWO, draws)))


def test_a_killed_worker_is_said_to_be_one(files, monkeypatch):
    monkeypatch.setattr(Photographs, "crops", lambda *_: os._exit(9))
    with pytest.raises(MemoryError, match=r"a worker process was killed .*/dev/shm.*fewer workers"):
        list(seen(files, TWO, batches(), 1))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("workers", [0, 2])
def test_views_arrive_on_the_gpu(files, workers):
    for made, (index, draws) in zip(seen(files, TWO, batches(), workers, "cuda"), batches()):
        assert all(x.is_cuda for x in made)
        expected = finish(files.crops(index, TWO, draws), TWO, draws)
        torch.testing.assert_close([x.cpu() for x in made], expected, rtol=0, atol=1e-3)


# Datasets of users


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


PLAIN = (View(size=12, jitter_p=0, grey=0), View(size=8, jitter_p=0, grey=0))
LABELS = [0, 1, 2, 0, 1, 2]


@pytest.fixture(scope="module")
def memory() -> ImageSet:
    images = torch.randint(0, 256, (6, 3, 20, 20), generator=shifted(0), dtype=torch.uint8)
    return ImageSet(images, torch.tensor(LABELS), ("a", "b", "c"))


def test_a_digest_is_of_what_the_images_are_and_not_of_where_they_lie(memory, tmp_path):
    streamed = {}
    for place, names in (("here", "ab"), ("there", "ab"), ("renamed", "cb")):
        for name in names:
            grey_level(tmp_path / place / "train" / name / "0.png", 9)
        streamed[place] = load(f"folder:{tmp_path / place}", stream=True).digest()
    assert streamed["here"] == streamed["there"] != streamed["renamed"]
    others = dict(classes=("b", "a", "c")), dict(labels=memory.labels.flip(0)), dict(images=memory.images + 1)
    assert len({memory.digest(), *(replace(memory, **change).digest() for change in others)}) == 4
    assert memory.digest() == replace(memory).digest()
    assert memory.digest().startswith("6 images with checksum ")


def test_a_dataset_is_refused_with_the_line_that_makes_an_image_set_of_it():
    dataset = [(Image.new("RGB", (4, 4), (9, i, 0)), i % 2) for i in range(3)]
    with pytest.raises(ValueError, match=r"images must be an ImageSet, got list; ImageSet\(torch.*classes"):
        ImageViews(dataset, PLAIN)


def fails(error: Exception, i: int) -> torch.Tensor:
    if i == 5:
        raise error
    return random_image(i)


def read(dataset: Dataset, i: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return item_of(dataset, i), [torch.tensor(i)]


ERRORS = [KeyError("angle"), MemoryError(), OSError("gone"), UnicodeDecodeError("ascii", b"a", 0, 1, "odd")]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_of_a_dataset_keeps_its_type_its_message_and_its_line_and_names_the_item(error, workers):
    own = Own(partial(fails, copy(error)))
    with pytest.raises(type(error)) as caught:
        list(streamed(partial(read, own), range(6), workers, "cpu"))
    assert type(caught.value) is type(error) and str(caught.value) == str(error)
    assert caught.value.__notes__[0] == "item 5 of Own raised it"
    assert "raise error" in "".join(traceback.format_exception(caught.value))


def test_an_error_that_cannot_be_sent_does_not_hang():
    error = ValueError("kept")
    error.by = lambda: None
    with pytest.raises(RuntimeError, match="ValueError: kept"):
        list(streamed(partial(fails, error), range(6), 1, "cpu"))


def test_a_dataset_that_cannot_be_pickled_needs_no_workers(monkeypatch):
    """Nor one whose class the workers do not know, as that of a notebook's cell: it is sent by its name."""
    read_it = partial(read, Own(lambda i: random_image(i)))
    how = multiprocessing.get_context("forkserver")
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", how)
    with pytest.raises(ValueError, match=r"^workers must be 0 for a Dataset that cannot be pickled \("):
        list(streamed(read_it, range(6), 1, "cpu"))
    with pytest.raises(MemoryError, match="whose class stands in a notebook's cell needs workers=0"):
        list(streamed(Unknown(), range(6), 1, "cpu"))
    assert len(list(streamed(read_it, range(6), 0, "cpu"))) == 6


class Unknown:
    """Sent as a name that no process finds."""

    def __reduce__(self):
        return getattr, ("", "no such name")

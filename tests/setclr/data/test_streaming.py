"""The stream of crops: the same bits from any number of workers, and what happens when something fails."""

import multiprocessing
import os
import signal
import time

import pytest
import torch
from conftest import shifted
from pictures import saved, smooth

from setclr.data.photographs import Photographs
from setclr.data.streaming import stream_batches
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


@pytest.mark.parametrize("workers", [0, 2])
def test_what_comes_out_is_a_function_of_the_batches(files, workers):
    state = torch.get_rng_state()
    given = list(batches()) if workers else batches()
    out = list(stream_batches(files, TWO, given, workers, "cpu"))
    assert torch.equal(state, torch.get_rng_state())
    assert len(out) == 5
    for (crops, draws), (index, wanted) in zip(out, batches()):
        assert torch.equal(draws, wanted)
        assert all(map(torch.equal, crops, files.crops(index, TWO, wanted)))
        assert [tuple(x.shape) for x in finish(crops, TWO, draws)] == [(2, 4, 3, 16, 16), (1, 4, 3, 8, 8)]


def test_workers_read_a_few_batches_ahead_and_no_further(files):
    asked = []

    def endless():
        for step in range(10_000):
            asked.append(step)
            yield torch.tensor([step % 10]), draw(TWO, 1, shifted(step))

    crops = stream_batches(files, TWO, endless(), 2, "cpu")
    for _ in range(3):
        next(crops)
    crops.close()
    assert 3 < len(asked) < 12
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_is_the_same_from_any_process(files, tmp_path, workers):
    bad = tmp_path / "bad.jpg"
    bad.write_text("a letter")
    mixed = Photographs([files.path(0), bad])
    given = [(torch.tensor([i]), draw(TWO, 1, shifted())) for i in (0, 1, 0)]
    crops = stream_batches(mixed, TWO, given, workers, "cpu")
    next(crops)
    with pytest.raises(ValueError, match=rf"^{bad} is no image that can be read .*replace it$"):
        next(crops)
    given = [(torch.tensor([0, 1]), draw(TWO, 3, shifted()))]
    with pytest.raises(ValueError, match=r"^draws must be \(2, 3, 36\)"):
        list(stream_batches(files, TWO, given, workers, "cpu"))


def test_signals_to_the_whole_group_leave_the_workers_to_the_parent(files):
    crops = stream_batches(files, TWO, batches(12), 2, "cpu")
    first = [next(crops), next(crops)]  # one from each worker: both have started
    for worker in multiprocessing.active_children():
        os.kill(worker.pid, signal.SIGINT)
        os.kill(worker.pid, signal.SIGTERM)
    time.sleep(0.1)
    rest = list(crops)
    assert len([*first, *rest]) == 12
    index, draws = list(batches(12))[-1]
    assert all(map(torch.equal, rest[-1][0], files.crops(index, TWO, draws)))


def test_a_killed_worker_is_said_to_be_one(files, monkeypatch):
    monkeypatch.setattr(Photographs, "crops", lambda *_: os._exit(9))
    with pytest.raises(MemoryError, match=r"a worker process was killed .*/dev/shm.*fewer workers"):
        list(stream_batches(files, TWO, batches(), 1, "cpu"))


def test_bad_arguments_are_refused(files):
    for workers in (-1, 1.5, True):
        with pytest.raises(ValueError, match="workers must be .*got"):
            next(stream_batches(files, TWO, batches(), workers, "cpu"))
    with pytest.raises(ValueError, match="images must be Photographs, got Tensor; load with stream=True"):
        next(stream_batches(files[:], TWO, batches(), 0, "cpu"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("workers", [0, 2])
def test_crops_arrive_on_the_gpu(files, workers):
    for (crops, _), (index, wanted) in zip(stream_batches(files, TWO, batches(), workers, "cuda"), batches()):
        assert all(x.is_cuda for x in crops)
        assert all(map(torch.equal, [x.cpu() for x in crops], files.crops(index, TWO, wanted)))

"""A run that is stopped, killed, cut off or refused goes on as if nothing had happened, or says why not."""

import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import numpy_shifted
from pictures import saved, smooth
from small_runs import FEW, SMALL, Killed, at_step, kill, killed_at, same, stop_after, tensors, train
from torch.utils._pytree import tree_map

from setclr import pretrain
from setclr.experiments import Run, load_run
from setclr.experiments.run import new_run
from setclr.training import Interrupted, checkpoint
from setclr.training.checkpoint import HISTORY

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> tuple[Run, Path]:
    """A finished run of SMALL and its folder, which nobody changes."""
    out = tmp_path_factory.mktemp("whole")
    return train(SMALL, out), out


@pytest.fixture
def finished(kept, tmp_path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(kept[1], tmp_path / "finished"))


KEYS = {"key_momentum": 0.9, "last_norm": True}
CROPS = {"full_views": 2, "local_views": 3, "view_size": 16, "local_size": 8}
STOPPED = {  # one of each part that a checkpoint holds
    "adam": {"warmup": 1},
    "queue": {"loss": "IOT(constraint='rows')", "queue": 40, "optimiser": "sgd", **KEYS},
    "predictor": {"loss": "GroCo()", "key_schedule": "cosine", "predictor": 2, "optimiser": "lars", **KEYS},
    "clusters": {"loss": "DeepCluster()", "full_views": 1, "embedding": 6},
    "discriminator": {"loss": "DeepInfoMax(locations=9)", "full_views": 1},
    "crops": {"loss": "GroCo(positive_views=2)", "last_norm": True, **CROPS},
    "chunks": {"chunk": 5},
    "learnt": {"loss": "InfoNCE(temperature=learnable(0.2))", "optimiser": "adamw", "weight_decay": 0.5},
    "groups": {"images_per_class": 2, "drop_last": False},
}


@pytest.mark.processes
@pytest.mark.parametrize("more", STOPPED.values(), ids=STOPPED)
def test_killed_in_both_epochs_and_resumed_is_never_killed(tmp_path, more):
    recipe = replace(SMALL, **more)
    whole = train(recipe)
    for step in (numpy_shifted(len(str(more))).integers(1, 5), 6):  # of four an epoch
        killed_at(step, lambda: train(recipe, tmp_path))
        torch.rand(17)  # whatever else the program drew in between
    resumed = train(recipe, tmp_path)
    assert same(resumed, whole) and same(load_run(tmp_path), whole)
    if "learnable" in recipe.loss:
        assert resumed.history.temperature.tolist() == whole.history.temperature.tolist()
        learnt = float(checkpoint.read(tmp_path)["loss"]["temperature.log"])
        assert np.exp(learnt) == resumed.rows[-1]["temperature"]


@pytest.mark.parametrize("optimiser", ["adam", "sgd", "lars"])
def test_an_optimisers_memory_may_come_back_in_another_order(optimiser):
    """As between processes, which send tensors row after row; convolutions' weights are not kept so."""
    recipe, after = replace(SMALL, optimiser=optimiser), []
    first = new_run(recipe, channels=3).trainer(FEW, CPU)
    list(first.epoch())
    first.close_epoch()
    for change in (lambda x: x, lambda x: x.contiguous() if isinstance(x, torch.Tensor) else x):
        other = new_run(recipe, channels=3).trainer(FEW, CPU)
        other.load_state_dict(tree_map(change, deepcopy(first.state_dict())), "here")
        next(other.epoch())
        after.append(tensors(other))
    assert all(map(torch.equal, *after))


KILLED = """
import os, signal, sys
from setclr import cli
from setclr.training import trainer

nth, out, seen, trainer.CHECKPOINT_SECONDS = int(sys.argv[1]), sys.argv[2], 0, 0.0

def work(event, given):
    global seen
    if event in ("open", "os.rename", "os.remove", "os.mkdir") and str(given[0]).startswith(out):
        seen += 1
        if seen == nth:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(work)
cli.main(sys.argv[3:])
"""


@pytest.mark.processes
def test_a_campaign_that_is_killed_at_any_work_on_its_files_ends_with_the_same_record(tmp_path):
    """By the system itself, again and again, at the first work on a file and at later ones."""
    for place in ("train/a", "train/b", "val/a", "val/b"):
        saved(tmp_path / "set" / place, smooth(12, 16, 16))

    def ran(place: Path, nth: int) -> int:
        words = f"campaign photo-infonce@0 --data folder:{tmp_path}/set --epochs 2 --batch 8 --device cpu"
        folders = ["--runs", f"{place}/runs", "--results", f"{place}/results"]
        command = [sys.executable, "-c", KILLED, str(nth), str(place), *words.split(), *folders]
        return subprocess.run(command, capture_output=True).returncode

    places = tmp_path / "whole", tmp_path / "struck"
    assert [ran(places[0], -1), *(ran(places[1], nth) for nth in (1, 6, 20, 30, -1))] == [0, *4 * [-9], 0]
    whole, struck = (json.loads(next(one.glob("results/*.json")).read_text()) for one in places)
    assert whole["accuracy_percent"] == struck["accuracy_percent"]
    assert [row["loss"] for row in whole["history"]] == [row["loss"] for row in struck["history"]]
    assert same(*(load_run(next(one.glob("runs/*"))) for one in places))


@pytest.mark.parametrize("number, step", [(signal.SIGINT, 2), (signal.SIGTERM, 4), (signal.SIGTERM, 7)])
def test_a_signal_stops_after_a_whole_step_with_a_checkpoint(kept, tmp_path, number, step):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    said = f"stopped after step {step} of 8; {tmp_path} holds it: repeat"
    hit = lambda _: signal.raise_signal(number)  # noqa: E731
    with at_step(step - 1, hit), pytest.raises(Interrupted, match=said) as x:
        train(SMALL, tmp_path)
    assert x.value.signal == number and checkpoint.read(tmp_path)["step"] == step
    assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    assert same(train(SMALL, tmp_path), kept[0])


def test_a_disk_that_fills_up_stops_the_run_and_keeps_what_was_written(kept, tmp_path):
    """In the second epoch the system itself starts to refuse files of a checkpoint's size."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    fill = lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # noqa: E731
    said = f"{tmp_path} could not be written to .*kept: make room"
    try:
        with at_step(6, fill, every_step=True), pytest.raises(OSError, match=said):
            train(SMALL, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(load_run(tmp_path).rows) == 1
    assert same(train(SMALL, tmp_path), kept[0])


def test_what_cannot_be_written_is_found_before_training(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    read_only = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(checkpoint, "replacing", read_only)
    for out, said in (
        (file, f"{file} must be a folder that can be written .*; allow writing"),
        (tmp_path, f"{tmp_path} could not be written to .*Permission denied"),
    ):
        with at_step(0, kill), pytest.raises(OSError, match=said):
            train(SMALL, out)


def test_files_of_any_size_are_read_while_it_trains(tmp_path):
    before = set(multiprocessing.active_children())  # of tests that ran earlier in this process
    for k in range(2):
        images = (smooth(1, 20 + i, 24 - i, seed=i + 10 * k)[0] for i in range(10))
        saved(tmp_path / f"set/train/class{k}", images)
    recipe = replace(SMALL, data=f"folder:{tmp_path / 'set'}", view_size=16, batch=8)
    alone = pretrain(recipe, workers=0)
    assert same(pretrain(recipe, workers=2), alone)
    assert set(multiprocessing.active_children()) <= before
    killed_at(3, lambda: pretrain(recipe, tmp_path / "run", workers=1))
    assert set(multiprocessing.active_children()) <= before
    assert same(pretrain(recipe, tmp_path / "run", workers=0), alone)


def test_a_finished_run_is_loaded_as_it_was_trained(kept, finished):
    """Also in memory: weights that lie otherwise are multiplied in another order, and a campaign that is
    killed after the training and goes on would write another record."""
    run, loaded = kept[0], load_run(finished)
    assert list(run.history.columns) == ["epoch", "loss", "lr", "seconds", "images_per_s", "std", "rank"]
    assert list(run.history.epoch) == [1, 2] and run.finished and run.recipe == SMALL
    pd.testing.assert_frame_equal(pd.read_csv(finished / HISTORY), run.history)
    with at_step(0, kill):
        assert same(train(SMALL, finished), run)
    assert same(loaded, run)
    assert all(a.stride() == b.stride() for a, b in zip(tensors(run), tensors(loaded)))


def test_a_run_of_another_recipe_other_data_or_without_its_optimiser_is_refused(finished, tmp_path):
    for change, said in (
        ({"epochs": 4, "seed": 7}, r"another recipe \(epochs 2 there, 4 now; seed 0 there, 7 now\)"),
        ({"epochs": 4}, r"\(epochs 2 there, 4 now\); .*init=.* starts from its weights"),
        ({"chunk": 5}, r"chunk None there, 5 now"),
    ):
        with pytest.raises(ValueError, match=said):
            train(replace(SMALL, **change), finished)
    with pytest.raises(Killed):  # it forgets the run before at once
        train(replace(SMALL, seed=7), finished, resume=False, on_epoch=stop_after(0))
    assert load_run(finished).rows == [] and load_run(finished).recipe.seed == 7
    with pytest.raises(Killed):
        train(SMALL, tmp_path / "a", on_epoch=stop_after(1))
    load_run(tmp_path / "a").save(tmp_path / "b")
    assert same(load_run(tmp_path / "a"), load_run(tmp_path / "b"))
    with pytest.raises(ValueError, match="saved without its optimiser"):
        train(SMALL, tmp_path / "b")


def test_a_run_of_version_0_1_goes_on(tmp_path):
    """Its recipe has the field same_class, which is called images_per_class now."""
    recipe = replace(SMALL, images_per_class=2, loss="SparseCLR()")
    killed_at(5, lambda: train(recipe, tmp_path))
    state = checkpoint.read(tmp_path)
    state["recipe"]["same_class"] = state["recipe"].pop("images_per_class")
    checkpoint.write(tmp_path, state)
    assert load_run(tmp_path).recipe == recipe and same(train(recipe, tmp_path), train(recipe))


def test_a_run_keeps_its_precision_wherever_it_goes_on(tmp_path, monkeypatch):
    """Begun on a processor without bf16, continued on one that has it."""
    auto, plain, half = (replace(SMALL, precision=name) for name in ("auto", "float32", "bf16"))
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    whole = train(auto)
    killed_at(6, lambda: train(auto, tmp_path))
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    resumed = train(auto, tmp_path)
    assert resumed.precision == "float32" and same(resumed, whole)
    assert train(plain, tmp_path).finished, "float32 is what was used"
    with pytest.raises(ValueError, match="precision 'float32' there, 'bf16' now"):
        train(half, tmp_path)


def test_an_unfinished_run_of_older_draws_is_refused_in_words(tmp_path):
    killed_at(2, lambda: train(SMALL, tmp_path))
    state = checkpoint.read(tmp_path)
    checkpoint.write(tmp_path, {**state, "draws": 1})
    with pytest.raises(ValueError, match="begun with version 1 of the random views.*remove it to start"):
        train(SMALL, tmp_path)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_what_a_gpu_has_begun_lies_on_the_cpu_when_it_is_loaded(tmp_path):
    killed_at(6, lambda: train(SMALL, tmp_path, device="cuda"))
    assert next(load_run(tmp_path).encoder.parameters()).device.type == "cpu"

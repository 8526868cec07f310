"""The loop: exact resume, recipes and checkpoints."""

import contextlib
import math
import multiprocessing
import os
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import numpy_shifted, shifted
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils._pytree import tree_map

from setclr import pretrain
from setclr.data import ImageSet
from setclr.experiments import Run, building, load_run
from setclr.experiments.run import new_run
from setclr.losses import InfoNCE
from setclr.recipes import ImageRecipe
from setclr.seeding import seeded
from setclr.training import Interrupted, LRSchedule, Trainer, checkpoint
from setclr.training import trainer as engine
from setclr.training.batches import Batches
from setclr.training.checkpoint import CHECKPOINT, HISTORY, LOCK
from setclr.training.grad_cache import GradCache

SMALL = ImageRecipe("InfoNCE(temperature=0.2)", views="photo", epochs=3, batch=16, lr=3e-3)


PIXELS = torch.randint(0, 256, (70, 3, 16, 16), dtype=torch.uint8, generator=shifted(0))
FEW = ImageSet(PIXELS, torch.arange(70) % 5, tuple("abcde"))  # 4 steps of 16 an epoch, 6 images left over
train = partial(pretrain, data=FEW)


@pytest.fixture
def often(monkeypatch):
    """A checkpoint after every tenth step and every epoch, not every ten minutes."""
    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)


def weights(run: Run) -> dict:
    return {**run.encoder.state_dict(), **{f"head.{k}": v for k, v in run.head.state_dict().items()}}


def assert_same(a: Run, b: Run):
    assert all(torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))
    timeless = ["epoch", "loss", "lr"]
    pd.testing.assert_frame_equal(a.history[timeless], b.history[timeless])


class Killed(BaseException):
    """Not an Exception, so that nothing catches it."""


@pytest.mark.processes
@settings(max_examples=8)
@given(
    step=st.integers(1, 11),
    more=st.sampled_from(
        [
            {"loss": "InfoNCE(temperature=0.2)"},
            {"loss": "GroCo()"},
            {"loss": "IOT(constraint='rows')", "key_momentum": 0.9, "queue": 40},
            {"loss": "GroCo()", "key_momentum": 0.9, "key_schedule": "cosine", "predictor": 2},
            {"loss": "DeepCluster()", "full_views": 1, "embedding": 6},
        ]
    ),
    optimiser=st.sampled_from(["adam", "sgd", "lars"]),
)
def test_killed_after_any_step_and_resumed_is_never_killed(tmp_path_factory, step, more, optimiser):
    recipe = replace(SMALL, **more, optimiser=optimiser, last_norm=True, warmup=1)
    out = tmp_path_factory.mktemp("run")
    whole = train(recipe)
    kill_at(step, lambda: train(recipe, out))
    torch.rand(17)  # whatever else the program drew in between
    assert_same(train(recipe, out), whole)
    assert_same(load_run(out), whole)


@pytest.mark.parametrize("optimiser", ["adam", "sgd", "lars"])
def test_an_optimisers_memory_may_come_back_in_another_order(optimiser):
    """As between processes, which send tensors row after row; convolutions' weights are not kept so."""
    recipe, after = replace(SMALL, optimiser=optimiser), []
    for change in (lambda x: x, lambda x: x.contiguous() if isinstance(x, torch.Tensor) else x):
        run = new_run(recipe, channels=3)
        trainer = run.trainer(FEW, torch.device("cpu"))
        list(trainer.epoch())
        trainer.close_epoch()
        state = tree_map(change, trainer.state_dict())
        again = new_run(recipe, channels=3)
        other = again.trainer(FEW, torch.device("cpu"))
        other.load_state_dict(state, "here")
        list(other.epoch())
        after.append(weights(again))
    assert all(map(torch.equal, *(found.values() for found in after)))


def kill_at(step: int, begin) -> None:
    update = Trainer.update

    def until(trainer, x):
        if trainer.step == step:
            raise Killed
        return update(trainer, x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", until)
        with pytest.raises(Killed):
            begin()


@pytest.mark.processes
@settings(max_examples=6)
@given(write=st.integers(0, 9), moment=st.sampled_from(["before", "between", "after"]), kind=st.booleans())
def test_killed_around_a_renaming_and_resumed_is_never_killed(tmp_path_factory, write, moment, kind):
    """With a checkpoint after every tenth step and every epoch; nothing is cleaned up, as in a real death."""
    recipe = replace(SMALL, batch=4, epochs=2)  # 17 steps an epoch
    out = tmp_path_factory.mktemp("run")
    whole = train(recipe)
    replaced = 0

    def dying(source, target):
        nonlocal replaced
        if kind == target.name.endswith("csv"):
            replaced += 1
        if replaced != write + 1 or kind != target.name.endswith("csv"):
            return rename(source, target)
        if moment != "before":
            rename(source, target)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        rename = os.replace
        patch.setattr(os, "replace", dying)
        patch.setattr(Path, "unlink", lambda *args, **kwargs: None)
        patch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
        with contextlib.suppress(Killed):
            train(recipe, out)
    assert_same(train(recipe, out), whole)
    assert_same(load_run(out), whole)
    assert {p.name for p in out.iterdir()} - {LOCK} == {CHECKPOINT, HISTORY}
    assert pd.read_csv(out / HISTORY).epoch.tolist() == [1, 2]


def test_killed_while_writing_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    train(replace(SMALL, epochs=1), tmp_path / "one")
    before = (tmp_path / "one" / CHECKPOINT).read_bytes()

    def half(state, file):
        file.write(b"half a file")
        raise Killed

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(Killed):
        train(replace(SMALL, epochs=1), tmp_path / "one", resume=False)
    assert (tmp_path / "one" / CHECKPOINT).read_bytes() == before
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == [CHECKPOINT, HISTORY]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", [2, 4, 7])
def test_a_signal_stops_after_a_whole_step_with_a_checkpoint(tmp_path, monkeypatch, number, step):
    whole = train(SMALL)
    update = Trainer.update

    def signalled(trainer, x):
        if trainer.step == step - 1:
            os.kill(os.getpid(), number)
        return update(trainer, x)

    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(Trainer, "update", signalled)
    with pytest.raises(
        Interrupted, match=f"stopped after step {step} of 12; {tmp_path} holds it: repeat"
    ) as stopped:
        train(SMALL, tmp_path)
    assert stopped.value.signal == number
    assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    assert checkpoint.read(tmp_path)["step"] == step
    monkeypatch.setattr(Trainer, "update", update)
    assert_same(train(SMALL, tmp_path), whole)


def test_a_signal_in_the_last_step_comes_too_late(monkeypatch):
    update = Trainer.update

    def signalled(trainer, x):
        if trainer.step == 11:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(trainer, x)

    monkeypatch.setattr(Trainer, "update", signalled)
    assert train(SMALL).finished


def test_a_disk_that_fills_up_stops_the_run_and_keeps_what_was_written(tmp_path, monkeypatch, often):
    """In the second epoch the system itself starts to refuse files of a checkpoint's size."""
    resource = pytest.importorskip("resource")
    whole = train(SMALL)
    update, before = Trainer.update, resource.getrlimit(resource.RLIMIT_FSIZE)

    def filling(trainer, x):
        if trainer.step == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        return update(trainer, x)

    monkeypatch.setattr(Trainer, "update", filling)
    try:
        with pytest.raises(OSError, match=f"{tmp_path} could not be written to .*kept: make room"):
            train(SMALL, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(load_run(tmp_path).rows) == 1
    monkeypatch.setattr(Trainer, "update", update)
    assert_same(train(SMALL, tmp_path), whole)


def test_a_full_disk_and_a_read_only_folder_are_found_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "update", None)
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=f"{tmp_path}: 1 MB are free and a run needs 11; make room"):
        train(SMALL, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(Trainer, "update", None)

    def read_only(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint, "replacing", read_only)
    with pytest.raises(OSError, match=f"{tmp_path} could not be written to .*Permission denied"):
        train(SMALL, tmp_path)


def test_a_batch_that_does_not_fit_says_what_to_change(monkeypatch):
    def full(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(GradCache, "backward", full)
    with pytest.raises(MemoryError, match="a batch of 16 on cpu does not fit .*chunk=N puts"):
        train(SMALL)


MULTI_CROP = replace(SMALL, loss="GroCo(positive_views=2)", last_norm=True, full_views=2, local_views=3,
                     view_size=16, local_size=8)  # fmt: skip


def test_multi_crop_trains_on_two_sizes_and_resumes(tmp_path, monkeypatch):
    seen = []
    backward = GradCache.backward
    watch = lambda self, x, score: (seen.append([tuple(y.shape) for y in x]), backward(self, x, score))[1]  # noqa: E731
    monkeypatch.setattr(GradCache, "backward", watch)
    whole = train(MULTI_CROP)
    assert seen[0] == [(2, 16, 3, 16, 16), (3, 16, 3, 8, 8)] and len(seen) == 12
    kill_at(7, lambda: train(MULTI_CROP, tmp_path))
    assert_same(train(MULTI_CROP, tmp_path), whole)


def test_a_chunked_run_resumes_and_is_another_recipe(tmp_path):
    chunked = replace(SMALL, chunk=5)
    whole = train(chunked)
    kill_at(6, lambda: train(chunked, tmp_path))
    with pytest.raises(ValueError, match="chunk 5 there, None now"):
        train(SMALL, tmp_path)
    assert_same(train(chunked, tmp_path), whole)


def test_files_of_any_size_are_read_while_it_trains(tmp_path):
    before = set(multiprocessing.active_children())  # of tests that ran earlier in this process
    generator = numpy_shifted(0)
    for i in range(40):
        path = tmp_path / "set" / "train" / f"class{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 256, (20 + i % 7, 24 - i % 5, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    recipe = replace(SMALL, data=f"folder:{tmp_path / 'set'}", view_size=16, epochs=2)
    runs = [pretrain(recipe, workers=workers) for workers in (0, 2)]
    assert_same(*runs)
    assert set(multiprocessing.active_children()) <= before
    kill_at(3, lambda: pretrain(recipe, tmp_path / "run", workers=1))
    assert set(multiprocessing.active_children()) <= before
    assert_same(pretrain(recipe, tmp_path / "run", workers=0), runs[0])
    (tmp_path / "set" / "train" / "class0" / "0.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="0.png is no image that can be read"):
        pretrain(recipe)


def test_a_parameter_of_the_loss_changes_when_its_schedule_says(monkeypatch):
    seen = []
    objective = Trainer.objective
    watch = lambda self, z: (seen.append(self.loss.temperature), objective(self, z))[1]  # noqa: E731
    monkeypatch.setattr(Trainer, "objective", watch)
    train(replace(SMALL, loss_schedule="temperature: 0.5, 0.1 from 1, 0.2 from 2"))
    assert seen == [0.5] * 4 + [0.1] * 4 + [0.2] * 4


LEARNT = replace(SMALL, loss="InfoNCE(temperature=learnable(0.2))")


def test_a_learnable_temperature_descends_its_own_slope():
    """By finite differences of the loss with a fixed temperature, on the same embeddings."""
    recipe = replace(LEARNT, optimiser="sgd", momentum=0.0, lr=0.1, schedule="constant", precision="float32")
    trainer, twin = (new_run(recipe, 3).trainer(FEW, torch.device("cpu")) for _ in range(2))
    (x,) = next(twin.view_batches)
    with torch.no_grad():
        z = twin.head(twin.encoder(x.flatten(0, 1))).unflatten(0, (2, -1)).double()
    high, low = (float(InfoNCE(0.2 * math.exp(h))(z)) for h in (1e-4, -1e-4))
    next(trainer.epoch())
    expected = 0.2 * math.exp(-0.1 * (high - low) / 2e-4)  # it is learnt in the logarithm
    assert trainer.loss.temperature.value == pytest.approx(expected, rel=1e-3) and abs(expected - 0.2) > 0.001


def test_a_learnable_temperature_is_recorded_resumed_and_not_decayed(tmp_path):
    recipe = replace(LEARNT, optimiser="adamw", weight_decay=0.5)
    whole = train(recipe)
    kill_at(6, lambda: train(recipe, tmp_path))
    assert_same(train(recipe, tmp_path), whole)
    state, learnt = checkpoint.read(tmp_path), load_run(tmp_path).history.temperature
    assert learnt.tolist() == whole.history.temperature.tolist() and learnt.nunique() == 3
    assert math.exp(float(state["loss"]["temperature.log"])) == learnt.iloc[-1]
    assert [group["weight_decay"] for group in state["optimiser"]["param_groups"]] == [0.5, 0.0]


def test_a_temperature_is_learnt_or_scheduled(tmp_path):
    with pytest.raises(ValueError, match="loss_schedule names 'temperature', which .* learns; give it a num"):
        replace(LEARNT, loss_schedule="temperature: 0.5, 0.1 from 1")


def test_four_of_a_class_stand_together_in_a_batch():
    labels = torch.arange(70) % 5
    fours, plain = Batches(labels, 16, images_per_class=4), Batches(labels, 16)
    for epoch in range(3):
        order = torch.stack(fours.of(epoch))
        assert order.shape == (3, 16) and len(fours) == 3
        groups = labels[order].view(-1, 4)
        assert (groups == groups[:, :1]).all() and len(order.unique()) == 48
    first, second, again = (torch.stack(plain.of(epoch)) for epoch in (0, 1, 1))
    assert not torch.equal(first, second) and torch.equal(second, again)


def test_a_last_batch_that_is_incomplete_is_left_out_or_kept():
    labels = torch.arange(70) % 5
    kept, left_out = Batches(labels, 16, drop_last=False), Batches(labels, 16)
    assert [len(batch) for batch in kept.of(0)] == [16, 16, 16, 16, 6] and len(kept) == 5
    assert torch.cat(kept.of(0)).sort().values.tolist() == list(range(70))
    assert torch.equal(torch.cat(left_out.of(0)), torch.cat(kept.of(0))[:64]) and len(left_out) == 4
    with pytest.raises(ValueError, match="drop_last must be True where a last batch has one, got 65"):
        Batches(labels[:65], 16, drop_last=False)
    trainer = new_run(replace(SMALL, drop_last=False), 3).trainer(FEW, torch.device("cpu"))
    assert [len(views[0][0]) for views in trainer.view_batches] == 3 * [16, 16, 16, 16, 6]


def test_the_same_recipe_gives_the_same_run_and_another_seed_another():
    a, b = train(SMALL), train(SMALL)
    assert_same(a, b)
    other = train(replace(SMALL, seed=1))
    assert not torch.equal(other.encoder[0].weight, a.encoder[0].weight)


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    train(replace(SMALL, epochs=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_history_and_files(tmp_path):
    run = train(SMALL, tmp_path)
    assert list(run.history.columns) == ["epoch", "loss", "lr", "seconds", "images_per_s"]
    assert list(run.history.epoch) == [1, 2, 3]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / HISTORY), run.history)
    assert run.finished and run.recipe == SMALL


def test_a_finished_run_is_loaded_not_trained(tmp_path, monkeypatch):
    run = train(SMALL, tmp_path)
    monkeypatch.setattr(Trainer, "update", None)
    assert_same(train(SMALL, tmp_path), run)


def test_what_is_trained_measures_as_what_is_loaded(tmp_path):
    """Weights that lie otherwise in memory are multiplied in another order; a campaign that is killed after
    the training and goes on would write another record."""
    trained, loaded = train(SMALL, tmp_path), load_run(tmp_path)
    for a, b in zip(trained.encoder.parameters(), loaded.encoder.parameters(), strict=True):
        assert a.stride() == b.stride() and torch.equal(a, b)


def test_saved_without_the_optimiser_it_still_loads(tmp_path):
    run = train(SMALL, tmp_path / "whole")
    run.save(tmp_path / "small")
    assert_same(load_run(tmp_path / "small"), run)
    assert_same(train(SMALL, tmp_path / "small"), run)
    sizes = [(tmp_path / name / CHECKPOINT).stat().st_size for name in ("small", "whole")]
    assert sizes[0] < 0.5 * sizes[1]


def test_on_epoch_sees_each_epoch_and_adds_to_its_row(tmp_path):
    seen = []

    def watch(run):
        seen.append(len(run.rows))
        return {"twice": 2 * len(run.rows)}

    run = train(SMALL, tmp_path, on_epoch=watch)
    assert seen == [0, 1, 2, 3]
    assert list(run.history.twice) == [2, 4, 6]
    assert list(load_run(tmp_path).history.twice) == [2, 4, 6]


def test_another_recipe_is_refused_with_the_differences(tmp_path):
    train(SMALL, tmp_path)
    with pytest.raises(ValueError, match=r"another recipe \(epochs 3 there, 4 now; seed 0 there, 7 now\)"):
        train(replace(SMALL, epochs=4, seed=7), tmp_path)
    run = train(replace(SMALL, epochs=1, seed=7), tmp_path, resume=False)
    assert run.recipe.seed == 7 and load_run(tmp_path).recipe.seed == 7


def test_a_loss_that_becomes_nan_stops_the_run_and_keeps_the_checkpoint(tmp_path, monkeypatch, often):
    update = Trainer.update

    def breaks(trainer, x):
        loss = update(trainer, x)
        return loss * math.nan if trainer.step == 7 else loss

    monkeypatch.setattr(Trainer, "update", breaks)
    with pytest.raises(FloatingPointError, match="the loss became nan at step 6; lower lr"):
        train(SMALL, tmp_path)
    assert len(load_run(tmp_path).rows) == 1


def test_on_epoch_may_return_numbers_of_any_kind(tmp_path):
    train(SMALL, tmp_path, on_epoch=lambda run: {"a": np.float64(0.3), "b": torch.tensor(2)})
    assert load_run(tmp_path).rows[-1]["a"] == 0.3 and load_run(tmp_path).rows[-1]["b"] == 2


def test_weights_that_diverge_in_the_last_step_are_not_kept(tmp_path, monkeypatch, often):
    update = Trainer.update

    def spoils(trainer, x):
        loss = update(trainer, x)
        if trainer.step == 12:
            trainer.encoder[0].weight.data[0] = torch.nan
        return loss

    monkeypatch.setattr(Trainer, "update", spoils)
    with pytest.raises(FloatingPointError, match="the weights became NaN or inf at step 11"):
        train(SMALL, tmp_path)
    assert len(load_run(tmp_path).rows) == 2


def test_what_cannot_be_written_is_found_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "update", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=f"out must be a folder that can be written, got {tmp_path / 'file'}"):
        train(SMALL, tmp_path / "file")


def test_starting_afresh_forgets_the_run_before_at_once(tmp_path):
    train(SMALL, tmp_path)

    def stop(run):
        raise Killed

    with pytest.raises(Killed):
        train(SMALL, tmp_path, resume=False, on_epoch=stop)
    assert load_run(tmp_path).rows == []


def test_what_a_callback_does_to_the_runs_history_does_not_change_the_trainers(tmp_path):
    def meddle(run):
        run.rows.append({"epoch": 99})
        if len(run.rows) > 1:
            run.rows[0]["loss"] = -1.0

    run = train(SMALL, tmp_path, on_epoch=meddle)
    assert [row["epoch"] for row in run.rows] == list(range(1, SMALL.epochs + 1))
    assert run.history["loss"].gt(0).all() and load_run(tmp_path).rows == run.rows


def test_a_state_keeps_the_history_of_its_moment():
    encoder, head = building.models_of(SMALL, 3)
    trainer = building.trainer_of(SMALL, encoder, head, FEW, torch.device("cpu"))
    before = trainer.state_dict()
    trainer.fit()
    assert before["history"] == [] and len(trainer.state_dict()["history"]) == SMALL.epochs


def test_two_trainings_of_a_recipe_share_no_loss():
    recipe = replace(SMALL, loss="InfoNCE(temperature=learnable(0.2))")
    first, second = train(recipe), train(recipe)
    assert first.history.temperature.tolist() == second.history.temperature.tolist()
    assert first.history.temperature.iloc[-1] != pytest.approx(0.2, abs=1e-6)
    assert recipe.parsed_loss.temperature.value == pytest.approx(0.2)


def test_a_run_of_version_0_1_goes_on(tmp_path, often):
    """Its recipe has the field same_class, which is called images_per_class now."""
    recipe, stopped = replace(SMALL, images_per_class=2, loss="SparseCLR()"), []

    def stop(run):
        if run.rows:
            stopped.append(run)
            raise Killed

    with pytest.raises(Killed):
        train(recipe, tmp_path, on_epoch=stop)
    state = checkpoint.read(tmp_path)
    state["recipe"]["same_class"] = state["recipe"].pop("images_per_class")
    checkpoint.write(tmp_path, state)
    assert load_run(tmp_path).recipe == recipe
    assert train(recipe, tmp_path).history.loss.tolist() == train(recipe).history.loss.tolist()


def test_going_on_without_optimiser_or_with_other_data_is_refused(tmp_path):
    def stop(run):
        if run.rows:
            raise Killed

    with pytest.raises(Killed):
        train(SMALL, tmp_path / "a", on_epoch=stop)
    load_run(tmp_path / "a").save(tmp_path / "b")
    with pytest.raises(ValueError, match="saved without its optimiser"):
        train(SMALL, tmp_path / "b")
    more = ImageSet(torch.zeros(99, 3, 16, 16, dtype=torch.uint8), torch.zeros(99).long(), ("a",))
    with pytest.raises(ValueError, match="was trained on 70 images, and there are 99 now; restore the data"):
        pretrain(SMALL, tmp_path / "a", data=more)


def test_unknown_devices_are_refused():
    with pytest.raises(ValueError, match="device must be one that torch finds here .cpu.*, got 'gpu'"):
        train(SMALL, device="gpu")


def test_more_images_than_there_are_is_refused():
    with pytest.raises(ValueError, match="images must be .* <= 70, got 71"):
        train(replace(SMALL, images=71))


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(ValueError, match="batch must be an integer >= 2 and <= 70, got 71.*70 images"):
        train(replace(SMALL, batch=71))


def test_bad_checkpoints_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{tmp_path / CHECKPOINT}: no checkpoint there"):
        load_run(tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match=f"{tmp_path / CHECKPOINT}: not a readable checkpoint"):
        load_run(tmp_path)
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        train(SMALL, tmp_path)
    torch.save({"weights": torch.zeros(3)}, tmp_path / CHECKPOINT)
    with pytest.raises(ValueError, match="not a setclr checkpoint"):
        load_run(tmp_path)
    train(SMALL, tmp_path, resume=False)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        load_run(tmp_path)


def test_a_second_channel_count_needs_no_recipe_change():
    grey = ImageSet(torch.randint(0, 256, (40, 1, 16, 16), dtype=torch.uint8), torch.zeros(40).long(), ("a",))
    assert pretrain(replace(SMALL, epochs=1), data=grey).encoder[0].weight.shape[1] == 1


def test_resnet18_trains():
    run = train(replace(SMALL, encoder="resnet18", epochs=1, batch=32))
    assert run.encoder(torch.rand(2, 3, 32, 32)).shape == (2, 512)
    assert run.history.loss.notna().all()


def test_groco_collapses_without_the_last_norm_and_not_with_it():
    """With a plain linear output all embeddings become equal; a last batch norm without scale prevents it."""
    alike = {}
    for last_norm in (False, True):
        run = train(replace(SMALL, loss="GroCo()", last_norm=last_norm, epochs=20, schedule="constant"))
        assert not run.encoder.training and not run.head.training
        with torch.no_grad():
            z = run.head.train()(run.encoder.train()(torch.rand(64, 3, 16, 16)))
        z = torch.nn.functional.normalize(z, dim=1)
        alike[last_norm] = float((z @ z.T).mean())
    assert alike[False] > 0.9 and alike[True] < 0.1


def test_learning_rates():
    rates = [LRSchedule("cosine", warmup=2).factor(step, 5, 10) for step in range(50)]
    assert all(a < b for a, b in zip(rates[:10], rates[1:11]))
    assert max(rates) == rates[10] == 1.0
    assert rates[30] == pytest.approx(0.5) and rates[49] < 0.01
    assert LRSchedule("constant", warmup=2).factor(49, 5, 10) == 1.0
    steps = [LRSchedule("steps").factor(step, 5, 200) for step in range(1000)]
    assert steps == pytest.approx(500 * [1] + 250 * [0.1] + 250 * [0.01])  # as QARe's supervised row


def test_generators_are_functions_of_their_key():
    draw = lambda *key: torch.rand(3, generator=seeded(*key))  # noqa: E731
    assert torch.equal(draw(0, 1, 2), draw(0, 1, 2))
    assert len({tuple(draw(*key).tolist()) for key in [(0, 1), (1, 0), (0, 1, 0), (0,), (0, 0, 1)]}) == 5


@pytest.mark.parametrize(
    "change, message",
    [
        ({"loss": "InfNCE()"}, "did you mean 'InfoNCE'"),
        ({"views": "simclar"}, "views must be one of .*did you mean 'simclr'"),
        ({"encoder": "conv5"}, "encoder must be one of .*did you mean 'conv4'"),
        ({"optimiser": "adma"}, "optimiser must be one of .*did you mean 'adam'"),
        ({"schedule": "linear"}, "schedule must be one of"),
        ({"lr": 0}, "lr must be > 0, got 0"),
        ({"batch": 1}, "batch must be an integer >= 2 and <= 1048576, got 1"),
        ({"epochs": -1}, "epochs must be an integer >= 0 and <= 1000000, got -1"),
        ({"size": 4}, "size must be an integer >= 8 and <= 4096, got 4"),
        ({"weight_decay": -1}, "weight_decay must be >= 0, got -1"),
        ({"momentum": 2}, "momentum must be >= 0 and <= 1, got 2"),
        ({"warmup": -1}, "warmup must be >= 0, got -1"),
        ({"last_norm": "yes"}, "last_norm must be True or False, got 'yes'"),
        ({"loss": None}, "loss must be a text, got None"),
        ({"data": 3}, "data must be a text, got 3"),
        (
            {"seed": 2**64},
            "seed must be an integer >= 0 and <= 9223372036854775807, got 18446744073709551616",
        ),
        ({"layers": 10_000}, "layers must be an integer >= 1 and <= 64, got 10000"),
        ({"hidden": 2**31}, "hidden must be an integer >= 1 and <= 65536, got 2147483648"),
        ({"view_size": 2**31}, "view_size must be an integer >= 8 and <= 4096, got 2147483648"),
        ({"layers": 64, "hidden": 2**16}, r"at most 1e\+09 weights, got layers=64, hidden=65536 .*make one"),
        (
            {"loss": "IOT()", "key_momentum": 0.9, "queue": 10**7, "embedding": 2**16},
            r"queue must hold at most 1e\+09 numbers, got queue=10000000 and embedding=65536.*make one",
        ),
    ],
)
def test_bad_recipes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def test_memory_that_runs_out_on_a_cpu_says_what_to_make_smaller(monkeypatch):
    """The allocator's own error, for four petabytes."""
    monkeypatch.setattr(building, "models_of", lambda *_: torch.empty(2**50))
    with pytest.raises(
        MemoryError, match="the model does not fit .*allocate.*; make hidden, embedding or layers"
    ):
        new_run(SMALL, 3)
    monkeypatch.undo()
    monkeypatch.setattr(Trainer, "_next_views", lambda _: torch.empty(2**50))
    with pytest.raises(
        MemoryError, match="a batch of 16 on cpu does not fit .*allocate.*smaller batch"
    ) as error:
        train(SMALL, device="cpu")
    assert "\n" not in str(error.value)


def test_a_recipe_of_another_version_is_refused():
    with pytest.raises(ValueError, match=r"unknown fields \['colour'\]"):
        ImageRecipe.from_dict({**SMALL.to_dict(), "colour": 1})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_killed_on_a_gpu_and_resumed_is_never_killed(tmp_path):
    """A GPU sums in any order, in bfloat16: the losses of the two runs agree nearly, not bit by bit."""
    whole = train(SMALL, device="cuda")
    kill_at(6, lambda: train(SMALL, tmp_path, device="cuda"))
    assert next(load_run(tmp_path).encoder.parameters()).device.type == "cpu"
    resumed = train(SMALL, tmp_path, device="cuda")
    assert resumed.finished and resumed.history.loss.tolist() == pytest.approx(whole.history.loss, rel=0.02)

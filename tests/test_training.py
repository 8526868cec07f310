"""The loop: exact resume, recipes and checkpoints."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setclr import data, losses
from setclr.data import ImageSet
from setclr.recipes import RECIPES, Recipe
from setclr.training import Run, load_run, pretrain
from setclr.training.checkpoint import CHECKPOINT, HISTORY
from setclr.training.pretrain import Trainer
from setclr.training.schedule import learning_rate, stream

SMALL = Recipe("InfoNCE(temperature=0.2)", views="photo", epochs=3, batch=16, lr=3e-3)


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    """70 images of 16 px in place of every data set: 4 steps of 16 an epoch, 6 images left over."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (70, 3, 16, 16), dtype=torch.uint8, generator=generator)
    few = ImageSet(images, torch.arange(70) % 5, tuple("abcde"))
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: few)


def weights(run: Run) -> dict:
    return {**run.encoder.state_dict(), **{f"head.{k}": v for k, v in run.head.state_dict().items()}}


def assert_same(a: Run, b: Run):
    assert all(torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))
    timeless = ["epoch", "loss", "lr"]
    pd.testing.assert_frame_equal(a.history[timeless], b.history[timeless])


class Killed(Exception):
    pass


@settings(max_examples=8)
@given(
    step=st.integers(1, 11),
    loss=st.sampled_from(["InfoNCE(temperature=0.2)", "GroCo()"]),
    optimiser=st.sampled_from(["adam", "sgd"]),
)
def test_killed_after_any_step_and_resumed_is_never_killed(tmp_path_factory, step, loss, optimiser):
    recipe = replace(SMALL, loss=loss, optimiser=optimiser, last_norm=True, warmup=1)
    out = tmp_path_factory.mktemp("run")
    whole = pretrain(recipe)

    with pytest.MonkeyPatch.context() as patch:
        update = Trainer.update

        def until(trainer, x):
            if trainer.step == step:
                raise Killed
            return update(trainer, x)

        patch.setattr(Trainer, "update", until)
        with pytest.raises(Killed):
            pretrain(recipe, out)
    torch.rand(17)  # whatever else the program drew in between
    assert_same(pretrain(recipe, out), whole)
    assert_same(load_run(out), whole)


def test_killed_while_writing_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    pretrain(replace(SMALL, epochs=1), tmp_path / "one")
    before = (tmp_path / "one" / CHECKPOINT).read_bytes()

    def half(state, path):
        with open(path, "wb") as file:
            file.write(b"half a file")
        raise Killed

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(Killed):
        pretrain(replace(SMALL, epochs=1), tmp_path / "one", resume=False)
    assert (tmp_path / "one" / CHECKPOINT).read_bytes() == before
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == [CHECKPOINT, HISTORY]


def test_the_same_recipe_gives_the_same_run_and_another_seed_another():
    a, b = pretrain(SMALL), pretrain(SMALL)
    assert_same(a, b)
    other = pretrain(replace(SMALL, seed=1))
    assert not torch.equal(other.encoder[0].weight, a.encoder[0].weight)


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    pretrain(replace(SMALL, epochs=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_history_and_files(tmp_path):
    run = pretrain(SMALL, tmp_path)
    assert list(run.history.columns) == ["epoch", "loss", "lr", "seconds", "images_per_s"]
    assert list(run.history.epoch) == [1, 2, 3]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / HISTORY), run.history)
    assert run.finished and run.recipe == SMALL


def test_a_finished_run_is_loaded_not_trained(tmp_path, monkeypatch):
    run = pretrain(SMALL, tmp_path)
    monkeypatch.setattr(Trainer, "update", None)
    assert_same(pretrain(SMALL, tmp_path), run)


def test_saved_without_the_optimiser_it_still_loads(tmp_path):
    run = pretrain(SMALL, tmp_path / "whole")
    run.save(tmp_path / "small")
    assert_same(load_run(tmp_path / "small"), run)
    assert_same(pretrain(SMALL, tmp_path / "small"), run)
    sizes = [(tmp_path / name / CHECKPOINT).stat().st_size for name in ("small", "whole")]
    assert sizes[0] < 0.5 * sizes[1]


def test_on_epoch_sees_each_epoch_and_adds_to_its_row(tmp_path):
    seen = []

    def watch(run):
        seen.append(len(run.rows))
        return {"twice": 2 * len(run.rows)}

    run = pretrain(SMALL, tmp_path, on_epoch=watch)
    assert seen == [0, 1, 2, 3]
    assert list(run.history.twice) == [2, 4, 6]
    assert list(load_run(tmp_path).history.twice) == [2, 4, 6]


def test_another_recipe_is_refused_with_the_differences(tmp_path):
    pretrain(SMALL, tmp_path)
    with pytest.raises(ValueError, match=r"another recipe \(epochs 3 there, 4 now; seed 0 there, 7 now\)"):
        pretrain(replace(SMALL, epochs=4, seed=7), tmp_path)
    run = pretrain(replace(SMALL, epochs=1, seed=7), tmp_path, resume=False)
    assert run.recipe.seed == 7 and load_run(tmp_path).recipe.seed == 7


def test_a_loss_that_becomes_nan_stops_the_run_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    update = Trainer.update

    def breaks(trainer, x):
        loss = update(trainer, x)
        return loss * math.nan if trainer.step == 7 else loss

    monkeypatch.setattr(Trainer, "update", breaks)
    with pytest.raises(FloatingPointError, match="the loss became nan at step 6; lower lr"):
        pretrain(SMALL, tmp_path)
    assert len(load_run(tmp_path).rows) == 1


def test_on_epoch_may_return_numbers_of_any_kind(tmp_path):
    pretrain(SMALL, tmp_path, on_epoch=lambda run: {"a": np.float64(0.3), "b": torch.tensor(2)})
    assert load_run(tmp_path).rows[-1]["a"] == 0.3 and load_run(tmp_path).rows[-1]["b"] == 2


def test_weights_that_diverge_in_the_last_step_are_not_kept(tmp_path, monkeypatch):
    update = Trainer.update

    def spoils(trainer, x):
        loss = update(trainer, x)
        if trainer.step == 12:
            trainer.run.encoder[0].weight.data[0] = torch.nan
        return loss

    monkeypatch.setattr(Trainer, "update", spoils)
    with pytest.raises(FloatingPointError, match="the weights became NaN or inf at step 11"):
        pretrain(SMALL, tmp_path)
    assert len(load_run(tmp_path).rows) == 2


def test_what_cannot_be_written_is_found_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "update", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=f"out must be a folder that can be written, got {tmp_path / 'file'}"):
        pretrain(SMALL, tmp_path / "file")


def test_starting_afresh_forgets_the_run_before_at_once(tmp_path):
    pretrain(SMALL, tmp_path)

    def stop(run):
        raise Killed

    with pytest.raises(Killed):
        pretrain(SMALL, tmp_path, resume=False, on_epoch=stop)
    assert load_run(tmp_path).rows == []


def test_going_on_without_optimiser_or_with_other_data_is_refused(tmp_path, monkeypatch):
    def stop(run):
        if run.rows:
            raise Killed

    with pytest.raises(Killed):
        pretrain(SMALL, tmp_path / "a", on_epoch=stop)
    load_run(tmp_path / "a").save(tmp_path / "b")
    with pytest.raises(ValueError, match="saved without its optimiser"):
        pretrain(SMALL, tmp_path / "b")
    more = ImageSet(torch.zeros(99, 3, 16, 16, dtype=torch.uint8), torch.zeros(99).long(), ("a",))
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: more)
    with pytest.raises(ValueError, match="was trained on 70 images, and photo-patches gives 99 now"):
        pretrain(SMALL, tmp_path / "a")


def test_unknown_devices_are_refused():
    with pytest.raises(ValueError, match="device must be cpu, cuda .* got 'gpu'"):
        pretrain(SMALL, device="gpu")


def test_more_images_than_there_are_is_refused():
    with pytest.raises(ValueError, match="images must be .* <= 70, got 71"):
        pretrain(replace(SMALL, images=71))


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(ValueError, match="batch must be an integer >= 2 and <= 70, got 71.*70 images"):
        pretrain(replace(SMALL, batch=71))


def test_bad_checkpoints_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{tmp_path / CHECKPOINT}: no checkpoint there"):
        load_run(tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match=f"{tmp_path / CHECKPOINT}: not a readable checkpoint"):
        load_run(tmp_path)
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        pretrain(SMALL, tmp_path)
    torch.save({"weights": torch.zeros(3)}, tmp_path / CHECKPOINT)
    with pytest.raises(ValueError, match="not a setclr checkpoint"):
        load_run(tmp_path)
    pretrain(SMALL, tmp_path, resume=False)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        load_run(tmp_path)


def test_a_second_channel_count_needs_no_recipe_change(monkeypatch):
    grey = ImageSet(torch.randint(0, 256, (40, 1, 16, 16), dtype=torch.uint8), torch.zeros(40).long(), ("a",))
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: grey)
    assert pretrain(replace(SMALL, epochs=1)).encoder[0].weight.shape[1] == 1


def test_resnet18_trains():
    run = pretrain(replace(SMALL, encoder="resnet18", epochs=1, batch=32))
    assert run.encoder(torch.rand(2, 3, 32, 32)).shape == (2, 512)
    assert run.history.loss.notna().all()


def test_groco_collapses_without_the_last_norm_and_not_with_it():
    """With a plain linear output all embeddings become equal; a last batch norm without scale prevents it."""
    alike = {}
    for last_norm in (False, True):
        run = pretrain(replace(SMALL, loss="GroCo()", last_norm=last_norm, epochs=20, schedule="constant"))
        assert not run.encoder.training and not run.head.training
        with torch.no_grad():
            z = run.head.train()(run.encoder.train()(torch.rand(64, 3, 16, 16)))
        z = torch.nn.functional.normalize(z, dim=1)
        alike[last_norm] = float((z @ z.T).mean())
    assert alike[False] > 0.9 and alike[True] < 0.1


def test_learning_rates():
    recipe = replace(SMALL, lr=1.0, epochs=10, warmup=2)
    rates = [learning_rate(recipe, step, 5) for step in range(50)]
    assert all(a < b for a, b in zip(rates[:10], rates[1:11]))
    assert max(rates) == rates[10] == 1.0
    assert rates[30] == pytest.approx(0.5) and rates[49] < 0.01
    assert learning_rate(replace(recipe, schedule="constant"), 49, 5) == 1.0


def test_streams_are_functions_of_their_key():
    draw = lambda *key: torch.rand(3, generator=stream(*key))  # noqa: E731
    assert torch.equal(draw(0, 1, 2), draw(0, 1, 2))
    assert len({tuple(draw(*key).tolist()) for key in [(0, 1), (1, 0), (0, 1, 0), (0,), (0, 0, 1)]}) == 5


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_survive_a_round_trip(name):
    recipe = RECIPES[name]
    assert Recipe.from_dict(recipe.to_dict()) == recipe
    assert recipe.last_norm or "GroCo" not in recipe.loss
    losses.parse(recipe.loss)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"loss": "InfNCE()"}, "did you mean 'InfoNCE'"),
        ({"views": "simclar"}, "views must be one of .*did you mean 'simclr'"),
        ({"encoder": "conv5"}, "encoder must be one of .*did you mean 'conv4'"),
        ({"optimiser": "adamw"}, "optimiser must be one of .*did you mean 'adam'"),
        ({"schedule": "linear"}, "schedule must be one of"),
        ({"lr": 0}, "lr must be > 0, got 0"),
        ({"batch": 1}, "batch must be an integer >= 2, got 1"),
        ({"epochs": 0}, "epochs must be an integer >= 1, got 0"),
        ({"size": 4}, "size must be an integer >= 8, got 4"),
        ({"weight_decay": -1}, "weight_decay must be >= 0, got -1"),
        ({"momentum": 2}, "momentum must be >= 0 and <= 1, got 2"),
        ({"warmup": -1}, "warmup must be >= 0, got -1"),
        ({"last_norm": "yes"}, "last_norm must be True or False, got 'yes'"),
    ],
)
def test_bad_recipes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def test_a_recipe_of_another_version_is_refused():
    with pytest.raises(ValueError, match=r"unknown fields \['colour'\]"):
        Recipe.from_dict({**SMALL.to_dict(), "colour": 1})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_training_on_a_gpu_resumes_with_its_optimiser(tmp_path):
    pretrain(SMALL, tmp_path, device="cuda")
    assert next(load_run(tmp_path).encoder.parameters()).device.type == "cpu"
    assert pretrain(SMALL, tmp_path, device="cuda").finished

"""The engine with anybody's objects: precision, compiling, checkpoints by the clock, metrics."""

import copy
import io
import math
import os
import threading
import warnings
from dataclasses import fields, replace

import pandas as pd
import pytest
import torch
from conftest import shifted
from every_loss import EVERY
from looks_at_values import why
from PIL import Image
from torch import nn
from torch._inductor.exc import InductorError
from torch.utils.data import Dataset, TensorDataset
from tqdm.auto import tqdm

from setclr import data, models, pretrain, views
from setclr.data import ImageSet
from setclr.experiments import load_run
from setclr.experiments.run import new_run, refuse_other_recipe
from setclr.losses import GroCo, InfoNCE, SupCon
from setclr.losses.baselines import Supervised
from setclr.recipes import ImageRecipe
from setclr.training import (
    Batching,
    ImageViews,
    LoaderViews,
    LRSchedule,
    Machine,
    TensorBoard,
    Trainer,
    checkpoint,
    compiling,
    metrics,
)
from setclr.training import trainer as engine
from setclr.training.checkpoint import CHECKPOINT, HISTORY
from setclr.training.devices import Precision, has_bf16
from setclr.views import augmentation

CPU = torch.device("cpu")
PIXELS = torch.randint(0, 256, (70, 3, 16, 16), dtype=torch.uint8, generator=shifted(0))
FEW = ImageSet(PIXELS, torch.arange(70) % 5, tuple("abcde"))
PLAIN = ImageRecipe(
    "InfoNCE(temperature=0.2)", views="photo", epochs=3, batch=16, lr=3e-3, precision="float32"
)


class Own(nn.Module):
    """An encoder as a reader might write it: 6 features."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 6, 5, stride=2), nn.BatchNorm2d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.first(x)).relu().mean((2, 3))


def own_trainer(images=FEW, seed: int = 0, **more) -> Trainer:
    torch.manual_seed(seed)
    head, loss = models.head(6, 16, 8, last_norm=True), more.pop("loss", InfoNCE(0.2))
    names = {one.name for one in fields(Machine)} & more.keys()
    machine = Machine(**{"precision": "float32"} | {name: more.pop(name) for name in names})
    source = images if isinstance(images, LoaderViews) else ImageViews(images, views.preset("photo"))
    return Trainer(source, Own(), head, loss, **{"epochs": 3, "batch": 16, "device": machine, **more})


def weights(trainer: Trainer) -> list[torch.Tensor]:
    return [x.clone() for x in trainer.model.state_dict().values()]


def test_ones_own_encoder_is_trained_in_place():
    trainer = own_trainer()
    before, state = weights(trainer), torch.get_rng_state()
    rows = trainer.fit()
    assert [row["epoch"] for row in rows] == [1, 2, 3] and all(math.isfinite(row["loss"]) for row in rows)
    assert not torch.equal(before[0], weights(trainer)[0])  # the convolution's
    assert not trainer.encoder.training and torch.equal(torch.get_rng_state(), state)


def test_ones_own_training_goes_on_where_it_was_stopped(tmp_path):
    whole = own_trainer()
    whole.fit()

    def stop(trainer: Trainer) -> None:
        if len(trainer.rows) == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
        own_trainer().fit(tmp_path, on_epoch=stop)
    resumed = own_trainer(seed=1)  # other weights, which the checkpoint replaces
    resumed.fit(tmp_path)
    assert all(map(torch.equal, weights(whole), weights(resumed)))
    assert [row["loss"] for row in whole.rows] == [row["loss"] for row in resumed.rows]
    with pytest.raises(ValueError, match="holds no recipe; the Trainer that wrote it goes on"):
        load_run(tmp_path)


def test_a_recipe_is_the_same_training_as_its_objects():
    run = pretrain(PLAIN, data=FEW)
    torch.manual_seed(0)
    encoder, features = models.encoder("conv4")
    head = models.head(features, 256, 64)
    adam = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3, fused=True)
    source, machine = ImageViews(FEW, views.preset("photo")), Machine(precision="float32")
    trainer = Trainer(source, encoder, head, InfoNCE(0.2), adam, epochs=3, batch=16, device=machine,
                      lr_schedule=LRSchedule("cosine"))  # fmt: skip
    trainer.fit()
    assert run.history.loss.tolist() == [row["loss"] for row in trainer.rows]
    for a, b in zip(run.encoder.parameters(), encoder.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_data_set_is_loaded_once(monkeypatch):
    asked = []
    monkeypatch.setattr(data, "load", lambda *args, **more: asked.append(args) or FEW)
    pretrain(replace(PLAIN, epochs=1))
    assert len(asked) == 1


def test_checkpoints_go_by_the_clock_and_the_history_by_the_epoch(tmp_path, monkeypatch):
    saved, lines, save = [], [], torch.save
    monkeypatch.setattr(torch, "save", lambda *args: saved.append(threading.current_thread()) or save(*args))
    pretrain(PLAIN, tmp_path, data=FEW, on_epoch=lambda run: lines.append(len(run.rows)))
    assert len(saved) == 2, "one before training, one at the end"
    assert saved[1] is not threading.main_thread(), "beside training"
    assert len(pd.read_csv(tmp_path / HISTORY)) == 3 and lines == [0, 1, 2, 3]
    saved.clear()
    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
    pretrain(PLAIN, tmp_path, resume=False, data=FEW)
    assert len(saved) == 4


def test_what_is_written_is_the_moment_it_was_asked_for(tmp_path):
    weight = torch.zeros(1000)
    state = {"encoder": {"w": weight}, "head": {}, "history": []}
    with checkpoint.Writer(tmp_path, lambda: state) as writer:
        writer.write()
        weight.fill_(1.0)
        writer.wait()
    assert checkpoint.read(tmp_path)["encoder"]["w"].eq(0).all()


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_every_precision_trains_and_is_recorded(tmp_path, precision):
    run = pretrain(replace(PLAIN, precision=precision, epochs=8), tmp_path, data=FEW)
    assert run.history.loss.iloc[-1] < run.history.loss.iloc[0] - 0.05
    assert load_run(tmp_path).precision == run.precision == precision
    assert all(p.dtype == torch.float32 for p in run.encoder.parameters())


def test_auto_is_bf16_where_it_is_in_hardware(monkeypatch):
    assert Precision("auto", CPU).name == ("bf16" if has_bf16(CPU) else "float32")
    for there, name in ((True, "bf16"), (False, "float32")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda there=there: there)
        assert Precision("auto", CPU).name == name
    with pytest.raises(ValueError, match="precision must be one of .* got 'half'"):
        Precision("half", CPU)


def test_a_run_keeps_its_precision_wherever_it_goes_on(tmp_path, monkeypatch):
    """Begun on a processor without bf16, continued on one that has it."""
    auto = replace(PLAIN, precision="auto")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    whole = pretrain(auto, data=FEW)

    def stop(run) -> None:
        if len(run.rows) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
    with pytest.raises(KeyboardInterrupt):
        pretrain(auto, tmp_path, data=FEW, on_epoch=lambda run: len(run.rows) == 2 and stop_now())
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    resumed = pretrain(auto, tmp_path, data=FEW)
    assert resumed.precision == "float32" and resumed.history.loss.tolist() == whole.history.loss.tolist()
    assert pretrain(PLAIN, tmp_path, data=FEW).finished, "float32 is what was used"
    with pytest.raises(ValueError, match="precision 'float32' there, 'bf16' now"):
        pretrain(replace(PLAIN, precision="bf16"), tmp_path, data=FEW)


def stop_now() -> None:
    raise KeyboardInterrupt


def test_a_recipe_without_a_precision_was_float32(tmp_path):
    old = {name: value for name, value in PLAIN.to_dict().items() if name != "precision"}
    assert ImageRecipe.from_dict(old).precision == "float32" and ImageRecipe("InfoNCE()").precision == "auto"
    refuse_other_recipe(tmp_path, ImageRecipe.from_dict(old), replace(PLAIN, precision="auto"))
    with pytest.raises(ValueError, match="precision 'float32' there, 'bf16' now"):
        refuse_other_recipe(tmp_path, ImageRecipe.from_dict(old), replace(PLAIN, precision="bf16"))


def test_an_unfinished_run_of_older_draws_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
    with pytest.raises(KeyboardInterrupt):
        pretrain(PLAIN, tmp_path, data=FEW, on_epoch=lambda run: len(run.rows) == 2 and stop_now())
    state = checkpoint.read(tmp_path)
    torch.save({name: value for name, value in state.items() if name != "draws"}, tmp_path / CHECKPOINT)
    with pytest.raises(ValueError, match="begun with version 1 of the random views.*resume=False starts"):
        pretrain(PLAIN, tmp_path, data=FEW)


def test_compiled_is_eager_but_for_rounding(tmp_path):
    """One step of plain SGD, which is as far off as the gradient is.

    That is more than rounding: a ReLU whose input is 0 but for it lets the gradient through or does not. A
    mistake would be as large as the step.
    """
    recipe = replace(PLAIN, optimiser="sgd", momentum=0.0, lr=0.1, epochs=1, batch=64, schedule="constant")
    eager, compiled = (pretrain(recipe, data=FEW, compiled=how) for how in (False, True))
    assert (eager.compiled, compiled.compiled) == (False, True)
    assert compiled.history.loss.item() == pytest.approx(eager.history.loss.item(), rel=1e-4)
    fresh = new_run(recipe, channels=3)
    learnt = [run.encoder.parameters() for run in (compiled, eager, fresh)]
    for a, b, before in zip(*learnt, strict=True):
        assert (a - b).norm() < 1e-2 * (b - before).norm()
    broken = replace(recipe, lr=1e30, epochs=2)
    with pytest.raises(FloatingPointError, match="the embeddings became NaN or inf at step 1"):
        pretrain(broken, data=FEW, compiled=True)


def test_without_a_compiler_it_goes_on_in_words(monkeypatch):
    def none(*args, **more):
        raise InductorError(RuntimeError("no C++ compiler"), None)

    monkeypatch.setattr(torch, "compile", none)
    compiling.available.cache_clear()
    with pytest.warns(UserWarning, match="training goes on uncompiled, more slowly: .*needs a C\\+\\+ comp"):
        run = pretrain(replace(PLAIN, epochs=1), data=FEW, compiled=True)
    compiling.available.cache_clear()
    assert run.compiled is False and run.finished


def test_views_that_cannot_be_compiled_go_on_uncompiled(monkeypatch):
    def broken(*args, **more):
        raise InductorError(RuntimeError("no kernel for this crop"), None)

    short = replace(PLAIN, epochs=1)
    whole = pretrain(short, data=FEW, compiled=False)
    monkeypatch.setattr(augmentation, "_graph", lambda work: broken)
    monkeypatch.setattr(compiling, "available", lambda device: True)
    monkeypatch.setattr(compiling, "compile_all", lambda parts, step: False)
    with pytest.warns(UserWarning, match="training goes on uncompiled, more slowly: .*for this crop"):
        run = pretrain(short, data=FEW, compiled=True)
    assert all(map(torch.equal, run.encoder.parameters(), whole.encoder.parameters()))


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_what_is_not_compiled_is_what_looks_at_values(loss):
    assert loss.reads_values == (why(loss) is not None) == (loss + loss).reads_values


def test_compiling_pays_in_long_runs_alone():
    conv4, resnet = models.encoder("conv4")[0], models.encoder("resnet18")[0]
    batch = [(256, 3, 32, 32)]
    assert not compiling.pays(conv4, batch, 100, CPU) and compiling.pays(conv4, batch, 50_000, CPU)
    assert compiling.pays(resnet, batch, 1000, CPU) and not compiling.pays(resnet, batch, 4, CPU)
    assert Machine().compiled == "auto" and not own_trainer().compiled


def test_tensorboard_gets_every_epoch(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = pretrain(PLAIN, data=FEW, metrics=[TensorBoard(tmp_path)])
    found = EventAccumulator(str(tmp_path)).Reload().Scalars("loss")
    assert [event.step for event in found] == [1, 2, 3]
    assert [event.value for event in found] == pytest.approx(run.history.loss.tolist(), rel=1e-6)


@pytest.mark.parametrize(
    "loss", [SupCon(0.2), InfoNCE(0.2), GroCo(), InfoNCE(0.2) + 0.5 * SupCon(0.2)], ids=repr
)
def test_labels_reach_the_loss_where_they_are_asked_for(loss):
    """The first loss is that of the batch's embeddings and labels, written out."""
    trainer = own_trainer(epochs=1, batch=70, compiled=False, device="cpu", labels=True, loss=loss)
    z, y = first_embeddings(trainer), FEW.labels[trainer.batches.of(0)[0]]
    assert trainer.fit()[0]["loss"] == pytest.approx(float(loss(z, labels=y)), rel=1e-4)


def first_embeddings(trainer: Trainer) -> torch.Tensor:
    """Of the first batch, by a copy of the modules in training mode."""
    (x,) = next(own_trainer(epochs=1, batch=70, compiled=False, device="cpu").view_batches)
    network = copy.deepcopy(nn.Sequential(trainer.encoder, trainer.head)).train()
    return network(x.flatten(0, 1)).detach().unflatten(0, (2, -1))


def test_labels_stay_out_unless_they_are_asked_for():
    alone = ImageSet(PIXELS, torch.arange(70), tuple(map(str, range(70))))
    rows = [own_trainer(images, epochs=1, compiled=False).fit() for images in (FEW, alone)]
    assert rows[0][0]["loss"] == rows[1][0]["loss"]


def test_labels_that_are_missing_or_not_taken_are_refused():
    for loss in (SupCon(), InfoNCE() + SupCon()):
        with pytest.raises(ValueError, match="labels must be True for .*; without labels take InfoNCE"):
            own_trainer(loss=loss)
    with pytest.raises(ValueError, match="labels must be True for SupCon"):
        ImageRecipe("SupCon()")
    with pytest.raises(ValueError, match="labels must be False for QARe.*takes no labels"):
        ImageRecipe("QARe()", labels=True)
    with pytest.raises(ValueError, match="labels must be True or False, got 1"):
        own_trainer(labels=1)


@pytest.mark.parametrize("labels, split", [(True, "train"), (False, "unlabelled")])
def test_supervised_contrast_trains_on_labelled_images_alone(labels, split, monkeypatch):
    asked = []
    monkeypatch.setattr(data, "load", lambda name, root, split, *more, **kinds: asked.append(split) or FEW)
    pretrain(replace(PLAIN, data="stl10", labels=labels, epochs=0))
    assert asked == [split]


def test_the_time_left_leaves_the_first_step_out():
    now = [0.0]
    bar = tqdm(total=100, initial=10, file=io.StringIO(), disable=False)
    bar._time, bar.start_t, bar.last_print_t = lambda: now[0], 0.0, 0.0
    now[0] = 60.0  # of compiling
    metrics.advance(bar, timed=False)
    for _ in range(9):
        now[0] += 1.0
        metrics.advance(bar)
    assert bar.n == 20
    assert bar.format_dict["elapsed"] == pytest.approx(9) and bar.format_dict["initial"] == 11


def test_a_function_of_ones_own_is_told_every_epoch():
    told = []
    own_trainer().fit(metrics=[lambda rows: told.append([row["epoch"] for row in rows])])
    assert told == [[1], [1, 2], [1, 2, 3]]


def test_deterministic_changes_nothing_on_a_cpu():
    a, b = own_trainer(), own_trainer(deterministic=True)
    a.fit()
    b.fit()
    assert all(map(torch.equal, weights(a), weights(b)))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"batch": 71}, "batch must be .* <= 70, got 71; there are 70 images"),
        ({"epochs": -1}, "epochs must be an integer >= 0, got -1"),
        ({"precision": "half"}, "precision must be one of"),
        ({"compiled": "yes"}, "compiled must be True, False or 'auto', got 'yes'"),
        ({"workers": -1}, "workers must be an integer >= 0"),
        ({"lr_schedule": 0.1}, "lr_schedule must be an LRSchedule"),
        (
            {"batch": Batching(16, images_per_class=3)},
            "batch must be a multiple of images_per_class=3, got 16",
        ),
        ({"device": "abacus"}, "device must be one that torch finds"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        own_trainer(**change)


def test_parts_that_are_none_are_named():
    source = ImageViews(FEW, views.preset("photo"))
    for at, bad, message in (
        (0, FEW, r"source must be a .*Source, got ImageSet; ImageViews\(images, views.preset"),
        (1, 3, "encoder must be a module"),
        (2, None, "head must be a module"),
        (3, 0.5, "loss must be"),
    ):
        parts = [source, Own(), models.head(6, 16, 8), InfoNCE(0.2)]
        parts[at] = bad
        with pytest.raises(ValueError, match=message):
            Trainer(*parts, epochs=1, batch=16)
    with pytest.raises(ValueError, match="images must be an ImageSet, or a Dataset with a length"):
        ImageViews(5, views.preset("photo"))
    with pytest.raises(ValueError, match="views must be a tuple of View"):
        ImageViews(FEW, "photo")
    with pytest.raises(ValueError, match="head must have a linear layer"):
        one = ImageViews(FEW, views.preset("photo", count=1))
        Trainer(one, Own(), nn.Identity(), Supervised(), epochs=1, batch=16)


class Pictures(Dataset):
    """Items as torchvision's data sets have them: an image and its class."""

    def __init__(self, kind: str):
        self.kind, self.targets, self.classes = kind, FEW.labels.tolist(), FEW.classes

    def __len__(self) -> int:
        return len(PIXELS)

    def __getitem__(self, i: int):
        if self.kind == "PIL":
            return Image.fromarray(PIXELS[i].permute(1, 2, 0).numpy()), self.targets[i]
        return (PIXELS[i] / 255 if self.kind == "floating" else PIXELS[i]), self.targets[i]


@pytest.mark.parametrize("kind, workers", [("PIL", 0), ("uint8", 1), ("floating", 0)])
def test_any_dataset_of_images_is_the_images_in_it(kind, workers):
    """As the same pixels in memory; crops are rounded to grey levels where they are cut."""
    some = data.image_set(Pictures(kind))
    assert torch.equal(some.images[:], PIXELS) and torch.equal(some.labels, FEW.labels)
    assert some.classes == FEW.classes and torch.equal(some.sample(9).images[:], FEW.sample(9).images)
    (found,), (wanted,) = (
        next(own_trainer(images, workers=workers).view_batches) for images in (Pictures(kind), FEW)
    )
    assert (found - wanted).abs().max() < 4 / 255 and found.shape == (2, 16, 3, 16, 16)
    assert [row["epoch"] for row in own_trainer(Pictures(kind), epochs=1, workers=workers).fit()] == [1]


def test_a_dataset_without_labels_has_none():
    some = data.image_set(TensorDataset(PIXELS[:, :1]))
    assert some.labels.eq(-1).all() and some.classes == ()
    assert torch.equal(some.images[:], PIXELS[:, :1].expand(-1, 3, -1, -1))


@pytest.mark.parametrize(
    "item, message",
    [
        (torch.rand(3, 8, 8) * 9, r"image 0 of Odd .* in \[0, 1\]: leave Normalize out"),
        (torch.zeros(3, 8, 8).long(), "image 0 of Odd .* uint8, or floating in .* got torch.int64"),
        (torch.zeros(8, 8), r"image 0 of Odd .*tensor \(1 or 3, H, W\), got \(8, 8\)"),
        ("a path", "image 0 of Odd .*got str"),
    ],
)
def test_items_that_are_no_images_are_named(item, message):
    class Odd(Dataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int):
            return item

    with pytest.raises(ValueError, match=message):
        data.image_set(Odd())


def test_warnings_are_not_errors_of_ours():
    """A first step that is compiled warns of nothing that the reader could change."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        own_trainer(epochs=1).fit()
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") is None


def test_on_epoch_may_have_a_length_that_is_none():
    """As a film of no frames has."""

    class Watch(list):
        def __call__(self, run):
            return {"watched": 1.0}

    assert pretrain(replace(PLAIN, epochs=1), data=FEW, on_epoch=Watch()).rows[0]["watched"] == 1.0


@pytest.mark.parametrize("targets", [[0, 1.7], [0, float("nan")], ["a", "b"], [0]])
def test_targets_that_are_no_classes_are_refused(targets):
    dataset = TensorDataset(torch.zeros(2, 3, 8, 8))
    dataset.targets = targets
    with pytest.raises(
        ValueError, match=r"targets must be 2 whole numbers .*; number the classes 0, 1, \.\.\."
    ):
        own_trainer(dataset)

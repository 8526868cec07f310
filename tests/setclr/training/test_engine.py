"""The engine with anybody's objects: precision, compiling, checkpoints by the clock, labels.

And gradient caching: a batch in chunks gives the gradients of the batch in one go.
"""

import copy
import threading
import warnings
from dataclasses import fields, replace

import pandas as pd
import pytest
import torch
from every_loss import EVERY
from looks_at_values import why
from small_runs import FEW, PIXELS, SMALL, same, train
from torch import nn
from torch._inductor.exc import InductorError

from setclr import data, models, pretrain, views
from setclr.data import ImageSet
from setclr.experiments import load_run
from setclr.losses import GroCo, InfoNCE, SupCon
from setclr.training import Batching, ImageViews, LRSchedule, Machine, Trainer
from setclr.training import trainer as engine
from setclr.training.checkpoint import HISTORY, Writer, read
from setclr.training.devices import Precision, has_bf16
from setclr.training.grad_cache import GradCache
from setclr.training.source import Batches
from setclr.views import augmentation
from setclr_course.papers.supervised import Supervised

CPU, VIEWS = torch.device("cpu"), views.preset("photo")
PLAIN = replace(SMALL, epochs=1, precision="float32")


class Own(nn.Module):
    """An encoder as a reader might write it: 6 features."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 6, 5, 2, bias=False), nn.BatchNorm2d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.first(x)).relu().mean((2, 3))


def own_trainer(images=FEW, seed: int = 0, **more) -> Trainer:
    torch.manual_seed(seed)
    head = models.head(6, 16, 8, last_norm=more.pop("last_norm", True))
    loss = more.pop("loss", InfoNCE(0.2))
    names = {one.name for one in fields(Machine)} & more.keys()
    machine = Machine(**{"precision": "float32"} | {name: more.pop(name) for name in names})
    how = {"epochs": 1, "batch": 16, "device": machine, **more}
    return Trainer(ImageViews(images, VIEWS), Own(), head, loss, **how)


def test_a_recipe_is_the_same_training_as_its_objects_and_nothing_warns():
    torch.manual_seed(0)
    encoder, features = models.encoder("conv4")
    head = models.head(features, 256, 64)
    adam = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3, fused=True)
    source, machine = ImageViews(FEW, VIEWS), Machine(precision="float32")
    trainer = Trainer(source, encoder, head, InfoNCE(0.2), adam, epochs=1, batch=16, device=machine,
                      lr_schedule=LRSchedule("cosine"))  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        trainer.fit()
    assert same(train(PLAIN), trainer)


def test_checkpoints_go_by_the_clock_and_the_history_by_the_epoch(tmp_path, monkeypatch):
    saved, lines, save, recipe = [], [], torch.save, replace(PLAIN, epochs=3)
    monkeypatch.setattr(torch, "save", lambda *args: saved.append(threading.current_thread()) or save(*args))
    train(recipe, tmp_path, on_epoch=lambda run: lines.append(len(run.rows)))
    assert len(saved) == 2, "one before training, one at the end"
    assert saved[1] is not threading.main_thread(), "beside training"
    assert len(pd.read_csv(tmp_path / HISTORY)) == 3 and lines == [0, 1, 2, 3]
    saved.clear()
    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
    train(recipe, tmp_path, resume=False)
    assert len(saved) == 4


def test_what_is_written_is_the_moment_it_was_asked_for(tmp_path):
    weight = torch.zeros(1000)
    state = {"encoder": {"w": weight}, "head": {}, "history": []}
    writer = Writer(tmp_path, lambda: state)
    writer.write()
    weight.fill_(1.0)
    writer.wait()
    assert read(tmp_path)["encoder"]["w"].eq(0).all()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_every_precision_trains_nearly_alike_and_is_recorded(tmp_path, precision):
    slow = replace(PLAIN, epochs=2, lr=1e-5)  # fp16 leaves steps out while it looks for its scale
    wide, run = train(slow), train(replace(slow, precision=precision), tmp_path)
    assert load_run(tmp_path).precision == run.precision == precision and wide.precision == "float32"
    assert run.history.loss.tolist() == pytest.approx(wide.history.loss.tolist(), rel=0.05)
    assert not same(run, wide) and all(p.dtype == torch.float32 for p in run.encoder.parameters())


def test_auto_is_bf16_where_it_is_in_hardware(monkeypatch):
    assert Precision("auto", CPU).name == ("bf16" if has_bf16(CPU) else "float32")
    for there, name in ((True, "bf16"), (False, "float32")):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda there=there: there)
        assert Precision("auto", CPU).name == name


def test_compiled_is_eager_but_for_rounding():
    """One step of plain SGD, which is as far off as the gradient is.

    That is more than rounding: a ReLU whose input is 0 but for it lets the gradient through or does not. A
    mistake would be as large as the step.
    """
    plain = {"epochs": 2, "batch": 64, "last_norm": False}  # all weights have a gradient
    trainers = [own_trainer(compiled=compiled, **plain) for compiled in (False, True)]
    for trainer in trainers:
        trainer.optimiser = torch.optim.SGD([{"params": [*trainer.model.parameters()], "initial_lr": 0.1}])
    first = [p.detach().clone() for p in trainers[0].model.parameters()]
    for trainer in trainers:
        list(trainer.epoch())
        trainer.close_epoch()
    assert [trainer.compiled for trainer in trainers] == [False, True]
    eager, compiled = ([p.detach() for p in trainer.model.parameters()] for trainer in trainers)
    assert trainers[1].rows[0]["loss"] == pytest.approx(trainers[0].rows[0]["loss"], rel=1e-4)
    for a, b, before in zip(compiled, eager, first, strict=True):
        assert (a - b).norm() < 1e-2 * (b - before).norm()
    with torch.no_grad():
        compiled[0].fill_(torch.inf)
    with pytest.raises(FloatingPointError, match="the embeddings became NaN or inf at step 1"):
        next(trainers[1].epoch())


@pytest.mark.parametrize("where", ["compiler", "views"])
def test_what_cannot_be_compiled_goes_on_uncompiled_in_words(monkeypatch, where):
    def broken(*args, **more):
        raise InductorError(RuntimeError("it raised:\nno kernel for this\n\nSet a variable"), None)

    if where == "compiler":
        monkeypatch.setattr(torch, "compile", broken)
    else:
        monkeypatch.setattr(augmentation, "_compiled", lambda: broken)
    said = r"training goes on uncompiled, more slowly: .*no kernel for this; on a CPU .*needs a C\+\+ comp"
    with pytest.warns(UserWarning, match=said):
        run = train(PLAIN, compiled=True)
    assert run.compiled is False and same(run, train(PLAIN, compiled=False))


def test_auto_compiles_long_runs_alone():
    """Of 2,000 steps or more; here an epoch has 4."""
    assert Machine().compiled == "auto"
    for loss in EVERY:  # nor what looks at values
        assert loss.reads_values == (why(loss) is not None) == (loss + loss).reads_values, loss
    assert [own_trainer(epochs=n).compiled for n in (1, 499, 500)] == [False, False, True]
    assert not Machine().compiles(False, 10**6, "graphs"), "their sizes change"


BY_LABELS = [SupCon(0.2), InfoNCE(0.2), GroCo(), InfoNCE(0.2) + 0.5 * SupCon(0.2)]


@pytest.mark.parametrize("loss", BY_LABELS, ids=repr)
def test_labels_reach_the_loss_where_they_are_asked_for(loss):
    """The losses of two steps are those of each batch's embeddings and labels, written out."""
    trainer = own_trainer(batch=35, compiled=False, device="cpu", labels=True, loss=loss)
    steps = trainer.epoch()
    for k, (x,) in enumerate(own_trainer(batch=35, compiled=False, device="cpu").view_batches):
        network = copy.deepcopy(nn.Sequential(trainer.encoder, trainer.head)).train()
        z = network(x.flatten(0, 1)).detach().unflatten(0, (2, -1))
        next(steps)
        wanted = loss(z, labels=FEW.labels[trainer.batches.of_epoch(0)[k]])
        assert float(trainer.values[k].detach()) == pytest.approx(float(wanted), rel=1e-4)


def test_labels_stay_out_unless_they_are_asked_for(monkeypatch):
    alone = ImageSet(PIXELS, torch.arange(70), tuple(map(str, range(70))))
    first, second = (own_trainer(images, compiled=False).fit() for images in (FEW, alone))
    assert first[0]["loss"] == second[0]["loss"]
    asked = []
    monkeypatch.setattr(data, "load", lambda name, root, split, *more, **kinds: asked.append(split) or FEW)
    for labels in (True, False):  # supervised contrast trains on labelled images alone
        pretrain(replace(PLAIN, data="stl10", labels=labels, epochs=0))
    assert asked == ["train", "unlabelled"]


@pytest.mark.parametrize("make, message", [
    (lambda: own_trainer(batch=71), "batch must be .* <= 70, got 71; there are 70 images"),
    (lambda: own_trainer(batch=Batching(16, images_per_class=3)), "multiple of images_per_class=3"),
    (lambda: own_trainer(loss=SupCon()), "labels must be True for .*; without labels take InfoNCE"),
    (lambda: Batches(FEW.labels[:65], Batching(16, drop_last=False)),
     "the last batch would hold 1 image, of 65 in batches of 16; set drop_last=True"),
    (lambda: Trainer(FEW, Own(), nn.Identity(), InfoNCE()),
     r"source must be a .*Source, got ImageSet; ImageViews\(images, views.preset"),
    (lambda: Trainer(ImageViews(FEW, VIEWS[:1]), Own(), nn.Identity(), Supervised(),
                     batch=16), "head must have a linear layer"),
    (lambda: ImageViews(5, VIEWS), "images must be an ImageSet, got int; ImageSet"),
])  # fmt: skip
def test_parts_and_arguments_that_do_not_fit_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Gradient caching

WIDE, BOTH = Precision("float32", CPU), InfoNCE(0.2) + 0.3 * GroCo()


def gradients(encoder, head, views, chunk):
    """The loss, every gradient and every weight and buffer afterwards; the models are copies."""
    both = nn.ModuleList([copy.deepcopy(encoder), copy.deepcopy(head)])
    value = GradCache(*both, WIDE, chunk).backward(views, BOTH)
    return value, {name: p.grad for name, p in both.named_parameters()}, both.state_dict()


def plain(*groups: tuple[int, int]) -> tuple[nn.Module, nn.Module, list[torch.Tensor]]:
    """An encoder without batch statistics and blind to an image's size, a head, and V views of side S."""
    layers = [nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    views = [torch.rand(V, 10, 3, S, S, dtype=torch.float64) for V, S in groups]
    return nn.Sequential(*layers).double(), models.head(6, 8, 5, last_norm=True).double(), views


@pytest.mark.parametrize("chunk", [1, 3, 9, 10, 64])
@pytest.mark.parametrize("groups", [[(2, 8)], [(2, 8), (3, 5)]], ids=["two views", "multi-crop"])
def test_without_batch_statistics_chunks_change_nothing(chunk, groups):
    given = plain(*groups)
    (value, whole, state), (chunked, parts, its_state) = (gradients(*given, each) for each in (None, chunk))
    torch.testing.assert_close(chunked, value, rtol=1e-12, atol=0)
    assert all(gradient.abs().max() > 1e-6 or "bias" in name for name, gradient in whole.items())
    torch.testing.assert_close(parts, whole, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(its_state, state)


@pytest.mark.parametrize("chunk", [None, 3, 10])
def test_embedding_without_a_gradient_gives_what_the_loss_sees(chunk):
    *both, views = plain((2, 8), (3, 5))
    embedder, seen = GradCache(*both, WIDE, chunk), []
    z = embedder.embed(views)
    embedder.backward(views, lambda z: (seen.append(z), z.sum())[1])
    assert z.shape == (5, 10, 5) and not z.requires_grad
    torch.testing.assert_close(z, seen[0].detach(), rtol=1e-12, atol=1e-12)


def test_batch_norm_sees_a_chunk_at_a_time_and_counts_it_once():
    """The reference keeps the graph of every chunk, which is what caching avoids."""
    encoder, its_head = models.encoder("conv4")[0].double().train(), models.head(64, 8, 5, last_norm=True)
    its_head, (*_, views) = its_head.double(), plain((2, 16))
    value, gradient, state = gradients(encoder, its_head, views, 4)

    parts = [encoder(views[0][:, a : a + 4].flatten(0, 1)).unflatten(0, (2, -1)) for a in (0, 4, 8)]
    z = its_head(torch.cat(parts, dim=1).flatten(0, 1)).unflatten(0, (2, 10))
    expected = BOTH(z)
    expected.backward()
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    both = nn.ModuleList([encoder, its_head])
    wanted = {name: p.grad for name, p in both.named_parameters()}
    torch.testing.assert_close(gradient, wanted, rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(state, both.state_dict())
    assert encoder[1].num_batches_tracked == 3 and its_head[1].num_batches_tracked == 1

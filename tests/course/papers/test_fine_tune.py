"""Fine-tuning: what it learns, what it leaves alone, and one run of it written out in plain torch."""

import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from conftest import shifted
from torch import nn
from torch.nn import functional as F
from torchvision.transforms.v2 import functional as TF

from setclr import models, views
from setclr.data import ImageSet
from setclr.evaluation import features
from setclr.seeding import seeded
from setclr_course.papers import fine_tune
from setclr_course.papers import fine_tuning as tuning


def stripes(n, seed=0, side=16):
    """Grey images of stripes under noise: two classes, the stripes' direction, which no flip changes."""
    drawn = shifted(seed)
    labels = torch.randint(0, 2, (n,), generator=drawn)
    phase = 2 * math.pi * torch.rand(n, 1, 1, 1, generator=drawn)
    waves = torch.sin(1.2 * torch.arange(side) + phase).expand(n, 3, side, side)
    waves = torch.where(labels[:, None, None, None] == 1, waves, waves.mT)
    noise = torch.randn(n, 3, side, side, generator=drawn)
    return ImageSet((127 + 40 * waves + 40 * noise).clamp(0, 255).byte(), labels, ("flat", "upright"))


def small_encoder(seed=0):
    torch.manual_seed(seed)
    return models.encoder("conv4")[0]


@pytest.mark.parametrize("frozen", [False, True])
def test_the_encoder_is_left_as_it_was(frozen):
    encoder, train = small_encoder().requires_grad_(not frozen), stripes(12)
    encoder[1].eval()
    before, modes = copy.deepcopy(encoder.state_dict()), [module.training for module in encoder.modules()]
    with torch.no_grad():  # as one may call it
        fine_tune(encoder, train, train, epochs=1, batch=6)
    after = encoder.state_dict()
    assert all(torch.equal(after[key], kept) for key, kept in before.items())
    assert [module.training for module in encoder.modules()] == modes
    assert all(p.grad is None and p.requires_grad is not frozen for p in encoder.parameters())


@pytest.fixture
def used(monkeypatch) -> list[nn.Module]:
    """The models whose features were asked for: of a fine-tuning, last of all its own."""
    models_used = []

    def spy(model, images):
        models_used.append(model)
        return features(model, images)

    monkeypatch.setattr(tuning, "features", spy)
    return models_used


def test_it_is_a_function_of_its_seed_and_leaves_the_global_one_alone(used):
    encoder, train, test = small_encoder(), stripes(16), stripes(8, seed=1)

    def weights(seed: int) -> torch.Tensor:
        found = fine_tune(encoder, train, test, epochs=1, batch=8, seed=seed)
        assert found.dtype == torch.int64 and found.shape == (8,)
        return torch.cat([w.detach().flatten() for w in used[-1].parameters()])

    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = weights(0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert torch.equal(weights(0), first) and not torch.equal(weights(1), first)


def test_its_weights_are_those_of_the_formulas_of_a_frozen_encoder_too(used):
    """Two epochs written out: crops and flips, Nesterov's momentum, weight decay, half a cosine."""
    train, epochs, batch, lr, decay, crop = stripes(40), 2, 16, 0.05, 0.01, tuning.CROP
    encoder, test, how = small_encoder().requires_grad_(False), stripes(9, seed=1), dict(precision="float32")
    found = fine_tune(encoder, train, test, epochs, lr, batch, decay, seed=5, **how)
    torch.manual_seed(5)
    model = nn.Sequential(encoder, nn.Linear(64, 2)).requires_grad_(True).train()
    weights = list(model.parameters())
    starts = [w.detach().clone() for w in weights]
    velocity, step = [torch.zeros_like(w) for w in weights], 0
    for epoch in range(epochs):
        order = torch.randperm(40, generator=seeded(5, epoch))
        for position in range(2):
            index = order[position * batch : (position + 1) * batch]
            p = views.parameters(crop, views.draw(crop, batch, seeded(5, epoch, position)), 16, 16)
            x = [train.images[i] / 255 for i in index]
            x = [TF.resized_crop(one, *box.int().tolist(), [16, 16]) for one, box in zip(x, p.box[0])]
            x = torch.stack([one.flip(-1) if flip else one for one, flip in zip(x, p.flip[0])])
            loss = F.cross_entropy(model(x), train.labels[index])
            rate = lr * (1 + math.cos(math.pi * step / 4)) / 2
            with torch.no_grad():
                for w, v, g in zip(weights, velocity, torch.autograd.grad(loss, weights)):
                    g = g + decay * w
                    v.mul_(0.9).add_(g)
                    w.sub_(rate * (g + 0.9 * v))
            step += 1
    for mine, theirs, start in zip(used[-1].parameters(), weights, starts, strict=True):
        moved = (theirs - start).norm()
        assert (mine - theirs).norm() < 0.02 * moved  # batch norms enlarge float32's rounding
    assert torch.equal(found, features(used[-1], test.images).argmax(1))


def test_the_rate_and_decay_that_do_best_on_a_fifth_held_out_of_each_class(monkeypatch):
    train, test, asked, made = stripes(60), stripes(30, seed=1), [], []

    def tuned(encoder, part, seen, lr=None, weight_decay=0.0, **how):
        asked.append((part, seen, lr, weight_decay, how))
        if lr == 0.1:
            raise FloatingPointError("diverged")
        good = (lr, weight_decay) == (1e-2, 1e-4 / 1e-2)
        return seen.labels if good else 1 - seen.labels

    monkeypatch.setattr(tuning, "fine_tune", tuned)
    untrained = SimpleNamespace(fit=lambda: None)
    monkeypatch.setattr(tuning, "Trainer", lambda *given, **more: made.append(given[4]) or untrained)
    fine_tune(small_encoder(), train, test, epochs=3, lr=None, batch=8, seed=4, precision="float32")
    assert [(lr, decay * lr) for _, _, lr, decay, _ in asked] == [
        (lr, pytest.approx(decay)) for lr in (1e-4, 1e-3, 1e-2, 1e-1) for decay in (0, 1e-6, 1e-5, 1e-4, 1e-3)
    ]
    part, seen, _, _, how = asked[0]
    assert how == {"epochs": 3, "batch": 8, "seed": 4, "precision": "float32"}
    together = torch.cat([part.images, seen.images]).flatten(1).double().sum(1).sort().values
    assert torch.equal(together, train.images.flatten(1).double().sum(1).sort().values)
    counts = train.labels.bincount()
    assert len(seen) == 12 and (seen.labels.bincount() / counts - 0.2).abs().max() < 1 / counts.min()
    assert made[0].defaults["lr"] == 1e-2 and made[0].defaults["weight_decay"] == pytest.approx(1e-2)


@pytest.mark.parametrize("change, message", [
    (dict(epochs=0), "epochs must be an integer >= 1, got 0"),
    (dict(batch=41), "batch must be an integer >= 2 and <= 40, got 41; train has 40 images"),
    (dict(lr=0), "lr must be > 0, got 0"),
    (dict(weight_decay=-1), "weight_decay must be >= 0, got -1"),
    (dict(seed=-1), "seed must be an integer >= 0, got -1"),
    (dict(test=stripes(9, side=18)), r"test must have images of the shape of train, \(3, 16, 16\), got"),
    (dict(test=replace(stripes(9), classes=("upright", "flat"))), "they differ in their order"),
    (dict(lr=1e20, epochs=3), "became .* at step [01]; lower lr"),
])  # fmt: skip
def test_bad_arguments_are_named(change, message):
    good = dict(encoder=small_encoder(), train=stripes(40), test=stripes(9), batch=8)
    with pytest.raises(FloatingPointError if change.get("lr") == 1e20 else ValueError, match=message):
        fine_tune(**{**good, **change})

"""Fine-tuning: what it learns, what it leaves alone, and one run of it written out in plain torch."""

import copy
import math

import pytest
import torch
from conftest import shifted
from pictures import saved
from torch import nn
from torch.nn import functional as F
from torchvision.transforms.v2 import functional as TF

from setclr import models, views
from setclr.data import ImageSet
from setclr.data.photographs import Photographs
from setclr.evaluation import features, linear_probe
from setclr.seeding import seeded
from setclr_course.papers import fine_tune
from setclr_course.papers import fine_tuning as tuning
from setclr_course.papers.fine_tuning import CROP


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


def share(predicted, test):
    return float((predicted == test.labels).float().mean())


def test_it_learns_what_a_linear_probe_cannot_read():
    """A frozen encoder that sees each image's mean alone, until the weights of its copy move."""
    encoder, train, test = small_encoder().requires_grad_(False), stripes(128), stripes(100, seed=1)
    with torch.no_grad():
        for module in encoder:
            if isinstance(module, nn.Conv2d):
                module.weight.copy_(module.weight.mean((2, 3), keepdim=True).expand_as(module.weight))
    before, after = features(encoder, train.images), features(encoder, test.images)
    probed = share(linear_probe(before, train.labels, after, epochs=20), test)
    how = dict(epochs=5, lr=0.1, batch=16, precision="float32")
    tuned = share(fine_tune(encoder, train, test, **how), test)
    assert tuned > 0.9 and tuned > probed + 0.2


@pytest.mark.parametrize("frozen", [False, True])
def test_the_encoder_is_left_as_it_was(frozen):
    encoder, train = small_encoder().requires_grad_(not frozen), stripes(40)
    encoder[1].eval()
    before = copy.deepcopy(encoder.state_dict())
    modes = [module.training for module in encoder.modules()]
    with torch.no_grad():  # as one may call it
        fine_tune(encoder, train, train, epochs=1, batch=10)
    after = encoder.state_dict()
    assert (
        all(torch.equal(after[key], kept) for key, kept in before.items()) and after.keys() == before.keys()
    )
    assert [module.training for module in encoder.modules()] == modes
    assert all(p.grad is None and p.requires_grad is not frozen for p in encoder.parameters())


def test_it_is_a_function_of_its_seed_and_leaves_the_global_one_alone(monkeypatch):
    encoder, train, test, used = small_encoder(), stripes(64), stripes(200, seed=1), []
    monkeypatch.setattr(tuning, "features", lambda model, x: used.append(model) or features(model, x))

    def weights(seed: int) -> torch.Tensor:
        found = fine_tune(encoder, train, test, epochs=1, batch=16, seed=seed)
        assert found.dtype == torch.int64 and found.shape == (200,)
        return torch.cat([w.detach().flatten() for w in used[-1].parameters()])

    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = weights(0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert torch.equal(weights(0), first) and not torch.equal(weights(1), first)


def test_its_weights_are_those_of_the_formulas(monkeypatch):
    """Two epochs written out: crops and flips, Nesterov's momentum, weight decay, half a cosine."""
    train, epochs, batch, lr, decay = stripes(40), 2, 16, 0.05, 0.01
    encoder, used = small_encoder(), []

    def spy(model, images):
        used.append(model)
        return features(model, images)

    monkeypatch.setattr(tuning, "features", spy)
    fine_tune(encoder, train, train, epochs, lr, batch, decay, seed=5, precision="float32")

    torch.manual_seed(5)
    model = nn.Sequential(encoder, nn.Linear(64, 2)).train()
    weights = list(model.parameters())
    starts = [w.detach().clone() for w in weights]
    velocity, step = [torch.zeros_like(w) for w in weights], 0
    for epoch in range(epochs):
        order = torch.randperm(40, generator=seeded(5, epoch))
        for position in range(2):
            index = order[position * batch : (position + 1) * batch]
            p = views.parameters(CROP, views.draw(CROP, batch, seeded(5, epoch, position)), 16, 16)
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
        assert (mine - theirs).norm() < 0.02 * (
            theirs - start
        ).norm()  # batch norms enlarge float32's rounding


def test_the_rate_and_decay_that_do_best_on_a_fifth_held_out_of_each_class(monkeypatch):
    train, test, asked = stripes(60), stripes(30, seed=1), []

    def tuned(encoder, part, seen, lr=None, weight_decay=0.0, **how):
        asked.append((part, seen, lr, weight_decay, how))
        if lr == 0.1:
            raise FloatingPointError("diverged")
        good = (lr, weight_decay) == (1e-2, 1e-4 / 1e-2)
        return seen.labels if good else 1 - seen.labels

    monkeypatch.setattr(tuning, "fine_tune", tuned)
    monkeypatch.setattr(tuning, "Trainer", lambda *given, **more: made.append(given[4]) or Untrained())
    made = []
    fine_tune(small_encoder(), train, test, epochs=3, lr=None, batch=8, seed=4, precision="float32")
    assert [(lr, decay * lr) for _, _, lr, decay, _ in asked] == [
        (lr, pytest.approx(decay)) for lr in (1e-4, 1e-3, 1e-2, 1e-1) for decay in (0, 1e-6, 1e-5, 1e-4, 1e-3)
    ]
    part, seen, _, _, how = asked[0]
    assert how == {"epochs": 3, "batch": 8, "seed": 4, "precision": "float32"}
    together = torch.cat([part.images, seen.images]).flatten(1).double().sum(1).sort().values
    assert torch.equal(together, train.images.flatten(1).double().sum(1).sort().values)
    share = seen.labels.bincount() / train.labels.bincount()
    assert len(seen) == 12 and (share - 0.2).abs().max() < 1 / train.labels.bincount().min()
    assert made[0].defaults["lr"] == 1e-2 and made[0].defaults["weight_decay"] == pytest.approx(1e-2)


class Untrained:
    def fit(self):
        pass


def test_photographs_are_cropped_where_they_are_decoded(tmp_path):
    """The same pictures as files and in memory: the same crops up to a grey level, and so the same labels."""
    train, test = stripes(32), stripes(100, seed=1)
    files = ImageSet(Photographs(saved(tmp_path, train.images), 16), train.labels, train.classes)
    a, b = (fine_tune(small_encoder(), some, test, epochs=2, batch=16, lr=0.05) for some in (train, files))
    assert (a == b).float().mean() > 0.95


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(epochs=0), "epochs must be an integer >= 1, got 0"),
        (dict(batch=41), "batch must be an integer >= 2 and <= 40, got 41; train has 40 images"),
        (dict(lr=0), "lr must be > 0, got 0"),
        (dict(weight_decay=-1), "weight_decay must be >= 0, got -1"),
        (dict(seed=-1), "seed must be an integer >= 0, got -1"),
        (dict(test=stripes(9, side=18)), r"test must have images of the shape of train, \(3, 16, 16\), got"),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = dict(encoder=small_encoder(), train=stripes(40), test=stripes(9), batch=8)
    with pytest.raises(ValueError, match=message):
        fine_tune(**{**good, **change})


def test_other_classes_are_named():
    train = stripes(40)
    for classes, named in ((("flat", "slanted"), "slanted, upright"), (("upright", "flat"), "their order")):
        test = ImageSet(train.images, train.labels, classes)
        with pytest.raises(
            ValueError, match=f"test must have the classes of train; they differ in .*{named}"
        ):
            fine_tune(small_encoder(), train, test, batch=8)


def test_a_rate_that_is_too_high_is_named():
    with pytest.raises(FloatingPointError, match="became .* at step [01]; lower lr"):
        fine_tune(small_encoder(), stripes(40), stripes(9), epochs=3, lr=1e20, batch=8)

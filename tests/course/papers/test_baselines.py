"""The baselines: their scores against formulas written out, and their training."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import shifted
from every_loss import close
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from torch import nn
from torch.nn.functional import conv2d, softplus
from torchvision.transforms.v2 import functional as transforms

from setclr import losses, models, pretrain
from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr_course.papers.baselines import DeepInfoMax, LocalFeatures, QuarterTurns, Rotation
from setclr_course.papers.clusters import DeepCluster, clusters, k_means, reinitialise, whitened
from setclr_course.papers.collection import PAPERS
from setclr_course.papers.supervised import Supervised

ONE = dict(views="photo", full_views=1, epochs=2, batch=16, lr=3e-3)
RECIPES = {
    "supervised": ImageRecipe("Supervised()", embedding=5, layers=1, **ONE),
    "rotation": ImageRecipe("Rotation()", embedding=4, **ONE),
    "clusters": ImageRecipe("DeepCluster()", embedding=7, **ONE),
    "infomax": ImageRecipe("DeepInfoMax()", **ONE),
}


@pytest.fixture(scope="module")
def images() -> ImageSet:
    """70 images of 16 px of 5 colours, their classes, brighter above than below, in noise."""
    generator = shifted(0)
    labels = torch.arange(70) % 5
    colour = torch.tensor([[200, 60, 60], [60, 200, 60], [60, 60, 200], [200, 200, 60], [60, 200, 200]])
    noise = torch.randint(-20, 21, (70, 3, 16, 16), generator=generator)
    light = torch.linspace(35, -35, 16).long()[:, None]
    return ImageSet((colour[labels][:, :, None, None] + light + noise).byte(), labels, tuple("abcde"))


def outputs(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=shifted(1), dtype=torch.float64)


def trainer_of(images: ImageSet, name: str, **changed):
    return new_run(replace(RECIPES[name], **changed), channels=3).trainer(images, torch.device("cpu"))


def test_supervised_is_minus_the_mean_log_probability_of_the_label():
    z, labels = outputs(2, 6, 5), torch.tensor([0, 4, 2, 2, 1, 3])
    p = z.softmax(2)
    literal = -sum(math.log(p[v, i, labels[i]]) for v in range(2) for i in range(6)) / 12
    assert float(Supervised()(z, labels)) == pytest.approx(literal)


def test_an_image_weighs_one_less_the_share_of_its_cluster(images):
    """Cross-entropy with 1 − n_k / N for cluster k, over the sum of the batch's weights: QARe's program."""
    z, found = outputs(1, 6, 3), torch.tensor([0, 0, 0, 0, 1, 2])
    task = trainer_of(images.subset(torch.arange(6)), "clusters", embedding=3, batch=6).task
    task.restore(found)
    weights = [1 - 4 / 6, 1 - 1 / 6, 1 - 1 / 6]
    close(task.weight, torch.tensor(weights))
    logs = [float(z[0, i].log_softmax(0)[k]) for i, k in enumerate(found)]
    literal = -sum(weights[k] * log for k, log in zip(found, logs)) / sum(weights[k] for k in found)
    assert float(DeepCluster()(z, found, task.weight)) == pytest.approx(literal)


def test_rotation_shows_four_turns_and_asks_which(images):
    x = torch.rand(1, 3, 3, 8, 8)
    task = trainer_of(images, "rotation").task
    (shown,) = task.prepare([x])
    assert isinstance(task, QuarterTurns)
    for turns in range(4):
        close(shown[turns], transforms.rotate(x[0], 90.0 * turns))
    z = outputs(4, 6, 4)
    literal = -np.mean([float(z[t, i].log_softmax(0)[t]) for t in range(4) for i in range(6)])
    assert float(Rotation()(z)) == pytest.approx(literal)


def test_deep_infomax_tells_own_parts_from_the_next_images_and_features_from_uniform_ones():
    """QARe's program written out: 1×1 convolutions on concatenated maps, a prior with weight 0.1."""
    loss, z = DeepInfoMax(features=5, channels=3).double(), outputs(1, 4, 5 + 6 * 3).requires_grad_()
    layers = [loss.pair, *(layer for layer in loss.judge if isinstance(layer, nn.Linear))]
    y, m = z[0, :, :5], z[0, :, 5:].reshape(4, 6, 3).permute(0, 2, 1).reshape(4, 3, 2, 3)

    def judged(maps):
        x = torch.cat([maps, y[:, :, None, None].expand(-1, -1, 2, 3)], dim=1)
        for i, layer in enumerate(layers):
            x = conv2d(x.relu() if i else x, layer.weight[:, :, None, None], layer.bias)
        return x

    state = torch.get_rng_state()
    drawn = torch.rand(4, 5, dtype=torch.float64)
    torch.set_rng_state(state)
    prior = -(loss.prior(drawn).sigmoid().log().mean() + (1 - loss.prior(y).sigmoid()).log().mean())
    joint, apart = -softplus(-judged(m)).mean(), softplus(judged(torch.cat([m[1:], m[:1]]))).mean()
    close(loss(z), apart - joint + 0.1 * prior, z, *loss.parameters())


def test_deep_infomax_may_take_some_locations_for_all():
    """Each is drawn as often."""
    torch.manual_seed(0)
    loss, z = DeepInfoMax(features=5, channels=3).double(), outputs(1, 4, 5 + 6 * 3)
    some = DeepInfoMax(features=5, channels=3, locations=2).double()
    some.load_state_dict(loss.state_dict())
    with torch.no_grad():
        all_of_them, drawn = (torch.stack([one(z) for _ in range(100)]) for one in (loss, some))
    sigma = ((all_of_them.var() + drawn.var()) / 100).sqrt()
    assert abs(float(drawn.mean() - all_of_them.mean())) < 5 * float(sigma)


@pytest.mark.parametrize("z", [torch.ones(2, 3, 80), torch.ones(1, 1, 80), torch.ones(1, 3, 81)])
def test_deep_infomax_refuses_what_does_not_fit_its_discriminators(z):
    with pytest.raises(ValueError, match=r"z must be \(1, N, 64 \+ L \* 8\).* got \("):
        DeepInfoMax()(z)


@pytest.mark.parametrize("name, channels", [("conv4", 8), ("resnet32", 16), ("resnet18", 64)])
def test_local_features_are_the_first_layers_map_and_the_average_of_the_last(name, channels):
    encoder, width = models.encoder(name, normalised="cifar10")
    maps, x = {}, torch.rand(2, 3, 32, 32)
    first, last = ("2", "15") if name == "conv4" else ("relu", "avgpool")
    for layer in (first, last):
        encoder.get_submodule(layer).register_forward_hook(lambda *args, at=layer: maps.update({at: args[2]}))
    with torch.no_grad():
        features = encoder.eval()(x)
        flat = LocalFeatures(encoder, width, channels)(x)
    whole, parts = flat[:, :width], flat[:, width:].unflatten(1, (32 * 32, channels))
    close((parts.mT.unflatten(2, (32, 32)), whole), (maps[first], maps[last].flatten(1)))
    assert name == "resnet32" or torch.equal(whole, features)


def test_clusters_find_what_is_apart_and_leave_the_encoder_alone(images):
    encoder = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    found = clusters(encoder.train(), images.images, 5, seed=0)
    assert adjusted_rand_score(images.labels, found) > 0.9
    assert encoder.training
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert torch.equal(found, clusters(encoder, images.images, 5, seed=0))


def test_k_means_finds_what_is_apart_is_a_function_of_the_seed_and_gives_every_cluster_a_point():
    of_point = torch.arange(6).repeat_interleave(20)
    apart = 10 * torch.eye(6)[of_point] + 0.1 * torch.randn(120, 6)
    assert adjusted_rand_score(of_point, k_means(apart, 6, seed=0)) == 1
    noise = torch.randn(600, 4)
    assert torch.equal(k_means(noise, 8, 3), k_means(noise, 8, 3 + 2**32))
    assert not torch.equal(k_means(noise, 8, 3), k_means(noise, 8, 4))
    assert k_means(torch.randn(4, 2), 4, seed=0).unique().tolist() == [0, 1, 2, 3]
    assert k_means(torch.ones(5, 0), 3, seed=0).shape == (5,)


def test_whitening_is_scikit_learns_and_leaves_out_what_does_not_vary():
    x = torch.randn(50, 6) * torch.arange(1.0, 7.0)
    expected = torch.from_numpy(PCA(6, whiten=True).fit_transform(x.double().numpy()))
    found = whitened(x).flip(1).double()
    close((found * expected).sum(0).sign() * found, expected, rel=0, abs=1e-3)
    assert whitened(torch.cat([x, x[:, :2]], dim=1)).shape == (50, 6)
    assert whitened(torch.ones(5, 3)).shape == (5, 0)


def test_the_last_layer_begins_afresh_small_and_as_a_function_of_the_key():
    layers = [nn.Linear(256, 100), nn.Linear(256, 100)]
    for layer in layers:
        reinitialise(layer, 0, 1)
        assert not layer.bias.any()
        assert float(layer.weight.detach().std()) == pytest.approx(0.01, rel=5 / (2 * 25600) ** 0.5)
    assert torch.equal(layers[0].weight, layers[1].weight)
    reinitialise(layers[1], 0, 2)
    assert not torch.equal(layers[0].weight, layers[1].weight)


def test_clusters_are_those_of_the_epoch_and_are_kept(images):
    trainer = trainer_of(images, "clusters")
    steps = trainer.epoch()
    next(steps)
    kept = trainer.task.state()
    last = [layer for layer in trainer.head.modules() if isinstance(layer, nn.Linear)][-1]
    assert kept.shape == (70,) and int(kept.max()) == 6
    list(steps)
    trainer.close_epoch()
    next(trainer.epoch())
    assert not torch.equal(trainer.task.state(), kept)
    trainer.task.begin(1, fresh=True)
    fresh = nn.Linear(256, 7)
    reinitialise(fresh, 0, 1, 0, 0)
    assert torch.equal(last.weight, fresh.weight), "each epoch has a last layer of its own"


@pytest.mark.parametrize("name, change, message", [
    ("supervised", {"embedding": 4}, "embedding must be an integer >= 5, got 4; each of the 5 classes"),
    ("clusters", {"embedding": 71}, "embedding must be .*<= 70, got 71; it is the number of clusters"),
    ("rotation", {"embedding": 5}, r"z must be \(4, N, 4\).*embedding=4"),
    ("infomax", {"encoder": "vit-small16-moco", "view_size": 32}, "must begin with a map .* got MoCoViT"),
    ("infomax", {"encoder": "resnet32"}, "features and channels must be 64 and 16 .* got 64 and 8"),
])  # fmt: skip
def test_what_the_data_does_not_fit_is_refused(name, change, message, images):
    with pytest.raises(ValueError, match=message):
        pretrain(replace(RECIPES[name], **change), data=images)


@pytest.mark.parametrize("name", [*PAPERS.losses])
def test_a_baseline_has_a_repr_that_parses_and_refuses_bad_input(name):
    baseline = losses.parse(f"{name}()")
    assert repr(losses.parse(repr(baseline))) == repr(baseline) and not isinstance(baseline, losses.SetLoss)
    assert repr(baseline) == ("DeepInfoMax(features=64, channels=8)" if baseline.headless else f"{name}()")
    for z in (None, torch.zeros(3, 4), torch.zeros(1, 3, 4, dtype=torch.long), torch.zeros(1, 0, 4)):
        with pytest.raises(ValueError, match="z must be"):
            baseline(z)

"""The baselines: their scores against formulas written out, and their training."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import shifted
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from torch import nn
from torchvision.transforms.v2 import functional as transforms

from setclr import losses, models
from setclr.data import ImageSet
from setclr.losses.baselines import BASELINES, DeepCluster, DeepInfoMax, Rotation, Supervised
from setclr.recipes import Recipe
from setclr.training import pretrain
from setclr.training.clusters import clusters, k_means, reinitialise, whitened
from setclr.training.run import new_run

ONE = dict(views="photo", full_views=1, epochs=2, batch=16, lr=3e-3)
RECIPES = {
    "supervised": Recipe("Supervised()", embedding=5, layers=1, **ONE),
    "rotation": Recipe("Rotation()", embedding=4, **ONE),
    "clusters": Recipe("DeepCluster()", embedding=7, **ONE),
    "infomax": Recipe("DeepInfoMax()", embedding=8, **ONE),
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


def test_supervised_is_minus_the_mean_log_probability_of_the_label():
    z, labels = outputs(2, 6, 5), torch.tensor([0, 4, 2, 2, 1, 3])
    p = z.softmax(2)
    literal = -sum(math.log(p[v, i, labels[i]]) for v in range(2) for i in range(6)) / 12
    assert float(Supervised()(z, labels)) == pytest.approx(literal)


def test_a_cluster_weighs_the_same_whatever_its_size():
    """The mean over clusters of the mean over their images, if the batch is the whole set."""
    z, found = outputs(1, 6, 3), torch.tensor([0, 0, 0, 0, 1, 2])
    logs = z[0].log_softmax(1)[range(6), found]
    literal = -(logs[:4].mean() + logs[4] + logs[5]) / 3
    assert float(DeepCluster()(z, found, 1 / torch.tensor([4, 1, 1]))) == pytest.approx(float(literal))


def test_rotation_shows_four_turns_and_asks_which():
    x = torch.rand(1, 3, 3, 8, 8)
    (shown,) = Rotation().prepare([x])
    for turns in range(4):
        torch.testing.assert_close(shown[turns], transforms.rotate(x[0], 90.0 * turns))
    z = outputs(4, 6, 4)
    literal = -np.mean([float(z[t, i].log_softmax(0)[t]) for t in range(4) for i in range(6)])
    assert float(Rotation()(z)) == pytest.approx(literal)


def test_deep_infomax_is_the_jensen_shannon_estimate_written_out():
    z = outputs(4, 5, 3)
    own, others = [], []
    for i in range(5):
        for j in range(5):
            for place in range(1, 4):
                u = float(z[0, i] @ z[place, j])
                (own if i == j else others).append(u)
    estimate = np.mean([math.log(2) - math.log1p(math.exp(-u)) for u in own])
    estimate -= np.mean([math.log1p(math.exp(-u)) + u - math.log(2) for u in others])
    assert float(DeepInfoMax()(z)) == pytest.approx(-estimate)
    assert float(DeepInfoMax()(torch.zeros(4, 5, 3))) == pytest.approx(0, abs=1e-6)


@given(scale=st.floats(0, 100))
def test_deep_infomax_never_claims_more_than_two_bits(scale):
    assert float(DeepInfoMax()(scale * outputs(3, 4, 2))) >= -2 * math.log(2)


@pytest.mark.parametrize(
    "name, channels, side", [("conv4", 16, 8), ("resnet32", 32, 16), ("resnet18", 128, 16)]
)
def test_local_features_are_those_of_the_map_half_way(name, channels, side):
    """A far corner changes the features, and those of its own location, but not those of the first."""
    encoder, width = models.encoder(name)
    x = torch.rand(2, 3, 32, 32)
    changed = x.clone()
    changed[:, :, -4:, -4:] = 0
    with torch.no_grad():
        whole, local = models.LocalFeatures(encoder.eval()).parts(x)
        other, moved = models.LocalFeatures(encoder).parts(changed)
        flat = models.LocalFeatures(encoder)(x)
    assert local.shape == (2, side**2, channels)
    torch.testing.assert_close(whole, encoder(x))
    torch.testing.assert_close(flat, torch.cat([whole, local.reshape(2, -1)], 1))
    assert not torch.equal(whole, other) and not torch.equal(local[:, -1], moved[:, -1])
    if name == "conv4":
        torch.testing.assert_close(local[:, 0], moved[:, 0], rtol=0, atol=0)


def test_local_features_of_an_encoder_without_a_map_are_refused():
    with pytest.raises(ValueError, match="encoder must have a map half-way .* got Linear"):
        models.LocalFeatures(nn.Linear(2, 2))


def test_the_local_head_has_two_heads():
    head = models.LocalHead(nn.Linear(3, 2), nn.Linear(4, 2), 3, 4)
    whole, local = torch.randn(5, 3), torch.randn(5, 6, 4)
    z = head(torch.cat([whole, local.flatten(1)], 1)).unflatten(0, (-1, 5))
    torch.testing.assert_close(z[0], head.whole(whole))
    for at in range(6):
        torch.testing.assert_close(z[1 + at], head.local(local[:, at]))
    torch.testing.assert_close(head(whole), head.whole(whole))


def test_clusters_find_what_is_apart_and_leave_the_encoder_alone(images):
    encoder = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    found = clusters(encoder.train(), images.images, 5, seed=0)
    assert adjusted_rand_score(images.labels, found) > 0.9
    assert encoder.training
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert torch.equal(found, clusters(encoder, images.images, 5, seed=0))


def inertia(x: torch.Tensor, cluster: torch.Tensor) -> float:
    parts = [x[cluster == k] for k in cluster.unique()]
    return sum(float((part - part.mean(0)).square().sum()) for part in parts)


def test_k_means_is_as_good_as_scikit_learns():
    """Where clusters lie apart, the same ones; where nothing does, as small a sum, over five seeds."""
    apart = 10 * torch.eye(6).repeat_interleave(20, 0) + 0.1 * torch.randn(120, 6)
    found, oracle = k_means(apart, 6, seed=0), KMeans(6, n_init=1, random_state=0).fit(apart)
    assert adjusted_rand_score(oracle.labels_, found) == 1
    assert inertia(apart, found) == pytest.approx(oracle.inertia_, rel=1e-4)
    noise = torch.randn(600, 4)
    ours = [inertia(noise, k_means(noise, 8, seed)) for seed in range(5)]
    theirs = [KMeans(8, n_init=1, random_state=seed).fit(noise).inertia_ for seed in range(5)]
    assert sum(ours) < 1.1 * sum(theirs)
    assert torch.equal(k_means(noise, 8, 3), k_means(noise, 8, 3))


def test_k_means_gives_every_cluster_a_point():
    few = torch.randn(4, 2)
    assert k_means(few, 4, seed=0).unique().tolist() == [0, 1, 2, 3]
    assert k_means(torch.ones(5, 2), 3, seed=0).shape == (5,)


def test_whitening_is_scikit_learns_and_leaves_out_what_does_not_vary():
    x = torch.randn(50, 6) * torch.arange(1.0, 7.0)
    expected = PCA(6, whiten=True).fit_transform(x.double().numpy())
    found = whitened(x).flip(1).double()
    signs = (found * torch.from_numpy(expected)).sum(0).sign()
    torch.testing.assert_close(signs * found, torch.from_numpy(expected), rtol=0, atol=1e-3)
    assert whitened(torch.cat([x, x[:, :2]], dim=1)).shape == (50, 6)
    assert whitened(torch.ones(5, 3)).shape == (5, 0)


def test_the_last_layer_begins_afresh_as_a_function_of_the_key():
    layers = [nn.Linear(3, 2), nn.Linear(3, 2)]
    for layer in layers:
        optimiser = torch.optim.Adam(layer.parameters())
        layer(torch.rand(4, 3)).sum().backward()
        optimiser.step()
        reinitialise(layer, optimiser, 0, 1)
        assert not optimiser.state
    assert torch.equal(layers[0].weight, layers[1].weight)
    reinitialise(layers[1], optimiser, 0, 2)
    assert not torch.equal(layers[0].weight, layers[1].weight)


@pytest.mark.parametrize("name", ["supervised", "rotation", "infomax"])
def test_training_lowers_the_loss(name, images):
    losses = pretrain(replace(RECIPES[name], epochs=8), images=images).history.loss
    assert losses.iloc[-1] < losses.iloc[0] - 0.05


def test_clusters_are_those_of_the_epoch_and_are_kept(images):
    run = new_run(RECIPES["clusters"], channels=3)
    trainer = run.trainer(images, torch.device("cpu"))
    steps = trainer.epoch()
    next(steps)
    kept = trainer.targets.state()
    last = [layer for layer in run.head.modules() if isinstance(layer, nn.Linear)][-1]
    first = last.weight.clone()
    assert kept.shape == (70,) and int(kept.max()) == 6
    list(steps)
    trainer.close_epoch()
    next(trainer.epoch())
    assert not torch.equal(trainer.targets.state(), kept)
    assert (last.weight - first).abs().max() > 0.05, "a new layer, not a step"


def test_no_epochs_is_random_weights(tmp_path, images):
    recipe = Recipe("InfoNCE()", views="photo", epochs=0, batch=16)
    run = pretrain(recipe, tmp_path, images=images)
    fresh = new_run(recipe, channels=3)
    assert all(map(torch.equal, run.encoder.state_dict().values(), fresh.encoder.state_dict().values()))
    assert pretrain(recipe, tmp_path, images=images).finished and run.history.empty


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("supervised", {"full_views": 2}, r"full_views must be 1 with Supervised\(\).* got 2"),
        ("supervised", {"full_views": None}, "full_views must be 1"),
        ("supervised", {"local_views": 2}, "got 1 and 2 local ones"),
        ("supervised", {"key_momentum": 0.9}, "key_momentum must not be set with Supervised"),
        ("supervised", {"loss": "InfoNCE()"}, "full_views must be 2 to 4 with InfoNCE"),
        ("supervised", {"loss": "Supervised() + QARe()"}, "losses are added"),
        ("supervised", {"loss": "Rotaton()"}, "did you mean 'Rotation'"),
        ("supervised", {"loss": "Rotation(4)"}, "Rotation"),
    ],
)
def test_bad_recipes_are_refused(name, change, message):
    with pytest.raises(ValueError, match=message):
        replace(RECIPES[name], **change)


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("supervised", {"embedding": 4}, "embedding must be an integer >= 5, got 4; each of the 5 classes"),
        ("clusters", {"embedding": 1}, "embedding must be .*>= 2"),
        ("clusters", {"embedding": 71}, "embedding must be .*<= 70, got 71; it is the number of clusters"),
        ("rotation", {"embedding": 5}, r"z must be \(4, N, 4\).*embedding=4"),
        ("infomax", {"encoder": "vit-small16-moco", "view_size": 32}, "encoder must have a map half-way"),
    ],
)
def test_what_the_data_does_not_fit_is_refused(name, change, message, images):
    with pytest.raises(ValueError, match=message):
        pretrain(replace(RECIPES[name], **change), images=images)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_has_a_repr_that_parses_and_refuses_bad_input(name):
    baseline = losses.parse(f"{name}()")
    assert repr(baseline) == f"{name}()" and not baseline.takes
    for z in (None, torch.zeros(3, 4), torch.zeros(1, 3, 4, dtype=torch.long), torch.zeros(1, 0, 4)):
        with pytest.raises(ValueError, match="z must be"):
            baseline(z)


@pytest.mark.parametrize(
    "targets, message",
    [
        (None, "targets must be labels"),
        (torch.tensor([0, 1]), "targets must be 3 integers"),
        (torch.zeros(3), "targets must be 3 integers"),
        (torch.tensor([0, 1, 4]), "targets must be in 0 to 3, .* got 0 to 4; .*number of classes"),
        (torch.tensor([0, -1, 3]), "got -1 to 3"),
    ],
)
def test_bad_targets_are_refused(targets, message):
    with pytest.raises(ValueError, match=message):
        Supervised()(torch.zeros(1, 3, 4), targets)

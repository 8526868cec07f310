"""kNN, the linear probe, retrieval and matching against scikit-learn, torch and brute force."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from conftest import shifted
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from torch import nn

from setclr import evaluation, models
from setclr.evaluation import features, knn, linear_probe, neighbours, probes, retrieval_at_1
from setclr.evaluation.svm import svm_held_out


def blobs(n, classes=4, D=8, noise=1.0):
    """Points around one centre a class; the same centres on every call."""
    centres = 2 * torch.randn(classes, D, generator=shifted(1))
    labels = torch.randint(0, classes, (n,))
    return centres[labels] + noise * torch.randn(n, D), labels


@given(st.integers(1, 30), st.sampled_from([0.05, 0.07, 0.5]))
def test_knn_equals_scikit_learn(k, temperature):
    (bank, labels), (queries, _) = blobs(60), blobs(40)
    oracle = KNeighborsClassifier(k, metric="cosine", algorithm="brute",
                                  weights=lambda distance: np.exp((1 - distance) / temperature))  # fmt: skip
    expected = oracle.fit(bank.double(), labels).predict(queries.double())
    assert knn(bank, labels, queries, k, temperature).tolist() == expected.tolist()


@pytest.mark.parametrize("queries, rows", [(7, 50), (30, 1), (4, 7), (1, 49)])
def test_knn_is_chunked_without_a_trace(monkeypatch, queries, rows):
    (bank, labels), (asked, _) = blobs(50), blobs(30)
    kept = bank.clone()
    assert torch.equal(knn(bank.half(), labels, asked), knn(bank.half().float(), labels, asked))
    whole, index = knn(bank, labels, asked), neighbours.nearest(bank, asked, 20)[1]
    for name, value in {"SIMILARITIES": queries * rows, "ROWS": rows, "VALUES": 17}.items():
        monkeypatch.setattr(neighbours, name, value)
    assert torch.equal(knn(bank, labels, asked), whole)
    assert torch.equal(neighbours.nearest(bank, asked, 20)[1], index) and torch.equal(bank, kept)


def test_the_probe_of_a_bank_in_parts_is_that_of_the_whole(monkeypatch):
    (bank, labels), (queries, _) = blobs(300, noise=3), blobs(500, noise=3)
    whole = linear_probe(bank, labels, queries, 3, 32)
    scale = probes.root_mean_square(bank)
    assert scale == bank.square().mean().sqrt()
    assert torch.equal(linear_probe(8 * bank, labels, 8 * queries, 3, 32), whole)
    monkeypatch.setattr(probes, "VALUES", 9 * bank.shape[1])
    assert probes.root_mean_square(bank).item() == pytest.approx(scale.item(), rel=1e-6)
    assert (linear_probe(bank, labels, queries, 3, 32) == whole).float().mean() > 0.99


def test_probes_of_several_encoders_are_those_of_each_alone():
    (bank, labels), (queries, _) = blobs(300, noise=3), blobs(500, noise=3)
    banks, asked = (torch.stack([x, 9 * x.square(), x.abs()]) for x in (bank, queries))
    for found, own, other in zip(linear_probe(banks, labels, asked, 3, 32), banks, asked):
        assert (found == linear_probe(own, labels, other, 3, 32)).float().mean() > 0.99


@pytest.mark.parametrize("raw, decay, cosine", [(False, 0.0, False), (True, 0.0, False), (True, 0.1, True)])
def test_the_probe_is_torchs_adam_on_torchs_cross_entropy(raw, decay, cosine):
    """From 0 on scaled features, or on features as they are from torch's first weights, as QARe's program;
    with weight decay and a falling rate, as in dkobak/simclr-cifar10."""
    (bank, labels), (queries, _) = blobs(330, noise=3.0), blobs(500, noise=3.0)
    more = dict(raw=raw, weight_decay=decay, cosine=cosine)
    found = linear_probe(bank, labels, queries, epochs=12, batch=30, lr=0.01, seed=3, **more)
    scale, layer = 1 if raw else bank.square().mean().sqrt(), nn.Linear(8, 4)
    generator, first = torch.Generator().manual_seed(3), torch.zeros(4, 9)
    if raw:
        first.uniform_(-1, 1, generator=generator).div_(8**0.5)
    with torch.no_grad():
        layer.weight.copy_(first[:, :8]), layer.bias.copy_(first[:, 8])
    adam = torch.optim.Adam(layer.parameters(), 0.01, weight_decay=decay)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 12)
    for _ in range(12):
        for index in torch.randperm(330, generator=generator).split(30):
            adam.zero_grad()
            nn.functional.cross_entropy(layer(bank[index] / scale), labels[index]).backward()
            adam.step()
        if cosine:
            falling.step()
    scores = layer(queries / scale).detach()
    clear = scores.topk(2).values.diff().abs().squeeze(1) > 1e-3  # beyond the rounding of 132 float32 steps
    assert torch.equal(found[clear], scores.argmax(1)[clear]) and clear.float().mean() > 0.99


def test_evaluation_leaves_the_encoder_untouched():
    encoder, _ = models.encoder("conv4")
    encoder[1].eval()
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    images = torch.randint(0, 256, (30, 3, 32, 32), dtype=torch.uint8)
    first = features(encoder, images, batch=7)
    assert all(torch.equal(v, before[k]) for k, v in encoder.state_dict().items())
    assert encoder.training and not encoder[1].training
    torch.testing.assert_close(features(encoder, images, batch=30), first)
    assert first.shape == (30, 64) and not first.requires_grad


def test_features_are_computed_in_the_precision_asked_for():
    encoder, _ = models.encoder("conv4")
    images = torch.randint(0, 256, (12, 3, 16, 16), dtype=torch.uint8)
    plain, half = (features(encoder, images, precision=name) for name in ("float32", "bf16"))
    assert half.dtype == torch.float32 and not torch.equal(plain, half)
    torch.testing.assert_close(half, plain, rtol=0, atol=0.1 * float(plain.abs().max()))
    assert torch.equal(features(encoder, images), plain)  # on a CPU, where nothing says otherwise
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(features(encoder, images), half)
        assert torch.equal(features(encoder, images, precision="float32"), plain)
    with pytest.raises(ValueError, match="precision must be .*got 'fp8'"):
        features(encoder, images, precision="fp8")


@given(st.integers(1, 6))
def test_matching_accuracy_equals_brute_force(n):
    a, b = torch.randn(n, 4, dtype=torch.float64), torch.randn(n, 4, dtype=torch.float64)
    s = nn.functional.normalize(a) @ nn.functional.normalize(b).T
    best = max(itertools.permutations(range(n)), key=lambda p: sum(float(s[i, p[i]]) for i in range(n)))
    assert evaluation.matching_accuracy(a, b) == pytest.approx(np.mean([i == j for i, j in enumerate(best)]))


@given(st.integers(2, 40), st.integers(0, 100))
def test_retrieval_at_1_equals_scikit_learn_in_any_chunks(n, seed):
    drawn = shifted(seed)
    x, y = torch.randn(n, 5, generator=drawn), torch.randint(0, 3, (n,), generator=drawn)
    y[0] = (y[1] + 1) % 3
    nearest = NearestNeighbors(metric="cosine", algorithm="brute").fit(x).kneighbors(n_neighbors=1)[1][:, 0]
    wanted = pytest.approx(float((y[nearest] == y).float().mean()))
    assert retrieval_at_1(x, y) == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "SIMILARITIES", 7 * n), patch.setattr(neighbours, "ROWS", 3)
        assert retrieval_at_1(x, y) == wanted


@pytest.mark.parametrize("scale", [2.0**66, 2.0**-100])
def test_the_length_of_features_does_not_matter(scale):
    """Not even where squares overflow or vanish; one row alone may be long."""
    (bank, labels), (queries, _) = blobs(200, noise=1.0), blobs(60, noise=1.0)
    for act in (knn, partial(linear_probe, epochs=5, batch=50)):
        assert torch.equal(act(bank * scale, labels, queries * scale), act(bank, labels, queries))
    long = torch.where(torch.arange(200)[:, None] == 7, bank * 2.0**100, bank)
    assert torch.equal(knn(long, labels, queries), knn(bank, labels, queries))
    assert retrieval_at_1(bank * scale, labels) == retrieval_at_1(bank, labels)
    double = bank.double() * 2.0**600, labels, queries.double() * 2.0**-600
    assert torch.equal(knn(*double), knn(bank, labels, queries))


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_equal_features_are_matched_by_chance(distance):
    """Not perfectly, which the order of the two sets alone would give."""
    for one in (torch.ones(50, 8), torch.zeros(50, 8)):
        assert evaluation.matching_accuracy(one, one, distance) <= 4 / 50
    two = torch.eye(2)[torch.arange(50) % 2]
    assert evaluation.matching_accuracy(two, two, distance) <= 8 / 50
    x = torch.randn(50, 8, generator=shifted(0))
    assert evaluation.matching_accuracy(x, x, distance) == 1


def test_the_nearest_other_image_of_one_that_is_there_three_times_is_a_copy():
    x = torch.tensor([[1.0, 0.0], [0.8, 0.6]]).repeat_interleave(3, dim=0)
    assert retrieval_at_1(x, torch.tensor([0, 0, 0, 1, 1, 1])) == 1
    assert retrieval_at_1(x, torch.tensor([0, 1, 2, 3, 4, 5])) == 0


@pytest.mark.parametrize("call, message", [
    (lambda x, y: knn(x, y, x, k=11), "k must be an integer >= 1 and <= 10, got 11; the bank has 10"),
    (lambda x, y: knn(x, y, x[:, :2]), r"bank and queries must be .* got \(10, 3\) and \(10, 2\)"),
    (lambda x, y: knn(x, y.float(), x), "bank_labels must be 10 integers, got torch.float32"),
    (lambda x, y: knn(x, y, x * torch.nan), "queries must be finite"),
    (lambda x, y: linear_probe(x[None], y, x), "bank and queries must be of as many encoders, got "),
    (lambda x, y: retrieval_at_1(x * torch.nan, y), "features must be finite"),
    (lambda x, y: knn(x.numpy(), y, x), "bank must be a tensor, got ndarray; torch.as_tensor makes one"),
    (lambda x, y: knn(x, y * 10**9, x), "bank_labels must be below 1048576, got 9000000000; number the"),
    (lambda x, y: svm_held_out(x, y % 3, x, y), "labels must have 5 of each class or more, got a class of 3"),
    (lambda x, y: features(nn.Flatten(), torch.rand(2, 3, 8, 8)), "images must .* uint8, .* torch.float32"),
    (lambda x, y: features(nn.Flatten(), [1]), r"images must be .* got \(\) list; .* take its .images"),
])  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.randn(10, 3), torch.arange(10))

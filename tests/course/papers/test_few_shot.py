"""Few shots against scikit-learn's nearest centroids on the same episodes, and against what must be."""

import numpy as np
import pytest
import torch
from conftest import shifted
from sklearn.neighbors import NearestCentroid

from setclr_course.papers import few_shot
from setclr_course.papers.shots import draw_episodes


def blobs(classes=7, each=30, D=6, noise=2.0, seed=0):
    """Points around one centre a class, in random order; the labels are 0, 3, 6, …"""
    drawn = shifted(seed)
    labels = torch.arange(classes).repeat_interleave(each)[torch.randperm(classes * each, generator=drawn)]
    centres = 2 * torch.randn(classes, D, generator=drawn)
    return centres[labels] + noise * torch.randn(len(labels), D, generator=drawn), 3 * labels


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # one shot has no variance
@pytest.mark.parametrize("ways, shots, queries", [(5, 20, 10), (2, 1, 1), (7, 5, 15)])
def test_few_shots_equal_nearest_centroids(ways, shots, queries):
    x, y = blobs()
    expected = []
    for shown, asked in draw_episodes(y, ways, shots, queries, 20, seed=3):
        oracle = NearestCentroid().fit(x[shown.flatten()].numpy(), y[shown.flatten()].numpy())
        expected.append(100 * oracle.score(x[asked.flatten()].numpy(), y[asked.flatten()].numpy()))
    got = few_shot(x, y, ways, shots, queries, 20, seed=3)
    assert 40 < got.mean < 99 and got.half_width > 0
    assert got.mean == pytest.approx(np.mean(expected), abs=1e-4)
    assert got.half_width == pytest.approx(1.96 * np.std(expected) / np.sqrt(20), abs=1e-4)


def test_an_episode_shows_and_asks_other_images_of_the_same_classes():
    _, y = blobs()
    seen = set()
    for shown, asked in draw_episodes(y, 3, 4, 5, 40, seed=0):
        assert shown.shape == (3, 4) and asked.shape == (3, 5)
        both = torch.cat([shown, asked], dim=1)
        assert both.unique().numel() == both.numel()
        of = y[both]
        assert (of == of[:, :1]).all() and of[:, 0].unique().numel() == 3
        seen |= set(of[:, 0].tolist())
    assert seen == set(y.tolist())


def test_features_near_each_other_keep_their_digits():
    """Far from the origin, where distances by a matrix product lose all of them in float32."""
    x, y = blobs(noise=0.01)
    assert few_shot(x + 10_000, y, shots=1, queries=5, episodes=20) == (100, 0)


def test_equal_seeds_give_equal_episodes():
    x, y = blobs()
    a, b, c = (few_shot(x, y, 5, 1, 5, episodes=10, seed=seed) for seed in (0, 0, 1))
    assert a == b != c


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(ways=8), "ways must be <= 7, the number of classes in labels, got 8"),
        (dict(ways=1), "ways must be an integer >= 2, got 1"),
        (dict(queries=1.5), "queries must be an integer >= 1, got 1.5"),
        (dict(seed=-1), "seed must be an integer >= 0, got -1"),
        (dict(features=torch.ones(5, 2, 2)), r"features must be \(N, D\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    x, y = blobs()
    with pytest.raises(ValueError, match=message):
        few_shot(**{**dict(features=x, labels=y, shots=10), **change})


def test_the_smallest_class_is_the_one_that_is_named():
    x, y = blobs()
    keep = torch.ones(len(y), dtype=torch.bool)
    keep[(y == 12).nonzero()[:3, 0]] = False
    with pytest.raises(
        ValueError, match=r"class 12 has 27 images, and shots \+ queries need 20 \+ 10; lower"
    ):
        few_shot(x[keep], y[keep], queries=10)

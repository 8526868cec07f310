"""Few shots: against scikit-learn's nearest centroids."""

import numpy as np
import pytest
import torch
from conftest import shifted
from sklearn.neighbors import NearestCentroid

from setclr_course.papers.shots import draw_episodes, few_shot


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
    for episode in draw_episodes(y, ways, shots, queries, 10, seed=3):
        shown, asked = ((x[images.flatten()].numpy(), y[images.flatten()].numpy()) for images in episode)
        expected.append(100 * NearestCentroid().fit(*shown).score(*asked))
    got = few_shot(x, y, ways, shots, queries, 10, seed=3)
    assert 40 < got.mean < 99 and got.half_width > 0
    assert got.mean == pytest.approx(np.mean(expected), abs=1e-4)
    assert got.half_width == pytest.approx(1.96 * np.std(expected) / np.sqrt(10), abs=1e-4)


def test_an_episode_shows_and_asks_other_images_of_the_same_classes():
    _, y = blobs()
    seen = set()
    for shown, asked in draw_episodes(y, 3, 4, 5, 40, seed=0):
        assert shown.shape == (3, 4) and asked.shape == (3, 5)
        both = torch.cat([shown, asked], dim=1)
        of = y[both]
        assert len(both.unique()) == 27 and (of == of[:, :1]).all() and len(of.unique()) == 3
        seen |= set(of[:, 0].tolist())
    assert seen == set(y.tolist())
    one, other = (list(draw_episodes(y, 3, 4, 5, 1, seed)) for seed in (0, 1))
    assert not torch.equal(one[0][0], other[0][0])


def test_features_near_each_other_keep_their_digits():
    """Far from the origin, where distances by a matrix product lose all of them in float32."""
    x, y = blobs(noise=0.01)
    assert few_shot(x + 10_000, y, shots=1, queries=5, episodes=20) == (100, 0)


@pytest.mark.parametrize("changes, message", [
    (dict(ways=8), "ways must be <= 7, the number of classes in labels, got 8"),
    (dict(ways=1), "ways must be an integer >= 2, got 1"),
    (dict(seed=-1), "seed must be an integer >= 0, got -1"),
    (dict(features=torch.ones(5, 2, 2)), r"features must be \(N, D\)"),
    (dict(labels=torch.tensor([3] * 182 + [12] * 28)),
     r"class 12 has 28 images, and shots \+ queries need 20 \+ 10; lower"),
])  # fmt: skip
def test_bad_arguments_are_named(changes, message):
    x, y = blobs()
    with pytest.raises(ValueError, match=message):
        few_shot(**{"features": x, "labels": y, "ways": 2, "queries": 10} | changes)

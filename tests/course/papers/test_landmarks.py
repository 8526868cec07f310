"""Landmarks: scikit-learn, cases counted by hand, and a second transcription of the protocol."""

import pickle
import re
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.metrics import auc, average_precision_score, precision_recall_curve
from torch import nn

from setclr_course.papers.landmarks import average_precision, landmark_features, landmarks, load_landmarks

# The revisited protocol


def ranked(*orders):
    """Similarities whose rankings are these."""
    return -torch.tensor(orders).argsort(dim=1).float()


def test_a_case_computed_by_hand():
    """Six images, three queries.

    Query 0, ranking 5 0 1 2 3 4: junk 5 is first and put aside; easy 0, 1 in a row; hard 3.
      Medium: ranks 0, 1, 3 without the junk: ((1 + 1) + (1 + 1) + (2/3 + 3/4)) / 6 = 65/72; P@1 = P@2 = 1,
      P@5 is that at the last positive, rank 3: 3/4.
      Hard: 0, 1 and 5 are put aside, 3 has rank 1: (0 + 1/2) / 2 = 1/4; P@1 = 0, P@2 = P@5 = 1/2.
    Query 1, ranking 4 3 2 1 0 5: easy 2, no hard one. Medium: rank 2: (0 + 1/3) / 2 = 1/6; P@1 = P@2 = 0,
      P@5 = 1/3. Hard: left out.
    Query 2, nothing to be found: left out of both.
    """
    similarity = ranked([5, 0, 1, 2, 3, 4], [4, 3, 2, 1, 0, 5], [0, 1, 2, 3, 4, 5])
    table = landmarks(similarity, [[0, 1], [2], []], [[3], [], []], [[5], [], [1]], cuts=(1, 2, 5))
    assert table.columns.tolist() == ["mAP", "mP@1", "mP@2", "mP@5", "queries"]
    assert table.loc["medium"].tolist() == pytest.approx([50 * (65 / 72 + 1 / 6), 50, 50, 50 * 13 / 12, 2])
    assert table.loc["hard"].tolist() == pytest.approx([25, 0, 50, 50, 1])


def transcribed(order, positive, aside, k):
    """One query, word for word: walk down the ranking, skip what is put aside, count what is found."""
    seen = found = 0
    area, recall, precision, at_k = 0.0, 0.0, 1.0, None
    for image in order:
        if image in aside:
            continue
        seen, found = seen + 1, found + (image in positive)
        new_recall, new_precision = found / len(positive), found / seen
        area += (new_recall - recall) * (precision + new_precision) / 2
        recall, precision = new_recall, new_precision
        if at_k is None and (seen == k or found == len(positive)):
            at_k = precision
    return area, at_k


@given(st.integers(1, 30), st.data())
def test_the_table_equals_a_second_transcription(n, data):
    """Of three queries, each with a ranking and one of four kinds for every image."""
    orders = [data.draw(st.permutations(range(n))) for _ in range(3)]
    drawn = [data.draw(st.lists(st.sampled_from("ehjn"), min_size=n, max_size=n)) for _ in range(3)]
    kinds = [{c: [i for i, kind in enumerate(one) if kind == c] for c in "ehj"} for one in drawn]
    table = landmarks(ranked(*orders), *([one[c] for one in kinds] for c in "ehj"))
    for row, wanted, aside in (("medium", "eh", "j"), ("hard", "h", "ej")):
        expected = []
        for order, one in zip(orders, kinds):
            positive, ignored = ({i for c in some for i in one[c]} for some in (wanted, aside))
            if positive:
                by_k = [transcribed(order, positive, ignored, k) for k in (1, 5, 10)]
                expected.append([by_k[0][0], *(at_k for _, at_k in by_k)])
        means = 100 * np.mean(expected, axis=0) if expected else [np.nan] * 4
        np.testing.assert_allclose(table.loc[row].astype(float), [*means, len(expected)], atol=1e-9)


@given(st.lists(st.booleans(), min_size=1, max_size=40).filter(any))
def test_average_precision_against_scikit_learn(found):
    """The area by trapezoids is auc's; average_precision_score is the sum by right ends, never less."""
    ranks, scores = np.flatnonzero(found), -np.arange(len(found))
    precision, recall, _ = precision_recall_curve(found, scores)
    assert average_precision(ranks) == pytest.approx(auc(recall, precision))
    assert average_precision(ranks) <= average_precision_score(found, scores) + 1e-12


@pytest.mark.parametrize("change, message", [
    (dict(similarity=torch.ones(3)), r"similarity must be finite and \(Q, N\), got shape \(3,\)"),
    (dict(similarity=torch.full((2, 4), torch.nan)), "similarity must be finite"),
    (dict(easy=[[0]]), "easy must hold a list of images for each of 2 queries, got 1"),
    (dict(hard=[[0], [4]]), r"hard\[1\] must be indices of images, from 0 to 3, got \[4\]"),
    *((dict(junk=[[wrong], []]), r"junk\[0\] must be indices") for wrong in (-1, 0.5)),
    (dict(cuts=(0,)), "cuts must be an integer >= 1, got 0"),
])  # fmt: skip
def test_bad_ground_truth_is_named(change, message):
    good = dict(similarity=torch.ones(2, 4), easy=[[0], [1]], hard=[[], []], junk=[[], []])
    with pytest.raises(ValueError, match=message):
        landmarks(**{**good, **change})


# The folder of a landmark set


def made(root: Path, protocol=4, **changes) -> Path:
    """A folder as the sets are distributed: 4 pictures of random colours, one query of 40x30 pixels."""
    place, drawn = root / "roxford5k", numpy_shifted(0)
    (place / "jpg").mkdir(parents=True)
    for i, (height, width) in enumerate([(30, 40), (20, 24), (24, 24), (48, 20), (16, 16)]):
        pixels = drawn.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / "jpg" / f"all_souls_{i}.jpg")
    one = dict(bbx=[4.5, 2.0, 36.5, 26.0], easy=np.array([3, 1]), hard=[2], junk=np.array([], dtype=int))
    found = dict(imlist=[f"all_souls_{i}" for i in range(1, 5)], qimlist=["all_souls_0"], gnd=[one])
    (place / "gnd_roxford5k.pkl").write_bytes(pickle.dumps({**found, **changes}, protocol))
    return place


@pytest.mark.parametrize("protocol", range(6))
def test_a_set_is_read_as_it_is_distributed(tmp_path, protocol):
    place = made(tmp_path, protocol)
    found = load_landmarks("roxford5k", tmp_path)
    assert found.queries == [place / "jpg" / "all_souls_0.jpg"]
    assert [path.name for path in found.images] == [f"all_souls_{i}.jpg" for i in range(1, 5)]
    np.testing.assert_array_equal(found.boxes, [[4.5, 2, 36.5, 26]])
    assert [x.tolist() for x in (*found.easy, *found.hard, *found.junk)] == [[1, 3], [2], []]


class Seen(nn.Linear):
    """Features that tell what was seen: the sides, and the mean colour."""

    def forward(self, x):
        return torch.cat([x.mean((2, 3)), torch.tensor([x.shape[2:]]) / 1000], dim=1)


@pytest.mark.parametrize("size, multiple, sides", [  # of the query's box of 32 x 24, then of the pictures
    (24, 1, [(24, 18), (24, 20), (24, 24), (10, 24), (16, 16)]),  # the last one is small and stays so
    (32, 16, [(32, 32), (32, 16), (32, 32), (16, 32), (16, 16)]),
])  # fmt: skip
def test_queries_are_cropped_and_pictures_whole(size, multiple, sides, tmp_path):
    place = made(tmp_path)
    found = load_landmarks("roxford5k", tmp_path)
    queries, images = landmark_features(Seen(1, 1), found, size, multiple)
    for i, (row, (width, height)) in enumerate(zip(torch.cat([queries, images]), sides, strict=True)):
        picture = Image.open(place / "jpg" / f"all_souls_{i}.jpg")
        shown = picture if i else picture.crop((4, 2, 36, 26))
        colour = np.asarray(shown.resize((width, height), Image.Resampling.BILINEAR)).mean((0, 1)) / 255
        expected = np.array([*colour, height / 1000, width / 1000])
        np.testing.assert_allclose(row, expected / np.linalg.norm(expected), rtol=1e-4)
    table = landmarks(queries @ images.T, found.easy, found.hard, found.junk)
    assert table["queries"].tolist() == [1, 1]


class Harm:
    def __reduce__(self):
        return Path.touch, (Path("harm"),)


@pytest.mark.parametrize("changes, message", [
    (dict(extra=Harm()), r"is not the ground truth of roxford5k \(it asks for .*; only numpy's arrays"),
    (dict(extra=OrderedDict()), "it asks for collections.OrderedDict"),
    (dict(gnd=[]), "easy must hold a list of images for each of 1 queries, got 0"),
    (dict(gnd=[dict(easy=[], hard=[], junk=[])]), "bbx"),
    (dict(imlist=None), "not the ground truth"),
])  # fmt: skip
def test_other_pickles_are_refused_and_run_nothing(tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    made(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load_landmarks("roxford5k", tmp_path)
    assert not Path("harm").exists()


def test_files_that_are_missing_or_damaged_are_named_with_their_source(tmp_path):
    place = made(tmp_path)
    found, (_, _, damaged, *lost) = load_landmarks("roxford5k", tmp_path), sorted(place.glob("jpg/*"))
    damaged.write_bytes(b"no picture")
    with pytest.raises(ValueError, match=re.escape(str(damaged))):
        landmark_features(Seen(1, 1), found)
    for path in lost:
        path.unlink()
    for name, error, said in (
        ("rparis6k", FileNotFoundError, "gnd_rparis6k.pkl is missing; fetch http.*/gnd_rparis6k.pkl"),
        ("roxford5k", FileNotFoundError, "all_souls_3.jpg is missing, and 1 more; .*oxbuildings"),
        ("oxford", ValueError, "name must be one of 'roxford5k', 'rparis6k', got 'oxford'"),
    ):
        with pytest.raises(error, match=said):
            load_landmarks(name, tmp_path)

"""Two pictures of each thing: how they are read and paired, trained on, judged, and recorded."""

import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from pictures import saved
from PIL import Image
from scipy.optimize import linear_sum_assignment
from test_image_sets import made as things
from torch import nn
from torch.nn import functional as F

from setclr import InfoNCE, data, evaluation, models, pretrain, views
from setclr.data import ImageSet, paired, two_views
from setclr.experiments import load_run, watch
from setclr.experiments.records import read_record
from setclr.recipes import ImageRecipe
from setclr.seeding import seeded
from setclr.training import Interrupted
from setclr_course.search.campaigns import campaign
from setclr_course.search.recorded import ours

PAIRS = dict(data="stereo-patches", views="matching", layers=1, lr=0.01)
SHORT = ImageRecipe("InfoNCE(temperature=0.05)", **PAIRS, epochs=2, batch=8)


def smooth_pairs(n=24, side=16, noise=0.05, height=None):
    """Colour patches, each view with its own noise."""
    shape = height or side, side
    x = F.interpolate(torch.rand(n, 3, 4, 4), shape, mode="bilinear")
    return ((x + noise * torch.randn(2, n, 3, *shape)).clamp(0, 1) * 255).byte()


def save_pairs(pairs, root):
    for camera, some in zip(("back", "front"), pairs):
        saved(root / camera, some)
    return f"pairs:{root}"


def indices(pairs):
    return pairs[:, :, 0, 0, 0].tolist()


# Pairing


def test_the_first_image_of_a_thing_is_view_0_and_a_thing_seen_once_is_left_out():
    assert indices(two_views(things([0, 1, 2, 0, 1, 2]))) == [[0, 1, 2], [3, 4, 5]]
    assert indices(two_views(things([2, 0, 2, 1, 0, 1]), seed=7)) == [[1, 3, 0], [4, 5, 2]]
    assert indices(two_views(things([0, 1, 1, 3, 3]))) == [[1, 3], [2, 4]]


def test_of_more_than_two_images_the_seed_draws_two_in_order():
    many = things([0, 1] * 20)
    drawn = [indices(two_views(many, seed)) for seed in range(100)]
    assert drawn[0] == indices(two_views(many, 0)) and len({str(pair) for pair in drawn}) > 90
    for first, second in drawn:
        assert [place % 2 for place in (*first, *second)] == [0, 1, 0, 1]
        assert first[0] < second[0] and first[1] < second[1]


def test_resizing_keeps_the_pairs_and_sees_every_pixel():
    pairs = smooth_pairs(6, 32, noise=0) // 2
    pairs[..., ::4] = 255
    whole = ImageSet(pairs.flatten(0, 1), torch.arange(6).repeat(2), tuple("abcdef"))
    small = two_views(whole, size=8)
    assert small.shape == (2, 6, 3, 8, 8) and small.dtype == torch.uint8
    mean = pairs.float().unflatten(-1, (8, 4)).unflatten(-3, (8, 4)).mean((-1, -3))
    assert (small.float() - mean).abs().mean() < 4


def test_a_sample_of_pairs_has_both_views_of_its_things():
    pairs = paired(two_views(things(list(range(20)) * 2)), "together")
    few = pairs.sample(5, seed=1)
    assert torch.equal(pairs.subset(torch.arange(20) < 3).pairs, pairs.pairs[:, :3])
    first, second = indices(few.pairs)
    assert len(few) == len(set(first)) == 5 and [i + 20 for i in first] == second and few.mirror == "together"


# Reading


def test_a_folder_of_two_cameras_gives_what_stereo_patches_give(tmp_path):
    pairs = smooth_pairs(20, 8, height=12)
    name = save_pairs(pairs, tmp_path / "people")
    train, test = (data.load(name, split=split) for split in ("train", "test"))
    assert (len(train), len(test)) == (2 * 17, 2 * 3)  # 15 % of 20 things
    for part in (train, test):
        views, numbers = two_views(part), [int(thing[:3]) for thing in part.classes]
        assert torch.equal(views, part.images.view(2, -1, 3, 12, 8))
        assert torch.equal(views, pairs[:, numbers]) and numbers != sorted(numbers)
    assert len({*train.classes, *test.classes}) == 20
    assert data.load(name, split="test").classes == test.classes
    kept, validation = data.split_pairs(two_views(train))
    assert (kept.shape[1], validation.shape[1]) == (14, 3)
    assert torch.equal(torch.cat([kept, validation], dim=1), two_views(train))


def test_with_a_size_pictures_are_twice_as_high_as_wide(tmp_path):
    train = data.load(save_pairs(smooth_pairs(14, 16), tmp_path), size=24)
    picture = Image.open(tmp_path / "back" / train.classes[0]).resize((12, 24), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(train.images[0].permute(1, 2, 0), picture)


def test_folders_that_are_no_pairs_are_refused(tmp_path):
    root = tmp_path / "people"
    name, lost = save_pairs(smooth_pairs(20, 8), root), root / "front" / "003.png"

    def refused(said, name=name, **more):
        with pytest.raises((ValueError, FileNotFoundError), match=said):
            data.load(name, **more)

    refused("is no folder; pairs:PATH needs PATH/CAMERA/THING", f"pairs:{tmp_path}/nowhere")
    refused("must hold two folders, got 1: people; .*one name", name=f"pairs:{tmp_path}")
    refused("size must be an integer >= 8, got 4", size=4)
    refused("stream must be left out for pairs:.*, got True", stream=True)
    lost.rename(tmp_path / "lost")
    refused(r"back/003.png has no counterpart in \S+front; both need the same names")
    Image.new("RGB", (8, 9)).save(lost)
    refused("images must be of one size, got .*003.png of 8x9; load them")
    assert len(data.load(name, size=8)) == 34
    for path in root.glob("*/00[0-6].png"):
        path.unlink()
    refused("people must hold at least 14 things .* got 13; add pictures")


# Training


@pytest.mark.parametrize("mirror, height", [("together", 16), ("apart", 24)])
def test_one_step_is_adams_on_jittered_pairs(mirror, height):
    """Written out: the batch in the order of (seed, epoch), coins, jitter, loss, Adam."""
    pairs, seed = smooth_pairs(12, height=height), 5
    kept, state = pairs.clone(), torch.get_rng_state()
    recipe = replace(SHORT, epochs=1, batch=12, seed=seed, normalised="image", precision="float32")
    run = pretrain(recipe, data=paired(pairs, mirror), device="cpu")
    assert torch.equal(torch.get_rng_state(), state) and torch.equal(pairs, kept)

    torch.manual_seed(seed)
    encoder, features = models.encoder("conv4")
    model = nn.Sequential(nn.InstanceNorm2d(3), encoder, nn.Linear(features, 64))
    model.to(memory_format=torch.channels_last)
    draws = views.draw(views.preset("matching"), 12, seeded(seed, 0, 0))
    batch = pairs[:, torch.randperm(12, generator=seeded(seed, 0))]
    coins = (draws[:, :, 22] < 0.5).T
    if mirror == "together":
        coins = coins[:1].expand(2, -1)
    assert 0 < coins[0].sum() < 12
    batch[coins] = batch[coins].flip(-1)
    jitter = views.View(scale=(1, 1), ratio=(1, 1), flip=0, jitter=(0.1,) * 4, jitter_p=1, grey=0)
    tiles = {16: (1, 1), 24: (2, 3)}[height]  # `apply` wants squares: six have the mean of one
    x = [views.apply(batch[v].repeat(1, 1, *tiles), [jitter], draws[:, [v]])[0] for v in (0, 1)]
    InfoNCE(0.05)(model(torch.cat(x)[..., :height, :16]).unflatten(0, (2, 12))).backward()
    torch.optim.Adam(model.parameters(), lr=0.01).step()
    # Where a gradient is as small as Adam's eps, its rounding moves the step: up to a hundredth of the rate.
    trained = [*run.encoder.parameters(), *run.head.parameters()]
    torch.testing.assert_close(trained, list(model.parameters()), rtol=1e-5, atol=1e-4)


NO_PAIRS = "pairs must be .* uint8.*two_views makes them, got"


@pytest.mark.parametrize("call, message", [
    *((lambda x, bad=bad: paired(bad(x)), NO_PAIRS) for bad in (torch.Tensor.float, list, lambda x: x[0])),
    (lambda x: paired(x, "both"), "mirror must be one of 'apart', 'together'"),
    (lambda x: paired(x).sample(9), "n must be .* got 9; the set has 8"),
    (lambda x: two_views(things([0, 0, 1, 2])), "images must show at least 2 things twice, got 1"),
    (lambda x: pretrain(replace(SHORT, full_views=3), data=paired(x)), "two equal ones for pairs, got 3"),
    (lambda x: pretrain(replace(SHORT, views="simclr"), data=paired(x)), "view must keep .*'matching'"),
    (lambda _: evaluation.matching_accuracy(torch.eye(8), torch.eye(8), "far"), "must be .*'euclidean', got"),
])  # fmt: skip
def test_what_cannot_be_paired_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(smooth_pairs(8))


# Judging


def test_euclidean_matching_is_the_assignment_by_distances_of_unit_vectors():
    a, b = torch.randn(60, 4), torch.randn(60, 4)
    b += 1.5 * a
    x, y = (F.normalize(view.double(), dim=1).numpy() for view in (a, b))
    distances = np.linalg.norm(x[:, None] - y[None], axis=2)
    rows, columns = linear_sum_assignment(distances)
    assert evaluation.matching_accuracy(a, b, "euclidean") == np.mean(rows == columns)
    best = distances[rows, columns].sum()
    _, by_cosine = linear_sum_assignment(-x @ y.T)
    assert best < distances[rows, by_cosine].sum()  # another assignment than by cosines


def test_the_watch_on_validation_things_is_kept_through_an_interruption(tmp_path):
    """With a rate so high that, for some seed, later epochs are worse; the run is stopped before the best one
    and after."""
    name = save_pairs(smooth_pairs(60, 8, noise=0.3), tmp_path / "people")
    recipe = replace(SHORT, data=name, epochs=6, lr=0.3, precision="float32", loss="Triplet(margin=0.5)")
    weights, ends, best = [], [], watch(recipe)
    for seed in range(9):
        recipe = replace(recipe, seed=seed)
        rows = pretrain(recipe, device="cpu", on_epoch=best).rows
        matching = [row["matching"] for row in rows]
        if 0 < (place := int(np.argmax(matching))) < 5 and matching[place] > matching[-1]:
            break

    def judged(run):
        weights.append(run.head[0].weight.detach().clone())
        if len(run.rows) in ends:
            signal.raise_signal(signal.SIGINT)
        return best(run)

    whole = pretrain(recipe, device="cpu", on_epoch=judged)
    assert [row["matching"] for row in whole.rows] == matching and len(matching) == 6 and seed < 8
    assert torch.equal(whole.head[0].weight, weights[place + 1])  # the first call is before any epoch
    validation = data.split_pairs(two_views(data.load(name)))[1]
    network = nn.Sequential(whole.encoder, whole.head)
    embedded = [evaluation.features(network, view) for view in validation]
    assert 100 * evaluation.matching_accuracy(*embedded, "euclidean") == matching[place]
    ends += [1, 5]
    for _ in ends:
        with pytest.raises(Interrupted):
            pretrain(recipe, tmp_path / "run", device="cpu", on_epoch=judged)
    pretrain(recipe, tmp_path / "run", device="cpu", on_epoch=judged)
    run = load_run(tmp_path / "run")
    assert [row["matching"] for row in run.rows] == matching
    assert torch.equal(run.head[0].weight, whole.head[0].weight)
    assert watch(replace(recipe, data="photo-patches")) is None


def test_a_row_of_table_1_runs_on_stereo_patches_and_is_shown_beside_its_number(tmp_path):
    """But for a small encoder and one epoch. Validation patches lie below those trained on."""
    train = data.load("stereo-patches", tmp_path)
    kept, validation = data.split_pairs(two_views(train))
    rows = [int(name.split()[1]) for name in train.classes]
    assert max(rows[: kept.shape[1]]) <= min(rows[kept.shape[1] :]) and validation.shape[1] == 201
    row, recipe = "qare-table1-infonce", replace(SHORT, images=64, epochs=1, batch=32)
    said = list(campaign({row: recipe}, (0,), tmp_path / "runs", tmp_path, tmp_path, device="cpu"))
    title = f"{row}-stereo-patches-seed0"
    record = read_record(tmp_path / f"{title}.json")
    assert record.protocol == "qare" and "matching" in record.history[0]
    found = record.accuracy_percent
    assert set(found) == {"raw pixels", "untrained", "trained"} and set(found["trained"]) == {"matching"}
    assert said == [f"{title}: matching {found['trained']['matching']:.1f}"]
    assert ours(recipe, [record], "qare").startswith("matching ") and ours(recipe, [record]) == "-"

"""Training on two pictures of each thing: who is paired with whom, the loop, and that it is deterministic."""

import pytest
import torch
from torch.nn import functional as F

from setclr import data, evaluation, models, views
from setclr.data import ImageSet
from setclr.losses import InfoNCE, QARe, SparseCLR, Triplet
from setclr.training import train_on_pairs, two_views
from setclr.training.pairs import network
from setclr.training.seeding import seeded

SHORT = dict(epochs=2, batch=8, device="cpu")


@pytest.fixture(autouse=True)
def one_thread():
    """On images this small a second thread only waits, for long where other programs run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def things(labels):
    """Images that carry their own index."""
    n = len(labels)
    images = torch.arange(n, dtype=torch.uint8)[:, None, None, None].expand(n, 3, 4, 4)
    return ImageSet(images, torch.tensor(labels), tuple(f"thing {i}" for i in range(max(labels) + 1)))


def smooth_pairs(n=24, side=16, noise=0.05):
    """Colour patches, each view with its own noise."""
    x = F.interpolate(torch.rand(n, 3, 4, 4), (side, side), mode="bilinear")
    return ((x + noise * torch.randn(2, n, 3, side, side)).clamp(0, 1) * 255).byte()


def indices(pairs):
    return pairs[:, :, 0, 0, 0].tolist()


def test_the_first_image_of_a_thing_is_view_0():
    assert indices(two_views(things([0, 1, 2, 0, 1, 2]))) == [[0, 1, 2], [3, 4, 5]]
    assert indices(two_views(things([2, 0, 2, 1, 0, 1]), seed=7)) == [[1, 3, 0], [4, 5, 2]]


def test_stereo_patches_stay_left_and_right(tmp_path):
    test = data.load("stereo-patches", tmp_path, "test")
    assert torch.equal(two_views(test, seed=3), test.images.view(2, -1, 3, 32, 32))


def test_of_more_than_two_images_the_seed_draws_two_in_order():
    many = things([0, 1] * 20)
    drawn = [indices(two_views(many, seed)) for seed in range(100)]
    assert drawn[0] == indices(two_views(many, 0))
    assert len({str(pair) for pair in drawn}) > 90
    for first, second in drawn:
        assert first[0] % 2 == second[0] % 2 == 0 and first[1] % 2 == second[1] % 2 == 1
        assert first[0] < second[0] and first[1] < second[1]
    assert {place for first, second in drawn for place in (first[0], second[0])} == set(range(0, 40, 2))


def test_a_thing_seen_once_is_left_out():
    assert indices(two_views(things([0, 1, 1, 3, 3]))) == [[1, 3], [2, 4]]
    with pytest.raises(ValueError, match="images must show at least 2 things twice, got 1 in .*same label"):
        two_views(things([0, 0, 1, 2]))
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        two_views(things([0, 0, 1, 1]), seed=-1)


def test_resizing_keeps_the_pairs():
    pairs = smooth_pairs(6, 32)
    whole = ImageSet(pairs.flatten(0, 1), torch.arange(6).repeat(2), tuple("abcdef"))
    small = two_views(whole, size=16)
    assert small.shape == (2, 6, 3, 16, 16) and small.dtype == torch.uint8
    mean = pairs.float().unflatten(-1, (16, 2)).unflatten(-3, (16, 2)).mean((-1, -3))
    assert (small.float() - mean).abs().mean() < 4
    with pytest.raises(ValueError, match="size must be an integer >= 1"):
        two_views(whole, size=0)


def test_training_is_a_function_of_the_seed_and_touches_nothing_else():
    pairs, loss = smooth_pairs(), 0.7 * SparseCLR() + 0.3 * QARe()
    kept, state = pairs.clone(), torch.get_rng_state()
    first, again, other = (train_on_pairs(pairs, loss, seed=seed, **SHORT) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state) and torch.equal(pairs, kept)
    assert not any(module.training for module in first.modules())
    for a, b in zip(first.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first[2].weight, other[2].weight)


def test_one_step_is_adams_on_jittered_pairs():
    """Written out: the batch in the order of (seed, epoch), one coin a pair, jitter, loss, Adam."""
    pairs, seed = smooth_pairs(12), 5
    trained = train_on_pairs(
        pairs, InfoNCE(0.05), epochs=1, batch=12, lr=0.01, seed=seed, device="cpu", precision="float32"
    )

    torch.manual_seed(seed)
    encoder, features = models.encoder("conv4")
    model = torch.nn.Sequential(torch.nn.InstanceNorm2d(3), encoder, torch.nn.Linear(features, 64))
    model.to(memory_format=torch.channels_last)
    draws = views.draw(views.preset("matching"), 12, seeded(seed, 0, 0))
    batch = pairs[:, torch.randperm(12, generator=seeded(seed, 0))]
    mirrored = draws[:, 0, 22] < 0.5
    assert 0 < mirrored.sum() < 12
    batch[:, mirrored] = batch[:, mirrored].flip(-1)
    plain = views.View(scale=(1, 1), ratio=(1, 1), flip=0, jitter=(0.1,) * 4, jitter_p=1, grey=0)
    x = torch.cat([views.apply(batch[v], [plain], draws[:, v : v + 1])[0] for v in (0, 1)])
    InfoNCE(0.05)(model(x).unflatten(0, (2, 12))).backward()
    torch.optim.Adam(model.parameters(), lr=0.01).step()
    torch.testing.assert_close(list(trained.parameters()), list(model.parameters()))


def test_all_losses_of_a_seed_begin_alike_and_the_switches_switch():
    pairs = smooth_pairs()
    still = dict(epochs=1, batch=8, lr=1e-12, device="cpu")
    weights = [train_on_pairs(pairs, loss, **still)[2].weight for loss in (Triplet(), InfoNCE(0.05))]
    torch.testing.assert_close(*weights, atol=1e-9, rtol=0)
    losses = {}
    for name, switch in (("default", {}), ("apart", {"mirror": "apart"}), ("tinted", {"standardise": False})):
        losses[name] = train_on_pairs(pairs, InfoNCE(0.05), **SHORT, **switch)
    assert isinstance(losses["tinted"][0], torch.nn.Identity)
    assert not torch.equal(losses["default"][2].weight, losses["apart"][2].weight)
    x = torch.rand(4, 3, 16, 16)
    tint, contrast = torch.rand(4, 3, 1, 1) / 2, 0.5 + torch.rand(4, 3, 1, 1)
    torch.testing.assert_close(
        losses["default"](contrast * x + tint), losses["default"](x), atol=1e-3, rtol=1e-3
    )
    assert (losses["tinted"](contrast * x + tint) - losses["tinted"](x)).abs().max() > 1e-2


def test_it_learns_to_match():
    train, test = smooth_pairs(256, noise=0.4), smooth_pairs(128, noise=0.4)
    before = network_features(test, None)
    after = network_features(test, train_on_pairs(train, InfoNCE(0.05), epochs=6, batch=32, device="cpu"))
    assert evaluation.matching_accuracy(*after) > evaluation.matching_accuracy(*before) + 0.2


def network_features(pairs, model):
    model = model or network("conv4", 64, 3, standardise=True, seed=0)
    return [evaluation.features(model, view) for view in pairs]


def test_what_cannot_be_used_is_refused():
    pairs, loss = smooth_pairs(8), InfoNCE(0.05)
    for wrong in (pairs.float(), pairs[0], pairs[[0]], [1, 2]):
        with pytest.raises(ValueError, match="pairs must be .* uint8.*two_views makes them, got"):
            train_on_pairs(wrong, loss, **SHORT)
    for arguments, message in (
        ({"batch": 9}, "batch must be .* got 9; there are 8 pairs"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"lr": 0}, "lr must be > 0"),
        ({"encoder": "conv5"}, "encoder must be one of .*did you mean 'conv4'"),
        ({"mirror": "both"}, "mirror must be one of 'together', 'apart'"),
        ({"standardise": 1}, "standardise must be True or False"),
        ({"device": "abacus"}, "device must be cpu"),
    ):
        with pytest.raises(ValueError, match=message):
            train_on_pairs(pairs, loss, **{**SHORT, **arguments})


def test_a_diverging_run_stops_with_the_step():
    with pytest.raises(FloatingPointError, match="became NaN or inf at step [1-5]; lower lr"):
        train_on_pairs(smooth_pairs(), InfoNCE(0.05), epochs=2, batch=8, lr=1e30, device="cpu")

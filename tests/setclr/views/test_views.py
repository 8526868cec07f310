"""Every operation and every whole view against torchvision's, image by image, under the same parameters."""

import math
import re
from dataclasses import replace

import pytest
import torch
from conftest import shifted
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torchvision.transforms import InterpolationMode, RandomResizedCrop
from torchvision.transforms.v2 import functional as F

from setclr import views
from setclr.views import PRESETS, View, apply, augment, draw, numbers, parameters, pixels, preset

few = settings(max_examples=15)
sides = st.integers(1, 70)
HARD = View(size=24, scale=(0.05, 1.0), jitter=(0.9, 1.3, 1.1, 0.5), blur=0.5, solarise=0.4, vertical=0.5,
            turn=0.3)  # fmt: skip


def photos(n=6, C=3, H=32, W=32, seed=0):
    """Smooth random pictures, uint8, a quarter of them grey and some of them black or white."""
    coarse = torch.rand(n, C, 5, 6, generator=shifted(seed)) * 1.6 - 0.3
    images = torch.nn.functional.interpolate(coarse, (H, W), mode="bicubic")
    images[:, :, : H // 4] = images[:, :1, : H // 4]
    return (255 * images.clamp(0, 1)).round().to(torch.uint8)


def same(a, b, within=1e-5):
    torch.testing.assert_close(a, b, rtol=0, atol=within)


def of_one(view, draws, H, W):
    """The parameters of a single view, (N, …), from its draws (N, 36)."""
    return views.numbers.Parameters(*(x[0] for x in parameters([view], draws[:, None], H, W)))


def by_torchvision(images, view, p):
    """The view of each image, composed of torchvision's functions with the parameters of its draws."""
    return torch.stack([of_one_image(image, view, p, i) for i, image in enumerate(images)])


def of_one_image(image, view, p, i):
    S = view.size or image.shape[-1]
    top, left, height, width = p.box[i].int().tolist()
    border = round(view.padding * image.shape[-2])
    x, top, left = F.pad(image.float() / 255, [border] * 4), top + border, left + border
    how = InterpolationMode(view.interpolation)
    x = F.resized_crop(x, top, left, height, width, [S, S], how, antialias=True).clamp(0, 1)
    if p.flip[i]:
        x = F.horizontal_flip(x)
    if p.vertical[i]:
        x = F.vertical_flip(x)
    if p.turn[i]:
        x = x.mT
    changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
    for op in p.order[i].tolist():
        x = changes[op](x, float(p.factors[i, op]))
    if p.grey[i]:
        x = F.rgb_to_grayscale(x, num_output_channels=x.shape[0])
    if p.blur[i]:
        x = F.gaussian_blur(x, [max(3, 2 * int(S // 10 / 2) + 1)] * 2, [float(p.sigma[i])] * 2)
    return F.solarize(x.clamp(0, 1), 0.5) if p.solarise[i] else x


# ---------------------------------------------------------------- against torchvision


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_torchvisions_composition(name):
    images, both = photos(12), preset(name)
    draws = draw(both, len(images), shifted())
    out = apply(images, both, draws)
    for v, view in enumerate(both):
        same(out[v], by_torchvision(images, view, of_one(view, draws[:, v], 32, 32)))


@few
@given(H=sides, W=sides, S=st.integers(2, 64), C=st.sampled_from([1, 3]), V=st.integers(1, 3), seed=sides)
def test_any_shape_is_torchvisions_composition(H, W, S, C, V, seed):
    more = dict(scale=(0.01, 1), interpolation=("bilinear", "bicubic")[seed % 2], padding=seed % 3 / 7)
    more |= dict(blur=0.5, solarise=0.3, vertical=0.6, turn=0.4)
    images, view = photos(4, C, H, W, seed), [View(S, **more)] * V
    draws = draw(view, 4, shifted(seed))
    out = apply(images, view, draws)
    assert out.shape == (V, 4, C, S, S) and out.dtype == torch.float32 and out.is_contiguous()
    assert out.min() >= 0 and out.max() <= 1
    for v in range(V):
        same(out[v], by_torchvision(images, view[v], of_one(view[v], draws[:, v], H, W)), 3e-5)


# ---------------------------------------------------------------- distributions


@pytest.mark.parametrize("view, H, W", [  # square, wide, tall, mostly no box that fits
    (View(), 32, 32), (View(), 40, 100), (View(scale=(0.5, 1)), 90, 30), (View(scale=(0.9, 1)), 20, 90),
])  # fmt: skip
def test_crops_are_distributed_as_torchvisions(view, H, W):
    n = 4000
    boxes = of_one(view, draw([view], n, shifted())[:, 0], H, W).box
    top, left, height, width = boxes.T
    assert (boxes == boxes.round()).all() and (boxes[:, 2:] >= 1).all() and (boxes[:, :2] >= 0).all()
    assert (top + height <= H).all() and (left + width <= W).all()

    image, ranges = torch.empty(1, H, W), (list(view.scale), list(view.ratio))
    oracle = torch.tensor([RandomResizedCrop.get_params(image, *ranges) for _ in range(n)]).double()
    for a, b in zip(*([x[:, 2] * x[:, 3], x[:, 3] / x[:, 2], x[:, 0], x[:, 1]] for x in (boxes, oracle))):
        spread = float(b.std()) + 1e-9
        assert float(a.mean() - b.mean()) == pytest.approx(0, abs=5 * spread * math.sqrt(2 / n) + 1e-9)
        assert float(a.std()) == pytest.approx(spread, rel=0.05, abs=1e-6)


def test_all_eight_positions_of_a_square_are_as_likely_and_nothing_else_changes():
    n, plain = 16000, View(jitter=(0,) * 4, grey=0)
    draws = draw([plain], n, shifted())
    p = of_one(replace(plain, vertical=0.5, turn=0.5), draws[:, 0], 8, 8)
    counts = (4 * p.flip + 2 * p.vertical + p.turn.int()).bincount(minlength=8)
    assert (counts - n / 8).abs().max() < 6 * (n / 8) ** 0.5
    rare = of_one(replace(plain, flip=0.2, vertical=0.1, turn=0.3), draws[:, 0], 8, 8)
    for mask, share in ((rare.vertical, 0.1), (rare.turn, 0.3), (rare.vertical[rare.flip], 0.1)):
        assert mask.float().mean() == pytest.approx(share, abs=6 * 0.5 / len(mask) ** 0.5)
    same_as_before = of_one(plain, draws[:, 0], 8, 8)
    assert torch.equal(p.box, same_as_before.box) and torch.equal(p.flip, same_as_before.flip)
    with pytest.raises(ValueError, match="view must keep images whole and sharp"):
        views.recolour(photos(1), replace(PRESETS["matching"][0], turn=0.5), draws[:1])


def test_padded_crops_are_torchvisions_random_crop_with_a_border_of_an_eighth():
    """The presets of QARe's baselines: 4 px beyond 32, every place as likely, black outside; or no crop."""
    view, n = PRESETS["padded"][0], 8100
    p = of_one(view, draw([view], n, shifted())[:, 0], 32, 32)
    top, left, height, width = p.box.long().T
    assert set(height.tolist()) == set(width.tolist()) == {32}
    counts = (9 * (top + 4) + left + 4).bincount(minlength=81)
    assert len(counts) == 81 and (counts - n / 81).abs().max() < 6 * (n / 81) ** 0.5
    assert p.flip.float().mean() == pytest.approx(0.5, abs=6 * 0.5 / n**0.5)
    image, (whole, _) = photos(1, seed=5), PRESETS["flip"]
    for flip, wanted in ((0, image), (1, image.flip(-1))):
        same(augment(image, [replace(whole, flip=flip)], shifted())[0], wanted / 255, 0)


def test_parameters_are_distributed_as_asked():
    n = 20000
    colours = dict(jitter=(0.4, 1.5, 0.2, 0.1), jitter_p=0.6, grey=0.25, solarise=0.1)
    view = View(flip=0.3, blur=0.4, blur_sigma=(0.5, 1.5), **colours)
    p = of_one(view, draw([view], n, shifted())[:, 0], 32, 32)
    for name in ("flip", "grey", "blur", "solarise"):
        assert float(getattr(p, name).float().mean()) == pytest.approx(getattr(view, name), abs=0.015)
    jittered = (p.factors != torch.tensor([1.0, 1, 1, 0])).any(1)
    assert float(jittered.float().mean()) == pytest.approx(0.6, abs=0.015)
    factors = p.factors[jittered]
    low, high = torch.tensor([0.6, 0, 0.8, -0.1]), torch.tensor([1.4, 2.5, 1.2, 0.1])
    same(factors.amin(0), low, 0.005), same(factors.amax(0), high, 0.005)
    same(factors.mean(0), (low + high) / 2, 0.03)
    assert 0.5 <= p.sigma.min() < 0.51 and 1.49 < p.sigma.max() <= 1.5
    code = (p.order * torch.tensor([64, 16, 4, 1])).sum(1)
    counts = code.unique(return_counts=True)[1]
    assert len(counts) == 24 and (counts / n - 1 / 24).abs().max() < 0.01


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("a, b, C", [(3, 11, 1), (3, 11, 3), (16, 17, 3)])
def test_a_slice_of_the_batch_gets_what_the_batch_gets(a, b, C):
    images, both = photos(24, C), (HARD, View(size=24))
    draws = draw(both, 24, shifted())
    got, want = apply(images[a:b], both, draws[a:b]), apply(images, both, draws)[:, a:b]
    same(got, want, 1e-6)  # bit for bit on x86; elsewhere a matrix product may choose by the batch's size


def test_the_seed_decides_everything():
    images, both, generator = photos(8), preset("groco"), shifted(3)
    first = augment(images, both, generator)
    assert torch.equal(first, apply(images, both, draw(both, 8, shifted(3))))
    assert not torch.equal(first, augment(images, both, shifted(4)))
    assert not torch.equal(first, augment(images, both, generator)), "the generator must move on"


def philox(key, counter):
    """A block of Philox4x64-10, four numbers of 64 bits (Salmon et al. 2011, section 4.3 and its program)."""
    mask = 2**64 - 1
    x, k = [counter, 0, 0, 0], [key, 0]
    for _ in range(10):
        a, b = 0xD2E7470EE14C6C93 * x[0], 0xCA5A826395121157 * x[2]
        x = [(b >> 64) ^ x[1] ^ k[0], b & mask, (a >> 64) ^ x[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
    return x


@pytest.mark.parametrize("V", [1, 2, 3])
def test_draws_are_those_of_the_counter_based_generator(V):
    low, high = torch.randint(2**32, (2,), generator=shifted(7)).tolist()
    blocks = [philox(low + (high << 32), 1 + k) for k in range(9 * V * 3)]
    wanted = torch.tensor([x >> 40 for block in blocks for x in block]) / 2**24
    assert torch.equal(draw([View()] * V, 3, shifted(7)).flatten(), wanted)


def test_what_a_seed_draws_is_the_same_on_every_machine():
    first = draw([View()], 1, torch.Generator().manual_seed(0))[0, 0]
    wanted = [6385806, 10586578, 3669573, 8061579, 7207185, 7680651]
    assert (first * 2**24).int().tolist()[:6] == wanted
    assert views.DRAWS == 3, "a new version of the draws has other numbers"


def test_a_process_draws_its_own_part_only():
    together, own = shifted(5), shifted(5)
    whole, part = draw([View()] * 3, 24, together), draw([View()] * 3, 8, own, first=3)
    assert torch.equal(part, whole[3:11]) and torch.equal(together.get_state(), own.get_state())


def test_neither_autocast_nor_layout_matters_and_neither_global_generator_nor_images_change():
    images, both, state = photos(4), preset("simclr"), torch.get_rng_state()
    before, out = images.clone(), augment(images, both, shifted())
    assert torch.equal(images, before) and torch.equal(state, torch.get_rng_state())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(augment(images, both, shifted()), out)
    layout = images.contiguous(memory_format=torch.channels_last)
    same(augment(layout, both, shifted()), out, 1e-6)


def test_views_are_made_on_a_fake_gpu(monkeypatch):
    """Fake tensors need no GPU, but fail where a tensor was left on the CPU or a value is looked at."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda x: x)
    draws = draw(MANY, 8, shifted())
    with FakeTensorMode(allow_non_fake_inputs=True):
        images = torch.zeros(8, 3, 32, 32, dtype=torch.uint8, device="cuda")
        out = views.apply_all(images, MANY, draws)
        again = views.finish([x.byte() for x in out], MANY, draws)
    assert {x.device.type for x in (*out, *again)} == {"cuda"}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_agrees_with_the_cpu_and_is_never_waited_for():
    images, both = photos(32), (HARD, View(size=24, blur=1.0))
    draws = draw(both, 32, shifted())
    there = images.cuda()
    apply(there, both, draws)
    torch.cuda.set_sync_debug_mode("error")
    try:
        out = apply(there, both, draws)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    same(out.cpu(), apply(images, both, draws))


# ---------------------------------------------------------------- several sizes


MANY = (View(size=24, blur=0.5), View(size=10), View(size=24, solarise=0.5), View(size=10, grey=0.5), View())


def test_views_of_several_sizes_are_those_of_each_size_apart():
    images, draws = photos(6), draw(MANY, 6, shifted())
    assert views.by_size(MANY) == [[0, 2], [1, 3], [4]]
    out = views.apply_all(images, MANY, draws)
    assert [tuple(x.shape) for x in out] == [(2, 6, 3, 24, 24), (2, 6, 3, 10, 10), (1, 6, 3, 32, 32)]
    for x, group in zip(out, ([0, 2], [1, 3], [4])):
        for place, v in enumerate(group):
            same(x[place], apply(images, [MANY[v]], draws[:, [v]])[0], 1e-6)


def test_finishing_crops_is_applying_but_for_their_rounding():
    """The crops of `apply` itself, rounded to grey levels, not mirrored, as a decoder would give them."""
    images, draws = photos(24), draw(MANY, 24, shifted())
    crops = []
    for group in views.by_size(MANY):
        some = [MANY[v] for v in group]
        p = parameters(some, draws[:, group], 32, 32)._replace(flip=torch.zeros(len(some), 24))
        still = numbers.cropping(some, p, 32, 32, some[0].size or 32)
        whole = pixels.crop(images, still, len(some)).unflatten(0, (len(some), 24))
        crops.append((255 * whole).round().byte())
    for got, want in zip(views.finish(crops, MANY, draws), views.apply_all(images, MANY, draws)):
        assert got.dtype == torch.float32 and got.shape == want.shape
        off = (got - want).abs().amax((2, 3, 4))  # a hue turned or a colour solarised may jump at a level
        assert float(off.median()) < 1.5 / 255 and float((got - want).abs().mean()) < 0.5 / 255


def test_compiled_views_are_the_same_but_for_rounding():
    """One graph without breaks (fullgraph=True), from images that are not square, and from crops."""
    both = (HARD, View(size=24, blur=1))
    images, draws = photos(8, H=36, W=28), draw(both, 8, shifted())
    (eager,), (fast,) = (views.apply_all(images, both, draws, compiled) for compiled in (False, True))
    assert fast.is_contiguous()
    same(fast, eager)
    crops = [(255 * eager).round().byte()]
    (eager,), (fast,) = (views.finish(crops, both, draws, compiled) for compiled in (False, True))
    same(fast, eager)


def test_multi_crop_is_the_published_one_in_any_number_and_size():
    first, second, *small = views.multi_crop("groco", 2, 6, 224)
    assert (first, second) == preset("groco", 224) and len(small) == 6
    blurred = replace(first, size=96, scale=(0.05, 0.14), blur=0.5)
    assert set(small) == {blurred} and first.scale[0] == 0.14 and first.solarise == 0
    assert views.multi_crop("simclr", 3, 0, 32) == preset("simclr", 32, 3)
    assert [v.size for v in views.multi_crop("groco", 3, 2, 96)] == [96, 96, 96, 41, 41]
    assert [v.size for v in views.multi_crop("groco", 2, 1, None, 12)] == [None, None, 12]
    assert views.multi_crop("qare", 1, 1, 1)[1].size == 1


# ---------------------------------------------------------------- presets


def test_presets_are_the_published_ones():
    names = "simclr qare groco iot-cl mmcl matching moco-v3 simclr-cifar10 flip padded photo"
    assert " ".join(PRESETS) == names
    assert PRESETS["simclr"] == PRESETS["iot-cl"] == (View(blur=0.5),) * 2
    first, second = PRESETS["groco"]
    assert (first.blur, first.solarise, second.blur, second.solarise) == (1, 0, 0.1, 0.2)
    assert first.scale == second.scale == (0.14, 1.0)
    assert first.jitter == second.jitter == (0.4, 0.4, 0.2, 0.1)
    assert preset("groco", 96, 3) == tuple(replace(view, size=96) for view in (first, second, first))
    assert View(scale=[0.2, 1], jitter=[0, 0, 0, 0]) == View(scale=(0.2, 1.0), jitter=(0.0,) * 4)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("named, value", [  # the number that is named; the rest in test_wrong_arguments.py
    ("scale", (0.5, 0.2)), ("scale[1]", (0.1, 1.2)), ("ratio", (2, 1)), ("ratio[0]", (0, 1)),
    ("jitter[0]", (math.inf, 0, 0, 0)), ("jitter[1]", (0, -1, 0, 0)), ("jitter[3]", (0, 0, 0, 0.6)),
])  # fmt: skip
def test_a_bad_number_of_a_view_is_named(named, value):
    with pytest.raises(ValueError, match=f"^{re.escape(named)} must be .*got"):
        View(**{named.partition("[")[0]: value})


X, TWO, RIGHT = photos(2), (View(size=8), View(size=6)), [torch.zeros(1, 2, 3, S, S).byte() for S in (8, 6)]
DRAWS = draw(TWO, 2, shifted())
SHARE = "^views must share one size.*apply_all"
NO_VIEWS = [(x, "^views must .*got") for x in ((), "simclr", View(), [View(), None])]


@pytest.mark.parametrize("function, right, wrong", [  # right arguments, and what is wrong for each
    (augment, (X, [View()], shifted()), {
        0: [(x, "^images must be .*got") for x in
            (X.float(), X[0], X[:, :2], X[:0], X[..., :0], X.numpy(), None, X[..., :20])],
        1: [*NO_VIEWS, (TWO, SHARE)],
    }),
    (apply, (X, preset("qare"), draw(preset("qare"), 2, shifted())), {
        2: [(None, "^draws must be .*got None"), (torch.rand(2, 2, 36, device="meta"), "^draws .*on meta"),
            *((torch.rand(shape), r"^draws must be \(2, 2, 36\).*got")
              for shape in [(3, 2, 36), (2, 1, 36), (2, 2, 35), (2, 36)])],
    }),
    (draw, (preset("qare"), 2, shifted()), {
        2: [(bad, f"^generator must be a CPU torch.Generator, got {bad}") for bad in (None, 3)],
    }),
    (views.multi_crop, ("groco", 2, 1, 32, 8), {
        0: [("groko", "^name must")], 1: [(0, "^full must")], 2: [(-1, "^local must")], 3: [(0, "^size")],
    }),
    (views.multi_crop, ("groco", 2, 1, None, 8), {4: [(None, "^local_size must be given where size is")]}),
    (views.apply_all, (X, TWO, DRAWS), {2: [(DRAWS[:1], r"^draws must be \(2, 2, 36\)")]}),
    (views.finish, (RIGHT, TWO, DRAWS), {
        0: [*((bad, "^crops must be ") for bad in (RIGHT[:1], [RIGHT[0], torch.tensor(3)], [RIGHT[1]] * 2)),
            ([x.float() for x in RIGHT], "^images must be .*uint8.*got .*float32")],
        2: [(DRAWS[:1], r"^draws must be \(2, 2, 36\)")],
    }),
])  # fmt: skip
def test_every_wrong_argument_is_refused(function, right, wrong):
    function(*right)
    for place, cases in wrong.items():
        for value, message in cases:
            with pytest.raises(ValueError, match=message):
                function(*right[:place], value, *right[place + 1 :])

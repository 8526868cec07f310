"""Photographs against the same images decoded at once, and their crops against the views of a tensor."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import shifted
from pictures import DAMAGED, saved, smooth
from PIL import Image
from PIL.features import check as supported
from PIL.Image import Transpose
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from setclr import views
from setclr.data import Photographs
from setclr.views import View, draw

TWO = (View(size=20, blur=0.5), View(size=12, scale=(0.05, 0.14)), View(size=20, solarise=0.5))
CUBIC = tuple(replace(view, interpolation="bicubic") for view in TWO)
PADDED = views.preset("padded", 8)
STILL = dict(scale=(1, 1), ratio=(1, 1), flip=0, jitter_p=0, grey=0)


@pytest.fixture(scope="module")
def square(tmp_path_factory):
    images = smooth(7)
    return images, Photographs(saved(tmp_path_factory.mktemp("square"), images))


# As a sequence of images


INDICES = [0, -1, slice(None), slice(2, 6, 2), [3, 3, 0], torch.tensor([6, 1]), torch.arange(7) > 3,
           torch.tensor([[0, 1], [2, 2]]), slice(3, 3), ..., torch.tensor(4)]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_and_what_is_known_without_decoding_are_a_tensors(square, index):
    images, files = square
    got = files[index]
    assert got.dtype == torch.uint8 and torch.equal(got, images[index])
    for name in ("shape", "dtype", "ndim", "device"):
        assert getattr(files, name) == getattr(images, name)


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_splitting_is_a_tensors_and_lazy(square, batch, monkeypatch):
    images, files = square
    parts = list(files.split(batch))
    assert [len(part) for part in parts] == [len(part) for part in images.split(batch)]
    assert torch.equal(torch.cat(parts), images)
    decoded = []
    monkeypatch.setattr(Photographs, "_picture", lambda self, path: decoded.append(path) or images[0].numpy())
    next(files.split(1))
    assert len(decoded) <= 3


def test_a_subset_is_files_still(square):
    part = square[1].subset(torch.tensor([5, 2]))
    assert isinstance(part, Photographs) and part.path(1) == square[1].path(2)
    assert Photographs([square[1].path(0)] * 2, 8).subset([1]).shape == (1, 3, 8, 8)


def test_threads_change_nothing_but_the_time(tmp_path, monkeypatch):
    files = Photographs(saved(tmp_path, [smooth(1, 140 + i, 160 - i)[0] for i in range(9)]), 32)
    draws = draw(TWO, 9, shifted())
    monkeypatch.setattr(files, "threads", 4)
    many, crops = files[:], files.crops(range(9), TWO, draws)
    monkeypatch.setattr(files, "threads", 1)
    assert torch.equal(files[:], many)
    assert all(map(torch.equal, files.crops(range(9), TWO, draws), crops))


# Crops


@pytest.mark.parametrize("three", [TWO, CUBIC], ids=["bilinear", "bicubic"])
def test_crops_of_photographs_of_many_sizes_are_torchvisions(three, tmp_path):
    """To the bit, of a picture of Pillow's, which rounds and clips between rows and columns."""
    shapes = [(40, 90), (90, 40), (64, 64), (33, 57)]
    images = [smooth(1, *shape, seed=i)[0] for i, shape in enumerate(shapes)]
    files, index = Photographs(saved(tmp_path, images)), [1, 3, 1, 0, 2]
    draws = draw(three, len(index), shifted())
    crops = files.crops(index, three, draws)
    assert [tuple(x.shape) for x in crops] == [(2, 5, 3, 20, 20), (1, 5, 3, 12, 12)]
    for x, group in zip(crops, ([0, 2], [1])):
        for place, v in enumerate(group):
            for i, chosen in enumerate(index):
                box = views.boxes(three, draws[[i]], *shapes[chosen])[v, 0].int().tolist()
                how = InterpolationMode(three[v].interpolation)
                want = F.resized_crop(F.to_pil_image(images[chosen]), *box, [three[v].size] * 2, how)
                assert torch.equal(x[place, i], F.pil_to_tensor(want))


@pytest.fixture
def decoded(monkeypatch):
    """The sizes of the pictures from which crops are cut."""
    sizes, crop = [], Image.Image.crop
    monkeypatch.setattr(Image.Image, "crop", lambda x, box=None: sizes.append(x.size) or crop(x, box))
    return sizes


@pytest.mark.parametrize("factor, size", [(1, 200), (2, 96), (4, 48), (8, 20)])
def test_a_large_jpeg_is_decoded_smaller_where_its_crops_allow(tmp_path, decoded, factor, size):
    """The whole image, 201 x 195 px, so that no factor divides it."""
    image = smooth(1, 201, 195)
    (path,) = saved(tmp_path, image, "jpg", quality=95)
    view = (View(size=size, **STILL),)
    (x,) = Photographs([path]).crops([0], view, draw(view, 1, shifted()))
    assert decoded == [(-(-195 // factor), -(-201 // factor))]
    middle = F.resized_crop(image[0].float(), 3, 0, 195, 195, [size] * 2, antialias=True)
    assert float((x[0, 0] - middle).abs().mean()) < 3


@pytest.mark.parametrize("name, small", [("jpg", dict(size=40, scale=(0.05, 0.06))), ("png", STILL)])
def test_one_small_crop_or_a_png_keeps_the_whole_resolution(tmp_path, decoded, name, small):
    (path,) = saved(tmp_path, smooth(1, 200, 200), name)
    both = (View(size=40, **STILL), View(**{"size": 40} | small))
    Photographs([path]).crops([0], both, draw(both, 1, shifted()))
    assert decoded == [(200, 200)] * 2


# Verifying


def test_verify_decodes_all_files_and_names_all_that_are_damaged(tmp_path):
    paths = saved(tmp_path, smooth(8))
    for i, kind in ((1, "text"), (3, "cut png")):
        DAMAGED[kind](paths[i])
    files = Photographs(paths)
    with pytest.raises(ValueError, match=r"001\.png [^;]*; [^;]*replace it; .*003\.png [^;]*; [^;]*$"):
        files.verify()
    files.subset([0, 2]).verify()


@pytest.mark.parametrize("call, message", [
    (lambda files, at: Photographs([]), "paths must hold at least one"),
    (lambda files, at: files.crops([0, 1], TWO, draw(TWO, 3, shifted())), r"^draws must be \(2, 3, 36\)"),
    (lambda files, at: files.crops([0, 1], PADDED, draw(PADDED, 2, shifted())),
     "^padding must be 0 for crops read from files, got 0.125; set size"),
    (lambda files, at: Photographs(saved(at, smooth(1, 30, 50))).crops([0], [View()],
     draw([View()], 1, shifted())), r"^views must have a size .*\(3, 30, 50\)"),
])  # fmt: skip
def test_bad_arguments_are_named(square, tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(square[1], tmp_path)


# Orientation and transparency

STORED = {1: None, 2: Transpose.FLIP_LEFT_RIGHT, 3: Transpose.ROTATE_180, 4: Transpose.FLIP_TOP_BOTTOM,
          5: Transpose.TRANSPOSE, 6: Transpose.ROTATE_90, 7: Transpose.TRANSVERSE,
          8: Transpose.ROTATE_270}  # fmt: skip


def turned_copies(folder, name):
    """One picture of 96x64 pixels, stored in all eight orientations of EXIF."""
    upright = Image.fromarray(smooth(1, 64, 96, seed=3)[0].permute(1, 2, 0).numpy())
    for orientation, turn in STORED.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        stored = upright if turn is None else upright.transpose(turn)
        stored.save(folder / f"{orientation}.{name}", exif=exif, quality=95)
    return Photographs([folder / f"{orientation}.{name}" for orientation in STORED])


@pytest.mark.parametrize("name", ["jpg", "png", "webp", "tiff", "avif"])
def test_a_photograph_stands_upright(tmp_path, name):
    if name in ("webp", "avif") and not supported(name):
        pytest.skip(f"this Pillow was built without {name}")
    files = turned_copies(tmp_path, name)
    assert [files.sides(i) for i in range(8)] == [(96, 64)] * 8
    pixels = files[:].float()
    whole = (View(size=32, **STILL), View(size=12, **STILL | {"scale": (0.3, 0.9)}))
    draws = draw(whole, 1, shifted(5)).expand(8, -1, -1).contiguous()
    crops = [x.float() for x in files.crops(range(8), whole, draws)]
    squares = Photographs([files.path(i) for i in range(8)], 32)[:].float()
    for x in (pixels, squares, *(one[0] for one in crops)):
        assert (x - x[:1]).abs().mean((1, 2, 3)).max() < 3


def test_damaged_exif_leaves_a_photograph_as_it_is(tmp_path):
    picture = Image.fromarray(smooth(1)[0].permute(1, 2, 0).numpy())
    picture.save(tmp_path / "a.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12")
    picture.save(tmp_path / "b.jpg")
    a, b = Photographs([tmp_path / "a.jpg", tmp_path / "b.jpg"])[:]
    assert torch.equal(a, b)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P", "RGB", "L"])
def test_what_is_transparent_shows_white_and_not_what_is_hidden(tmp_path, mode):
    noise = Image.fromarray(np.random.default_rng(0).integers(1, 250, (32, 32, 3), dtype=np.uint8))
    for number, hidden in enumerate((noise, Image.new("RGB", (32, 32), (9, 9, 9)))):
        if mode in ("RGB", "L", "P"):  # one colour of the file is the transparent one
            hidden = Image.new("RGB", (32, 32), (50 * number, 9, 9)).convert(mode, dither=Image.Dither.NONE)
            hidden.save(tmp_path / f"{number}.png", transparency=hidden.getpixel((0, 0)))
        else:
            clear = hidden.convert("RGBA")
            clear.putalpha(0)
            clear.convert(mode).save(tmp_path / f"{number}.{'tiff' if mode == 'PA' else 'png'}")
    files = Photographs(sorted(tmp_path.iterdir()))
    assert files[:].min() == 255
    whole = (View(size=16, **STILL),)
    assert files.crops(range(2), whole, draw(whole, 2, shifted(0)))[0].min() == 255


def test_half_transparent_pixels_are_mixed_with_white(tmp_path):
    Image.new("RGBA", (8, 8), (100, 0, 200, 51)).save(tmp_path / "a.png")
    assert Photographs([tmp_path / "a.png"])[0][:, 0, 0].tolist() == [224, 204, 244]

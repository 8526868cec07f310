"""Image files that people reported to other libraries: bits, pages, formats."""

import os
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import shifted
from pictures import png
from PIL import Image

from setclr.data import Photographs
from setclr.data.folders import without_damaged
from setclr.data.photographs import decode
from setclr.views import View, draw

# Bits: Pillow#7723, #4044


def png16(path: Path, colours: int, kind: int) -> None:
    png(path, 8, 16, kind, 8 * bytes(1 + 8 * 2 * colours))


def tiff16(path: Path) -> None:
    tifffile.imwrite(path, np.zeros((3, 8, 8), np.uint16), photometric="rgb", planarconfig="separate")


@pytest.mark.parametrize("name, write", [
    ("rgb.png", lambda path: png16(path, 3, 2)), ("grey with alpha.png", lambda path: png16(path, 2, 4)),
    ("rgba.png", lambda path: png16(path, 4, 6)), ("planes.tif", tiff16),
    ("rgb.ppm", lambda path: path.write_bytes(b"P6 8 8 65535\n" + bytes(8 * 8 * 6))),
])  # fmt: skip
def test_colours_of_16_bits_are_refused_by_name_as_grey_is(name, write, tmp_path):
    write(tmp_path / name)
    with Image.open(tmp_path / name) as image:
        assert image.mode in ("RGB", "RGBA", "LA"), "Pillow opens it as 8 bits"
    with pytest.raises(ValueError, match=rf"{name} is no image .*mode \w+, are not of 8 bits.; remove or"):
        Photographs([tmp_path / name])


def test_a_jpeg_2000_of_16_bits_is_refused_too(tmp_path):
    Image.new("RGB", (8, 6)).save(tmp_path / "a.jp2")
    eight, sixteen = (b"\x00\x03" + 3 * bytes([bits - 1, 1, 1]) for bits in (8, 16))  # three colours
    whole = (tmp_path / "a.jp2").read_bytes()
    assert whole.count(eight) == 1
    (tmp_path / "b.jp2").write_bytes(whole.replace(eight, sixteen))
    assert Photographs([tmp_path / "a.jp2"])[0].shape == (3, 6, 8)
    with pytest.raises(ValueError, match="b.jp2 is no image .*not of 8 bits"):
        Photographs([tmp_path / "b.jp2"])


def test_formats_and_modes_of_8_bits_or_fewer_are_taken(tmp_path):
    picture = Image.new("RGB", (8, 6), (100, 100, 100))
    for name in ("bmp", "dib", "gif", "jpg", "jp2", "pcx", "png", "ppm", "qoi", "sgi", "tga", "tif", "webp"):
        picture.save(tmp_path / f"a.{name}")
    for mode in ("L", "P", "RGBA", "CMYK", "LA"):
        picture.convert(mode).save(tmp_path / f"{mode}.{'tif' if mode == 'CMYK' else 'png'}")
    assert Photographs(sorted(tmp_path.iterdir()))[:].float().sub(100).abs().max() < 32
    picture.convert("1").save(tmp_path / "1.png")
    assert Photographs([tmp_path / "1.png"])[:].unique().tolist() == [0, 255]


# Pages: aleph#20


def pages(path: Path, count: int) -> Path:
    levels = [Image.new("RGB", (16, 16), (20 * i, 0, 0)) for i in range(count)]
    how = dict(save_all=True, append_images=levels[1:], lossless=True) if count > 1 else {}
    levels[0].save(path, **how)
    return path


@pytest.mark.parametrize("name", ["tif", "gif", "png", "webp"])
def test_more_pages_than_the_first_are_said_once_for_a_set(name, tmp_path):
    paths = [pages(tmp_path / f"{i}.{name}", count) for i, count in enumerate((1, 3, 5, 3, 3, 1))]
    files, whole = Photographs(paths), (View(size=8),)
    part = files.subset([1, 2])
    with pytest.warns(UserWarning, match=rf"/[1234]\.{name} has [35] pages or frames; the first is ") as said:
        files.crops(range(6), whole, draw(whole, 6, shifted()))
        assert files[:].max() == 0 and len(part[:]) == 2
        files.verify()
    assert len(said) == 1
    with pytest.warns(UserWarning, match="pages or frames; the first is ") as said:
        Photographs(paths).verify()
    assert len(said) == 1


def test_one_page_is_no_news_nor_are_the_pictures_in_a_jpeg_or_pages_where_damage_is_looked_for(tmp_path):
    paths = [pages(tmp_path / f"a.{name}", 1) for name in ("tif", "gif", "png", "webp", "jpg")]
    first = Image.new("RGB", (16, 16))
    first.save(tmp_path / "b.jpg", "MPO", save_all=True, append_images=[first])
    cut = str(pages(tmp_path / "cut.gif", 3))
    os.truncate(cut, os.stat(cut).st_size - 20)  # damage behind the first frame is not read
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Photographs([*paths, tmp_path / "b.jpg"]).verify()
        assert without_damaged([cut], decode) == [cut]
        warnings.simplefilter("ignore")
        assert Photographs([cut])[:].shape == (1, 3, 16, 16)


# Formats


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 32 32\n%%EndComments\n{} loop\n"
WMF = struct.pack("<IHhhhhHIH", 0x9AC6CDD7, 0, 0, 0, 99, 99, 96, 0, 0) + b"\1\0\x09\0" + bytes(40)


@pytest.mark.parametrize("content", [EPS, WMF, b"\xc5\xd0\xd3\xc6" + bytes(30) + EPS])
def test_no_file_by_any_name_starts_a_program(content, tmp_path, monkeypatch):
    called = tmp_path / "called"
    (tmp_path / "gs").write_text(f'#!/bin/sh\necho "$@" >> {called}\n[ "$1" = --version ] && echo 10\n')
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in ("0.jpg", "0.png", "0.tif"):
        (tmp_path / name).write_bytes(content)
        for read in (decode, lambda path: Photographs([path])):
            with pytest.raises(ValueError, match=f"{name} is no image that can be read .*; remove or"):
                read(str(tmp_path / name))
    assert not called.exists()

"""Folders and files that people reported to other libraries: splits, strays, names, bits, pages, formats."""

import os
import shutil
import struct
import warnings
import zlib
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from conftest import shifted
from pictures import grey_level, saved, smooth
from PIL import Image

from setclr.data import Photographs, load
from setclr.data.folders import without_damaged
from setclr.data.photographs import decode
from setclr.data.sets import validation_split
from setclr.views import View, draw


def tree(root: Path, *folders: str) -> str:
    """A set whose folders hold two images each, of the grey level of the folder's place."""
    for level, folder in enumerate(folders):
        for name in "ab":
            grey_level(root / folder / f"{name}.png", level)
    return f"folder:{root}"


def levels(found) -> list[int]:
    return found.images[::2, 0, 0, 0].tolist()


# Names of splits: fastai#2336, ultralytics#4310, huggingface/datasets#7880


@pytest.mark.parametrize("train, test", [
    ("Train", "Test"), ("training", "validation"), ("train", "valid"), ("TRAINING", "Testing"),
    ("Train", "VAL"), ("train", "eval"),
])  # fmt: skip
def test_splits_are_known_by_synonyms_in_any_case(train, test, tmp_path):
    name = tree(tmp_path, f"{train}/cat", f"{train}/dog", f"{test}/cat", f"{test}/dog")
    for split, have in (("train", [0, 1]), ("test", [2, 3])):
        found = load(name, split=split)
        assert levels(found) == have and found.classes == ("cat", "dog")


def test_val_is_taken_before_test_by_any_name(tmp_path):
    name = tree(tmp_path, "train/cat", "Testing/cat", "Valid/cat")
    assert levels(load(name, split="test")) == [2]


@pytest.mark.parametrize("folders, said", [
    ("Train/cat train/cat val/cat", "Train and train both mean train; put them together, or rename one"),
    ("training/cat train/cat", "train and training both mean train"),
    ("train/cat val/cat valid/cat", "val and valid both mean val; put them together"),
    ("Train Test", "Train/a.png is no folder, and .*Train has no class folders; folder:PATH takes "
                   "PATH/train/CLASS/.* rename Test if it is a class; rename Train if it"),
    ("training validation", "training/a.png is no folder, and .* has no class folders"),
    ("bus plane train", "train/a.png is no folder, and .*train has no class folders; .*; rename train if it"),
    ("pipette test", "train is no folder; folder:PATH takes .*; rename test if it is a class"),
    ("images/train images/val", "must hold one split, got train and val below; folder:PATH takes"),  # YOLO
    ("cat/train cat/test dog/train dog/test", "must hold one split, got test and train below"),  # MVTec
    ("training_set/cat test_set/cat", "must hold one split, got test and train below"),
    ("train2017 val2017", "must hold one split, got train and val below"),  # COCO
])  # fmt: skip
@pytest.mark.parametrize("split", ["train", "test"])
def test_what_may_be_two_splits_or_a_class_is_refused_by_name(folders, said, split, tmp_path):
    name = tree(tmp_path, *folders.split())
    with pytest.raises((ValueError, FileNotFoundError), match=said if split == "train" else str(tmp_path)):
        load(name, split=split)


def test_names_that_only_begin_like_a_splits_are_classes(tmp_path):
    assert load(tree(tmp_path, "trainer", "tester", "valley")).classes == ("tester", "trainer", "valley")
    assert load(tree(tmp_path / "below", "train/train", "train/test")).classes == ("test", "train")


# Strays


@pytest.mark.parametrize("stray", ["cover.png", "cat/more/1.png", "other/deep/1.png"])
def test_a_stray_image_leaves_the_labels_of_others_and_is_named(stray, tmp_path):
    name = tree(tmp_path, "cat", "dog")
    grey_level(tmp_path / stray, 9)
    with pytest.warns(UserWarning, match=f"^1 images have no label, the first is .*{stray}; move them to"):
        found = load(name)
    assert found.classes == ("cat", "dog") and sorted(found.labels.tolist()) == [-1, 0, 0, 1, 1]
    assert found.images[found.labels == -1][:, 0, 0, 0].tolist() == [9]


def test_one_class_that_lies_deeper_does_not_lose_the_labels_in_silence(tmp_path):
    with pytest.warns(UserWarning, match=r"4 images have no label, the first is .*cat/a\.png; .*two classes"):
        assert load(tree(tmp_path, "cat", "dog/deep")).classes == ()


@pytest.mark.parametrize("beside", ["bus", "cover.png"])
def test_what_lies_beside_splits_is_named(beside, tmp_path):
    name = tree(tmp_path, "train/cat", "train/dog", "bus")
    if beside != "bus":
        shutil.rmtree(tmp_path / "bus")
        grey_level(tmp_path / beside, 9)
    with pytest.warns(UserWarning, match=f"{beside} is in no split and passed over; if those"):
        assert load(name).classes == ("cat", "dog")


@pytest.mark.parametrize("stray, said", [
    ("train/cover.png", r"cover\.png is no folder, among class folders; move it into one of them"),
    ("train/cat/more/1.png", "cat/more is no image that can be read"),
])  # fmt: skip
def test_in_a_split_a_stray_image_is_refused_by_name(stray, said, tmp_path):
    name = tree(tmp_path, "train/cat", "train/dog")
    grey_level(tmp_path / stray, 9)
    with pytest.raises(ValueError, match=said):
        load(name)


# Names in two forms of Unicode


NFC, NFD = (normalize(form, "café") for form in ("NFC", "NFD"))


def test_a_class_is_the_same_in_both_forms_of_unicode(tmp_path):
    name = tree(tmp_path, f"train/{NFC}", "train/cafz", f"val/{NFD}", "val/cafz")
    train, test = (load(name, split=split) for split in ("train", "test"))
    assert train.classes == test.classes == ("cafz", NFC)
    assert levels(train) == [1, 0] and levels(test) == [3, 2]


@pytest.mark.parametrize("folders", [[NFC, NFD], [f"train/{NFC}", f"train/{NFD}"]])
def test_two_forms_of_one_name_in_a_folder_are_refused(folders, tmp_path):
    with pytest.raises(ValueError, match="café both mean café; put them together, or rename one"):
        load(tree(tmp_path, *folders))


def test_things_of_two_cameras_are_the_same_in_both_forms_of_unicode(tmp_path):
    for camera, form in (("1", "NFC"), ("2", "NFD")):
        for path in saved(tmp_path / camera, smooth(14)):
            path.rename(path.with_name(normalize(form, f"é{path.name}")))
    assert len(load(f"pairs:{tmp_path}", size=16)) == 24


# Bits: Pillow#7723, #4044


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png16(path: Path, colours: int, kind: int) -> None:
    """A PNG of 16 bits: kind 2 is RGB, 4 grey with alpha, 6 RGB with alpha."""
    rows = np.arange(8 * 8 * colours).astype(">u2").reshape(8, -1)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 16, kind, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def tiff16(path: Path, planar: int = 1) -> None:
    """An uncompressed RGB TIFF of 16 bits, 8x8."""
    tags = [(256, 3, 1, 8), (257, 3, 1, 8), (258, 3, 3, 158), (259, 3, 1, 1), (262, 3, 1, 2),
            (273, 4, 1, 164), (277, 3, 1, 3), (278, 3, 1, 8), (279, 4, 1, 384),
            (284, 3, 1, planar)]  # fmt: skip
    if planar == 2:
        tags[5], tags[8] = (273, 4, 3, 164), (279, 4, 3, 176)
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    start = b"II*\0" + struct.pack("<I", 8) + directory
    path.write_bytes(start.ljust(158, b"\0") + struct.pack("<3H", 16, 16, 16) + bytes(500))


def ppm16(path: Path) -> None:
    path.write_bytes(b"P6 8 8 65535\n" + bytes(8 * 8 * 6))


def sgi16(path: Path) -> None:
    head = struct.pack(">hbbHHHHll4x80sl404x", 474, 0, 2, 3, 8, 8, 3, 0, 65535, b"", 0)
    path.write_bytes(head + bytes(8 * 8 * 6))


@pytest.mark.parametrize("name, write", [
    ("rgb.png", lambda path: png16(path, 3, 2)), ("grey with alpha.png", lambda path: png16(path, 2, 4)),
    ("rgba.png", lambda path: png16(path, 4, 6)), ("rgb.tif", tiff16), ("rgb.ppm", ppm16), ("rgb.sgi", sgi16),
    ("planes.tif", lambda path: tiff16(path, 2)),
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


def test_formats_of_8_bits_or_fewer_are_taken(tmp_path):
    picture = Image.new("RGB", (8, 6), (100, 100, 100))
    for name in ("bmp", "dib", "gif", "jpg", "jp2", "pcx", "png", "ppm", "qoi", "sgi", "tga", "tif", "webp"):
        picture.save(tmp_path / f"a.{name}")
    rows = struct.pack("<H", 0x7BEF) * 48  # five bits of red and blue, six of green
    size = struct.pack("<IiiHHIIiiII3I", 52, 8, 6, 1, 16, 3, len(rows), 0, 0, 0, 0, 0xF800, 0x7E0, 0x1F)
    (tmp_path / "b.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 66 + len(rows), 0, 0, 66) + size + rows)
    assert Photographs(sorted(tmp_path.iterdir()))[:].float().sub(100).abs().max() < 32


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


def test_one_page_is_no_news_nor_are_the_pictures_in_a_jpeg(tmp_path):
    paths = [pages(tmp_path / f"a.{name}", 1) for name in ("tif", "gif", "png", "webp", "jpg")]
    first = Image.new("RGB", (16, 16))
    first.save(tmp_path / "b.jpg", "MPO", save_all=True, append_images=[first])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Photographs([*paths, tmp_path / "b.jpg"]).verify()


def test_looking_for_damaged_files_says_nothing_of_pages(tmp_path):
    paths = [str(pages(tmp_path / f"{i}.gif", 3)) for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert without_damaged(paths, decode) == paths


def test_a_set_that_is_loaded_and_split_says_it_once(tmp_path):
    for kind in ("train/a", "train/b"):
        (tmp_path / kind).mkdir(parents=True)
        for i in range(5):
            pages(tmp_path / kind / f"{i}.gif", 4)
    with pytest.warns(UserWarning, match="has 4 pages or frames") as said:
        for part in validation_split("folder:", load(f"folder:{tmp_path}", stream=True, verify=True)):
            part.images[:]
    assert len(said) == 1


def test_damage_behind_the_first_frame_is_not_read(tmp_path):
    path = pages(tmp_path / "a.gif", 3)
    os.truncate(path, path.stat().st_size - 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert Photographs([path])[:].shape == (1, 3, 16, 16)


# Formats


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 32 32\n%%EndComments\n{} loop\n"
WMF = struct.pack("<IHhhhhHIH", 0x9AC6CDD7, 0, 0, 0, 99, 99, 96, 0, 0) + b"\1\0\x09\0" + bytes(40)


@pytest.mark.parametrize("name", ["0.jpg", "0.png", "0.tif"])
@pytest.mark.parametrize("content", [EPS, WMF, b"\xc5\xd0\xd3\xc6" + bytes(30) + EPS])
def test_no_file_by_any_name_starts_a_program(name, content, tmp_path, monkeypatch):
    (tmp_path / "gs").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/called\n[ "$1" = --version ] && echo 10\n'
    )
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / name).write_bytes(content)
    for read in (decode, lambda path: Photographs([path])):
        with pytest.raises(
            ValueError, match=rf"{name} is no image that can be read .*; remove or replace it"
        ):
            read(str(tmp_path / name))
    assert not (tmp_path / "called").exists()

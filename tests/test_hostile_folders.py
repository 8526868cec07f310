"""Folders that hold what nobody put there on purpose: refused in a line, or read; nothing hangs."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import numpy_shifted
from PIL import Image

from setclr import pretrain
from setclr.cli import main
from setclr.data import load
from setclr.experiments import embed_folder
from setclr.experiments.run import new_run
from setclr.recipes import RECIPES, ImageRecipe

pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")


def save(path: Path | bytes, seed: int = 0) -> None:
    image = Image.fromarray(numpy_shifted(seed).integers(0, 256, (16, 16, 3), np.uint8))
    with open(path, "wb") as file:
        image.save(file, "png")


@pytest.fixture
def tree(tmp_path) -> Path:
    for split in ("train", "val"):
        for name in ("ant", "bee"):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(3):
                save(tmp_path / split / name / f"{i}.png", i)
    return tmp_path


def one_line(error: Exception) -> str:
    """What the error says: a line that any terminal shows as it is."""
    assert str(error).isprintable(), repr(str(error))
    return str(error)


def complaint(tree: Path, **how) -> str:
    with pytest.raises((ValueError, OSError)) as caught:
        load(f"folder:{tree}", **how)
    return one_line(caught.value)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def up(path: Path) -> None:
    path.symlink_to("..")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)  # a socket's whole path may have 107 bytes
        one.bind(path.name)


KINDS = {"pipe": os.mkfifo, "device": device, "socket": listening, "loop": loop, "up": up,
         "folder": Path.mkdir, "empty": Path.touch,
         "dangling": lambda path: path.symlink_to("nowhere")}  # fmt: skip
BROKEN = ("loop", "dangling")


@pytest.mark.parametrize("kind", [name for name in KINDS if name not in BROKEN])
@pytest.mark.parametrize("stream", [True, False])
def test_what_is_no_image_file_is_refused_and_nothing_waits_for_it(kind, stream, tree, monkeypatch):
    monkeypatch.chdir(tree)
    KINDS[kind](tree / "train" / "ant" / "9.png")
    said = complaint(tree, stream=stream, verify=True)
    assert "train/ant/9.png is no image that can be read" in said and "remove or replace it" in said


@pytest.mark.parametrize("kind", [name for name in KINDS if name not in ("folder", "up")])
def test_among_class_folders_it_is_named_only_if_it_looks_like_an_image(kind, tree, monkeypatch):
    monkeypatch.chdir(tree)
    KINDS[kind](tree / "train" / "cat")
    assert load(f"folder:{tree}").classes == ("ant", "bee")
    KINDS[kind](tree / "train" / "cat.png")
    if kind in BROKEN:
        assert len(load(f"folder:{tree}")) == 6
    else:
        assert "train/cat.png is no folder, among class folders; move it" in complaint(tree)


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_of_image_files_alone(kind, tree, monkeypatch):
    """A tree of anything may hold anything; what is no file with an image's ending is passed over."""
    monkeypatch.chdir(tree)
    KINDS[kind](tree / "train" / "ant" / "9.png")
    run = new_run(ImageRecipe("InfoNCE()"), 3)
    if kind == "empty":
        with pytest.raises(ValueError, match=r"9\.png is no image"):
            embed_folder(run, tree / "train")
    else:
        assert len(embed_folder(run, tree / "train")[1]) == 6


NAMES = [b"new\nline.png", b"\x1b[2Jclear.png", b"caf\xe9.png", b"-rf.png", b"--help.png",
         b"x" * 251 + b".png", b" .png", b"'.png", b"%s{0}.png", "\u202etxt.png".encode()]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_read_and_a_bad_file_of_that_name_is_named_in_a_line(name, tree):
    path = os.fsencode(tree / "train" / "ant") + b"/" + name
    save(path)
    assert len(load(f"folder:{tree}")) == 7
    Path(os.fsdecode(path)).write_text("no image")
    for stream in (True, False):
        said = complaint(tree, stream=stream, verify=True)
        text = os.fsdecode(name)
        assert (text if text.isprintable() else repr(text)[1:-1]) in said and "is no image" in said


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_class_and_can_be_printed(name, tree):
    for split in ("train", "val"):
        shutil.copytree(tree / split / "ant", os.fsdecode(os.fsencode(tree / split) + b"/" + name))
    classes = load(f"folder:{tree}").classes
    assert len(classes) == 3 and all(one.isprintable() and one.encode() for one in classes)
    shutil.rmtree(os.fsdecode(os.fsencode(tree / "val") + b"/" + name))
    assert "has no counterpart" in complaint(tree, split="test")


def test_features_of_files_with_any_names_are_written_and_read(tree, tmp_path):
    for name in NAMES:
        save(os.fsencode(tree / "train") + b"/" + name)
    run = new_run(ImageRecipe("InfoNCE()"), 3)
    run.save(tmp_path / "run")
    main(
        [
            "embed",
            str(tmp_path / "run"),
            str(tree / "train"),
            "--out",
            str(tmp_path / "x.npz"),
            "--device",
            "cpu",
        ]
    )
    with np.load(tmp_path / "x.npz") as kept:
        found = {os.fsencode(path) for path in kept["paths"].tolist()}
    assert found >= {name for name in NAMES if name.endswith(b".png") and not name.startswith(b".")}


@pytest.mark.parametrize("place", ["train/ant/1.png", "train/ant", "train"])
def test_what_may_not_be_read_is_named(place, tree):
    (tree / place).chmod(0)
    if os.access(tree / place, os.R_OK):
        pytest.skip("root reads every file")
    try:
        said = complaint(tree)
    finally:
        (tree / place).chmod(0o700)
    assert place in said and "Permission denied" in said


def test_truncated_files_are_named_before_they_are_drawn_where_that_is_asked(tree, capsys):
    path = tree / "train" / "ant" / "1.png"
    path.write_bytes(path.read_bytes()[:-200])
    train = load(f"folder:{tree}", stream=True)
    train.verify()  # its header is whole
    said = complaint(tree, stream=True, verify=True)
    assert "ant/1.png is no image" in said
    with pytest.raises(ValueError, match=r"ant/1\.png is no image"):
        main(["data", f"folder:{tree}", "--verify"])
    save(path)
    save(tree / "train" / "bee" / "wide.png")
    Image.new("RGB", (40, 20)).save(tree / "train" / "bee" / "wide.png")
    main(["data", f"folder:{tree}", "--verify"])  # of any sizes
    assert capsys.readouterr().out.count("7 images") == 1


def test_files_are_decoded_once_for_verifying(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load(f"folder:{tree}", stream=True, verify=True)
    loaded = []
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", lambda image: loaded.append(1))
    load(f"folder:{tree}", stream=True, verify=True)
    assert not loaded


def bomb(path: Path, side: int) -> None:
    """A PNG that says it has side × side grey pixels, and holds none."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""))


@pytest.mark.parametrize("side, count", [(10_000, "100,000,000"), (30_000, "900000000")])
def test_a_small_file_of_very_many_pixels_is_refused_with_their_number(side, count, tree):
    """Pillow warns of the first and refuses the second."""
    bomb(tree / "train" / "ant" / "9.png", side)
    for how in ({"stream": False, "size": 16}, {"stream": True, "verify": True}):
        said = complaint(tree, **how)
        assert "ant/9.png is no image that can be read (" in said and count in said
    bomb(tree / "train" / "ant" / "0.png", side)  # the first, whose size is that of all
    assert "ant/0.png is no image" in complaint(tree)


def test_of_very_many_pixels_the_command_says_one_line(tree):
    bomb(tree / "train" / "ant" / "0.png", 10_000)
    command = [sys.executable, "-m", "setclr", "data", f"folder:{tree}"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1 and not ended.stdout
    assert ended.stderr.count("\n") == 1 and "100,000,000 pixels" in ended.stderr


def test_a_folder_of_one_image_gets_advice_that_can_be_followed(tmp_path):
    (tmp_path / "train" / "ant").mkdir(parents=True)
    save(tmp_path / "train" / "ant" / "0.png")
    recipe = replace(RECIPES["photo-infonce"], data=f"folder:{tmp_path}", epochs=1, batch=2)
    for change in ({}, {"images": 2}):
        with pytest.raises(ValueError, match="images must be at least 2, got 1; add some"):
            pretrain(replace(recipe, **change), device="cpu")

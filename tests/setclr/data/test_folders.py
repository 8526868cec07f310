"""Folders of images: layouts, names of splits and classes, what else lies there, what is refused in a line.

Nothing hangs. What may lie there is the table in tests/tools/pictures.py, with which all readers are tried.
Names of splits: fastai#2336, ultralytics#4310, huggingface/datasets#7880.
"""

import os
import re
import shutil
import warnings
from functools import partial
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
import torch
from conftest import shifted
from pictures import BROKEN, DAMAGED, NAMES, NO_PHOTOGRAPHS, grey_level, saved, smooth

from setclr.cli import main
from setclr.data import Photographs, folders, load
from setclr.experiments import embed_folder, new_run
from setclr.experiments.kinds import image as image_kind
from setclr.recipes import ImageRecipe
from setclr.views import View, draw

BOMB, OTHERS = "ignore::PIL.Image.DecompressionBombWarning", "ignore:passed over"
pytestmark = pytest.mark.filterwarnings(BOMB, OTHERS)
RUN = new_run(ImageRecipe("InfoNCE()"), 3)
NFC, NFD = (normalize(form, "café") for form in ("NFC", "NFD"))  # one name in two forms of Unicode


def litter(folder: Path) -> None:
    """What lies in people's folders and is no photograph."""
    for name in ("Thumbs.db", "notes.txt", ".hidden.png", "README"):
        (folder / name).write_bytes(b"no image")
    for name in BROKEN:
        BROKEN[name](folder / f"{name}.jpg")
    grey_level(folder / ".cache" / "1.png", 9)


def tree(root: Path, there: str) -> str:
    """A set of what is there: "cat" is a folder of two pictures, "cat/" one of litter, "cat.png" a picture.

    The red of a picture is the place of its word.
    """
    for level, word in enumerate(there.split()):
        if word.endswith("/"):
            (root / word).mkdir(parents=True, exist_ok=True)
            litter(root / word)
        else:
            paths = [word] if word.endswith(".png") else [f"{word}/{name}.png" for name in "ab"]
            for path in paths:
                grey_level(root / path, level)
    return f"folder:{root}"


@pytest.fixture
def animals(tmp_path) -> Path:
    for seed, place in enumerate(("train/ant", "train/bee", "val/ant", "val/bee")):
        saved(tmp_path / place, smooth(3, 16, 16, seed))
    return tmp_path


def complaint(read, *given, **how) -> str:
    """What the error says: a line that any terminal shows as it is."""
    with pytest.raises((ValueError, OSError)) as caught:
        read(*given, **how)
    said = str(caught.value)
    assert said.isprintable(), repr(said)
    return said


# Layouts


SYNONYMS = [("Train", "Test"), ("training", "validation"), ("train", "valid"), ("TRAINING", "Testing"),
            ("Train", "VAL"), ("train", "eval"), ("train", "test")]  # fmt: skip
WHOLE = [
    *((f"{one}/dog {one}/cat {two}/cat {two}/dog", "cat dog", [1, 0], [2, 3]) for one, two in SYNONYMS),
    ("train/cat Testing/cat Valid/cat", "cat", [0], [2]),
    (f"train/{NFC} train/cafz val/{NFD} val/cafz", f"cafz {NFC}", [1, 0], [3, 2]),
    ("trainer tester valley", "tester trainer valley", [1, 0, 2], None),  # they only begin like splits
    ("train/train train/test", "test train", [1, 0], None),
]  # fmt: skip


@pytest.mark.parametrize("there, classes, train, test", WHOLE)
def test_classes_with_splits_or_without_are_read_through_any_litter(there, classes, train, test, tmp_path):
    name = tree(tmp_path, there)
    for place in (tmp_path, *tmp_path.glob("*"), *tmp_path.glob("*/*/")):
        litter(place)
    for split, levels in (("train", train), ("test", test)):
        if levels is not None:
            found = load(name, split=split)
            assert found.images.shape[1:] == (3, 6, 8) and " ".join(found.classes) == classes
            assert found.images[::2, :, 0, 0].tolist() == [[level, 0, 200] for level in levels]
            assert found.labels.tolist() == sorted([*range(len(levels))] * 2)


@pytest.mark.parametrize("there, labels, first", [
    (".", [-1] * 2, ""), ("ant", [-1] * 2, ""), ("a/b/c a/b/d", [-1] * 4, ""),
    ("cat dog/deep", [-1] * 4, "cat/a"),  # not lost in silence
    ("cover.png cat dog", [-1, 0, 0, 1, 1], "cover"),
    ("cat/more/1.png cat dog", [-1, 0, 0, 1, 1], "cat/more/1"),
    ("other/deep/1.png cat dog", [-1, 0, 0, 1, 1], "other/deep/1"),
])  # fmt: skip
def test_images_elsewhere_have_no_label_and_one_beside_class_folders_is_named(there, labels, first, tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = load(tree(tmp_path, f"{there} ./"))
    assert sorted(found.labels.tolist()) == labels and found.classes == ("cat", "dog")[: 2 * max(labels)]
    assert max(labels) < 1 or found.images[found.labels == -1][:, 0, 0, 0].tolist() == [0]
    wanted = f"^{labels.count(-1)} images have no label, the first is .*/{first}.png; move .*, of two classes"
    assert len(said) == bool(first) and all(re.search(wanted, str(one.message)) for one in said)


def test_images_to_train_on_need_no_classes_beside_labelled_ones(tmp_path):
    name = tree(tmp_path, "train/a.png train/b.png val/cat val/dog")
    train, test = load(name), load(name, split="test")
    assert train.labels.tolist() == [-1, -1] and train.classes == () and test.classes == ("cat", "dog")
    for k in range(2, 12):
        for place in ("val/cat", "val/dog"):
            grey_level(tmp_path / place / f"{k}.png", k)
    some, others = image_kind.labelled(ImageRecipe("InfoNCE()", data=name, size=8))
    assert some.classes == others.classes == ("cat", "dog") and (len(some), len(others)) == (20, 4)


@pytest.mark.parametrize("beside", ["bus", "cover.png"])
def test_what_lies_beside_splits_is_named(beside, tmp_path):
    with pytest.warns(UserWarning, match=f"{beside} is in no split and passed over; if those beside it are"):
        assert load(tree(tmp_path, f"train/cat train/dog {beside}")).classes == ("cat", "dog")


def test_links_are_followed_and_each_folder_is_read_once(tmp_path):
    tree(tmp_path, "far in/real")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "far")
    assert len(load(f"folder:{tmp_path / 'in'}").labels.unique()) == 2
    (tmp_path / "in" / "real" / "up").symlink_to("..")
    assert len(folders.images_below(tmp_path / "in")) == 4


NO_TRAIN = "train is no folder; folder:PATH takes PATH/train/CLASS"
NO_TEST = "has no folder val or test; `evaluate` splits images with classes by a"


@pytest.mark.parametrize("there, split, message", [
    ("val/ant val/bee", "train", NO_TRAIN),   # never trained on
    ("train/ant train/bee", "test", NO_TEST), ("ant bee", "test", NO_TEST),
    ("train/ant val/ant val/bee", "test", "val/bee has no counterpart in .*train; both"),
    ("train/ant train/bee val/ant", "test", "train/bee has no counterpart in .*val; both"),
    ("train/ val/ant", "train", "train has no class folders; put"),
    ("train/ant train/bee val/ant/ val/bee", "test", "val/ant has no images; fill it or remove it"),
    ("ant bee wasp/", "train", "wasp has no images; fill it"),
    ("train/cat train/dog train/cover.png", "train", "cover.png is no folder, among class folders; move"),
    ("train/cat train/dog train/cat/more/1.png", "train", "cat/more is no image that can be read"),
    ("Train/cat train/cat val/cat", "train", "Train and train both mean train; put them together, or"),
    ("train/cat val/cat valid/cat", "test", "val and valid both mean val; put them together"),
    (f"{NFC} {NFD}", "train", "café both mean café; put them together, or rename one"),
    ("Train Test", "train", "Train/a.png is no folder, and .*Train has no class folders; folder:PATH takes "
                            "PATH/train/CLASS/.* rename Test if it is a class; rename Train if it"),
    ("pipette test", "train", "train is no folder; folder:PATH takes .*; rename test if it is a class"),
    ("images/train images/val", "train", "must hold one split, got train and val below; folder:"),  # YOLO
    ("cat/train cat/test dog/train", "train", "must hold one split, got test and train below"),  # MVTec
])  # fmt: skip
def test_a_tree_that_lacks_something_or_can_be_read_in_two_ways_is_refused(there, split, message, tmp_path):
    name = tree(tmp_path, there)
    for asked, said in ((split, message), ("test", str(tmp_path))):
        with pytest.raises((ValueError, FileNotFoundError), match=said):
            load(name, split=asked)


def test_the_home_folder_is_known_in_every_path_and_a_relative_one_is_of_this_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tree(tmp_path, "photos")
    assert len(load("folder:~/photos")) == len(load("folder:photos", root="elsewhere")) == 2
    for camera, form in (("1", "NFC"), ("2", "NFD")):
        for path in saved(tmp_path / "two" / camera, smooth(14)):
            path.rename(path.with_name(normalize(form, f"é{path.name}")))
        litter(tmp_path / "two" / camera)
    litter(tmp_path / "two")
    assert len(load("pairs:~/two", size=16)) == 24
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/gone is no folder; give one with image files"):
        load("folder:~/gone")
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/sets/imagenet/train is no folder"):
        load("imagenet", root="~/sets")


# Files or pixels


def test_size_resizes_the_shorter_side_and_crops_the_centre(tmp_path):
    row = np.repeat(np.array([0, 100, 200], np.uint8), [10, 40, 10])
    stripes = torch.tensor(row).expand(3, 40, 60)
    saved(tmp_path / "train/a", [stripes, stripes.mT])
    with pytest.raises(ValueError, match=r"000\.png of 60x40 and .*001\.png of 40x60; load them with size="):
        load(f"folder:{tmp_path}")
    images = load(f"folder:{tmp_path}", size=20).images
    assert images.shape == (2, 3, 20, 20) and (images[:, :, 2:-2, 2:-2] == 100).all()


def test_too_many_pixels_are_streamed_unless_told_otherwise_and_samples_are_not_decoded(animals, monkeypatch):
    decoded = load(f"folder:{animals}")
    monkeypatch.setattr(folders, "MOST_BYTES", 500)
    streamed = load(f"folder:{animals}")
    for how in (dict(stream=False), dict(size=4)):
        assert isinstance(load(f"folder:{animals}", **how).images, torch.Tensor)
    with monkeypatch.context() as patch:
        patch.setattr(Photographs, "__getitem__", None)
        part = streamed.sample(3, seed=2)
    for mine, theirs in ((streamed, decoded), (part, decoded.sample(3, seed=2))):
        assert isinstance(mine.images, Photographs) and repr(mine) == repr(theirs)
        assert torch.equal(mine.images[:], theirs.images) and torch.equal(mine.labels, theirs.labels)


# What is no photograph


@pytest.mark.parametrize("kind", NO_PHOTOGRAPHS)
def test_what_is_no_photograph_is_named_in_a_line_by_all_that_read_it(kind, animals):
    path, view = animals / "train/ant/9.png", (View(size=8),)
    NO_PHOTOGRAPHS[kind](path)
    files = Photographs([path.with_name("000.png"), path])
    readers = [
        lambda: files[:], lambda: list(files.split(1)), lambda: Photographs([path])[:],
        lambda: files.crops([1], view, draw(view, 1, shifted())), files.verify,
    ]  # fmt: skip
    if kind in BROKEN:
        assert len(load(f"folder:{animals}")) == 6
    else:
        readers += [partial(load, f"folder:{animals}", stream=False, size=16),
                    partial(load, f"folder:{animals}", stream=True, verify=True)]  # fmt: skip
    if kind in DAMAGED:
        readers += [partial(embed_folder, RUN, animals / "train")]
    else:  # a tree of anything may hold anything: what is no file is passed over
        assert len(embed_folder(RUN, animals / "train")[1]) == 6
    for read in readers:
        said = complaint(read)
        assert "ant/9.png is no image that can be read" in said and "remove or replace it" in said
        assert "pixels" not in kind or kind.removesuffix(" pixels") in said


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_that_of_a_file_and_of_a_class_and_is_said_in_a_line(name, animals):
    def named(folder: str) -> str:
        return os.fsdecode(os.fsencode(animals / folder) + b"/" + name)

    for split in ("train", "val"):
        shutil.copytree(animals / split / "ant", named(split))
    shutil.copy(animals / "train/ant/000.png", named("train/ant"))
    found, text = load(f"folder:{animals}"), os.fsdecode(name)
    assert len(found) == 10 and len(found.classes) == 3
    assert all(one.isprintable() and one.encode() for one in found.classes)
    Path(named("train/ant")).write_text("no image")
    for stream in (True, False):
        said = complaint(load, f"folder:{animals}", stream=stream, verify=True)
        assert (text if text.isprintable() else repr(text)[1:-1]) in said and "is no image" in said
    shutil.rmtree(named("val"))
    assert "has no counterpart" in complaint(load, f"folder:{animals}", split="test")


def test_the_command_decodes_what_it_verifies_of_any_sizes_and_warns_of_nothing(animals, capsys, recwarn):
    grey_level(animals / "train/bee/wide.png", 1, (40, 20))
    main(["data", f"folder:{animals}", "--verify"])
    assert capsys.readouterr().out.count("7 images") == 1
    DAMAGED["100,000,000 pixels"](animals / "train/ant/000.png")
    with pytest.raises(ValueError, match=r"ant/000\.png is no image .*100,000,000 pixels"):
        main(["data", f"folder:{animals}", "--verify"])
    assert not recwarn.list, "Pillow's warning would be two more lines"

"""Folders of images: pixels or files, three layouts, what else lies there, and what is refused in a line.

Nothing hangs. What may lie there is the table in tests/tools/pictures.py, with which all readers are tried.
"""

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import shifted
from pictures import BROKEN, DAMAGED, NAMES, NO_PHOTOGRAPHS, grey_level, saved, smooth

from setclr.cli import main
from setclr.data import Photographs, folders, load
from setclr.experiments import embed_folder, new_run, pretrain
from setclr.recipes import RECIPES, ImageRecipe
from setclr.views import View, draw

BOMB, OTHERS = "ignore::PIL.Image.DecompressionBombWarning", "ignore:passed over"
pytestmark = pytest.mark.filterwarnings(BOMB, OTHERS, "ignore:.*images have no label")
RUN = new_run(ImageRecipe("InfoNCE()"), 3)


def fill(folder: Path, count: int = 3, seed: int = 0) -> None:
    saved(folder, smooth(count, 16, 16, seed))


@pytest.fixture
def tree(tmp_path) -> Path:
    for seed, place in enumerate(("train/ant", "train/bee", "val/ant", "val/bee")):
        fill(tmp_path / place, seed=seed)
    return tmp_path


def litter(folder: Path) -> None:
    """What lies in people's folders and is no photograph."""
    for name in ("Thumbs.db", "notes.txt", ".hidden.png", "README"):
        (folder / name).write_bytes(b"no image")
    for name in BROKEN:
        BROKEN[name](folder / f"{name}.jpg")
    fill(folder / ".cache")


def complaint(read, *given, **how) -> str:
    """What the error says: a line that any terminal shows as it is."""
    with pytest.raises((ValueError, OSError)) as caught:
        read(*given, **how)
    said = str(caught.value)
    assert said.isprintable(), repr(said)
    return said


# Files or pixels


def test_a_folder_is_read_by_sorted_names_and_its_test_split_is_val_or_else_test(tmp_path, monkeypatch):
    for level, place in enumerate(["train/bee", "train/bee", "train/ant", "train/ant", "val/bee", "val/ant"]):
        grey_level(tmp_path / place / f"{level}.png", level)
    monkeypatch.chdir(tmp_path.parent)  # to which a relative path is relative
    train = load(f"folder:{tmp_path.name}", root="elsewhere")
    assert train.images.shape == (4, 3, 6, 8) and train.classes == ("ant", "bee")
    assert train.labels.tolist() == [0, 0, 1, 1]
    assert train.images[:, :, 0, 0].tolist() == [[n, 0, 200] for n in (2, 3, 0, 1)]
    for name in ("val", "test"):
        (tmp_path / "val").rename(tmp_path / name)
        assert load(f"folder:{tmp_path}", split="test").images[:, 0, 0, 0].tolist() == [5, 4]


def test_every_mode_becomes_rgb(tmp_path):
    for mode in ("L", "P", "RGBA", "CMYK", "1", "LA"):
        grey_level(tmp_path / "train/a" / f"{mode}.{'tif' if mode == 'CMYK' else 'png'}", 100, mode=mode)
    assert load(f"folder:{tmp_path}").images.shape == (6, 3, 6, 8)


def test_size_resizes_the_shorter_side_and_crops_the_centre(tmp_path):
    row = np.repeat(np.array([0, 100, 200], np.uint8), [10, 40, 10])
    stripes = torch.tensor(row).expand(3, 40, 60)
    saved(tmp_path / "train/a", [stripes, stripes.mT])
    images = load(f"folder:{tmp_path}", size=20).images
    assert images.shape == (2, 3, 20, 20) and (images[:, :, 2:-2, 2:-2] == 100).all()


def test_too_many_pixels_are_streamed_unless_told_otherwise(tree, monkeypatch):
    monkeypatch.setattr(folders, "MOST_BYTES", 500)
    whole = load(f"folder:{tree}")
    assert isinstance(whole.images, Photographs) and whole.images.shape == (6, 3, 16, 16)
    assert isinstance(load(f"folder:{tree}", stream=False).images, torch.Tensor)
    assert isinstance(load(f"folder:{tree}", size=4).images, torch.Tensor)


def test_what_is_streamed_is_what_would_be_decoded_and_its_samples_are_not_decoded(tree, monkeypatch):
    decoded, streamed = load(f"folder:{tree}"), load(f"folder:{tree}", stream=True)
    with monkeypatch.context() as patch:
        patch.setattr(Photographs, "__getitem__", None)
        part = streamed.sample(3, seed=2)
    for mine, theirs in ((streamed, decoded), (part, decoded.sample(3, seed=2))):
        assert isinstance(mine.images, Photographs) and repr(mine) == repr(theirs)
        assert torch.equal(mine.images[:], theirs.images) and torch.equal(mine.labels, theirs.labels)
        assert mine.classes == theirs.classes


# Three layouts


@pytest.mark.parametrize("with_splits", [True, False])
def test_classes_with_splits_or_without_are_read_through_any_litter(with_splits, tree):
    root = tree if with_splits else tree / "train"
    for place in (root, *root.glob("*"), *root.glob("*/*/")):
        litter(place)
    for split in ("train", "test")[: 1 + with_splits]:
        found = load(f"folder:{root}", split=split)
        assert found.classes == ("ant", "bee") and found.labels.tolist() == [0] * 3 + [1] * 3


@pytest.mark.parametrize("places", [".", "ant", "ant bee/deep", "a/b/c a/b/d"])
def test_any_other_tree_is_images_without_labels(places, tmp_path):
    for place in places.split():
        fill(tmp_path / place)
    litter(tmp_path)
    found, count = load(f"folder:{tmp_path}", stream=True), 3 * len(places.split())
    assert found.labels.tolist() == [-1] * count and found.classes == ()
    assert repr(found) == f"<ImageSet: {count} images (3, 16, 16), 0 classes, {count} without a label>"


def test_links_are_followed_and_each_folder_is_read_once(tmp_path):
    fill(tmp_path / "far")
    fill(tmp_path / "in" / "real")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "far")
    assert len(load(f"folder:{tmp_path / 'in'}").labels.unique()) == 2
    (tmp_path / "in" / "real" / "up").symlink_to("..")
    assert len(folders.images_below(tmp_path / "in")) == 6


def lose(*names: str):
    return lambda tree: [shutil.rmtree(tree / name) for name in names]


def only_litter(name: str):
    return lambda tree: [lose(name)(tree), (tree / name).mkdir(), litter(tree / name)]


NO_TRAIN = "train is no folder; folder:PATH takes PATH/train/CLASS"
NO_TEST = "has no folder val or test; `evaluate` splits images with classes by a"


@pytest.mark.parametrize("happened, where, split, message", [  # where: the folder in the tree that is read
    (lose("."), ".", "train", "is no folder; give one with image files"),
    (lose("train"), ".", "train", NO_TRAIN),  # images to measure on are not trained on
    (lambda tree: [lose("train")(tree), (tree / "val").rename(tree / "test")], ".", "train", NO_TRAIN),
    (lose("train/bee"), ".", "test", "val/bee has no counterpart in .*train; both"),
    (lose("val/bee"), ".", "test", "train/bee has no counterpart in .*val; both"),
    (lose("val"), ".", "test", NO_TEST),
    (lose("val"), "train", "test", NO_TEST),
    (lose("train/ant", "train/bee"), ".", "train", "train has no class folders"),
    (only_litter("val/ant"), ".", "test", "val/ant has no images; fill it or remove it"),
    (lambda tree: (tree / "train/wasp").mkdir(), "train", "train", "wasp has no images; fill it"),
    (only_litter("train/ant"), "train/ant", "train", "has no image files .* in it or below"),
    (lose("train/bee"), "train", "test", NO_TEST),
    (lambda tree: grey_level(tree / "train/bee/9.png", 1), ".", "train",
     r"ant/000\.png of 16x16 .*bee/9\.png of 8x6; load them with size=, or pretrain with view_size \(--view"),
])  # fmt: skip
def test_a_tree_in_which_something_lacks_is_refused_with_its_place(happened, where, split, message, tree):
    happened(tree)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load(f"folder:{tree / where}", split=split)


# What is no photograph


@pytest.mark.parametrize("kind", NO_PHOTOGRAPHS)
def test_what_is_no_photograph_is_named_in_a_line_by_all_that_read_it(kind, tree):
    path, view = tree / "train/ant/9.png", (View(size=8),)
    NO_PHOTOGRAPHS[kind](path)
    files = Photographs([path.with_name("000.png"), path])
    readers = [
        lambda: files[:], lambda: list(files.split(1)), lambda: Photographs([path])[:],
        lambda: files.crops([1], view, draw(view, 1, shifted())), files.verify,
    ]  # fmt: skip
    if kind in BROKEN:
        assert len(load(f"folder:{tree}")) == 6
    else:
        readers += [partial(load, f"folder:{tree}", stream=False, size=16),
                    partial(load, f"folder:{tree}", stream=True, verify=True)]  # fmt: skip
    if kind in DAMAGED:
        readers += [partial(embed_folder, RUN, tree / "train")]
    else:  # a tree of anything may hold anything: what is no file is passed over
        assert len(embed_folder(RUN, tree / "train")[1]) == 6
    for read in readers:
        said = complaint(read)
        assert "ant/9.png is no image that can be read" in said and "remove or replace it" in said
        assert "pixels" not in kind or kind.removesuffix(" pixels") in said


@pytest.mark.parametrize("kind", ["pipe", "text", *BROKEN])
def test_among_class_folders_it_is_named_only_if_it_looks_like_an_image(kind, tree):
    NO_PHOTOGRAPHS[kind](tree / "train/cat")
    assert load(f"folder:{tree}").classes == ("ant", "bee")
    NO_PHOTOGRAPHS[kind](tree / "train/cat.png")
    if kind in BROKEN:
        assert len(load(f"folder:{tree}")) == 6
    else:
        said = complaint(load, f"folder:{tree}")
        assert "train/cat.png is no folder, among class folders; move it into" in said


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_that_of_a_file_and_of_a_class_and_is_said_in_a_line(name, tree):
    def named(folder: str) -> str:
        return os.fsdecode(os.fsencode(tree / folder) + b"/" + name)

    for split in ("train", "val"):
        shutil.copytree(tree / split / "ant", named(split))
    shutil.copy(tree / "train/ant/000.png", named("train/ant"))
    found, text = load(f"folder:{tree}"), os.fsdecode(name)
    assert len(found) == 10 and len(found.classes) == 3
    assert all(one.isprintable() and one.encode() for one in found.classes)
    Path(named("train/ant")).write_text("no image")
    for stream in (True, False):
        said = complaint(load, f"folder:{tree}", stream=stream, verify=True)
        assert (text if text.isprintable() else repr(text)[1:-1]) in said and "is no image" in said
    shutil.rmtree(named("val"))
    assert "has no counterpart" in complaint(load, f"folder:{tree}", split="test")


def test_features_of_files_with_any_names_are_written(tree):
    for name in NAMES:
        shutil.copy(tree / "train/ant/000.png", os.fsencode(tree / "train") + b"/" + name)
    RUN.save(tree / "run")
    main(["embed", f"{tree}/run", f"{tree}/train", "--out", f"{tree}/x.npz", "--device", "cpu"])
    with np.load(tree / "x.npz") as kept:
        assert {os.fsencode(path) for path in kept["paths"].tolist()} >= set(NAMES)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
@pytest.mark.parametrize("place", ["train/ant/001.png", "train/ant", "train"])
def test_what_may_not_be_read_is_named(place, tree):
    (tree / place).chmod(0)
    said = complaint(load, f"folder:{tree}")
    (tree / place).chmod(0o700)
    assert place in said and "Permission denied" in said


def test_the_command_decodes_what_it_verifies_of_any_sizes_and_warns_of_nothing(tree, capsys, recwarn):
    grey_level(tree / "train/bee/wide.png", 1, (40, 20))
    main(["data", f"folder:{tree}", "--verify"])
    assert capsys.readouterr().out.count("7 images") == 1
    DAMAGED["cut png"](tree / "train/ant/001.png")
    with pytest.raises(ValueError, match=r"ant/001\.png is no image"):
        main(["data", f"folder:{tree}", "--verify"])
    DAMAGED["100,000,000 pixels"](tree / "train/ant/000.png")
    with pytest.raises(ValueError, match="100,000,000 pixels"):
        main(["data", f"folder:{tree}"])
    assert not recwarn.list, "Pillow's warning would be two more lines"


def test_a_folder_of_one_image_gets_advice_that_can_be_followed(tmp_path):
    fill(tmp_path / "train/ant", 1)
    recipe = replace(RECIPES["photo-infonce"], data=f"folder:{tmp_path}", epochs=1, batch=2)
    for change in ({}, {"images": 2}):
        with pytest.raises(ValueError, match="images must be at least 2, got 1; add some"):
            pretrain(replace(recipe, **change), device="cpu")


# Names


def test_a_path_is_answered_with_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "photos")
    for name in ("./photos", "photos", "~/photos", "/no/such"):
        with pytest.raises(ValueError, match=f"got '{name}'; .*a folder of images is folder:PATH"):
            load(name)


def test_the_home_folder_is_known_in_every_path_and_litter_beside_pairs_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    fill(tmp_path / "photos")
    for camera in "12":
        fill(tmp_path / "two" / camera, 14)
        litter(tmp_path / "two" / camera)
    litter(tmp_path / "two")
    assert len(load("folder:~/photos")) == 3 and len(load("pairs:~/two", size=16)) == 24
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/sets/imagenet/train is no folder"):
        load("imagenet", root="~/sets")

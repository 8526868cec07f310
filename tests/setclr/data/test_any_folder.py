"""Any folder of photographs, and any Dataset: what is read, passed over, or refused in a line."""

import shutil
from pathlib import Path

import pytest
import torch
from pictures import grey_level

from setclr.data import ImageSet, load, two_views
from setclr.data.any_folder import images_below
from setclr.data.validation import validation_split


def fill(folder: Path, count: int = 3, size=(16, 16)) -> None:
    for i in range(count):
        grey_level(folder / f"{i}.png", i, size)


def litter(folder: Path) -> None:
    """What lies in people's folders and is no photograph."""
    for name in ("Thumbs.db", "notes.txt", ".hidden.png", "README"):
        (folder / name).write_bytes(b"no image")
    (folder / "gone.jpg").symlink_to("nowhere")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    fill(folder / ".cache")


# Three layouts


def test_a_tree_with_splits_is_read_through_any_litter(tmp_path):
    for place in ("train/ant", "train/bee", "val/ant", "val/bee"):
        fill(tmp_path / place)
    for place in (".", "train", "train/ant", "val/bee", "val"):
        litter(tmp_path / place)
    for split in ("train", "test"):
        found = load(f"folder:{tmp_path}", split=split)
        assert found.classes == ("ant", "bee") and found.labels.tolist() == [0] * 3 + [1] * 3


def test_classes_without_splits_are_one_split(tmp_path):
    for name in ("ant", "bee"):
        fill(tmp_path / name)
        litter(tmp_path / name)
    litter(tmp_path)
    found = load(f"folder:{tmp_path}")
    assert found.classes == ("ant", "bee") and found.labels.tolist() == [0] * 3 + [1] * 3
    rest, held = validation_split(f"folder:{tmp_path}", found)
    assert len(rest) + len(held) == 6 and len(held) >= 1 and held.classes == found.classes
    with pytest.raises(FileNotFoundError, match="has no folder val or test; `evaluate` splits the images by"):
        load(f"folder:{tmp_path}", split="test")
    (tmp_path / "wasp").mkdir()
    with pytest.raises(ValueError, match="wasp has no images; fill it or remove it"):
        load(f"folder:{tmp_path}")


@pytest.mark.parametrize("places", [".", "ant", ". ant bee", "ant bee/deep", "a/b/c a/b/d"])
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
    assert len(images_below(tmp_path / "in")) == 6


def test_a_tree_without_train_is_no_flat_one_and_litter_is_none(tmp_path):
    """Images to measure on are not trained on."""
    for name in ("val", "test"):
        fill(tmp_path / name / name / "ant")
        with pytest.raises(FileNotFoundError, match="train is no folder; folder:PATH takes PATH/train/CLASS"):
            load(f"folder:{tmp_path / name}")
    litter(tmp_path / "val/val")
    shutil.rmtree(tmp_path / "val/val/ant")
    with pytest.raises(ValueError, match="has no image files .* in it or below"):
        load(f"folder:{tmp_path / 'val/val'}")


# Names


def test_a_path_is_answered_with_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "photos")
    for name in ("./photos", "photos", "~/photos", "/no/such"):
        with pytest.raises(ValueError, match=f"got '{name}'; write folder:{name} for a folder of images"):
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


# No label


def test_images_without_a_label_are_a_group_of_their_own():
    pixels = torch.arange(60, dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 8, 8)
    labels = torch.tensor([-1, 0, 1] * 20)
    some = ImageSet(pixels, labels, ("a", "b"))
    assert repr(some).endswith("2 classes, 20 without a label>")
    assert (some.sample(12).labels + 1).bincount().tolist() == [4, 4, 4]
    rest, held = validation_split("folder:x", some)
    assert (held.labels + 1).bincount().tolist() == [4, 4, 4] and len(rest) == 48
    assert two_views(some).shape == (2, 2, 3, 8, 8)


def test_a_class_of_one_image_is_trained_on():
    def split(labels, classes):
        pixels = torch.zeros(6, 3, 8, 8, dtype=torch.uint8)
        return validation_split("folder:x", ImageSet(pixels, torch.tensor(labels), tuple(classes)))

    rest, held = split([0, 0, 1, 1, 1, 2], "abc")
    assert set(held.labels.tolist()) <= set(rest.labels.tolist()) and len(held)
    with pytest.raises(ValueError, match="train must have a class of two or more"):
        split(range(6), "abcdef")

"""What comes after training: features of one's own images, and encoders that torchvision and timm load."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torchvision
from conftest import numpy_shifted
from pictures import DAMAGED
from PIL import Image
from torch import nn

from setclr import data
from setclr.evaluation import features
from setclr.experiments import embed_folder
from setclr.experiments.kinds import image as kind
from setclr.experiments.kinds.image import side_of
from setclr.experiments.run import export, new_run
from setclr.models import encoder
from setclr.recipes import ImageRecipe

RECIPE = ImageRecipe("InfoNCE()")


@pytest.fixture
def photographs(tmp_path) -> Path:
    """Seven images of several sizes and kinds in a tree of three folders, among other files."""
    drawn, folder = numpy_shifted(0), tmp_path / "photographs"
    shapes = {"b.png": (40, 50, 3), "a/z.jpg": (64, 33, 3), "a/y.png": (32, 32), "c.bmp": (35, 90, 3),
              "a/b/x.PNG": (100, 80, 4), "a-b.png": (32, 32, 3), "é.webp": (48, 48, 3)}  # fmt: skip
    for name, shape in shapes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(drawn.integers(0, 256, shape, dtype=np.uint8)).save(folder / name)
    (folder / "notes.txt").write_text("not an image")
    (folder / ".cache").mkdir()
    for name in (".hidden.png", ".cache/thumb.png"):
        (folder / name).write_text("nor this one")
    return folder


def test_features_are_those_of_the_same_images_as_a_data_set(photographs, monkeypatch):
    """Pixel for pixel what "folder:PATH" would load, in the order of the paths, whatever the batch."""
    run, held = new_run(RECIPE, 3), []
    found, paths = embed_folder(run, photographs)
    expected = ["a/b/x.PNG", "a/y.png", "a/z.jpg", "a-b.png", "b.png", "c.bmp", "é.webp"]
    assert paths.tolist() == expected and found.shape == (7, 64) and found.dtype == np.float32
    images = data.load(f"folder:{photographs}", size=32).images
    np.testing.assert_allclose(found, features(run.encoder, images).numpy(), rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(kind, "features", lambda encoder, images, batch: (
        held.append(len(images)), features(encoder, images, batch))[1])  # fmt: skip
    again, _ = embed_folder(run, str(photographs), batch=3)
    np.testing.assert_allclose(again, found, rtol=1e-4, atol=1e-5)
    assert held == [3, 3, 1], "no more than a batch is held"


def test_runs_on_one_channel_see_grey(photographs):
    run, seen = new_run(replace(RECIPE, data="mnist"), 1), []
    run.encoder.register_forward_pre_hook(lambda module, x: seen.append(x[0]))
    embed_folder(run, photographs)
    assert seen[0].shape == (7, 1, 28, 28)
    with Image.open(photographs / "a-b.png") as image:
        grey = np.asarray(image.convert("L").resize((28, 28), Image.Resampling.BILINEAR))
    np.testing.assert_allclose((255 * seen[0][3, 0]).numpy(), grey, atol=2)  # grey before it is resized


def test_the_side_a_run_was_trained_on():
    for name, more, side in (
        ("stl10", {}, 96), ("mnist", {}, 28), ("photo-patches", {}, 32), ("cifar10", {"view_size": 48}, 48),
        ("folder:x", {"size": 96}, 96), ("folder:x", {"size": 96, "view_size": 64}, 64),
    ):  # fmt: skip
        assert side_of(new_run(replace(RECIPE, data=name, **more), 3)) == side


@pytest.mark.parametrize("place, change, message", [
    ("photographs", {}, "size must be given: the run was trained on a folder.*--size"),
    ("photographs", {"size": 24, "batch": 0}, "batch must be an integer >= "),
    ("photographs/.cache", {"size": 24}, "has no image files"), ("moved", {"size": 24}, "moved is no folder"),
])  # fmt: skip
def test_places_and_sizes_that_cannot_be_are_refused(photographs, place, change, message):
    (photographs / ".cache" / "thumb.png").unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        embed_folder(new_run(replace(RECIPE, data="folder:x"), 3), photographs.parent / place, **change)


def trained(folder: Path, name: str, channels: int = 3) -> tuple[nn.Module, dict]:
    """The encoder of a run, with batch statistics that are no longer those of the start, and its export."""
    run = new_run(replace(RECIPE, encoder=name), channels)
    with torch.no_grad():
        run.encoder(torch.rand(8, channels, 32, 32))
    run.encoder.eval().to(memory_format=torch.channels_last)
    export(run, folder / "encoder.pt")
    return run.encoder, torch.load(folder / "encoder.pt", weights_only=True)


@torch.no_grad()
@pytest.mark.parametrize("name, make, side, channels", [
    ("resnet18", timm.models.resnet18, 32, 3), ("resnet50-imagenet", torchvision.models.resnet50, 32, 3),
    ("timm:test_vit", partial(timm.create_model, "test_vit", num_classes=0, in_chans=1), 160, 1),
    ("resnet32", lambda: encoder("resnet32", 1)[0], 32, 1),
])  # fmt: skip
def test_torchvision_timm_and_setclr_load_what_is_exported(tmp_path, name, make, side, channels):
    (ours, state), x, model = trained(tmp_path, name, channels), torch.rand(2, channels, side, side), make()
    if name == "resnet18":
        model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    missing = model.load_state_dict(state, strict=False)
    assert missing.missing_keys in ([], ["fc.weight", "fc.bias"]) and not missing.unexpected_keys
    if missing.missing_keys:
        model.fc = nn.Identity()
    torch.testing.assert_close(model.eval()(x), ours(x), rtol=1e-4, atol=1e-5)


def test_the_export_in_the_readme_is_loaded_as_it_says(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).resolve().parents[3] / "site/text/training.md").read_text()
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "encoder.pt" in code)
    trained(tmp_path, "resnet18-imagenet")
    monkeypatch.chdir(tmp_path)
    exec(example, names := {})
    assert names["missing"].missing_keys == ["fc.weight", "fc.bias"]
    assert "unexpected_keys=[]" in capsys.readouterr().out


def test_what_is_passed_over_is_counted_by_its_kind(photographs):
    (photographs / "clip.mpg").write_bytes(b"\0\0\1\xba")
    (photographs / "a" / "more.txt").write_text("no image")
    (photographs / "gone.png").symlink_to(photographs / "nowhere.png")
    with pytest.warns(UserWarning, match="passed over 3 hidden or broken links, ") as said:
        embed_folder(new_run(RECIPE, 3), photographs)
    assert all(part in str(said[0].message) for part in ("2 .txt", "1 .mpg"))


def test_files_that_cannot_be_read_are_left_out_and_named(photographs):
    whole = embed_folder(new_run(RECIPE, 3), photographs)
    (photographs / "damaged").mkdir()
    for number, make in enumerate(DAMAGED.values()):
        make(photographs / "damaged" / f"{number}.png")
    with pytest.warns(UserWarning, match="left out: ") as said:
        found, paths = embed_folder(new_run(RECIPE, 3), photographs, skip_damaged=True)
    left = " ".join(str(one.message) for one in said if "left out" in str(one.message))
    assert len(set(re.findall(r"damaged/\d\.png", left))) == len(DAMAGED)
    assert paths.tolist() == whole[1].tolist()
    np.testing.assert_allclose(found, whole[0], rtol=1e-4, atol=1e-5)
    match = f"some files must be readable, got {len(DAMAGED)} damaged"
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match=match):
        embed_folder(new_run(RECIPE, 3), photographs / "damaged", skip_damaged=True)

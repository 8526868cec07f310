"""What comes after training: features of one's own images, and encoders that torchvision and timm load."""

import re
import warnings
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import safetensors.torch
import timm
import torch
import torchvision
from conftest import numpy_shifted
from pictures import DAMAGED
from PIL import Image

import setclr
from setclr import data
from setclr.evaluation import features
from setclr.experiments import embed_folder, export, new_run, weights
from setclr.experiments.kinds import image as kind
from setclr.experiments.kinds.image import side_of
from setclr.models import ENCODERS
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


EXPORTED = [
    *((name, {}, 3) for name in ENCODERS), ("conv4", {}, 1), ("resnet18-imagenet", {}, 1),
    ("timm:test_vit", {"view_size": 160}, 1), ("vit-small16-moco", {"view_size": 48}, 3),
    ("resnet18", {"normalised": "cifar10"}, 3), ("conv4", {"normalised": "image"}, 3),
]  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("name, more, channels", EXPORTED)
def test_the_lines_that_export_prints_give_the_same_features(tmp_path, name, more, channels):
    """Of an encoder with batch statistics that are no longer those of the start."""
    run = new_run(replace(RECIPE, encoder=name, **more), channels)
    side = run.recipe.side
    run.encoder(torch.rand(8, channels, side, side))
    run.encoder.eval().to(memory_format=torch.channels_last)
    lines, x = export(run, tmp_path / "encoder.pt"), torch.rand(2, channels, side, side)
    exec(lines, at := {"x": x})
    torch.testing.assert_close(at["features"], run.encoder(x), rtol=1e-5, atol=1e-5)
    saved = torch.load(tmp_path / "encoder.pt", weights_only=True)
    assert saved["encoder"] in lines and saved["setclr"] == setclr.__version__
    weights.initialise(
        again := new_run(replace(run.recipe, seed=1), channels).encoder, str(tmp_path / "encoder.pt")
    )
    torch.testing.assert_close(again.eval()(x), run.encoder(x), rtol=1e-5, atol=1e-5)
    assert (saved["side"], saved["normalised"]) == (side, run.recipe.normalised)


OURS = new_run(RECIPE, 3).encoder.state_dict()  # by name, as others write it
WRITTEN = {
    "plain": OURS,
    "lightning": {"state_dict": {f"model.backbone.{k}": x for k, x in OURS.items()}, "epoch": 3},
    "moco": {f"module.encoder_{q}.{name}": x + (q == "k") for name, x in OURS.items() for q in "qk"},
    "half": {k: x.half() if x.is_floating_point() else x for k, x in OURS.items()},
    "classifier": OURS | {"fc.weight": torch.ones(10, 64), "fc.bias": torch.ones(10)},
    "old": {k: x for k, x in OURS.items() if "num_batches" not in k},
}  # fmt: skip


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("ending", [".pt", ".safetensors"])
def test_weights_as_others_write_them_begin_a_run(tmp_path, how, ending):
    state, place = WRITTEN[how], tmp_path / f"theirs{ending}"
    if ending == ".pt":
        torch.save(state, place)
    else:
        safetensors.torch.save_file(dict(state.get("state_dict", state)), place)
    said = pytest.warns(UserWarning, match="2 entries are not the encoder's: fc.[wb]")
    with said if how == "classifier" else warnings.catch_warnings():
        weights.initialise(encoder := new_run(replace(RECIPE, seed=1), 3).encoder, str(place))
    for key, x in encoder.state_dict().items():
        torch.testing.assert_close(x, OURS[key], rtol=1e-3, atol=1e-4)


def test_weights_that_do_not_fit_are_refused_by_name(tmp_path):
    encoder = new_run(RECIPE, 3).encoder
    for state, message in (
        ({k: x for k, x in OURS.items() if k != "4.weight"}, "must have the encoder's 4.weight .*got no 4.w"),
        (OURS | {"4.weight": torch.ones(2, 2)}, r"got 4.weight of shape \(2, 2\); give the folder of a run"),
        ({"other": torch.ones(2)}, "got no 0.weight"),
    ):
        torch.save(state, tmp_path / "theirs.pt")
        with pytest.raises(ValueError, match=message):
            weights.initialise(encoder, str(tmp_path / "theirs.pt"))
        assert all(map(torch.equal, encoder.state_dict().values(), OURS.values()))
    (tmp_path / "bad.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="bad.safetensors is no safetensors file"):
        weights.initialise(encoder, str(tmp_path / "bad.safetensors"))


def test_pretrained_weights_have_their_librarys_names(monkeypatch):
    encoder = new_run(replace(RECIPE, encoder="resnet18-imagenet"), 3).encoder
    make = torchvision.models.get_model
    monkeypatch.setattr(torchvision.models, "get_model", lambda name, weights: make(name))
    with pytest.warns(UserWarning, match="2 entries are not the encoder's: fc.weight, fc.bias"):
        weights.initialise(encoder, "torchvision:resnet18")

    def offline(*_, **__):
        raise URLError("no route")

    for library, name, function in ((torchvision.models, "torchvision:resnet18", "get_model"),
                                    (timm, "timm:resnet18", "create_model")):  # fmt: skip
        monkeypatch.setattr(library, function, offline)
        with pytest.raises(ConnectionError, match=f"init: the weights of {name} are not there.*give a file"):
            weights.initialise(encoder, name)


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

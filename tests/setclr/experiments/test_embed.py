"""What comes after training: features of one's own images, and encoders that torchvision and timm load."""

import re
import shutil
from dataclasses import replace
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
from setclr.data import sets
from setclr.evaluation import features
from setclr.experiments import embed_folder
from setclr.experiments.embedding import SIDES, side_of
from setclr.experiments.exports import export
from setclr.experiments.run import new_run
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
    (folder / ".hidden.png").write_text("nor this one")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "thumb.png").write_text("nor this one")
    return folder


def test_features_are_those_of_the_same_images_as_a_data_set(photographs, tmp_path):
    """Pixel for pixel what "folder:PATH" would load, in the order of the paths, whatever the batch."""
    run = new_run(RECIPE, 3)
    found, paths = embed_folder(run, photographs)
    expected = ["a/b/x.PNG", "a/y.png", "a/z.jpg", "a-b.png", "b.png", "c.bmp", "é.webp"]
    assert paths.tolist() == expected and found.shape == (7, 64) and found.dtype == np.float32
    tree = tmp_path / "tree" / "train" / "one"
    tree.mkdir(parents=True)
    for number, path in enumerate(expected):
        (tree / f"{number}{Path(path).suffix}").write_bytes((photographs / path).read_bytes())
    images = data.load(f"folder:{tmp_path / 'tree'}", size=32).images
    np.testing.assert_allclose(found, features(run.encoder, images).numpy(), rtol=1e-4, atol=1e-5)
    for batch in (1, 3, 7):
        again, _ = embed_folder(run, str(photographs), batch=batch)
        np.testing.assert_allclose(again, found, rtol=1e-4, atol=1e-5)


def test_only_a_batch_of_images_is_held(photographs, monkeypatch):
    import setclr.experiments.embedding as module

    held = []

    def watched(encoder, images, batch):
        held.append(len(images))
        return features(encoder, images, batch)

    monkeypatch.setattr(module, "features", watched)
    embed_folder(new_run(RECIPE, 3), photographs, batch=3)
    assert held == [3, 3, 1]


def test_runs_on_one_channel_see_grey(photographs):
    run = new_run(replace(RECIPE, data="mnist"), 1)
    seen = []
    run.encoder.register_forward_pre_hook(lambda module, x: seen.append(x[0]))
    embed_folder(run, photographs)
    assert seen[0].shape == (7, 1, 28, 28)
    with Image.open(photographs / "a-b.png") as image:
        grey = np.asarray(image.convert("L").resize((28, 28), Image.Resampling.BILINEAR))
    np.testing.assert_allclose((255 * seen[0][3, 0]).numpy(), grey, atol=2)  # grey before it is resized


@pytest.mark.parametrize(
    "change, side",
    [
        *(({"data": name}, side) for name, side in SIDES.items()),
        ({"data": "folder:x", "size": 96}, 96),
        ({"data": "folder:x", "size": 96, "view_size": 64}, 64),
        ({"data": "cifar10", "view_size": 48}, 48),
    ],
)
def test_the_side_a_run_was_trained_on(change, side):
    assert side_of(new_run(replace(RECIPE, **change), 3)) == side


def test_known_sides():
    assert set(sets.MADE) | {"mnist", "cifar10", "cifar100", "svhn", "stl10", "tiny-imagenet"} == set(SIDES)
    assert SIDES["stl10"] == 96 and SIDES["tiny-imagenet"] == 64 and SIDES["mnist"] == 28
    assert {side for name, side in SIDES.items() if name not in ("stl10", "tiny-imagenet", "mnist")} == {32}


def test_the_side_may_be_given(photographs):
    run = new_run(replace(RECIPE, data="folder:x"), 3)
    with pytest.raises(ValueError, match="size must be given: the run was trained on a folder.*--size"):
        embed_folder(run, photographs)
    assert embed_folder(run, photographs, size=24)[0].shape == (7, 64)
    for path in photographs.rglob("*.*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(ValueError, match="photographs has no image files"):
        embed_folder(run, photographs, size=24)
    with pytest.raises(FileNotFoundError, match="moved is no folder"):
        embed_folder(run, photographs.with_name("moved"), size=24)


@pytest.mark.parametrize("change", [{"size": 4}, {"batch": 0}])
def test_bad_sizes_are_refused(photographs, change):
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be an integer >= "):
        embed_folder(new_run(RECIPE, 3), photographs, **change)


def trained(name: str, channels: int = 3):
    """A run whose batch statistics are no longer those of the start."""
    run = new_run(replace(RECIPE, encoder=name), channels)
    with torch.no_grad():
        run.encoder(torch.rand(8, channels, 32, 32))
    run.encoder.eval()
    return run


@torch.no_grad()
@pytest.mark.parametrize("name", ["resnet18", "resnet50-imagenet"])
def test_torchvision_and_timm_load_resnets(tmp_path, name):
    run, x = trained(name), torch.rand(2, 3, 32, 32)
    run.encoder.to(memory_format=torch.channels_last)
    export(run, tmp_path / "encoder.pt")
    state, wanted = torch.load(tmp_path / "encoder.pt", weights_only=True), run.encoder(x)
    for library in (torchvision.models, timm.models):
        model = getattr(library, name.removesuffix("-imagenet"))()
        if "imagenet" not in name:
            model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            model.maxpool = nn.Identity()
        missing = model.load_state_dict(state, strict=False)
        assert missing.missing_keys == ["fc.weight", "fc.bias"] and not missing.unexpected_keys
        model.fc = nn.Identity()
        torch.testing.assert_close(model.eval()(x), wanted, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize(
    "name, model, changes, side, channels",
    [
        ("vit-small16-moco", "vit_small_patch16_224", {"num_heads": 12}, 224, 3),
        *(("timm:test_vit", "test_vit", {}, 160, channels) for channels in (1, 3)),
        *(("timm:test_resnet", "test_resnet", {}, 32, channels) for channels in (1, 3)),
    ],
)
def test_timm_loads_its_own_and_moco_v3s(tmp_path, name, model, changes, side, channels):
    run = trained(name, channels)
    export(run, tmp_path / "encoder.pt")
    again = timm.create_model(model, num_classes=0, in_chans=channels, **changes).eval()
    again.load_state_dict(torch.load(tmp_path / "encoder.pt"))
    x = torch.rand(2, channels, side, side)
    torch.testing.assert_close(again(x), run.encoder(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, channels", [("conv4", 1), ("conv4", 3), ("resnet32", 3)])
def test_setclr_loads_its_own(tmp_path, name, channels):
    run = trained(name, channels)
    export(run, tmp_path / "encoder.pt")
    again = encoder(name, channels)[0].eval()
    again.load_state_dict(torch.load(tmp_path / "encoder.pt"))
    x = torch.rand(2, channels, 32, 32)
    assert torch.equal(again(x), run.encoder(x))


def test_the_export_in_the_readme_is_loaded_as_it_says(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).resolve().parents[3] / "site/text/training.md").read_text()
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "encoder.pt" in code)
    export(trained("resnet18-imagenet"), tmp_path / "encoder.pt")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example, names)
    assert names["missing"].missing_keys == ["fc.weight", "fc.bias"]
    assert "unexpected_keys=[]" in capsys.readouterr().out


def test_what_is_passed_over_is_counted_by_its_kind(photographs):
    (photographs / "clip.mpg").write_bytes(b"\0\0\1\xba")
    (photographs / "a" / "more.txt").write_text("no image")
    (photographs / "gone.png").symlink_to(photographs / "nowhere.png")
    with pytest.warns(UserWarning, match="passed over 6 files: .*2 hidden.*") as said:
        embed_folder(new_run(RECIPE, 3), photographs)
    assert all(part in str(said[0].message) for part in ("2 .txt", "1 .mpg", "1 broken links"))


def test_links_to_folders_are_entered(photographs, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "there").symlink_to(photographs)
    assert len(embed_folder(new_run(RECIPE, 3), tmp_path / "linked")[1]) == 7


def test_files_that_cannot_be_read_are_left_out_and_named(photographs):
    whole = embed_folder(new_run(RECIPE, 3), photographs)
    for kind, make in DAMAGED.items():
        make(photographs / f"{kind.replace(' ', '-')}.png")
    with pytest.warns(UserWarning, match="left out: ") as said:
        found, paths = embed_folder(new_run(RECIPE, 3), photographs, skip_damaged=True)
    left = "".join(str(one.message) for one in said if "left out" in str(one.message))
    assert all(f"{kind.replace(' ', '-')}.png" in left for kind in DAMAGED)
    assert paths.tolist() == whole[1].tolist()
    np.testing.assert_allclose(found, whole[0], rtol=1e-4, atol=1e-5)
    for path in photographs.glob("*.*"):
        if path.is_file() and path.stem.replace("-", " ") not in DAMAGED:
            path.unlink()
    shutil.rmtree(photographs / "a")
    match = f"some files must be readable, got {len(DAMAGED)} damaged"
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match=match):
        embed_folder(new_run(RECIPE, 3), photographs, skip_damaged=True)


def test_kinds_that_pillow_cannot_read_are_counted(photographs):
    for i in range(3):
        (photographs / f"{i}.HEIC").write_bytes(b"\0\0\0\x24ftypheic" + bytes(99))
    if ".heic" in Image.registered_extensions():
        pytest.skip("this Pillow reads .heic")
    with pytest.raises(ValueError, match="got 3 .heic; convert them, install a reader .* --skip-damaged"):
        embed_folder(new_run(RECIPE, 3), photographs)
    with pytest.warns(UserWarning, match="left out"):
        assert len(embed_folder(new_run(RECIPE, 3), photographs, skip_damaged=True)[1]) == 7

"""python -m setclr, as a user types it."""

import json

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image

from setclr import data
from setclr.cli import main
from setclr.data import ImageSet
from setclr.recipes import RECIPES


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    images = torch.randint(0, 256, (60, 3, 16, 16), dtype=torch.uint8)
    few = ImageSet(images, torch.arange(60) % 3, tuple("abc"))
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: few)


def test_train_then_evaluate_and_record(tmp_path, capsys):
    out, result = tmp_path / "run", tmp_path / "results" / "r.json"
    main(["pretrain", "photo-groco", "--out", str(out), "--epochs", "2", "--batch", "20", "--device", "cpu"])
    assert "images_per_s" in capsys.readouterr().out
    main(["evaluate", str(out), "--record", str(result), "--pixels", "noise"])
    shown = capsys.readouterr().out
    assert all(row in shown for row in ("raw pixels", "untrained", "trained", "linear"))
    kept = json.loads(result.read_text())
    assert kept["epochs"] == 2 and kept["pixels"] == "noise" and kept["recipe"]["batch"] == 20
    assert kept["images"] == {"train": 60, "test": 60}
    assert set(kept["accuracy_percent"]) == {"raw pixels", "untrained", "trained"}
    assert {"device", "torch", "python", "processors"} == set(kept["machine"])
    assert kept["evaluated_with"].startswith("python -m setclr evaluate")


def test_no_epochs_are_evaluated_and_recorded_as_random_weights(tmp_path, capsys):
    out, result = tmp_path / "run", tmp_path / "results" / "r.json"
    main(["pretrain", "photo-groco", "--out", str(out), "--epochs", "0", "--batch", "20", "--device", "cpu"])
    assert capsys.readouterr().out == "no epochs: random weights\n"
    main(["evaluate", str(out), "--record", str(result), "--all"])
    kept = json.loads(result.read_text())["accuracy_percent"]
    assert kept["trained"] == kept["untrained"]
    main(["results", str(result.parent)])
    assert "conv4, 0" in capsys.readouterr().out


def test_train_then_embed_and_export(tmp_path, capsys):
    run, photographs = tmp_path / "run", tmp_path / "photographs"
    main(["pretrain", "photo-groco", "--out", str(run), "--epochs", "1", "--batch", "20", "--device", "cpu"])
    photographs.mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(numpy_shifted(0).integers(0, 256, (40, 50, 3), np.uint8)).save(photographs / name)
    capsys.readouterr()
    main(["embed", str(run), str(photographs), "--device", "cpu"])
    assert f"{run / 'features-photographs.npz'}: features of 2 images, 64 each" in capsys.readouterr().out
    main(
        [
            "embed",
            str(run),
            str(photographs),
            "--out",
            str(tmp_path / "x.npz"),
            "--size",
            "24",
            "--batch",
            "1",
        ]
    )
    with np.load(run / "features-photographs.npz") as first, np.load(tmp_path / "x.npz") as second:
        assert first["paths"].tolist() == second["paths"].tolist() == ["a.png", "b.png"]
        assert first["features"].shape == (2, 64) and not np.allclose(first["features"], second["features"])
    main(["export", str(run)])
    assert "conv4, 3 channels" in capsys.readouterr().out
    assert "0.weight" in torch.load(run / "encoder.pt")
    main(["export", str(run), "--out", str(tmp_path / "e.pt")])
    assert (tmp_path / "e.pt").exists()


def test_a_run_that_is_not_there(tmp_path):
    for command in (
        ["embed", str(tmp_path), str(tmp_path)],
        ["export", str(tmp_path)],
        ["evaluate", str(tmp_path)],
        ["evaluate", str(tmp_path), "--all"],
    ):
        with pytest.raises(FileNotFoundError, match="no checkpoint there"):
            main(command)
    assert not list(tmp_path.iterdir())


def test_data_takes_root_and_size(monkeypatch, capsys):
    asked, load = [], data.load
    monkeypatch.setattr(data, "load", lambda *args: asked.append(args) or load())
    main(["data", "folder:x", "--root", "elsewhere", "--size", "48"])
    assert [(name, str(root), split, size) for name, root, split, size in asked] == [
        ("folder:x", "elsewhere", "train", 48),
        ("folder:x", "elsewhere", "test", 48),
    ]


def test_a_device_that_is_not_there(tmp_path):
    run = str(tmp_path / "run")
    main(["pretrain", "photo-groco", "--out", run, "--epochs", "1", "--batch", "20", "--device", "cpu"])
    for command in (["evaluate", run], ["embed", run, run]):
        with pytest.raises(ValueError, match="device must be cpu, cuda .* got 'gpu'"):
            main([*command, "--device", "gpu"])


def test_lists(capsys):
    main(["recipes"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in RECIPES)
    main(["recipes", "cifar", "groco"])
    assert capsys.readouterr().out.count("\n") == 1
    main(["data"])
    assert {"photo-patches", "cifar10", "folder:PATH"} <= set(capsys.readouterr().out.split())
    main(["data", "photo-patches"])
    assert "60 images" in capsys.readouterr().out
    main([])
    assert "pretrain RECIPE" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["pretran"], "command must be one of .*did you mean 'pretrain'"),
        (["pretrain", "photo-infnce"], "recipe must be one of .*did you mean 'photo-infonce'"),
        (["pretrain"], "recipe must be one of"),
        (["pretrain", "photo-groco", "--out", "x", "--loss", "Groco()"], "did you mean 'GroCo'"),
    ],
)
def test_misspelt_words_get_the_nearest(arguments, message):
    with pytest.raises(ValueError, match=message):
        main(arguments)


def test_a_misspelt_field_gets_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["pretrain", "photo-groco", "--out", "x", "--epoch", "2"])
    assert "--epochs" in capsys.readouterr().err

"""python -m setclr, as a user types it."""

import json

import pytest
import torch

from setclr import data
from setclr.__main__ import main
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
    assert set(kept["accuracy_percent"]) == {"raw pixels", "untrained", "trained"}
    assert {"device", "torch", "python", "processors"} == set(kept["machine"])
    assert kept["evaluated_with"].startswith("python -m setclr evaluate")


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

"""setclr, or python -m setclr, as a user types it."""

import json
import os
import re
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import saved, smooth
from small_runs import FEW

import setclr
from setclr import data
from setclr.cli import as_typed, main, parsing, run
from setclr.experiments.records import read_record
from setclr.experiments.run import new_run
from setclr.recipes import RECIPES
from setclr.training.interruption import Interrupted
from setclr_course.search import campaigns, recorded, searches


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: replace(FEW))  # two splits are two sets


TWENTY = ["--batch", "20", "--device", "cpu", "--precision", "float32"]


def test_train_then_evaluate_and_record_then_embed_and_export(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["pretrain", "photo-groco", "--out", "run", "--epochs", "1", *TWENTY])
    assert "images_per_s" in capsys.readouterr().out
    main(["evaluate", "run", "--record", "results/r.json", "--pixels", "noise"])
    shown = capsys.readouterr().out
    kept = json.loads(Path("results/r.json").read_text())
    assert all(row in shown for row in kept["accuracy_percent"]) and "trained" in shown
    assert (kept["epochs"], kept["pixels"], kept["recipe"]["batch"]) == (1, "noise", 20)
    assert kept["images"] == {"train": 70, "test": 70} and kept["version"] == setclr.__version__
    assert {"device", "torch", "python", "processors"} == set(kept["machine"])
    assert kept["evaluated_with"].startswith("python -m setclr evaluate")

    saved(Path("photographs"), smooth(2, 40, 50))
    main(["embed", "run", "photographs", "--device", "cpu"])
    assert "run/features-photographs.npz: features of 2 images, 64 each" in capsys.readouterr().out
    main(["embed", "run", "photographs", "--out", "x.npz", "--size", "24", "--batch", "1"])
    with np.load("run/features-photographs.npz") as first, np.load("x.npz") as second:
        assert first["paths"].tolist() == second["paths"].tolist() == ["000.png", "001.png"]
        assert first["features"].shape == (2, 64) and not np.allclose(first["features"], second["features"])
    main(["export", "run", "--out", "e.pt"])
    assert 'model = setclr.models.encoder("conv4", 3)[0]' in capsys.readouterr().out
    assert "0.weight" in torch.load("e.pt")["state_dict"]
    Path("photographs", "a.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"a.png is no image"):
        main(["embed", "run", "photographs", "--device", "cpu"])
    main(["embed", "run", "photographs", "--device", "cpu", "--skip-damaged"])
    shown = capsys.readouterr().out
    assert "features of 2 images" in shown and shown.count("left out: ") == 1


def test_a_path_may_begin_with_the_home_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    main(["pretrain", "photo-infonce", "--out=~/run", "--epochs", "0", *TWENTY])
    assert capsys.readouterr().out == "no epochs: random weights\n"
    main(["export", "~/run"])
    assert (tmp_path / "home/run/encoder.pt").is_file() and not (tmp_path / "~").exists()


def test_recipes_and_data_are_listed_and_data_take_root_and_size(monkeypatch, capsys):
    main(["recipes", "photo", "groco"])
    assert capsys.readouterr().out.count("\n") == 2
    main(["data"])
    assert capsys.readouterr().out.split() == [*data.NAMES, "stereo-patches", "tiny-imagenet"]
    asked, load = [], data.load
    monkeypatch.setattr(data, "load", lambda *args: asked.append(args) or load())
    main(["data", "folder:x", "--root", "elsewhere", "--size", "48"])
    place = "folder:x", Path("elsewhere")
    assert [one[:4] for one in asked] == [(*place, "train", 48), (*place, "test", 48)]
    assert "70 images" in capsys.readouterr().out


def shown(capsys, *words: str) -> str:
    """The help of a command, its lines joined again."""
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert not stopped.value.code
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("command", parsing.NAMES)
def test_every_command_has_its_help_and_a_line_in_the_list(command, capsys):
    assert shown(capsys, command).startswith(f"usage: setclr {command} ")
    assert f"\n{command} " in setclr.cli.__doc__


def ended(monkeypatch, *words: str) -> str | int:
    """What the command, typed so, ends with: a line or a status."""
    monkeypatch.setattr(sys, "argv", ["setclr", *words])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.raises(SystemExit) as stopped:
        run()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return stopped.value.code


HOSTILE = r"""
pretrain | pretrain --help-me | pretrain photo-infonce --out x --lr | pretrain photo-infonce --out x more
pretrain photo-infonce --out x --compiled maybe | pretrain photo-infonce --out x --images=-3x | campaign a b
pretrain photo-infonce --out x --lr nan | pretrain "" --out x | campaign photo --seeds 1.5 | campaign -- --x
search --all x y | search qare-table9 --device warp | campaign @0 | evaluate nowhere | evaluate x --record
embed nowhere nowhere | embed x y --size "\n" | embed ~nobody-here/run x | export x "--\x1b[31mred"
results nowhere | data folder:nowhere | data "" | data "cifar10\ncifar10" | recipes --x | -- | "\n" | help
"""
MISSPELT = [
    ("pretran", "command must be one of .*did you mean 'pretrain'"),
    ("pretrain photo-infnce", "recipe must be one of .*did you mean 'photo-infonce'"),
    ("pretrain --out x", "recipe must be one of .*it comes first"),
    ("pretrain photo-groco --out x --loss 'Groco()'", "did you mean 'GroCo'"),
    ("pretrain photo-groco --out x --epoch 2", "--epoch, 2 .* --epochs INT"),
    ("pretrain photo-groco --out x --epochs two", "--epochs: .*'two'"),
    ("pretrain photo-groco", "Missing .* --out PATH"),
    ("recipes photo-infnce", "recipe must be one of .*did you mean 'photo-infonce'"),
    (r'export "a\tb\n\x1b[2J"', r"a\\tb\\n\\x1b\[2J/checkpoint.pt: no"),
]
MISSPELT += [(one.strip(), "") for one in HOSTILE.replace("\n", "|").split("|") if one.strip()]


@pytest.mark.parametrize("line, message", MISSPELT)
def test_whatever_is_typed_wrong_is_named_with_the_nearest(line, message, monkeypatch, tmp_path, capsys):
    """In one line; or by tyro, with status 2, where the command's options are not so."""
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    end = ended(monkeypatch, *(word.encode().decode("unicode_escape") for word in shlex.split(line)))
    out, err = capsys.readouterr()
    if end != 2:
        assert end.startswith("setclr: ") and end.isprintable() and len(end) > 20 and err == ""
    assert re.search(message, end if end != 2 else " ".join(re.sub("[│|]", " ", err).split()))
    assert out == "" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["campaign", "search"])
@pytest.mark.parametrize("filter", [[], [""], ["-"], ["@0,1"]])
def test_all_recipes_are_started_only_when_all_are_asked_for(command, filter, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        {"search": searches, "campaign": campaigns}[command],
        command,
        lambda *given, **_: asked.append(given) or [],
    )
    seeds = 2 if filter == ["@0,1"] else 3
    with pytest.raises(ValueError, match=rf"all {len(RECIPES)}: {seeds * len(RECIPES)} runs; .*add --all"):
        main([command, *filter, "--seeds", "3", "4", "5"])
    assert not asked
    if not filter:
        main([command, "--all"])
        assert len(asked[0][0]) == len(RECIPES)


def test_a_campaign_as_it_is_typed(monkeypatch, tmp_path, capsys):
    asked, campaign = [], lambda *given, **named: asked.append((*given, named)) or ["done"]
    monkeypatch.setattr(campaigns, "campaign", campaign)
    words = ["campaign", "compare-conv4-i", "--data", "folder:x", "--pixels", "JPEG q75", "--seeds", "3", "4"]
    more = ["--lr", "0.1", "--compiled", "no", "--labels", "False", "--hidden", "32", "--split", "validation"]
    main([*words, *more, "--runs", str(tmp_path)])
    ((recipes, seeds, runs, results, root, device, pixels, typed, named),) = asked
    assert set(recipes) == {name for name in RECIPES if "compare-conv4-i" in name}
    assert {(one.data, one.lr, one.hidden) for one in recipes.values()} == {("folder:x", 0.1, 32)}
    assert (seeds, runs, str(results), str(root), device) == ((3, 4), tmp_path, "data/results", "data", None)
    assert pixels == "JPEG q75" and typed.startswith("python -m setclr campaign compare-conv4-i --data")
    assert named == {"protocol": None, "compiled": False, "split": "validation"}
    assert "--pixels 'JPEG q75'" in typed and capsys.readouterr().out == "done\n"
    with pytest.raises(ValueError, match="width must be left out for compare-conv4-infonce, .* of images"):
        main([*words, "--width", "3"])
    lines = [campaigns.Failure("a-seed0: loss became nan"), "b-seed0: knn 3.0"]
    monkeypatch.setattr(campaigns, "campaign", lambda *_, **__: lines)
    with pytest.raises(ValueError, match="^1 of 3 runs failed; the lines above say why"):
        main(words[:1] + ["compare-conv4-infonce", "--seeds", "1", "2", "3"])


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def swallowing(_):
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt as error:
        raise ImportError("numpy could not be imported") from error


@pytest.mark.parametrize("fail, line, status", [
    (raising(ValueError("that is wrong")), "that is wrong", 1),
    (raising(ModuleNotFoundError("setclr needs more")), "setclr needs more", 1),
    (raising(KeyboardInterrupt()), "interrupted", 130),
    (raising(Interrupted("stopped after step 3", 15)), "stopped after step 3", 143),
    (swallowing, "terminated", 143),
    (lambda _: torch.empty(2**50), r"out of memory \(.*allocate.*\); take a smaller batch, size.*", 1),
    (lambda _: bytearray(2**62), r"out of memory \(no memory is left\); take a smaller batch.*", 1),
])  # fmt: skip
def test_errors_and_interruptions_end_in_one_line(fail, line, status, monkeypatch, capsys):
    monkeypatch.setattr(recorded, "summary", fail)
    code, printed = ended(monkeypatch, "results"), capsys.readouterr().err
    assert re.fullmatch(f"setclr: {line}", code if status == 1 else printed.removesuffix("\n"))
    assert printed == "" if status == 1 else code == status


def test_a_second_signal_ends_it_at_once(monkeypatch):
    def in_order(_):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(recorded, "summary", in_order)
    monkeypatch.setattr(os, "_exit", sys.exit)
    assert ended(monkeypatch, "results") == 143


UNTRAINED = replace(RECIPES["photo-infonce"], epochs=0)
NO_DEVICE = "device must be one that torch finds here"
NO_SEED = "seed must be an integer >= 0 and <= 9223372036854775807"


@pytest.mark.parametrize("line, said", [
    ("pretrain photo-infonce --out two --device gpu", NO_DEVICE), ("evaluate run --device gpu", NO_DEVICE),
    ("campaign photo-infonce --device gpu", NO_DEVICE), ("embed run . --device cuda:99", NO_DEVICE),
    ("campaign photo-infonce --seeds -1", NO_SEED), (f"search photo-infonce --seeds {2**63}", NO_SEED),
])  # fmt: skip
def test_impossible_devices_and_seeds_are_refused_before_training(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new_run(UNTRAINED, 3).save(tmp_path / "run")
    with pytest.raises(ValueError, match=said):
        main(line.split())
    assert [path.parent.name for path in tmp_path.rglob("*.pt")] == ["run"]


def test_a_record_is_written_before_anything_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new_run(UNTRAINED, 3).save("run")
    monkeypatch.setattr("builtins.print", raising(BrokenPipeError))
    with pytest.raises(BrokenPipeError):
        main(["evaluate", "run", "--record", "r.json", "--device", "cpu"])
    record = read_record(Path("r.json"))
    assert (record.epochs, record.precision) == (0, "float32")


@pytest.mark.parametrize("message, typed", [
    ("choose another results=, or resume=False to", "choose another --results, or --no-resume to"),
    ("got 4; key_momentum=0.999 adds one", "got 4; --key-momentum 0.999 adds one"),
    ("loss must be one, got InfoNCE(temperature=0.5)", "loss must be one, got InfoNCE(temperature=0.5)"),
    ("data/a=b: nothing there", "data/a=b: nothing there"),
    ("got 'a=b'; lr=1, please", "got 'a=b'; --lr 1, please"),
])  # fmt: skip
def test_options_are_spelt_as_a_shell_has_them(message, typed):
    assert as_typed(message) == typed

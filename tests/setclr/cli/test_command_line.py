"""setclr, or python -m setclr, as a user types it."""

import json
import os
import pty
import re
import shlex
import site
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pictures import saved, smooth

import setclr
from setclr import data, experiments, losses
from setclr.cli import as_typed, main, run
from setclr.data import ImageSet
from setclr.experiments import load_run
from setclr.experiments.run import new_run
from setclr.models import ENCODERS
from setclr.recipes import RECIPES, ImageRecipe, registry
from setclr.training.interruption import Interrupted
from setclr_course import run_page
from setclr_course.papers.collection import PAPERS

HOUSE = str(Path(setclr.__file__).parent.parent)


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    images = torch.randint(0, 256, (60, 3, 16, 16), dtype=torch.uint8)
    few = ImageSet(images, torch.arange(60) % 3, tuple("abc"))
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: replace(few))  # two splits are two sets


TWENTY = ["--batch", "20", "--device", "cpu", "--precision", "float32"]


def test_train_then_evaluate_and_record_then_embed_and_export(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["pretrain", "photo-groco", "--out", "run", "--epochs", "1", *TWENTY])
    assert "images_per_s" in capsys.readouterr().out
    main(["evaluate", "run", "--record", "results/r.json", "--pixels", "noise"])
    shown = capsys.readouterr().out
    assert all(row in shown for row in ("raw pixels", "untrained", "trained", "linear"))
    kept = json.loads(Path("results/r.json").read_text())
    assert kept["epochs"] == 1 and kept["pixels"] == "noise" and kept["recipe"]["batch"] == 20
    assert kept["images"] == {"train": 60, "test": 60}
    assert set(kept["accuracy_percent"]) == {"raw pixels", "untrained", "trained"}
    assert {"device", "torch", "python", "processors"} == set(kept["machine"])
    assert kept["evaluated_with"].startswith("python -m setclr evaluate")
    assert kept["version"] == setclr.__version__

    saved(Path("photographs"), smooth(2, 40, 50))
    main(["embed", "run", "photographs", "--device", "cpu"])
    assert "run/features-photographs.npz: features of 2 images, 64 each" in capsys.readouterr().out
    main(["embed", "run", "photographs", "--out", "x.npz", "--size", "24", "--batch", "1"])
    with np.load("run/features-photographs.npz") as first, np.load("x.npz") as second:
        assert first["paths"].tolist() == second["paths"].tolist() == ["000.png", "001.png"]
        assert first["features"].shape == (2, 64) and not np.allclose(first["features"], second["features"])
    main(["export", "run"])
    assert "conv4, 3 channels" in capsys.readouterr().out and "0.weight" in torch.load("run/encoder.pt")
    main(["export", "run", "--out", "e.pt"])
    assert Path("e.pt").exists()
    for name in ("a.png", "b.jpg", "notes.md"):
        Path("photographs", name).write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"a.png is no image .*; .*b.jpg is no image"):
        main(["embed", "run", "photographs", "--device", "cpu", "--verify"])
    capsys.readouterr()
    main(["embed", "run", "photographs", "--device", "cpu", "--skip-damaged"])
    shown = capsys.readouterr().out
    assert "features of 2 images" in shown and shown.count("left out: ") == 2 and "1 .md" in shown


def test_a_path_may_begin_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    main(["pretrain", "photo-infonce", "--out=~/run", "--epochs", "0", *TWENTY])
    main(["export", "~/run"])
    assert (tmp_path / "home/run/encoder.pt").is_file() and not (tmp_path / "~").exists()


def test_labels_are_given_to_the_loss_where_the_command_says_so(tmp_path):
    first = []
    for labels in ("--labels", "--no-labels"):
        out = tmp_path / labels
        main(["pretrain", "photo-infonce", "--out", str(out), "--epochs", "1", labels, *TWENTY])
        first.append(load_run(out).rows[0]["loss"])
    assert first[0] != first[1]
    with pytest.raises(ValueError, match="labels must be True for SupCon"):
        main(["pretrain", "supervised-photo", "--out", str(tmp_path / "not"), "--no-labels"])


def test_from_the_command_to_the_run_a_recipe_is_made_once_and_its_loss_parsed_once(tmp_path, monkeypatch):
    made, parsed = [], []
    check, parse = ImageRecipe.__post_init__, losses.parse
    monkeypatch.setattr(ImageRecipe, "__post_init__", lambda self: (made.append(self), check(self))[1])
    monkeypatch.setattr(losses, "parse", lambda text: (parsed.append(text), parse(text))[1])
    main(["pretrain", "photo-sparseclr+qare", "--out", str(tmp_path), "--epochs", "0", *TWENTY])
    assert [(recipe.epochs, recipe.batch) for recipe in made] == [(0, 20)]
    assert parsed == [RECIPES.fields["photo-sparseclr+qare"]["loss"]]


def test_no_epochs_are_evaluated_and_recorded_as_random_weights(tmp_path, capsys):
    out, result = tmp_path / "run", tmp_path / "results" / "r.json"
    main(["pretrain", "photo-groco", "--out", str(out), "--epochs", "0", *TWENTY])
    assert capsys.readouterr().out == "no epochs: random weights\n"
    main(["evaluate", str(out), "--record", str(result), "--all"])
    kept = json.loads(result.read_text())["accuracy_percent"]
    assert kept["trained"] == kept["untrained"]
    main(["results", str(result.parent)])
    assert "conv4, 0" in capsys.readouterr().out


def test_data_takes_root_and_size(monkeypatch, capsys):
    asked, load = [], data.load
    monkeypatch.setattr(data, "load", lambda *args: asked.append(args) or load())
    main(["data", "folder:x", "--root", "elsewhere", "--size", "48"])
    assert [(name, str(root), split, size) for name, root, split, size, *_ in asked] == [
        ("folder:x", "elsewhere", "train", 48),
        ("folder:x", "elsewhere", "test", 48),
    ]


def test_lists(capsys):
    main(["recipes", "photo", "groco"])
    assert capsys.readouterr().out.count("\n") == 2
    main(["data"])
    assert capsys.readouterr().out.split() == [*data.NAMES, *PAPERS.data]
    main(["data", "photo-patches"])
    assert "60 images" in capsys.readouterr().out


def test_data_sets_that_a_package_registers_are_loaded_by_name(monkeypatch, capsys):
    asked = []

    def toy(root, size):
        asked.append((root, size))
        return {"train": data.load(), "all": data.load()}

    one = SimpleNamespace(recipes={}, published={}, protocols={}, data={"toy": toy})
    monkeypatch.setattr(registry, "collections", lambda: (one,))
    main(["data", "toy", "--size", "16", "--root", "there"])
    assert asked == [(Path("there"), 16)]
    assert re.findall(r"toy (\w+): <ImageSet: 60 images", capsys.readouterr().out) == ["train", "all"]


DEFAULTS = ImageRecipe.defaults()


def shown(capsys, *words: str) -> str:
    """The help of a command, its lines joined again."""
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help"])
    assert not stopped.value.code
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize(
    "command, words",
    [
        ("recipes", ["[WORD ...]"]),
        ("data", ["[NAME ...]", "--root", "--size", *data.NAMES]),
        ("pretrain", ["RECIPE", "--out", "--resume, --no-resume", "--device", "cuda", *DEFAULTS]),
        ("campaign", ["FILTER", "--data", "--pixels", "--seeds", "--epochs", *data.NAMES]),
        ("search", ["FILTER", "--seeds", "--results", "data/results/search"]),
        ("evaluate", ["RUN", "--record", "--all", "--pixels", "--device"]),
        ("embed", ["RUN FOLDER", "--out", "--size", "--batch"]),
        ("export", ["RUN", "--out"]),
        ("results", ["FOLDER", "data/results"]),
    ],
)
def test_every_command_shows_its_own_options(command, words, capsys):
    text = shown(capsys, command)
    assert text.startswith(f"usage: setclr {command} ")
    for word in words:
        assert (f"--{word.replace('_', '-')}" if word in DEFAULTS else word) in text
    main([])
    assert f"\n{command} " in capsys.readouterr().out


def test_allowed_values_stand_in_the_help(capsys):
    text = shown(capsys, "pretrain", "photo-groco").replace(", ", ",")
    for field, options in {
        **ImageRecipe.CHOICES,
        "data": data.NAMES,
        "encoder": [*ENCODERS, "timm:NAME"],
    }.items():
        assert f"--{field.replace('_', '-')} {{{','.join(options)}}}" in text
    assert "(default: 'GroCo(beta=1.0,negatives=10)')" in text


def test_the_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"setclr {setclr.__version__}\n"


def test_what_needs_no_packages_loads_none_and_the_options_of_most_commands_come_without_torch():
    script = """
import sys
from setclr.cli import main
for words in ([], ["--help"], ["--version"]):
    main(words)
heavy = {"torch", "numpy", "scipy", "tyro", "pandas", "PIL", "difflib", "inspect"} & set(sys.modules)
assert not heavy, heavy
sys.path += sys.argv[1:]
try:
    main(["evaluate", "--help"])
finally:
    assert "torch" not in sys.modules
"""
    command = [sys.executable, "-S", "-c", script, *site.getsitepackages()]
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONPATH": HOUSE})


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["pretran"], "command must be one of .*did you mean 'pretrain'"),
        (["pretrain", "photo-infnce"], "recipe must be one of .*did you mean 'photo-infonce'"),
        (["pretrain"], "recipe must be one of .*it comes first"),
        (["pretrain", "--out", "x"], "recipe must be one of .*it comes first"),
        (["pretrain", "photo-groco", "--out", "x", "--loss", "Groco()"], "did you mean 'GroCo'"),
        (["pretrain", "photo-groco", "--out", "x", "--views", "simcl"], "did you mean 'simclr'"),
        (["pretrain", "photo-groco", "--out", "x", "--encoder", "conv"], "did you mean 'conv4'"),
        (["pretrain", "photo-groco", "--out", "x", "--epoch", "2"], "--epoch, 2; .* --epochs INT"),
        (["pretrain", "photo-groco", "--out", "x", "--epochs", "two"], "--epochs: .*'two'"),
        (["pretrain", "photo-groco"], "Missing .* --out PATH"),
        (["evaluate"], "Missing .* RUN Folder that `pretrain` wrote"),
        (["evaluate", "x", "--devise", "cpu"], "--devise, cpu; .* --device .*; setclr evaluate --help lists"),
        (["campaign", "photo", "--seeds", "one"], "--seeds: .*'one'"),
        (["recipes", "photo-infnce"], "nearest are photo-infonce"),
    ],
)
def test_misspelt_words_get_a_line_with_the_nearest(arguments, message, capsys):
    with pytest.raises(ValueError, match=message) as error:
        main(arguments)
    assert "\n" not in str(error.value) and "─" not in str(error.value)
    assert capsys.readouterr() == ("", "")


HOSTILE = r"""
pretrain | pretrain --help-me | pretrain photo-infonce | pretrain photo-infonce --lr abc
pretrain photo-infonce --out | pretrain photo-infonce --out x --lr abc | pretrain photo-infonce --out x --lr
pretrain photo-infonce --out x --compiled maybe | pretrain photo-infonce --out x more
pretrain photo-infonce --out x --resume maybe | pretrain photo-infonce --out x --images=-3x
pretrain photo-infonce --out x --optimiser "" | pretrain photo-infonce --out x --lr nan | pretrain "" --out x
campaign | campaign "" | campaign "" --seeds | campaign - | campaign @0 | campaign photo@ | campaign a b
campaign photo --seeds 1.5 | campaign photo --lr | campaign photo --lr fast | campaign -- --x
campaign photo-infonce --protocol simclr
search | search "" | search --all x y | search photo --seeds x | search qare-table9 --device warp
evaluate | evaluate nowhere | evaluate x y | evaluate x --al | evaluate x --record | evaluate x --lr 3
embed | embed x | embed nowhere nowhere | embed x y --batch many | embed x y --size "\n" | embed x y z
export | export x --out | export nowhere | export x "--\x1b[31mred"
evaluate nowhere --all | embed ~nobody-here/run x | pretrain ~nobody-here
results nowhere | results a b | results --x | data --size big | data --root | data x --verify maybe
data cifra10 | data folder:nowhere | data pairs:nowhere | data "" | data "cifar10\ncifar10"
recipes --x | recipes zzz | -x | -- | "\n" | PRETRAIN | "pretrain photo-infonce" | help
"""


@pytest.mark.parametrize(
    "line", [one.strip() for one in HOSTILE.replace("\n", "|").split("|") if one.strip()]
)
def test_whatever_is_typed_wrong_gets_one_line_and_a_status(line, monkeypatch, tmp_path, capsys):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    words = [word.encode().decode("unicode_escape") for word in shlex.split(line)]
    monkeypatch.setattr(sys, "argv", ["setclr", *words])
    with pytest.raises(SystemExit) as stopped:
        run()
    said = str(stopped.value.code)
    assert said.startswith("setclr: ") and said.isprintable() and len(said) > 20
    assert "; ;" not in said and ": ;" not in said and "helptext" not in said
    assert capsys.readouterr() == ("", "") and not list(tmp_path.iterdir())


def test_in_a_terminal_it_is_one_line_without_colours_too():
    reading, terminal = pty.openpty()
    command = [sys.executable, "-m", "setclr", "data", "--size", "big"]
    ended = subprocess.run(command, stdout=terminal, stderr=terminal, env=os.environ | {"TERM": "xterm"})
    os.close(terminal)
    said = os.read(reading, 10_000).decode()
    os.close(reading)
    assert ended.returncode == 1 and said.startswith("setclr: data: Error parsing --size: ")
    assert said.count("\n") == 1 and "\x1b" not in said and "│" not in said


@pytest.mark.parametrize("command", ["campaign", "search"])
@pytest.mark.parametrize("filter", [[], [""], ["-"], ["@0,1"]])
def test_all_recipes_are_started_only_when_all_are_asked_for(command, filter, monkeypatch, capsys):
    asked = []
    where = run_page if command == "search" else experiments
    monkeypatch.setattr(where, command, lambda *given, **_: asked.append(given) or [])
    seeds = 2 if filter == ["@0,1"] else 3
    with pytest.raises(ValueError, match=rf"all {len(RECIPES)}: {seeds * len(RECIPES)} runs; .*add --all"):
        main([command, *filter, "--seeds", "3", "4", "5"])
    assert not asked
    main([command, *filter, "--all"])
    assert len(asked[0][0]) == len(RECIPES)


def test_a_campaign_as_it_is_typed(monkeypatch, tmp_path, capsys):
    asked = []
    monkeypatch.setattr(
        experiments, "campaign", lambda *given, **named: asked.append((*given, named)) or ["done"]
    )
    words = ["campaign", "compare-conv4-i", "--data", "folder:x", "--pixels", "JPEG q75", "--seeds", "3", "4"]
    main([*words, "--runs", str(tmp_path), "--lr", "0.1", "--compiled", "no"])
    ((recipes, seeds, runs, results, root, device, pixels, typed, protocol, named),) = asked
    assert set(recipes) == {name for name in RECIPES if "compare-conv4-i" in name}
    assert {(one.data, one.lr) for one in recipes.values()} == {("folder:x", 0.1)}
    assert (seeds, runs, str(results), str(root), device) == ((3, 4), tmp_path, "data/results", "data", None)
    assert pixels == "JPEG q75" and typed.startswith("python -m setclr campaign compare-conv4-i --data")
    assert protocol is None and named == {"compiled": False}
    assert "--pixels 'JPEG q75'" in typed and capsys.readouterr().out == "done\n"


@pytest.mark.parametrize(
    "raised, line, status",
    [
        (ValueError("that is wrong"), "that is wrong", 1),
        (ModuleNotFoundError("setclr needs more"), "setclr needs more", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (Interrupted("stopped after step 3", 15), "stopped after step 3", 143),
    ],
)
def test_errors_and_interruptions_end_in_one_line(raised, line, status, monkeypatch, capsys):
    def fail(folder):
        raise raised

    monkeypatch.setattr(experiments, "summary", fail)
    monkeypatch.setattr(sys, "argv", ["setclr", "results"])
    with pytest.raises(SystemExit) as stopped:
        run()
    said = capsys.readouterr().err or f"{stopped.value.code}\n"
    assert said == f"setclr: {line}\n"
    assert stopped.value.code == (f"setclr: {line}" if status == 1 else status)


def test_a_text_that_no_terminal_shows_is_one_line_too(monkeypatch, tmp_path):
    for typed, said in (("a\tb\n\x1b[2J", r"a\tb\n\x1b[2J/checkpoint.pt: no"), ("9" * 9000, "999 … 999")):
        monkeypatch.setattr(sys, "argv", ["setclr", "export", typed])
        with pytest.raises(SystemExit) as stopped:
            run()
        line = stopped.value.code
        assert line.isprintable() and len(line) < 3000 and said in line


def test_a_reader_that_has_enough_ends_it_quietly():
    """As `setclr --help | head -n 0` does: nobody reads the pipe any more."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "setclr", "--help"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def untrained(out):
    new_run(replace(RECIPES["photo-infonce"], epochs=0), 3).save(out)


@pytest.mark.parametrize("command", ["pretrain", "campaign", "evaluate", "embed"])
@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_a_line_for_every_command(tmp_path, command, device):
    out = tmp_path / "run"
    untrained(out)
    words = {
        "pretrain": ["photo-infonce", "--out", str(tmp_path / "two"), "--batch", "20"],
        "campaign": ["photo-infonce"], "evaluate": [str(out)], "embed": [str(out), str(tmp_path)],
    }[command]  # fmt: skip
    if command == "campaign":
        words += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    with pytest.raises(ValueError, match="device must be one that torch finds here"):
        main([command, *words, "--device", device])


@pytest.mark.parametrize("seed", ["-1", str(2**63)])
@pytest.mark.parametrize("command", ["pretrain", "campaign", "search"])
def test_a_seed_beyond_64_bits_is_refused_before_anything_is_trained(tmp_path, command, seed):
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    rest = (
        ["--out", str(tmp_path / "runs"), f"--seed={seed}"]
        if command == "pretrain"
        else [*places, "--seeds", seed]
    )
    with pytest.raises(ValueError, match="seed must be an integer >= 0 and <= 9223372036854775807"):
        main([command, "photo-infonce", *rest, "--device", "cpu"])
    assert not list(tmp_path.rglob("*.pt"))


def test_a_record_is_written_before_anything_is_printed(tmp_path, monkeypatch):
    out, result = tmp_path / "run", tmp_path / "r.json"
    untrained(out)

    def closed(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    with pytest.raises(BrokenPipeError):
        main(["evaluate", str(out), "--record", str(result), "--device", "cpu"])
    assert json.loads(result.read_text())["epochs"] == 0


@pytest.mark.parametrize(
    "said, typed",
    [
        ("choose another out=, or resume=False to replace it", "choose another --out, or --no-resume to"
                                                               " replace it"),
        ("got 4; key_momentum=0.999 adds one", "got 4; --key-momentum 0.999 adds one"),
        ("loss must be one, got InfoNCE(temperature=0.5)", "loss must be one, got InfoNCE(temperature=0.5)"),
        ("data/a=b: nothing there", "data/a=b: nothing there"),
        ("got 'a=b'; lr=1, please", "got 'a=b'; --lr 1, please"),
    ],
)  # fmt: skip
def test_options_are_spelt_as_a_shell_has_them(said, typed):
    assert as_typed(said) == typed

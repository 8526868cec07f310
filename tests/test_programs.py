"""The programs beside the library, as one starts them: the examples, `make torture`, a campaign on a GPU.

Every example asserts that its loss went down. Torture finds what it looks for, and nothing in a first trial.
The campaign runs on the CPU, with few images.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from conftest import shifted
from PIL import Image

from setclr.recipes import ImageRecipe

ROOT = Path(__file__).parent.parent
TORTURE = ROOT / "tests" / "tools" / "torture"
sys.path.insert(0, str(TORTURE))
import gpu_campaign  # noqa: E402

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
STARTED = {"plain_ddp": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]}
SHORT = {"simclr_cifar10": ["--data", "photo-patches", "--root", str(ROOT / "data"), "--epochs", "2",
                            "--encoder", "conv4"]}  # fmt: skip
NEEDS = {"lightning_module": ["lightning"], "hugging_face": ["transformers", "accelerate"]}


def test_examples_are_short():
    assert len(EXAMPLES) == 4 and all(len(path.read_text().splitlines()) <= 120 for path in EXAMPLES)


@pytest.mark.processes
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_its_loss_goes_down(path, tmp_path):
    for package in NEEDS.get(path.stem, []):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install -e '.[examples]'")
    command = [sys.executable, *STARTED.get(path.stem, []), path, *SHORT.get(path.stem, [])]
    offline = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=offline, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss" in done.stdout and "->" in done.stdout
    assert not list(tmp_path.iterdir()), "an example left files behind"


@pytest.mark.careful
def test_first_trials_count_something_and_everything_holds():
    done = subprocess.run([sys.executable, TORTURE, "0", "1", "2"], capture_output=True, text=True)
    assert done.returncode == 0 and "1 fitted again, 3 trials, 1 ties, 1 no file, 0 did" in done.stdout


@pytest.fixture
def folder(tmp_path) -> Path:
    """40 images of noise of 32 px, in two classes, and 10 to test with."""
    drawn = torch.randint(256, (50, 32, 32, 3), dtype=torch.uint8, generator=shifted(0)).numpy()
    for i, pixels in enumerate(drawn):
        place = tmp_path / "noise" / ("train" if i < 40 else "val") / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{i}.png")
    return tmp_path


def of_campaign(folder: Path, *more: str) -> tuple[str, list[str]]:
    """The lines that a campaign wrote, and the names in its archive."""
    argv = [*more, "--data", f"folder:{folder / 'noise'}", "--device", "cpu", "--out", str(folder / "out")]
    gpu_campaign.main([*argv, "--runs", str(folder / "runs"), "--commit", "abc"])
    with tarfile.open(folder / "out" / "campaign.tar.gz") as tar:
        return tar.extractfile("log.txt").read().decode(), tar.getnames()


def test_a_campaign_on_a_gpu_does_what_its_budget_allows_and_says_what_fails(folder, monkeypatch):
    """One run ends and is recorded, one has too few images, one cannot end, and one like it is not begun."""
    short = ImageRecipe("InfoNCE()", batch=20, epochs=3)
    long = replace(short, epochs=10**6, batch=10)
    recipes = {"ends": short, "fails": replace(short, batch=512), "diverges": replace(short, lr=1e9)}
    recipes |= {"long": long, "alike": replace(long, lr=0.1)}
    monkeypatch.setattr(gpu_campaign, "RECIPES", recipes)
    monkeypatch.setattr(gpu_campaign, "campaign", partial(gpu_campaign.campaign, compiled=False))  # at once
    lines, packed = of_campaign(folder, *recipes, "--budget", "900", "--reserve", "10")
    for part in (
        "packages missing: none", "the code is that of commit abc", "ends-seed0: an epoch takes",
        "ends-seed0: knn", "fails: ValueError: batch must be", "diverges-seed0: the ",
        "long-seed0: an epoch takes", "long: left after 2 epochs", "alike: not begun: 1000000 epochs",
    ):  # fmt: skip
        assert f"  {part}" in lines or f"; {part}" in lines, lines
    kept = {"records/ends-seed0.json", "ends-seed0/history.csv", "long-seed0/history.csv"}
    assert kept | {"log.txt"} <= set(packed) and len(lines.splitlines()) == 9
    record = json.loads((folder / "runs" / "records" / "ends-seed0.json").read_text())
    assert (record["pixels"], record["epochs"], record["recipe"]["seed"]) == ("original", 3, 0)


def test_a_campaign_on_a_gpu_that_is_stopped_leaves_its_archive(folder, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt("stopped after step 7")

    monkeypatch.setattr(gpu_campaign, "pretrain", stopped)
    with pytest.raises(SystemExit):
        of_campaign(folder, "cifar10-infonce")
    assert "stopped: stopped after step 7" in capsys.readouterr().out
    assert (folder / "out" / "campaign.tar.gz").exists()
    monkeypatch.setattr(gpu_campaign, "pretrain", lambda *_, **__: torch.empty(10**14))
    lines, _ = of_campaign(folder, "cifar10-infonce")
    assert "RuntimeError" in lines and "needs less memory" in lines
    with pytest.raises(SystemExit):
        of_campaign(folder, "no-such")
    assert "there is no recipe 'no-such'" in capsys.readouterr().err

"""The programs beside the library, as one starts them: the examples, `make torture`.

Every example asserts that its loss went down. Torture finds what it looks for, and nothing in a first trial.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TORTURE = ROOT / "tests" / "tools" / "torture"

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
@pytest.mark.parametrize("part, counted", [("kills", "1 bit-identical"), ("losses", "finite, ")])
def test_a_first_trial_counts_something_and_everything_holds(part, counted):
    done = subprocess.run([sys.executable, TORTURE, part, "0"], capture_output=True, text=True)
    assert done.returncode == 0 and counted in done.stdout and "1 trials, 0 did not hold" in done.stdout

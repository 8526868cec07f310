"""The examples run end to end, each as a reader starts it. Every one asserts that its loss went down."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parent.parent / "examples"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SHORT = {"simclr_cifar10": ["--data", "photo-patches", "--root", str(EXAMPLES.parent / "data"),
                            "--epochs", "2", "--encoder", "conv4"]}  # fmt: skip
NEEDS = {"plain_ddp": [], "simclr_cifar10": [], "lightning_module": ["lightning"],
         "hugging_face": ["transformers", "accelerate"]}  # fmt: skip


def test_every_example_is_in_the_list_and_short():
    assert all(len(path.read_text().splitlines()) <= 120 for path in EXAMPLES.glob("*.py"))
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_an_example_runs_and_its_loss_goes_down(name, tmp_path):
    for package in NEEDS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install -e '.[examples]'")
    start = TORCHRUN if name == "plain_ddp" else []
    command = [sys.executable, *start, str(EXAMPLES / f"{name}.py"), *SHORT.get(name, [])]
    offline = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **offline}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss" in done.stdout and "->" in done.stdout
    assert not list(tmp_path.iterdir()), "an example left files behind"

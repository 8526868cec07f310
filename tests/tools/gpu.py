"""make gpu: everything that needs a GPU, once, and what came out as a file to be committed.

Measures losses in the loop (tests/tools/bench.py loop), trains compare-resnet18 for one epoch on
random images of CIFAR-10's shape, and runs the CUDA tests. Writes data/results/gpu/NAME.json, NAME the GPU's.

Two modes do other things. `gpu.py campaign` trains within a budget of seconds (gpu_campaign.py), `gpu.py
step` says how long a training step takes there (gpu_step.py).
"""

import contextlib
import importlib
import io
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from setclr import pretrain
from setclr.data import ImageSet
from setclr.experiments.records import describe_machine, library
from setclr.recipes import RECIPES

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "compare-resnet18-infonce"


def tests() -> str:
    """pytest's closing line. Only files that have such a test are read: the others ask for more packages."""
    files = [str(file) for file in ROOT.glob("tests/**/test_*.py") if "mark.gpu" in file.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-n", "8", "--tb", "short", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout)
    return done.stdout.strip().splitlines()[-1]


def printed(bench) -> list[str]:
    """The lines that a bench prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        bench()
    print(said.getvalue())
    return said.getvalue().strip().splitlines()


def epoch() -> dict:
    """One epoch of ResNet-18 on 50,000 random images of 32 px: its speed, not what it learns."""
    pixels = torch.randint(0, 256, (50_000, 3, 32, 32), dtype=torch.uint8)
    images = ImageSet(pixels, torch.zeros(len(pixels)).long(), ("noise",))
    started = time.perf_counter()
    run = pretrain(replace(RECIPES[RECIPE], epochs=1), data=images, device="cuda", compiled=True)
    seconds = time.perf_counter() - started
    row = run.rows[0]
    return {"recipe": RECIPE, "precision": run.precision, "compiled": run.compiled,
            "seconds": seconds, "images_per_s": row["images_per_s"], "loss": row["loss"]}  # fmt: skip


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("make gpu needs a CUDA device, and torch finds none; make test needs none")
    import bench  # what it imports is not on every machine

    found = {
        "machine": describe_machine(torch.nn.Linear(1, 1).cuda()), "cuda": torch.version.cuda, **library(),
        "command": "make gpu", "loop": printed(bench.loop),
        "epoch": epoch(), "tests": tests(),
    }  # fmt: skip
    name = re.sub(r"[^a-z0-9]+", "-", torch.cuda.get_device_name().lower()).strip("-")
    path = ROOT / "data" / "results" / "gpu" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{path.relative_to(ROOT)}: please commit it")


if __name__ == "__main__":
    mode, *more = sys.argv[1:] or [""]
    if mode:
        importlib.import_module(f"gpu_{mode}").main(more)
    else:
        main()

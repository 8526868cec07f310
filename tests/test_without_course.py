"""Every command where the course is not installed: it works without it, or says what is missing."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import numpy_shifted
from PIL import Image

from setclr.recipes import PUBLISHED

SCRIPT = """
import contextlib, io, json, sys
sys.modules["setclr_course"] = None
from setclr.cli import main
said = {}
for line in json.loads(sys.argv[1]):
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            main(line.split())
        said[line] = told.getvalue()
    except (ValueError, SystemExit) as error:
        said[line] = f"{type(error).__name__}: {error}"
json.dump(said, open(sys.argv[2], "w"))
"""
SHORT = "--epochs 1 --batch 8 --data folder:tree"
WORKS = {  # with a word that it says
    "recipes photo-groco": "--last-norm",
    "data": "photo-patches",
    f"pretrain photo-infonce --out run {SHORT} --precision float32": "seconds",
    f"campaign photo-infonce@0 {SHORT}": "photo-infonce-seed0: knn",
    "recipes graphs groco": "graphs-proteins-groco",
    "recipes moving": "moving-rgb-groco",
    "evaluate run --record record.json": "untrained",
    "embed run tree --size 16": "features of 32 images",
    "export run": "conv4, 3 channels",
    "results data/results": "photo-infonce",
}
NEEDS = [
    "recipes qare-table2-conv4-cifar10-simclr", "pretrain qare-table2-conv4-cifar10-simclr --out other",
    "campaign qare-table2", "search groco-table8a", "evaluate run --protocol groco", "evaluate run --all",
]  # fmt: skip
MISSING = "with the course, which is not installed: clone the repository and run `make`"


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """What each command says, all of them in one process of their own."""
    folder, drawn = tmp_path_factory.mktemp("without"), numpy_shifted(0)
    for split in ("train", "val"):
        for kind in ("a", "b"):
            place = folder / "tree" / split / kind
            place.mkdir(parents=True)
            for i in range(8):
                Image.fromarray(drawn.integers(0, 256, (16, 16, 3), np.uint8)).save(place / f"{i}.png")
    arguments = [json.dumps(["recipes", *WORKS, *NEEDS]), str(folder / "said.json")]
    subprocess.run([sys.executable, "-c", SCRIPT, *arguments], cwd=folder, check=True, capture_output=True)
    assert (folder / "run" / "encoder.pt").exists() and (folder / "run" / "features-tree.npz").exists()
    return json.loads((folder / "said.json").read_text())


@pytest.mark.parametrize("line", WORKS)
def test_what_needs_no_paper_works(line, said):
    assert WORKS[line] in said[line] and "Error" not in said[line]


@pytest.mark.parametrize("line", NEEDS)
def test_what_needs_the_course_says_so_in_one_line(line, said):
    assert said[line].startswith("ValueError: ") and MISSING in said[line] and "\n" not in said[line]


def test_a_list_ends_with_what_is_missing(said):
    *names, last = said["recipes"].splitlines()
    assert last.endswith(MISSING) and any(line.startswith("compare-photo-groco") for line in names)
    assert not any(line.startswith(tuple(PUBLISHED)) for line in names)

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
for words in json.loads(sys.argv[1]):
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            main(words)
        said[" ".join(words)] = told.getvalue()
    except (ValueError, SystemExit) as error:
        said[" ".join(words)] = f"{type(error).__name__}: {error}"
json.dump(said, open(sys.argv[2], "w"))
"""
PAPERS = "qare-table2-conv4-cifar10-simclr"
SHORT = ["--epochs", "1", "--batch", "8", "--data", "folder:tree"]
# What works, with a word that it says; what needs the course; and a list that ends with what is missing.
WORKS = {
    "one recipe": (["recipes", "photo-groco"], "--last-norm"),
    "data": (["data"], "photo-patches"),
    "pretrain": (["pretrain", "photo-infonce", "--out", "run", *SHORT, "--precision", "float32"], "seconds"),
    "campaign": (["campaign", "photo-infonce@0", *SHORT], "photo-infonce-seed0: knn"),
    "graphs": (["recipes", "graphs", "groco"], "graphs-proteins-groco"),
    "video": (["recipes", "moving"], "moving-rgb-groco"),
    "evaluate": (["evaluate", "run", "--record", "record.json"], "untrained"),
    "embed": (["embed", "run", "tree", "--size", "16"], "features of 32 images"),
    "export": (["export", "run"], "conv4, 3 channels"),
    "results": (["results", "data/results"], "photo-infonce"),
}
NEEDS = {
    "a paper's row": ["recipes", PAPERS],
    "pretrain a paper's row": ["pretrain", PAPERS, "--out", "other"],
    "campaign of papers": ["campaign", "qare-table2"],
    "search": ["search", "groco-table8a"],
    "evaluate by a paper's protocol": ["evaluate", "run", "--protocol", "groco"],
    "the page of a run": ["evaluate", "run", "--all"],
}
COMMANDS = {"recipes": ["recipes"], **{name: words for name, (words, _) in WORKS.items()}, **NEEDS}
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
    arguments = [json.dumps(list(COMMANDS.values())), str(folder / "said.json")]
    subprocess.run([sys.executable, "-c", SCRIPT, *arguments], cwd=folder, check=True, capture_output=True)
    found = json.loads((folder / "said.json").read_text())
    assert (folder / "run" / "encoder.pt").exists() and (folder / "run" / "features-tree.npz").exists()
    return {name: found[" ".join(words)] for name, words in COMMANDS.items()}


@pytest.mark.parametrize("name", WORKS)
def test_what_needs_no_paper_works(name, said):
    assert WORKS[name][1] in said[name] and "Error" not in said[name]


@pytest.mark.parametrize("name", NEEDS)
def test_what_needs_the_course_says_so_in_one_line(name, said):
    assert said[name].startswith("ValueError: ") and MISSING in said[name] and "\n" not in said[name]


def test_a_list_ends_with_what_is_missing(said):
    *names, last = said["recipes"].splitlines()
    assert last.endswith(MISSING) and any(line.startswith("compare-photo-groco") for line in names)
    assert not any(line.startswith(tuple(PUBLISHED)) for line in names)

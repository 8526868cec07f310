"""Every command where the course is not installed: it works without it, or says what is missing."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from conftest import numpy_shifted
from PIL import Image

from setclr.recipes import PUBLISHED, RECIPES

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
COMMANDS = {
    "recipes": ["recipes"],
    "one recipe": ["recipes", "photo-groco"],
    "a paper's row": ["recipes", PAPERS],
    "data": ["data"],
    "pretrain": ["pretrain", "photo-infonce", "--out", "run", "--epochs", "1", "--batch", "8", "--precision",
                 "float32", "--data", "folder:tree"],
    "pretrain a paper's row": ["pretrain", PAPERS, "--out", "other"],
    "campaign": ["campaign", "photo-infonce@0", "--epochs", "1", "--batch", "8", "--data", "folder:tree"],
    "campaign of papers": ["campaign", "qare-table2"],
    "search": ["search", "groco-table8a"],
    "graphs": ["recipes", "graphs", "groco"],
    "video": ["recipes", "moving"],
    "evaluate": ["evaluate", "run", "--record", "record.json"],
    "evaluate by a paper's protocol": ["evaluate", "run", "--protocol", "groco"],
    "the page of a run": ["evaluate", "run", "--all"],
    "embed": ["embed", "run", "tree", "--size", "16"],
    "export": ["export", "run"],
    "results": ["results", "data/results"],
}  # fmt: skip
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


@pytest.mark.parametrize("name, expected", [
    ("recipes", "compare-photo-groco"), ("one recipe", "--last-norm"), ("data", "photo-patches"),
    ("pretrain", "seconds"), ("campaign", "photo-infonce-seed0: knn"), ("graphs", "graphs-proteins-groco"),
    ("video", "moving-rgb-groco"), ("evaluate", "untrained"), ("embed", "features of 32 images"),
    ("export", "conv4, 3 channels"), ("results", "photo-infonce"),
])  # fmt: skip
def test_what_needs_no_paper_works(name, expected, said):
    assert expected in said[name] and "Error" not in said[name]


@pytest.mark.parametrize("name", [
    "a paper's row", "pretrain a paper's row", "campaign of papers", "search",
    "evaluate by a paper's protocol", "the page of a run",
])  # fmt: skip
def test_what_needs_the_course_says_so_in_one_line(name, said):
    assert said[name].startswith("ValueError: ") and MISSING in said[name] and "\n" not in said[name]


@pytest.mark.parametrize("name", ["recipes"])
def test_a_list_ends_with_what_is_missing(name, said):
    *names, last = said[name].splitlines()
    assert last.endswith(MISSING) and not any(line.startswith(tuple(PUBLISHED)) for line in names)


def test_with_the_course_all_papers_are_there():
    kinds = Counter(map(RECIPES.kind, RECIPES))
    assert kinds == {"image": 388, "graph": 33, "video": 18}
    assert {name.split("-")[0] for name in PUBLISHED} == {"qare", "groco", "iot", "mmcl"}

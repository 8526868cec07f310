"""The command in a process of its own: what it imports, its streams, signals at any moment, no course."""

import json
import os
import signal
import site
import subprocess
import sys
from pathlib import Path

import pytest
from pictures import saved, smooth

import setclr
from setclr.experiments.run import new_run
from setclr.recipes import PUBLISHED, ImageRecipe


def test_what_needs_no_packages_loads_none_and_the_options_of_most_commands_come_without_torch():
    script = """
import sys
from setclr.cli import main
for words in ([], ["--help"], ["--version"]):
    main(words)
assert not {"torch", "numpy", "scipy", "tyro", "pandas", "PIL", "difflib", "inspect"} & set(sys.modules)
sys.path += sys.argv[1:]
try:
    main(["evaluate", "--help"])
finally:
    assert "torch" not in sys.modules
"""
    command = [sys.executable, "-S", "-c", script, *site.getsitepackages()]
    house = str(Path(setclr.__file__).parent.parent)
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONPATH": house})


def test_a_reader_that_has_enough_ends_it_quietly():
    """As `setclr --help | head -n 0` does: nobody reads the pipe any more."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "setclr", "--help"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("line, status", [
    ("setclr --version >&-", 0), ("setclr --version 2>&-", 0), ("setclr --help >/dev/full", 1),
    ("PYTHONIOENCODING=ascii setclr --help", 0),
])  # fmt: skip
def test_a_stream_that_is_closed_or_full_or_of_ascii_ends_in_a_line(line, status):
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    words = ["bash", "-c", line.replace("setclr", f"{sys.executable} -m setclr")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    said = "setclr: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (status, said if status else "")
    assert ("\\u2026" in done.stdout) == ("ascii" in line)


# Ctrl-C and SIGTERM: one line and an exit status, and no file left behind

# A command that gets the signal NUMBER when it first imports MOMENT.
COMMAND = """
import signal, sys
from types import SimpleNamespace
number, moment = signal.Signals[sys.argv[1]], sys.argv[2]
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, whatever started the test

def find_spec(name, *_):
    if name == moment:
        signal.raise_signal(number)

sys.meta_path.insert(0, SimpleNamespace(find_spec=find_spec))
from setclr.cli import run
sys.argv[1:] = sys.argv[3:]
run()
"""
IMPORTS = ("tyro", "torch._C", "numpy.random", "setclr.cli.parsing", "setclr.evaluation")
MOMENTS = [*(("SIGINT", moment) for moment in IMPORTS), ("SIGTERM", "torch.nn")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, and photographs."""
    folder = tmp_path_factory.mktemp("all")
    new_run(ImageRecipe("InfoNCE()"), 3).save(folder / "run")
    saved(folder / "photographs", smooth(1, 40, 50))
    return folder


@pytest.mark.processes
@pytest.mark.parametrize("name, moment", MOMENTS)
def test_a_signal_outside_the_loop_is_one_line(folder, name, moment):
    words = ["embed", str(folder / "run"), str(folder / "photographs"), "--device", "cpu"]
    before, command = sorted(folder.rglob("*")), [sys.executable, "-c", COMMAND, name, moment, *words]
    ended = subprocess.run(command, capture_output=True, text=True)
    said = {"SIGINT": "setclr: interrupted\n", "SIGTERM": "setclr: terminated\n"}[name]
    assert (ended.stdout, ended.stderr, ended.returncode) == ("", said, 128 + signal.Signals[name])
    assert sorted(folder.rglob("*")) == before


# Where the course is not installed every command works without it, or says what is missing

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
    f"pretrain photo-infonce --out run {SHORT} --precision float32": "seconds",
    "recipes graph": "graph-infonce",
    "evaluate run --record record.json": "untrained",
    "embed run tree --size 16": "features of 32 images",
    "export run": "setclr.models.encoder",
}
NEEDS = [
    "recipes qare-table2-conv4-cifar10-simclr", "pretrain qare-table2-conv4-cifar10-simclr --out other",
    "campaign photo-infonce", "results record.json",
    "search groco-table8a", "evaluate run --protocol groco", "evaluate run --all",
    "pretrain video-infonce --data moving-patches --out other",
]  # fmt: skip
MISSING = "with the course, which is not installed: clone the repository and run `make`"


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """What each command says, all of them in one process of their own."""
    folder = tmp_path_factory.mktemp("without")
    for seed, place in enumerate(("train/a", "train/b", "val/a", "val/b")):
        saved(folder / "tree" / place, smooth(8, 16, 16, seed))
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

"""Ctrl-C and SIGTERM at any moment of a command: one line and an exit status, and no file left behind."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import numpy_shifted
from PIL import Image

from setclr import experiments
from setclr.cli import run
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe

pytestmark = pytest.mark.processes

# A command that gets the signal NUMBER when it first imports MOMENT, or reads a photograph.
COMMAND = """
import os, signal, sys
number, moment = signal.Signals[sys.argv[1]], sys.argv[2]
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, whatever started the test

def hit(*_, **__):
    signal.raise_signal(number)

class Finder:
    def find_spec(self, name, *_):
        if name == moment:
            hit()

sys.meta_path.insert(0, Finder())
if moment == "reading":
    from PIL import Image
    Image.open = hit
from setclr.cli import run
sys.argv[1:] = sys.argv[3:]
run()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, and photographs."""
    folder = tmp_path_factory.mktemp("all")
    new_run(ImageRecipe("InfoNCE()"), 3).save(folder / "run")
    (folder / "photographs").mkdir()
    Image.fromarray(numpy_shifted(0).integers(0, 256, (40, 50, 3), np.uint8)).save(
        folder / "photographs/a.png"
    )
    return folder


@pytest.mark.parametrize(
    "name, moment",
    [("SIGINT", moment) for moment in ("tyro", "torch", "torch._C", "torch.nn", "numpy.random", "reading")]
    + [("SIGINT", "setclr.cli.parsing"), ("SIGINT", "setclr.evaluation"), ("SIGTERM", "torch.nn"),
       ("SIGTERM", "reading")],
)  # fmt: skip
def test_a_signal_outside_the_loop_is_one_line(folder, name, moment):
    words = ["embed", str(folder / "run"), str(folder / "photographs"), "--device", "cpu"]
    before = sorted(folder.rglob("*"))
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, name, moment, *words], capture_output=True, text=True
    )
    said = {"SIGINT": "interrupted", "SIGTERM": "terminated"}[name]
    lines = [line for line in ended.stderr.splitlines() if line and "image/s" not in line]  # the progress bar
    assert lines == [f"setclr: {said}"] and ended.stdout == ""
    assert ended.returncode == 128 + signal.Signals[name]
    assert sorted(folder.rglob("*")) == before


def test_a_signal_that_a_package_makes_an_error_of_its_own_is_one(monkeypatch, capsys):
    def swallowing(_):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt as error:
            raise ImportError("numpy could not be imported") from error

    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr(experiments, "summary", swallowing)
    monkeypatch.setattr(sys, "argv", ["setclr", "results"])
    with pytest.raises(SystemExit) as stopped:
        run()
    assert capsys.readouterr().err == "setclr: terminated\n" and stopped.value.code == 143
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]


IMPATIENT = """
import signal, sys
from setclr import cli, experiments
number, moment = signal.Signals[sys.argv[1]], sys.argv[2]
signal.signal(signal.SIGINT, signal.default_int_handler)

def summary(_):
    try:
        signal.raise_signal(number)
    finally:
        if moment == "putting in order":
            signal.raise_signal(number)

def ended(*given, ended=cli.ended):
    if moment == "saying so":
        signal.raise_signal(number)
    return ended(*given)

experiments.summary, cli.ended = summary, ended
sys.argv[1:] = ["results"]
cli.run()
"""


@pytest.mark.parametrize("moment", ["putting in order", "saying so"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_second_signal_is_no_second_line(name, moment):
    command = [sys.executable, "-c", IMPATIENT, name, moment]
    ended = subprocess.run(command, capture_output=True, text=True)
    said = {"SIGINT": "interrupted", "SIGTERM": "terminated"}[name]
    assert (ended.returncode, ended.stderr) == (128 + signal.Signals[name], f"setclr: {said}\n")


DESTRUCTOR = """
import signal, sys, time
from setclr import cli, experiments
number = signal.Signals[sys.argv[1]]
signal.signal(signal.SIGINT, signal.default_int_handler)

class Loader:
    def __del__(self):
        signal.raise_signal(number)

def summary(_):
    Loader()
    time.sleep(60)

experiments.summary = summary
sys.argv[1:] = ["results"]
cli.run()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_a_destructor_is_not_lost(name):
    """Python prints an exception that falls into a destructor, and goes on: so fell a Ctrl-C while torch's
    loader waited for its workers."""
    ended = subprocess.run([sys.executable, "-c", DESTRUCTOR, name], capture_output=True, text=True)
    said = {"SIGINT": "interrupted", "SIGTERM": "terminated"}[name]
    assert (ended.returncode, ended.stderr) == (128 + signal.Signals[name], f"setclr: {said}\n")


@pytest.mark.parametrize(
    "fail, said",
    [
        (lambda _: torch.empty(2**50), r"setclr: out of memory \(.*allocate.*\); take a smaller batch, size"),
        (lambda _: bytearray(2**62), r"setclr: out of memory \(no memory is left\); take a smaller batch"),
    ],
)
def test_too_little_memory_is_one_line(fail, said, monkeypatch):
    monkeypatch.setattr(experiments, "summary", fail)
    monkeypatch.setattr(sys, "argv", ["setclr", "results"])
    with pytest.raises(SystemExit, match=said) as stopped:
        run()
    assert "\n" not in stopped.value.code


def test_an_error_of_the_program_itself_is_a_traceback(monkeypatch):
    monkeypatch.setattr(experiments, "summary", lambda _: [].pop())
    monkeypatch.setattr(sys, "argv", ["setclr", "results"])
    with pytest.raises(IndexError):
        run()

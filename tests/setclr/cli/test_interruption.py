"""Ctrl-C and SIGTERM at any moment of a command: one line and an exit status, and no file left behind."""

import signal
import subprocess
import sys

import pytest
from pictures import saved, smooth

from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe

pytestmark = pytest.mark.processes

# A command that gets the signal NUMBER when it first imports MOMENT, when it reads a photograph, in a
# destructor (Python prints an exception that falls into one, and goes on: so fell a Ctrl-C while torch's
# loader waited for its workers), or a second one while it ends.
COMMAND = """
import os, signal, sys, time
number, moment = signal.Signals[sys.argv[1]], sys.argv[2]
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, whatever started the test

def hit(*_, **__):
    signal.raise_signal(number)

class Finder:
    def find_spec(self, name, *_):
        if name == moment:
            hit()

class Loader:
    def __del__(self):
        hit()

def summary(_):
    if moment == "destructor":
        Loader()
        time.sleep(60)
    try:
        hit()
    finally:
        if moment == "putting in order":
            hit()

def ended(*given):
    if moment == "saying so":
        hit()
    return end(*given)

sys.meta_path.insert(0, Finder())
if moment == "reading":
    from PIL import Image
    Image.open = hit
from setclr import cli
if sys.argv[3] == "results":
    from setclr import experiments
    experiments.summary, end, cli.ended = summary, cli.ended, ended
sys.argv[1:] = sys.argv[3:]
cli.run()
"""
IMPORTS = ("tyro", "torch._C", "numpy.random", "setclr.cli.parsing", "setclr.evaluation")
ENDS = ("putting in order", "saying so", "destructor")
MOMENTS = [("SIGINT", moment) for moment in (*IMPORTS, "reading", *ENDS)]
MOMENTS += [("SIGTERM", moment) for moment in ("torch.nn", "putting in order", "destructor")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, and photographs."""
    folder = tmp_path_factory.mktemp("all")
    new_run(ImageRecipe("InfoNCE()"), 3).save(folder / "run")
    saved(folder / "photographs", smooth(1, 40, 50))
    return folder


@pytest.mark.parametrize("name, moment", MOMENTS)
def test_a_signal_outside_the_loop_is_one_line(folder, name, moment):
    embed = ["embed", str(folder / "run"), str(folder / "photographs"), "--device", "cpu"]
    before, words = sorted(folder.rglob("*")), ["results"] if moment in ENDS else embed
    command = [sys.executable, "-c", COMMAND, name, moment, *words]
    ended = subprocess.run(command, capture_output=True, text=True)
    said = {"SIGINT": "interrupted", "SIGTERM": "terminated"}[name]
    lines = [line for line in ended.stderr.splitlines() if line and "image/s" not in line]  # the progress bar
    assert lines == [f"setclr: {said}"] and ended.stdout == ""
    assert ended.returncode == 128 + signal.Signals[name]
    assert sorted(folder.rglob("*")) == before

"""One process at a time writes a run; the others are told which."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
import torch
from small_runs import FEW, SMALL, train

from setclr.experiments import load_run
from setclr.experiments.building import trainer_of
from setclr.experiments.run import new_run
from setclr.training import Trainer, checkpoint
from setclr.training.checkpoint import CHECKPOINT, HISTORY, LOCK, alone

pytestmark = pytest.mark.processes

pytest.importorskip("fcntl")
HOLDS = """
import sys
from pathlib import Path
from setclr.training.checkpoint import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that trains in tmp_path."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_told_who_trains_there(other, tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "update", None)
    run = new_run(SMALL, 3)
    trainer = trainer_of(SMALL, run.encoder, run.head, FEW, torch.device("cpu"))
    said = rf"{tmp_path}: process {other.pid} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d trains there; wait"
    for begin in (partial(train, SMALL), partial(train, SMALL, resume=False), trainer.fit):
        with pytest.raises(BlockingIOError, match=said):
            begin(out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    (tmp_path / LOCK).write_text("\x1b[2Jprocess")  # whoever writes nonsense into it is not quoted
    with pytest.raises(BlockingIOError, match=re.escape(f"{tmp_path}: another process trains there")):
        train(SMALL, tmp_path)


@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_while_it_trains_a_run_is_loaded_and_when_it_ends_or_dies_the_folder_is_free(other, tmp_path, end):
    none = replace(SMALL, epochs=0)
    new_run(none, 3).save(tmp_path)
    assert load_run(tmp_path).rows == [] and train(none, tmp_path).finished
    if end == "is killed":
        other.send_signal(signal.SIGKILL)
    other.communicate("" if end == "ends" else None)
    for _ in range(2):
        assert train(SMALL, tmp_path, resume=False).finished, "and again in the same process"
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT, HISTORY]


def test_a_thread_may_hold_it_twice_and_another_may_not(tmp_path):
    def enter() -> str:
        try:
            with alone(tmp_path):
                return "in"
        except BlockingIOError as error:
            return str(error)

    with ThreadPoolExecutor(1) as other:
        with alone(tmp_path):
            said = [enter(), other.submit(enter).result()]
        said.append(other.submit(enter).result())
    assert said == ["in", f"{tmp_path}: another thread of this process trains there; wait for it", "in"]
    assert not checkpoint.HELD and not list(tmp_path.iterdir())


def test_a_forked_process_does_not_take_it_for_its_own(tmp_path):
    with alone(tmp_path):
        child = os.fork()
        if not child:
            try:
                with alone(tmp_path):
                    os._exit(1)
            except BlockingIOError:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_folder_that_cannot_be_written_is_not_held(tmp_path):
    (tmp_path / "file").write_text("")
    with alone(tmp_path / "file"):
        assert (tmp_path / "file").read_text() == ""

"""Files are replaced in one step, and what a dead process left unfinished goes with the next writing.

One process at a time writes a run; the others are told which.
"""

import os
import re
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from pictures import BROKEN, NO_FILES
from small_runs import FEW, SMALL, train

from setclr.data import writing
from setclr.experiments import load_run
from setclr.experiments.run import new_run
from setclr.training import Trainer
from setclr.training.checkpoint import CHECKPOINT, HISTORY, LOCK, locked

pytest.importorskip("fcntl")
WRITES = """
from writing import replacing  # of this folder: the package would bring torch
with replacing(pathlib.Path(sys.argv[1]) / "one") as file:
    file.write(b"half")
    file.flush()
"""
HOLDS = """
from setclr.training.checkpoint import locked
with locked(pathlib.Path(sys.argv[1])):
"""


@contextmanager
def another(folder: Path, program: str):
    """A process that is in the middle of that program for the folder."""
    code = f"import pathlib, sys{program}    print('begun', flush=True)\n    sys.stdin.read()"
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(writing.__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], **pipes)
    try:
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def unfinished(folder: Path) -> list[Path]:
    return list(folder.glob(f".*{writing.ENDING}"))


def write(path: Path) -> None:
    with writing.replacing(path) as file:
        file.write(b"whole")


def test_what_a_killed_process_left_goes_with_the_next_writing_of_that_file(tmp_path):
    with another(tmp_path, WRITES):
        write(tmp_path / "one")
        assert len(unfinished(tmp_path)) == 1, "it is alive"
    write(tmp_path / "another")
    assert len(unfinished(tmp_path)) == 1
    write(tmp_path / "one")
    assert not unfinished(tmp_path) and (tmp_path / "one").read_bytes() == b"whole"


@pytest.mark.parametrize("name", ["[ab]", "*", "one.pt", "caf\xe9 "])
def test_hidden_files_of_others_are_left(name, tmp_path):
    """Of other targets, also where the name would be a pattern of theirs, and of other programs."""
    others = [".a.0123abcd.unfinished", f".{name}.more.0123abcd.unfinished", f".{name}.0123abcg.unfinished",
              f".{name}.0123abcde.unfinished", f".{name}.unfinished", ".mine.unfinished"]  # fmt: skip
    for left in (*others, f".{name}.0123abcd.unfinished"):
        (tmp_path / left).touch()
    write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == sorted([*others, name])


def test_of_a_link_the_target_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/old").write_text("old")
    for name in ("old", "new"):
        link = tmp_path / f"{name}.pt"
        link.symlink_to(f"disk/{name}")
        write(link)
        assert link.is_symlink() and (tmp_path / "disk" / name).read_bytes() == b"whole"
    assert sorted(os.listdir(tmp_path / "disk")) == ["new", "old"]


@pytest.mark.parametrize("kind", NO_FILES | {"loop": BROKEN["loop"]})
def test_what_is_no_file_is_refused_with_its_name_and_stays(kind, tmp_path):
    path = tmp_path / "out"
    (NO_FILES | BROKEN)[kind](path)
    before = os.lstat(path)
    with pytest.raises(OSError, match=rf"{path} is a .*; name a (regular )?file"):
        write(path)
    assert os.lstat(path).st_ino == before.st_ino and os.listdir(tmp_path) == ["out"]


def test_a_file_is_on_the_disk_before_its_name_and_then_the_folder_is(tmp_path, monkeypatch):
    """What a power cut must not part; without a folder's fsync, as on some systems, the file is written."""
    done = []
    sync, replace_it = os.fsync, os.replace
    noted = lambda one: done.append(stat.S_ISDIR(os.fstat(one).st_mode)) or sync(one)  # noqa: E731
    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("replace") or replace_it(*paths))
    write(tmp_path / "one")
    assert done == [False, "replace", True]
    monkeypatch.setattr(os, "open", Mock(side_effect=OSError(22, "Invalid argument")))
    write(tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == b"whole"


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "a system without locks"])
def test_threads_leave_one_anothers_files(tmp_path, monkeypatch, locks):
    if not locks:
        none = Mock(side_effect=OSError(38, "Function not implemented"))
        monkeypatch.setattr(writing, "lock_descriptor", none)
    with writing.replacing(tmp_path / "one") as file:
        other = threading.Thread(target=write, args=(tmp_path / "two",))
        other.start()
        other.join()
        file.write(b"first")
    assert (tmp_path / "one").read_bytes() == b"first" and (tmp_path / "two").read_bytes() == b"whole"
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


# Runs


@pytest.mark.processes
def test_a_second_process_is_told_who_trains_there(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "update", None)
    trainer = new_run(SMALL, 3).trainer(FEW, torch.device("cpu"))
    with another(tmp_path, HOLDS) as other:
        said = rf"{tmp_path}: process {other.pid} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d trains there; wait"
        for begin in (partial(train, SMALL), partial(train, SMALL, resume=False), trainer.fit):
            with pytest.raises(BlockingIOError, match=said):
                begin(out=tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
        (tmp_path / LOCK).write_text("")  # between the lock and its name
        with pytest.raises(BlockingIOError, match=re.escape(f"{tmp_path}: another process trains there")):
            train(SMALL, tmp_path)


@pytest.mark.processes
@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_while_it_trains_a_run_is_loaded_and_when_it_ends_or_dies_the_folder_is_free(tmp_path, end):
    none = replace(SMALL, epochs=0)
    new_run(none, 3).save(tmp_path)
    with another(tmp_path, HOLDS) as other:
        assert load_run(tmp_path).rows == [] and train(none, tmp_path).finished
        if end == "ends":
            other.communicate("")
    for _ in range(2):
        assert train(SMALL, tmp_path, resume=False).finished, "and again in the same process"
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT, HISTORY]


def test_a_thread_may_hold_it_twice_and_another_may_not(tmp_path):
    def enter() -> str:
        try:
            with locked(tmp_path):
                return "in"
        except BlockingIOError as error:
            return str(error)

    with ThreadPoolExecutor(1) as other:
        with locked(tmp_path):
            said = [enter(), other.submit(enter).result()]
        said.append(other.submit(enter).result())
    assert said[0] == said[2] == "in" and f"process {os.getpid()} since" in said[1]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_or_has_no_locks_is_not_held(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with locked(tmp_path / "file"):
        assert (tmp_path / "file").read_text() == ""
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(38, "Function not implemented")))
    with locked(tmp_path), locked(tmp_path):
        assert (tmp_path / "file").read_text() == ""

"""Files are replaced in one step, and what a dead process left unfinished goes with the next writing."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from setclr.data import writing

WRITES = """
import sys
from pathlib import Path
from writing import replacing  # of this folder: the package would bring torch
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    """Another process in the middle of writing tmp_path/one."""
    command = [sys.executable, "-c", WRITES, str(tmp_path / "one")]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, **pipes, cwd=Path(writing.__file__).parent)
    assert process.stdout.readline() == "writing\n"
    yield process
    process.kill()
    process.communicate()


def unfinished(folder: Path) -> list[Path]:
    return list(folder.glob(f".*{writing.ENDING}"))


def write(path: Path) -> None:
    with writing.replacing(path) as file:
        file.write(b"whole")


def test_what_a_killed_process_left_goes_with_the_next_writing_of_any_file_there(writer, tmp_path):
    pytest.importorskip("fcntl")
    write(tmp_path / "another")
    assert len(unfinished(tmp_path)) == 1, "it is alive"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(unfinished(tmp_path)) == 1
    write(tmp_path / "another")
    assert not unfinished(tmp_path) and (tmp_path / "another").read_bytes() == b"whole"


def test_a_living_writer_is_left_to_end(writer, tmp_path):
    write(tmp_path / "one")
    writer.communicate("")
    assert writer.returncode == 0
    assert (tmp_path / "one").read_bytes() == b"half" and os.listdir(tmp_path) == ["one"]


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "a system without locks"])
def test_threads_leave_one_anothers_files(tmp_path, monkeypatch, locks):
    if not locks:
        none = Mock(side_effect=OSError(38, "Function not implemented"))
        monkeypatch.setattr(pytest.importorskip("fcntl"), "lockf", none)
    with writing.replacing(tmp_path / "one") as file:
        other = threading.Thread(target=write, args=(tmp_path / "two",))
        other.start()
        other.join()
        file.write(b"first")
    assert (tmp_path / "one").read_bytes() == b"first" and (tmp_path / "two").read_bytes() == b"whole"
    monkeypatch.setattr("setclr.data.writing.fcntl", None)  # Windows
    write(tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == b"whole" and sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_a_file_that_vanishes_while_it_is_taken_is_made_again(tmp_path, monkeypatch):
    """As when another process takes it for a dead one's between its making and its checkpoint."""
    late = Mock(side_effect=lambda file, how: late.call_count == 1 and os.unlink(file.name))
    monkeypatch.setattr(pytest.importorskip("fcntl"), "lockf", late)
    with writing.opened_alone(tmp_path / "file", "wb"):
        assert (tmp_path / "file").exists() and late.call_count == 2
    refused = Mock(side_effect=[BlockingIOError, None])
    monkeypatch.setattr("fcntl.lockf", refused)
    with writing.begun(tmp_path / "more") as file:
        assert Path(file.name).exists() and file.name != refused.call_args_list[0].args[0].name

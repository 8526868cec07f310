"""torchrun: a training on two processes, one of which dies, ends as one that nothing disturbed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from small_runs import same
from torch.distributed import TCPStore

from setclr.experiments import load_run
from setclr.training.checkpoint import HISTORY
from setclr.training.distributed import gather, joined

DATA = Path(__file__).resolve().parents[3] / "data"
HANGS = 900  # seconds
FLAGS = "--standalone --nproc-per-node 2 --max-restarts 3 -m setclr pretrain photo-infonce --keep-every 1"
WORDS = "--device cpu --precision float32 --compiled no --images 512 --batch 32 --epochs 8"


def torchrun(out: Path) -> subprocess.Popen:
    """A process that trains by torchrun, with a checkpoint after every epoch."""
    words = [*FLAGS.split(), "--out", str(out), "--root", str(DATA), *WORDS.split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *words], env=environment)


def started(pid: int) -> list[int]:
    """The processes that one has started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for text in children for child in text.read_text().split()]


@pytest.mark.processes
def test_a_process_that_dies_is_started_again_and_goes_on(tmp_path):
    """The same bits: of two numbers the sum has one order."""
    whole, struck = (tmp_path / name for name in ("whole", "struck"))
    assert torchrun(whole).wait(HANGS) == 0
    disturbed, history = torchrun(struck), struck / HISTORY
    while not history.exists() or len(history.read_text().splitlines()) < 3:
        assert disturbed.poll() is None, "it ended before it was disturbed"
        time.sleep(0.02)
    os.kill(started(disturbed.pid)[-1], signal.SIGKILL)
    assert disturbed.wait(HANGS) == 0 and same(load_run(whole), load_run(struck))


def meet(process: int, port: int, late: int):
    """What one of two does where torchrun's store stands at that port; one of them comes late."""
    words = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    os.environ.update(words, WORLD_SIZE="2", RANK=str(process))
    time.sleep(2 * (process == late))
    with joined("cpu"):
        assert gather(torch.full((1, 1, 1), process)).flatten().tolist() == [0, 1]


@pytest.mark.processes
@pytest.mark.parametrize("late", [0, 1])
def test_processes_that_are_started_again_meet_one_another_and_none_that_died(late):
    """The store still has the addresses of the first two. Without a new name the last two wait for ever."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for _ in range(2):
        group, end = mp.spawn(meet, (store.port, late), nprocs=2, join=False), time.monotonic() + HANGS
        while not group.join(1):
            assert time.monotonic() < end, [process.kill() for process in group.processes]

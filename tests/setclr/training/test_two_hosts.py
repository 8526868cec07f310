"""torchrun: a training on two hosts, one of which dies, ends as an undisturbed one on one host.

The hosts are two network namespaces of this machine, joined by a virtual cable.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from small_runs import same

from setclr.experiments import Run, load_run
from setclr.training.checkpoint import HISTORY

pytestmark = pytest.mark.processes

DATA = Path(__file__).resolve().parents[3] / "data"
HANGS = 900  # seconds
FORGOTTEN = 20  # seconds; torchrun takes a host for gone after three missed beats of five
ONE_HOST = ("--standalone", "--nproc-per-node", "2")
WORDS = "--device cpu --precision float32 --compiled no --images 512 --batch 32 --epochs 8"


def torchrun(out: Path, flags: Sequence[str] = ONE_HOST, *more: str, inside=(), **network: str):
    """A process that trains by torchrun with these flags; two hosts write to one folder, as on a cluster."""
    command = [*inside, sys.executable, "-m", "torch.distributed.run", *flags, "-m", "setclr", "pretrain"]
    command += ["photo-infonce", "--out", str(out), "--root", str(DATA), *WORDS.split(), *more]
    log = (out.parent / "log").open("a")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **network}
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def ended(processes: list[subprocess.Popen], out: Path) -> Run:
    for process in processes:
        assert process.wait(HANGS) == 0, (out.parent / "log").read_text()[-3000:]
    return load_run(out)


def wait_for_epochs(out: Path, count: int, processes: list[subprocess.Popen]) -> None:
    history = out / HISTORY
    while not history.exists() or len(history.read_text().splitlines()) < count + 1:
        assert all(process.poll() is None for process in processes), "it ended before it was disturbed"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Run:
    out = tmp_path_factory.mktemp("whole") / "run"
    return ended([torchrun(out)], out)


@pytest.fixture(scope="module")
def hosts():
    """The names of the two namespaces; their ends of the cable have the addresses 10.77.0.1 and 10.77.0.2."""
    names = [f"setclr{os.getpid()}{end}" for end in "ab"]
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("two hosts need root and the command ip (Debian and Ubuntu: iproute2)")
    cable = ["link", "add", "cable0", "netns", names[0], "type", "veth", "peer", "cable0", "netns", names[1]]
    commands = [*(["netns", "add", name] for name in names), cable]
    for end, name in enumerate(names, start=1):
        commands.append(["-n", name, "address", "add", f"10.77.0.{end}/24", "dev", "cable0"])
        commands += [["-n", name, "link", "set", device, "up"] for device in ("cable0", "lo")]
    try:
        for words in commands:
            subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine makes no network namespaces ({error.stderr.strip()})")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def start(host: int, name: str, out: Path) -> subprocess.Popen:
    """torchrun on one of the hosts, with a checkpoint after every epoch."""
    flags = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3", "--rdzv-backend", "c10d"]
    flags += ["--rdzv-conf", f"is_host={int(host == 0)}", "--rdzv-endpoint", "10.77.0.1:29400"]
    flags += ["--local-addr", f"10.77.0.{host + 1}"]
    network = {"GLOO_SOCKET_IFNAME": "cable0", "TP_SOCKET_IFNAME": "cable0"}
    # Or a host that comes back waits for an address that torchrun tells in the first round alone.
    network["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    return torchrun(out, flags, "--keep-every", "1", inside=("ip", "netns", "exec", name), **network)


def test_a_host_that_dies_and_comes_back(hosts, whole, tmp_path):
    """The same bits: of two numbers the sum has one order."""
    out = tmp_path / "run"
    processes = [start(host, name, out) for host, name in enumerate(hosts)]
    wait_for_epochs(out, 2, processes)
    killed_with_all_it_started(processes[1].pid)
    time.sleep(FORGOTTEN)
    processes[1].wait(HANGS)
    processes[1] = start(1, hosts[1], out)
    assert same(ended(processes, out), whole)


def killed_with_all_it_started(pid: int) -> None:
    """torchrun, and its workers, which lead sessions of their own."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    for one in found:
        os.kill(one, signal.SIGKILL)

"""torchrun on two hosts: two network namespaces of this machine, joined by a virtual cable, are the hosts."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_runs import same

from setclr.experiments import load_run
from setclr.training.checkpoint import HISTORY

pytestmark = pytest.mark.processes

DATA = Path(__file__).resolve().parents[3] / "data"
HANGS = 900  # seconds
FORGOTTEN = 20  # seconds; torchrun takes a host for gone after three missed beats of five
# As the command `setclr`, with a checkpoint after every epoch, so that a death does not cost ten minutes.
SCRIPT = """
import setclr.cli
from setclr.training import trainer
trainer.CHECKPOINT_SECONDS = -1.0
setclr.cli.run()
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def hosts():
    """The names of the two namespaces; their ends of the cable have the addresses 10.77.0.1 and 10.77.0.2."""
    names = [f"setclr{os.getpid()}{end}" for end in "ab"]
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("two hosts need root and the command ip (Debian and Ubuntu: iproute2)")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "cable0", "netns", names[0], "type", "veth", "peer", "cable0", "netns", names[1])
        for end, name in enumerate(names, start=1):
            ip("-n", name, "address", "add", f"10.77.0.{end}/24", "dev", "cable0")
            for device in ("cable0", "lo"):
                ip("-n", name, "link", "set", device, "up")
    except subprocess.CalledProcessError as error:
        remove(names)
        pytest.skip(f"this machine makes no network namespaces ({error.stderr.strip()})")
    yield names
    remove(names)


def remove(names: list[str]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def words(out: Path) -> list[str]:
    """What torchrun is to run."""
    out.parent.joinpath("script.py").write_text(SCRIPT)
    command = [str(out.parent / "script.py"), "pretrain", "photo-infonce", "--out", str(out)]
    command += ["--device", "cpu", "--root", str(DATA), "--precision", "float32", "--compiled", "no"]
    return command + ["--images", "512", "--batch", "32", "--epochs", "8", "--optimiser", "sgd"]


def start(host: int, name: str, out: Path) -> subprocess.Popen:
    """torchrun on one of the hosts; both write to one folder, as on a cluster."""
    command = ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run"]
    command += ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3", "--rdzv-backend", "c10d"]
    command += ["--rdzv-conf", f"is_host={int(host == 0)}", "--rdzv-endpoint", "10.77.0.1:29400"]
    command += ["--local-addr", f"10.77.0.{host + 1}", *words(out)]
    network = {"GLOO_SOCKET_IFNAME": "cable0", "TP_SOCKET_IFNAME": "cable0", "OMP_NUM_THREADS": "1"}
    # Or a host that comes back waits for an address that torchrun tells in the first round alone.
    network["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    log = (out.parent / f"{out.name}-{host}.log").open("a")
    return subprocess.Popen(command, env={**os.environ, **network}, stdout=log, stderr=log)


def ended(processes: list[subprocess.Popen], out: Path) -> None:
    for process in processes:
        assert process.wait(HANGS) == 0, "".join(p.read_text()[-3000:] for p in out.parent.glob("*.log"))


def wait_for_epochs(out: Path, count: int, processes: list[subprocess.Popen]) -> None:
    history = out / HISTORY
    while not history.exists() or len(history.read_text().splitlines()) < count + 1:
        assert all(process.poll() is None for process in processes), "it ended before it was disturbed"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def undisturbed(hosts, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    ended([start(host, name, out) for host, name in enumerate(hosts)], out)
    return out


def test_two_hosts_train_what_two_processes_of_one_do(undisturbed, tmp_path):
    """The same bits: of two numbers the sum has one order."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run(
        [*command, *words(out)], check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert same(load_run(undisturbed), load_run(out))


@pytest.mark.parametrize("what", ["dies and comes back", "is slow"])
def test_a_host_that(hosts, undisturbed, tmp_path, what):
    out = tmp_path / "run"
    processes = [start(host, name, out) for host, name in enumerate(hosts)]
    wait_for_epochs(out, 2, processes)
    number = signal.SIGKILL if what == "dies and comes back" else signal.SIGSTOP
    signal_all(processes[1], number)
    time.sleep(FORGOTTEN if number == signal.SIGKILL else 1)
    if number == signal.SIGKILL:
        processes[1].wait(HANGS)
        processes[1] = start(1, hosts[1], out)
    else:
        signal_all(processes[1], signal.SIGCONT)
    ended(processes, out)
    assert same(load_run(undisturbed), load_run(out))


def signal_all(process: subprocess.Popen, number: int) -> None:
    """To torchrun and what it started: workers lead sessions of their own."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for line in listed.splitlines()[1:]:
        pid, parent = map(int, line.split())
        children.setdefault(parent, []).append(pid)
    found = [process.pid]
    for pid in found:
        found += children.get(pid, [])
    for pid in found:
        os.kill(pid, number)

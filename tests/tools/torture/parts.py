"""The parts, each in a process of its own, so that a trial that hangs or crashes is a finding and no end.

python tests/tools/torture/parts.py PART FOLDER   reads a seed a line, answers each with a line of JSON
"""

import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

# Where each part's `trial(seed, folder) -> (counts, findings)` is, as module:function.
PARTS = {
    "kills": "kills:trial", "losses": "tensors:losses", "strings": "words:strings",
    "commands": "words:commands", "encoders": "users:encoders",
    "datasets": "users:datasets", "graphs": "users:graphs", "videos": "users:videos",
}  # fmt: skip
HANGS = 600.0  # seconds; the longest trial takes less than a tenth of it on a quiet machine
MEMORY = 16 * 2**30  # bytes of addresses: what asks for more is found out before the machine stands still
Outcome = tuple[dict[str, int], list[str]]


class Part:
    """A part's process, begun anew after one that hung or crashed."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder / name
        self.folder.mkdir(exist_ok=True)
        self.process: subprocess.Popen | None = None

    def trial(self, seed: int) -> Outcome:
        """What was counted and what did not hold."""
        if self.process is None:
            self.process = self._begun()
        asked, answers = self.process.stdin, self.process.stdout
        assert asked and answers
        with suppress(BrokenPipeError):  # it is dead already, as the answer will show
            asked.write(f"{seed}\n".encode())
            asked.flush()
        ready, _, _ = select.select([answers], [], [], HANGS)
        line = answers.readline() if ready else b""
        if line:
            counts, findings = json.loads(line)
            return counts, findings
        self.close()
        why = "crashed" if ready else f"hung for {HANGS:.0f} s"
        return {why.split()[0]: 1}, [f"the process {why}; {self._last_words()}"]

    def close(self) -> None:
        """End the process and all that it started."""
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _begun(self) -> subprocess.Popen:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1", "MPLBACKEND": "agg",
                       "XDG_CACHE_HOME": str(self.folder / "cache")}  # fmt: skip
        with (self.folder / "said.txt").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, __file__, self.name, str(self.folder)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=said, env=environment, start_new_session=True,
            )  # fmt: skip

    def _last_words(self) -> str:
        return (self.folder / "said.txt").read_text(errors="replace")[-1000:]


def end_with(parent: int) -> None:
    """End this process, and all that it started, when the one that began it has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def serve(name: str, folder: Path) -> None:
    """Answer seeds until there are no more. What the trials print goes where errors go."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    module, function = PARTS[name].split(":")
    trial = getattr(importlib.import_module(module), function)
    for line in sys.stdin:
        try:
            counts, findings = trial(int(line), folder)
        except Exception:
            counts, findings = {}, ["the trial itself failed: " + traceback.format_exc()[-1500:]]
        print(json.dumps([counts, findings]), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))

"""make torture, on Linux: killed runs, Trainers fitted again, ties and pipes.

It takes twenty minutes, or TORTURE_MINUTES.

python tests/tools/torture               all parts, each on a core of its own
python tests/tools/torture PART SEED …   one part with these seeds: to repeat a finding

Every other trial takes the next of the seeds 0, 1, 2 …, the same each time; the rest are drawn anew. What
did not hold is printed at once with its part and seed. The last lines count what was tried and what came of
it; the exit status is 0 only if everything held and no part crashed or hung.
"""

import faulthandler
import importlib
import itertools
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

PARTS = ("kills", "fits")  # modules, each with its `trial(seed, folder)`
MINUTES = float(os.environ.get("TORTURE_MINUTES", "20"))
HANGS = 600.0  # seconds; the longest trial takes less than a tenth of it on a quiet machine
MEMORY = 16 * 2**30  # bytes of addresses: what asks for more is found out before the machine stands still


def seeds(until: float) -> Iterator[int]:
    """0, one drawn anew, 1, one drawn anew, … until the time is over."""
    for fixed in itertools.count():
        for seed in (fixed, 1_000_000 + secrets.randbelow(10**12)):
            if time.monotonic() >= until:
                return
            yield seed


def part(name: str, given: Iterable[int]) -> int:
    """The trials of these seeds; how much did not hold. A trial that hangs ends the process."""
    counts, bad = Counter[str](), 0
    trial = importlib.import_module(name).trial
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        for seed in given:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            more, findings = trial(seed, Path(folder))
            counts.update(more, trials=1)
            bad += len(findings)
            for finding in findings:
                again = f"again: python tests/tools/torture {name} {seed}"
                print(f"DID NOT HOLD {finding}\n  {again}", flush=True)
    print(name, *(f"{count} {what}" for what, count in counts.items()), f"{bad} did not hold", sep=", ")
    return bad


def main(*words: str) -> bool:
    if not words:
        parts = [subprocess.Popen([sys.executable, __file__, name]) for name in PARTS]
        return any([one.wait() for one in parts])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ |= {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
    given = list(map(int, words[1:]))
    return part(words[0], given or seeds(time.monotonic() + 60 * MINUTES)) > 0


if __name__ == "__main__":
    if unknown := [word for word in sys.argv[1:2] if word not in PARTS]:
        sys.exit(f"parts are {', '.join(PARTS)}, got {unknown[0]}")
    sys.exit(main(*sys.argv[1:]))

"""make torture, on Linux: Trainers that are struck and fitted again, ties of features, paths that are none.

It takes twenty minutes, or TORTURE_MINUTES.

python tests/tools/torture          seeds 0, 1, 2 …, each followed by one that is drawn anew
python tests/tools/torture SEED …   these seeds: to repeat a finding

What did not hold is printed at once with its seed. The last line counts what was tried and what came of it;
the exit status is 0 only if everything held and nothing hung.
"""

import faulthandler
import itertools
import os
import resource
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fits import trial

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


def tried(given: Iterable[int]) -> int:
    """The trials of these seeds; how much did not hold. A trial that hangs ends the process."""
    counts, bad = Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        for seed in given:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            more, findings = trial(seed, Path(folder))
            counts.update(more, trials=1)
            bad += len(findings)
            for finding in findings:
                print(f"DID NOT HOLD {finding}\n  again: python tests/tools/torture {seed}", flush=True)
    print(*(f"{count} {what}" for what, count in counts.items()), f"{bad} did not hold", sep=", ")
    return bad


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.exit(tried(map(int, sys.argv[1:]) if sys.argv[1:] else seeds(time.monotonic() + 60 * MINUTES)) > 0)

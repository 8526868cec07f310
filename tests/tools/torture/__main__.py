"""make torture, on Linux: kills, hostile inputs and strings for twenty minutes, or TORTURE_MINUTES.

python tests/tools/torture               all parts, two at a time; every second trial has a seed of its own
python tests/tools/torture PART [SEED …] one part with these seeds, 0 to 9 without any: to repeat a finding

Every other trial takes the next of the seeds 0, 1, 2 …, the same each time; the rest are drawn anew. What
did not hold is printed at once with its part and seed. The last table counts what was tried and what came of
it; the exit status is 1 if anything did not hold.
"""

import itertools
import os
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from parts import PARTS, Part

MINUTES = float(os.environ.get("TORTURE_MINUTES", "20"))
LANES = (("kills",), tuple(part for part in PARTS if part != "kills"))  # each on a core of its own
SLICE = 15.0  # seconds of a part before the next has its turn


class Tally:
    """What was counted in each part, and what did not hold."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, Counter] = defaultdict(Counter)
        self.found: list[str] = []

    def add(self, part: str, seed: int, counts: dict[str, int], findings: list[str]) -> None:
        self.counts[part].update(trials=1, **counts)
        for finding in findings:
            self.found.append(f"{part} {seed}: {finding}")
            print(f"DID NOT HOLD {finding}\n  again: python tests/tools/torture {part} {seed}", flush=True)

    def table(self) -> str:
        rows = [f"{part:12}" + ", ".join(f"{count} {what}" for what, count in counts.items())
                for part, counts in self.counts.items()]  # fmt: skip
        return "\n".join([*rows, f"{'':12}{len(self.found)} did not hold"])


def seeds() -> Iterator[int]:
    """0, one drawn anew, 1, one drawn anew, …"""
    for fixed in itertools.count():
        yield fixed
        yield 1_000_000 + secrets.randbelow(10**12)


def lane(names: tuple[str, ...], until: float, tally: Tally, folder: Path) -> None:
    """Trials of these parts in turn, a slice of time each, until the time is over."""
    drawn = {name: seeds() for name in names}
    with_parts: dict[str, Part] = {}
    try:
        for name in itertools.cycle(names):
            part = with_parts.setdefault(name, Part(name, folder))
            end = min(until, time.monotonic() + SLICE)
            while time.monotonic() < end:
                seed = next(drawn[name])
                tally.add(name, seed, *part.trial(seed))
            if time.monotonic() >= until:
                return
    finally:
        for part in with_parts.values():
            part.close()


def say_now_and_then(tally: Tally, over: threading.Event, every: float = 300.0) -> None:
    while not over.wait(every):
        print(tally.table(), flush=True)


def main(*words: str) -> int:
    tally, started, over = Tally(), time.monotonic(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        if words:
            part = Part(words[0], folder)
            for seed in map(int, words[1:] or range(10)):
                tally.add(part.name, seed, *part.trial(seed))
            part.close()
        else:
            until = started + 60 * MINUTES
            threads = [threading.Thread(target=lane, args=(names, until, tally, folder)) for names in LANES]
            talker = threading.Thread(target=say_now_and_then, args=(tally, over), daemon=True)
            for thread in (*threads, talker):
                thread.start()
            for thread in threads:
                thread.join()
            over.set()
    print(f"after {(time.monotonic() - started) / 60:.1f} minutes\n{tally.table()}")
    return bool(tally.found)


if __name__ == "__main__":
    if unknown := [word for word in sys.argv[1:2] if word not in PARTS]:
        sys.exit(f"parts are {', '.join(PARTS)}, got {unknown[0]}")
    sys.exit(main(*sys.argv[1:]))

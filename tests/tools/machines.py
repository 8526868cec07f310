"""make test-machines: the numerical tests and all notebooks as other machines would run them.

python tests/tools/machines.py [SETTING …]     one setting at a time, all without arguments

Prints a row for each setting, and the tests that failed in it. The exit status is 1 if any did.
A setting takes about as long as `make test`.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).resolve().parents[1]
SETTINGS = {
    "aten-default": {"ATEN_CPU_CAPABILITY": "default"},
    "aten-avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "onednn-avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "one-thread": {"SETCLR_THREADS": "1"},
    "two-threads": {"SETCLR_THREADS": "2"},
    **{f"seed-{n}": {"SETCLR_SEED_SHIFT": str(n)} for n in (1, 2, 3)},
    "loaded": {},  # beside two busy processes
}
# What reads files and computes nothing.
TEXTUAL = ["test_browser.py", "test_coverage.py", "test_layout.py", "test_packaging.py"]


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """That many processes that keep a core busy each."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run(setting: str) -> tuple[int, list[str], float]:
    """How many tests passed in a setting, the names of those that failed, and seconds.

    Raises RuntimeError, with the end of what pytest said, where no tests ran.
    """
    workers = "0" if setting == "two-threads" else "2"
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, load(2 if setting == "loaded" else 0):
        report = Path(folder, "report.xml")
        options = ["-q", "-n", workers, "--dist=worksteal", f"--junitxml={report}"]
        options += [f"--ignore={TESTS / name}" for name in TEXTUAL]
        # Another machine has compiled nothing yet; torch's cache does not know what ATEN_CPU_CAPABILITY says.
        environment = {**os.environ, **SETTINGS[setting], "TORCHINDUCTOR_CACHE_DIR": folder}
        command = [sys.executable, "-m", "pytest", *options, TESTS]
        said = subprocess.run(command, env=environment, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    if not cases:
        raise RuntimeError(f"{setting}: no tests ran: {(said.stdout + said.stderr)[-2000:]}")
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = sorted(f"{case.get('classname')}::{case.get('name')}" for case in bad)
    return len(cases) - len(bad) - skipped, failed, seconds


def main(*chosen: str) -> None:
    if unknown := set(chosen) - set(SETTINGS):
        sys.exit(f"settings are {', '.join(SETTINGS)}, got {', '.join(sorted(unknown))}")
    print(f"{'setting':14}{'passed':>8}{'failed':>8}{'seconds':>9}", flush=True)
    any_failed = False
    for setting in chosen or SETTINGS:
        passed, failed, seconds = run(setting)
        print(f"{setting:14}{passed:8}{len(failed):8}{seconds:9.0f}", flush=True)
        for name in failed:
            print(f"    {name}", flush=True)
        any_failed |= bool(failed)
    sys.exit(any_failed)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""make test-machines: the numerical tests and all notebooks as other machines would run them.

python tests/tools/machines.py [SETTING …]     one setting at a time, all without arguments

Prints how many tests passed in each setting, and those that failed in it. The exit status is 1 if any did.
A setting takes about as long as `make test`.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


def run(setting: str) -> bool:
    """Whether a test failed in a setting; prints pytest's last line, and one for each test that failed.

    Raises RuntimeError, with the end of what pytest said, where the tests did not run to their end.
    """
    workers = "0" if setting == "two-threads" else "2"
    with tempfile.TemporaryDirectory() as folder, load(2 if setting == "loaded" else 0):
        options = ["-q", "-n", workers, "--dist=worksteal", *(f"--ignore={TESTS / name}" for name in TEXTUAL)]
        # Another machine has compiled nothing yet; torch's cache does not know what ATEN_CPU_CAPABILITY says.
        environment = {**os.environ, **SETTINGS[setting], "TORCHINDUCTOR_CACHE_DIR": folder}
        command = [sys.executable, "-m", "pytest", *options, TESTS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{setting}: pytest ended with {(done.stdout + done.stderr)[-2000:]}")
    lines = done.stdout.strip().splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    print(f"{setting:14} {lines[-1]}", *failed, sep="\n    ", flush=True)
    return bool(failed)


def main(*chosen: str) -> None:
    if unknown := set(chosen) - set(SETTINGS):
        sys.exit(f"settings are {', '.join(SETTINGS)}, got {', '.join(sorted(unknown))}")
    failed = [run(setting) for setting in chosen or SETTINGS]
    sys.exit(any(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs that are struck at any moment, or at any work on a file: they end as if nothing had been.

A trial is one run of one of the set-ups: it is begun, struck, begun again, struck …, and last let to its end.
Then its checkpoint, or its record, is compared with that of a run that nothing struck, bit for bit. Full
disks, cut files, rivals and torchrun have tests of their own (test_resuming.py, test_writing.py,
test_campaign.py, test_two_hosts.py).
"""

import json
import multiprocessing
import os
import random
import shlex
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from setclr import cli
from setclr.experiments.records import read_record
from setclr.training import checkpoint
from setclr.training import trainer as engine

WAITS = 300.0  # seconds for one attempt
TIMES = ("seconds", "images_per_s", "training_seconds", "evaluated_with")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WORK = {"open", "os.rename", "os.remove", "os.mkdir"}  # on files, as Python's audit hooks name it
FORK = multiprocessing.get_context("fork")  # its packages are loaded already, so a blow falls on our work
Outcome = tuple[dict[str, int], list[str]]


@dataclass(frozen=True)
class Blow:
    """A signal after so many `seconds`, or before the work number `nth` on a file of the run. Checkpoints are
    written after every step if `often`."""

    signal: signal.Signals
    often: bool
    seconds: float | None
    nth: int

    @classmethod
    def drawn(cls, by: random.Random, seconds: float) -> "Blow":
        """A blow to a run that takes so long."""
        moment = by.uniform(0, seconds) if by.random() < 0.4 else None
        return cls(by.choice(SIGNALS), by.random() < 0.7, moment, int(10 ** by.uniform(0, 1.8)))

    def fall(self) -> None:
        os.kill(os.getpid(), self.signal)

    def arm(self, out: Path) -> None:
        """Let it fall in this process, which works in that folder, when its moment comes."""
        engine.CHECKPOINT_SECONDS = 0.0 if self.often else 600.0
        seen = 0

        def work(event: str, given: tuple) -> None:
            nonlocal seen
            if event in WORK and str(given[0]).startswith(str(out)):
                seen += 1
                if seen == self.nth:
                    self.fall()

        if self.seconds is None:
            sys.addaudithook(work)
        else:
            timer = threading.Timer(self.seconds, self.fall)
            timer.daemon = True
            timer.start()


# "{out}" is the folder of the attempt, "{tree}" one of photographs of one size, "{wild}" one of any sizes.
FEW = (
    "--data folder:{tree} --images 48 --batch 16 --epochs 3 --hidden 32 --embedding 16"
    " --device cpu --compiled no --precision float32 --views photo"
)
CAMPAIGN = (
    "campaign photo-infonce --seeds 0 --data folder:{tree} --epochs 2 --batch 16"
    " --runs {out}/runs --results {out}/results"
)


def pretraining(loss: str, more: str = "") -> list[str]:
    return ["pretrain", "photo-infonce", "--out", "{out}", "--loss", loss, *shlex.split(f"{FEW} {more}")]


# What a user types, with few images and few steps.
SETUPS = {
    "adam": pretraining("InfoNCE()"),
    "sgd": pretraining("GroCo()", "--last-norm --optimiser sgd --lr 0.1 --warmup 1 --schedule steps"
                       " --no-drop-last"),
    "queue": pretraining("InfoNCE(temperature=learnable(0.2))", "--key-momentum 0.9 --queue 40"
                         " --optimiser adamw --weight-decay 0.1"),
    "moco-v3": pretraining("IOT(constraint='rows')", "--key-momentum 0.9 --key-schedule cosine --predictor 2"
                           " --optimiser lars --lr 0.2 --layers 3"),
    "clusters": pretraining("DeepCluster()", "--full-views 1 --embedding 4"),
    "rotations": pretraining("Rotation()", "--full-views 1 --embedding 4"),
    "infomax": pretraining("DeepInfoMax()", "--full-views 1"),
    "multi-crop": pretraining("InfoNCE() + 0.5 * QARe()", "--local-views 2 --view-size 24 --local-size 16"),
    "schedule": pretraining("MMCL(bandwidth=9)", "--precision bf16 --chunk 8"
                            " --loss-schedule 'bandwidth: 9, 4 from 1'"),
    "streamed": pretraining("SparseCLR()", "--data folder:{wild} --view-size 24 --workers 2"),
    "campaign": CAMPAIGN.split(),
}  # fmt: skip


def trial(seed: int, folder: Path) -> Outcome:
    drawn = random.Random(seed)
    name = list(SETUPS)[seed % len(SETUPS)]
    here, whole = folder / "struck", folder / "whole" / name
    photographs(folder / "tree", 32, 32)
    photographs(folder / "wild", 24, 40)
    struck, findings, took = 0, list[str](), whole / "seconds"
    if not whole.exists():
        began = time.monotonic()
        status, said = attempt(name, folder, whole)
        took.write_text(str(time.monotonic() - began))
        assert status == 0, said
    shutil.rmtree(here, ignore_errors=True)
    for _ in range(drawn.randint(1, 4)):
        blow = Blow.drawn(drawn, float(took.read_text()))
        status, said = attempt(name, folder, here, blow)
        struck += status != 0
        if status and not as_blown(blow, status, said):
            findings.append(f"{name}, {blow}: status {status}, said {said[-800:]!r}")
        findings += [f"{name}, {blow}: {left}" for left in what_is_left(here)]
    status, said = attempt(name, folder, here)
    different = compared(here, whole) if status == 0 else f"status {status}: {said}"
    counts = {"runs": 1, "blows": struck, "bit-identical": int(not different)}
    return counts, findings + [f"{name}: {different}"] * bool(different)


def photographs(folder: Path, least: int, most: int) -> None:
    """Noise in class folders, two splits; the sides are of so many pixels."""
    if folder.exists():
        return
    drawn = random.Random(0)
    for split, count in (("train", 24), ("val", 8)):
        for kind in ("ant", "bee"):
            (folder / split / kind).mkdir(parents=True)
            for i in range(count):
                side = (drawn.randint(least, most), drawn.randint(least, most))
                image = Image.frombytes("RGB", side, drawn.randbytes(3 * side[0] * side[1]))
                image.save(folder / split / kind / f"{i}.png")


def attempt(name: str, folder: Path, out: Path, blow: Blow | None = None) -> tuple[int | None, str]:
    """Do what the set-up says until it ends or is struck: its status, as subprocess counts it, and what it
    said. None is the status of one that hung, or left processes of its own behind; all are killed then."""
    words = [word.format(out=out, tree=folder / "tree", wild=folder / "wild") for word in SETUPS[name]]
    process = FORK.Process(target=command, args=(words, folder / "said", out, blow))
    process.start()
    process.join(WAITS)
    status, until = process.exitcode, time.monotonic() + 10
    with suppress(ProcessLookupError):
        while status is not None and time.monotonic() < until:
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        status = None
    return status, (folder / "said").read_text()


def command(words: list[str], said: Path, out: Path, blow: Blow | None) -> None:
    """What `setclr WORDS` does, as the first process of a session of its own."""
    os.setsid()
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv, begin = ["setclr", *words], cli.main

    def main(given: list[str]) -> None:
        if blow:
            blow.arm(out)
        begin(given)

    cli.main = main
    try:
        cli.run()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def as_blown(blow: Blow, status: int | None, said: str) -> bool:
    """Whether a run ended as such a blow ends one."""
    if blow.signal == signal.SIGKILL:
        return status == -signal.SIGKILL
    return status == 128 + blow.signal and said.count("\n") == 1 and said.startswith("setclr: ")


def what_is_left(out: Path) -> list[str]:
    """What is wrong with the files that an attempt left."""
    wrong = []
    readers = [(checkpoint.read, path.parent) for path in out.rglob(checkpoint.CHECKPOINT)]
    for read, path in [*readers, *((read_record, path) for path in out.glob("results/*.json"))]:
        try:
            read(path)
        except ValueError as error:
            wrong.append(str(error))
    return wrong


def compared(here: Path, whole: Path) -> str:
    """What differs between two finished folders, times apart; "" where nothing does. Locks have no ending: a
    lock's file may stay, the lock is gone with its process."""
    one, other = ({str(path.relative_to(top)): path for path in top.rglob("*.*")} for top in (here, whole))
    if one.keys() != other.keys():
        return f"the files are {sorted(one)} instead of {sorted(other)}"
    return ", ".join(name for name in one if told(one[name]) != told(other[name]))


def told(path: Path) -> int:
    """A checksum of what a checkpoint or a record says, times apart; 0 for other files."""
    if path.suffix == ".pt":
        return checkpoint.checksum(without_times(checkpoint.read(path)))
    return checkpoint.checksum(without_times(json.loads(path.read_text()))) if path.suffix == ".json" else 0


def without_times(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: without_times(value) for key, value in x.items() if key not in TIMES}
    return [without_times(one) for one in x] if isinstance(x, list) else x

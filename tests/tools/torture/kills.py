"""Runs that are struck at any moment, or at any work on a file: they end as if nothing had been.

A trial is one run of one of the set-ups: it is begun, struck, begun again, struck …, and last let to its end.
Then its checkpoint, or its record, is compared with that of a run that nothing struck, bit for bit. Full
disks, cut files and torchrun have tests in tests/setclr/training (test_resuming.py, test_two_hosts.py).
"""

import json
import multiprocessing
import os
import random
import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import torch
from PIL import Image

from setclr import cli
from setclr.experiments.records import read_record
from setclr.training import checkpoint
from setclr.training import trainer as engine

WAITS = 300.0  # seconds for one attempt
TIMES = ("seconds", "images_per_s", "training_seconds")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WORK = {"open", "os.rename", "os.remove", "os.mkdir"}  # on files, as Python's audit hooks name it
FORK = multiprocessing.get_context("fork")  # its packages are loaded already, so a blow falls on our work
Outcome = tuple[dict[str, int], list[str]]


@dataclass(frozen=True)
class Blow:
    """A signal after so many `seconds`, or before the work number `nth` on a file of the run; `again` so many
    seconds later. Checkpoints are written after every step if `often`."""

    signal: signal.Signals
    often: bool
    seconds: float | None
    nth: int
    again: float | None

    @classmethod
    def drawn(cls, by: random.Random, seconds: float) -> "Blow":
        """A blow to a run that takes so long."""
        by_time = by.random() < 0.4
        moment = by.uniform(0, seconds) if by_time else None
        again = by.choice([None, None, by.uniform(0, 0.3)]) if by_time else None
        return cls(by.choice(SIGNALS), by.random() < 0.7, moment, int(10 ** by.uniform(0, 1.8)), again)

    def arm(self, out: Path) -> None:
        """Let it fall in this process, which works in that folder, when its moment comes."""
        engine.CHECKPOINT_SECONDS = 0.0 if self.often else 600.0
        seen = 0

        def work(event: str, given: tuple) -> None:
            nonlocal seen
            if event in WORK and str(given[0]).startswith(str(out)):
                seen += 1
                if seen == self.nth:
                    os.kill(os.getpid(), self.signal)

        if self.seconds is None:
            sys.addaudithook(work)


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
    counts: Counter[str] = Counter()
    if not whole.exists():
        began = time.monotonic()
        status, said = attempt(name, folder, whole)
        (whole / "seconds").write_text(str(time.monotonic() - began))
        assert status == 0, said
    seconds = float((whole / "seconds").read_text())
    shutil.rmtree(here, ignore_errors=True)
    findings: list[str] = []
    for _ in range(drawn.randint(1, 4)):
        blow = Blow.drawn(drawn, seconds)
        status, said = attempt(name, folder, here, blow, rival=drawn.random() < 0.15)
        counts[blow.signal.name] += status != 0
        if status and not as_blown(blow, status, said):
            findings.append(f"{name}, {blow}: status {status}, said {said[-800:]!r}")
        findings += [f"{name}, {blow}: {left}" for left in what_is_left(here)]
    status, said = attempt(name, folder, here, rival=drawn.random() < 0.3)
    different = compared(here, whole) if status == 0 else f"status {status}: {said}"
    counts.update({"runs": 1, "bit-identical": not different})
    return dict(counts), findings + [f"{name}: {different}"] * bool(different)


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


def attempt(
    name: str, folder: Path, out: Path, blow: Blow | None = None, rival: bool = False
) -> tuple[int, str]:
    """Do what the set-up says until it ends or is struck: its status, as subprocess counts it, and what it
    said. A rival does the same at the same time, in the same folder, and must end or be told to wait."""
    words = [word.format(out=out, tree=folder / "tree", wild=folder / "wild") for word in SETUPS[name]]
    processes = [started(words, folder / "said", out, blow)]
    if rival:
        processes.append(started(words, folder / "rival", out, None))
    if blow and blow.seconds is not None:
        for wait in filter(None, (blow.seconds, blow.again)):
            time.sleep(wait)
            with suppress(ProcessLookupError):
                os.kill(processes[0].pid, blow.signal)
    ended = [waited(process) for process in processes]
    said = (folder / "said").read_text()
    if rival:
        rivals = (folder / "rival").read_text()
        told = "trains there" in rivals or "left to another" in rivals
        if ended[1] not in (0, 1) or (ended[1] == 1 and not told):
            return 70, f"the rival ended with {ended[1]}: {rivals}"
        refused = ended[0] == 1 and "trains there" in said and not ended[1]
        if refused or (not ended[0] and "left to another" in said):
            return attempt(name, folder, out, blow)  # the rival was first
    return ended[0], said


def started(words: list[str], said: Path, out: Path, blow: Blow | None) -> BaseProcess:
    """A process of a session of its own that does what `setclr WORDS` does, and hears signals from now on."""
    begun = FORK.Event()
    process = FORK.Process(target=command, args=(words, said, out, blow, begun))
    process.start()
    begun.wait(WAITS)
    return process


def command(words: list[str], said: Path, out: Path, blow: Blow | None, begun: Event) -> None:
    os.setsid()
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["setclr", *words]
    if blow:
        blow.arm(out)
    begin = cli.main

    def main(given: list[str]) -> None:
        begun.set()
        begin(given)

    cli.main = main
    try:
        cli.run()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def waited(process: BaseProcess) -> int:
    """The status with which a process ended; 71, after it was killed with all of its own, if it hung; 72 if
    processes that it had started stay behind."""
    until, group = time.monotonic() + WAITS, process.pid
    process.join(WAITS)
    if process.exitcode is None:
        os.killpg(group, signal.SIGKILL)
        process.join()
        return 71
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        return 72
    return process.exitcode


def as_blown(blow: Blow, status: int, said: str) -> bool:
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
    """What differs between two finished folders, times apart; "" where nothing does."""
    own = ("lock", "seconds")  # a lock's file may stay, the lock is gone with its process
    names = [sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()
                    and path.name not in own) for top in (here, whole)]  # fmt: skip
    if names[0] != names[1]:
        return f"the files are {names[0]} instead of {names[1]}"
    for name in names[0]:
        if name.endswith("checkpoint.pt"):
            kept = [checkpoint.read((top / name).parent) for top in (here, whole)]
        elif name.endswith(".json"):
            kept = [json.loads((top / name).read_text()) for top in (here, whole)]
            for record in kept:
                record.pop("evaluated_with")
        else:
            continue
        if place := differs(*kept):
            return f"{name} differs at {place}"
    return ""


def differs(a: object, b: object, place: str = "the top") -> str:
    """The first place where two nested values differ, times apart, or ""."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{place}: {sorted(map(str, a))} and {sorted(map(str, b))}"
        return next((d for k in a if k not in TIMES and (d := differs(a[k], b[k], f"{place}, {k}"))), "")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next((d for i, x in enumerate(a) if (d := differs(x, b[i], f"{place}, {i}"))), "")
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return "" if a.dtype == b.dtype and torch.equal(a, b) else f"{place}: the tensors"
    return "" if a == b or (a != a and b != b) else f"{place}: {a!r} and {b!r}"

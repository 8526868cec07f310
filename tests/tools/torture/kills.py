"""Runs that are killed at any moment, and at chosen points of a write: they end as if nothing had been.

A trial is one run of one of the set-ups: it is begun, struck, begun again, struck …, and last let to its end.
Then its checkpoint, or its record, is compared with that of a run that nothing struck, bit for bit.
"""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from blows import Blow, run_command
from PIL import Image

from setclr.experiments.records import read_record
from setclr.training import checkpoint

WAITS = 300.0  # seconds for one attempt
TIMES = ("seconds", "images_per_s", "training_seconds")
Outcome = tuple[dict[str, int], list[str]]

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


# What a user types, with few images and few steps; the last is done by two processes that torchrun starts.
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
    "torchrun": pretraining("InfoNCE()"),
}  # fmt: skip


def trial(seed: int, folder: Path) -> Outcome:
    drawn = random.Random(seed)
    name = list(SETUPS)[seed % len(SETUPS)]
    here, whole, many = folder / "struck", folder / "whole" / name, name == "torchrun"
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
    for _ in range(drawn.randint(1, 2 if many else 4)):
        blow = Blow.drawn(drawn, seconds, by_time=many)
        status, said = attempt(name, folder, here, blow, rival=drawn.random() < 0.15)
        struck = expected(blow, status, said)
        counts[str(blow.kind if blow.kind == "no room" else blow.signal.name)] += struck == ""
        findings += [f"{name}, {blow}: {struck}"] * (struck not in ("", "ended first"))
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
    if name == "torchrun":
        return torchrun(words, folder, blow)
    pids = [run_command(words, folder / "said", blow)]
    if rival:
        pids.append(run_command(words, folder / "rival", None))
    if blow and blow.kind == "time":
        time.sleep(blow.at)
        os.kill(pids[0], blow.signal)  # a process that has ended stays one until it is waited for
        if blow.again is not None:
            time.sleep(blow.again)
            os.kill(pids[0], blow.signal)
    ended = [waited(pid) for pid in pids]
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


def torchrun(words: list[str], folder: Path, blow: Blow | None) -> tuple[int, str]:
    """As above, by two processes that torchrun starts; a blow strikes one of them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m",
               "setclr", *words]  # fmt: skip
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
    if blow:
        with suppress(subprocess.TimeoutExpired):
            process.wait(blow.at)
        for pid in children(process.pid)[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, blow.signal)
    try:
        status = process.wait(WAITS)
    except subprocess.TimeoutExpired:
        status = 71
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return status, (folder / "said").read_text(errors="replace")[-1500:]


def children(pid: int) -> list[int]:
    """The processes that a process has begun and that still run; none if it has ended itself."""
    try:
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def waited(pid: int) -> int:
    """The status with which a process ended; 71, after it was killed with all of its own, if it hung; 72 if
    processes that it had started stay behind."""
    until = time.monotonic() + WAITS
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.005)
    else:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return 71
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(pid, 0)
            time.sleep(0.05)
        os.killpg(pid, signal.SIGKILL)
        return 72
    return os.waitstatus_to_exitcode(status)


def expected(blow: Blow, status: int, said: str) -> str:
    """ "" if the attempt ended as such a blow ends it, "ended first" if it ended before, or what is wrong."""
    line = said.count("\n") == 1 and said.startswith("setclr: ")
    if status == 0:
        return "ended first"
    if blow.kind == "no room":
        good = status == 1 and line and "could not be written" in said
    elif blow.signal == signal.SIGKILL:
        good = status < 0 or (blow.processes and status == 1)
    else:
        good = status == 128 + blow.signal and line
    return "" if good else f"status {status}, said {said[-800:]!r}"


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

"""Trainers that are fitted again or otherwise, ties among features, and paths that are no files.

A trial is one of these. A Trainer that is struck at random steps, and goes on in the same object or a new
one, ends in the bits of one that nothing struck; with another setting it is refused. Equal features are
matched by chance. What is written never takes the place of a pipe, a socket, a device or a link.
"""

import os
import random
import socket
import stat
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

from setclr import GroCo, InfoNCE, views
from setclr.data import ImageSet
from setclr.data.writing import replacing
from setclr.evaluation import matching_accuracy
from setclr.training import ImageViews, Keys, LRSchedule, Machine, Trainer

Outcome = tuple[dict[str, int], list[str]]
PIXELS = torch.randint(256, (24, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
CHANGES = [
    {"seed": 3}, {"epochs": 5}, {"loss": GroCo()}, {"loss": InfoNCE(0.3)}, {"lr": 0.1}, {"preset": "qare"},
    {"lr_schedule": LRSchedule("constant")}, {"keys": Keys(0.9)}, {"labels": True}, {"batch": 12},
]  # fmt: skip


class Struck(Exception):
    """Strikes within a step."""


def made(lr=1e-3, preset="simclr", loss=None, **more) -> Trainer:
    torch.manual_seed(0)
    encoder, head = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.Dropout(0.3)), nn.Linear(8, 8)
    images = ImageSet(PIXELS, torch.arange(24) % 2, ("a", "b"))
    more = dict(epochs=4, batch=8, device=Machine("cpu", "float32", workers=0, compiled=False)) | more
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr)
    source = ImageViews(images, views.preset(preset))
    return Trainer(source, encoder, head, loss or InfoNCE(0.2), optimiser, **more)


def fitted_again(drawn: random.Random, folder: Path) -> str:
    whole, trainer, out = made(), made(), folder / str(drawn.random())
    whole.fit()
    for _ in range(drawn.randint(1, 4)):
        step, kind, update = drawn.randrange(12), drawn.choice([KeyboardInterrupt, Struck]), trainer.update

        def struck(x, trainer=trainer, step=step, kind=kind, update=update):
            if trainer.step == step:
                raise kind
            return update(x)

        trainer.update = struck
        with suppress(KeyboardInterrupt, Struck):
            trainer.fit(out)
        trainer.update = update
        trainer = trainer if drawn.random() < 0.5 else made()
    if drawn.random() < 0.5:
        change = drawn.choice(CHANGES)
        try:
            made(**change).fit(out)
            return f"a run goes on with {change}"
        except ValueError:
            pass
    trainer.fit(out)
    same = torch.equal(trainer.head.weight, whole.head.weight) and len(trainer.rows) == 4
    return "" if same else "a run that was struck ends in other bits"


def ties(drawn: random.Random, folder: Path) -> str:
    n, kinds = drawn.randint(20, 80), drawn.randint(1, 8)
    generator = torch.Generator().manual_seed(drawn.randrange(2**31))
    rows = torch.randn(kinds, 5, generator=generator)[torch.randint(kinds, (n,), generator=generator)]
    rows = rows * drawn.choice([0.0, 1.0, 1e-30, 1e30])
    most = (len(rows.unique(dim=0)) + 5 * n**0.5) / n
    found = matching_accuracy(rows, rows, drawn.choice(["cosine", "euclidean"]))
    said = f"{n} rows of {kinds} kinds: {found:.2f} are matched, by chance {most:.2f}"
    return said if found > most else ""


def no_file(drawn: random.Random, folder: Path) -> str:
    path = folder / f"{drawn.random()}"
    kind = drawn.choice(["pipe", "socket", "link", "broken link", "folder"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(os.fspath(path))
    elif kind == "folder":
        path.mkdir()
    else:
        target = folder / f"target {drawn.random()}"
        path.symlink_to(target)
        if kind == "link":
            target.write_bytes(b"old")
    before = stat.S_IFMT(path.lstat().st_mode)
    try:
        with replacing(path) as file:
            file.write(b"new")
    except (OSError, ValueError) as error:
        if len(str(error)) < 10:
            return f"{kind}: it says {error}"
    left = [x.name for x in folder.glob(".*unfinished")]
    kept = stat.S_IFMT(path.lstat().st_mode) == before and not left
    return "" if kept else f"a {kind} is replaced, or {left} stay"


KINDS = {"fitted again": fitted_again, "ties": ties, "no file": no_file}


def trial(seed: int, folder: Path) -> Outcome:
    drawn = random.Random(seed)
    name = list(KINDS)[seed % len(KINDS)]
    finding = KINDS[name](drawn, folder)
    return {name: 1}, [f"{name}: {finding}"] * bool(finding)

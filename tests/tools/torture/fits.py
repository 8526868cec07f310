"""Trainers that are fitted again or otherwise.

In a trial a Trainer is struck at random steps, and goes on in the same object or a new one. It ends in the
bits of one that nothing struck; with another setting it is refused.
"""

import random
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

from setclr import GroCo, InfoNCE, views
from setclr.data import ImageSet
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
    return Trainer(
        ImageViews(images, views.preset(preset)), encoder, head, loss or InfoNCE(0.2), optimiser, **more
    )


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


def trial(seed: int, folder: Path) -> Outcome:
    finding = fitted_again(random.Random(seed), folder)
    return {"fitted again": 1}, [finding] * bool(finding)

"""A Trainer that is fitted again, or with other settings: it ends in the same bits, or says what differs."""

import os
import re
import signal

import pytest
import torch
from conftest import shifted
from torch import nn

from setclr import InfoNCE, data, views
from setclr.data import writing
from setclr.evaluation import features, linear_probe
from setclr.training import ImageViews, Keys, LoaderViews, LRSchedule, Machine, Trainer, checkpoint
from setclr.training.checkpoint import CHECKPOINT

PIXELS = torch.randint(256, (32, 3, 16, 16), dtype=torch.uint8, generator=shifted(0))
IMAGES = data.ImageSet(PIXELS, torch.arange(32) % 2, ("a", "b"))
MACHINE = Machine("cpu", "float32", workers=0, compiled=False)


def made(lr=1e-3, decay=0.0, kind=torch.optim.Adam, loss=None, preset="simclr", head=None, **more) -> Trainer:
    """Of 2 steps an epoch, with the same first weights, and dropout."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.Dropout(0.2))
    head = head or nn.Linear(8, 8)
    optimiser = kind([*encoder.parameters(), *head.parameters()], lr=lr, weight_decay=decay)
    more = dict(epochs=4, batch=16, device=MACHINE) | more
    source = ImageViews(IMAGES, views.preset(preset))
    return Trainer(source, encoder, head, loss or InfoNCE(0.2), optimiser, **more)


def stopped(trainer: Trainer, out, step: int = 5, act=lambda: os.kill(os.getpid(), signal.SIGINT)) -> Trainer:
    """The trainer after a fit in which `act` is called at this step."""
    update = trainer.update
    trainer.update = lambda x: (trainer.step == step and act(), update(x))[1]
    with pytest.raises((KeyboardInterrupt, ZeroDivisionError)):
        trainer.fit(out)
    trainer.update = update
    return trainer


CHANGES = [
    ("initial_lr 0.001 there, 1e-05 now", {"lr": 1e-5}),
    ("weight_decay 0.0 there, 0.5 now", {"decay": 0.5}),
    ("optimiser 'Adam' there, 'AdamW' now", {"kind": torch.optim.AdamW}),
    ("seed 0 there, 9 now; epochs 4 there, 8 now", {"seed": 9, "epochs": 8}),
    ("loss InfoNCE(temperature=0.2", {"loss": InfoNCE(0.3)}),
    ("lr_schedule LRSchedule(shape='cosine', warmup=0.0) there", {"lr_schedule": LRSchedule("constant")}),
    ("views (View(", {"preset": "qare"}),
    ("labels False there, True now", {"labels": True}),
    ("keys None there, (0.9, 'constant', 0) now", {"keys": Keys(0.9)}),
]


@pytest.mark.parametrize("said, change", CHANGES)
def test_a_run_is_not_gone_on_with_by_other_settings(tmp_path, said, change):
    stopped(made(), tmp_path)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(ValueError, match=re.escape(said) + ".*take those, or remove it to start again"):
        made(**change).fit(tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == whole
    assert len(made(**change).fit(tmp_path, resume=False)) == change.get("epochs", 4)


def test_views_without_a_text_of_their_own_are_no_other_settings():
    """As functions, whose text names a place in the memory of one process."""
    source = ImageViews(IMAGES, views.preset("simclr"))
    source.views = [lambda x: x]
    told = Trainer(source, nn.Flatten(), nn.Linear(768, 8), InfoNCE(0.2), batch=16).settings["views"]
    assert "0x" not in told


def test_a_checkpoint_without_settings_is_gone_on_with(tmp_path):
    """Of version 0.2, which did not keep them."""
    trainer, whole = stopped(made(), tmp_path), made()
    state = checkpoint.read(tmp_path)
    del state["settings"]
    checkpoint.write(tmp_path, state)
    trainer, whole = made(), made()
    assert trainer.fit(tmp_path) and whole.fit()
    assert torch.equal(trainer.head.weight, whole.head.weight)


def divided() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("with_out", [True, False])
@pytest.mark.parametrize("step", [3, 4])  # within an epoch, and at its first step
def test_the_same_trainer_goes_on_after_an_interruption(tmp_path, with_out, step):
    whole, out = made(), tmp_path if with_out else None
    whole.fit()
    again = stopped(made(), out, step)
    assert len(again.fit(out)) == 4 and torch.equal(again.head.weight, whole.head.weight)
    if with_out:  # nor is the checkpoint spoilt
        fresh = made()
        assert len(fresh.fit(out)) == 4 and torch.equal(fresh.head.weight, whole.head.weight)
        assert len(again.fit(out)) == 4 and torch.equal(again.head.weight, whole.head.weight)


def test_a_run_that_is_struck_twice_before_its_second_checkpoint_draws_the_same(tmp_path):
    """Its first checkpoint holds the generators as they are when the training begins."""
    whole = made()
    whole.fit()
    for step in (1, 2):
        stopped(made(), tmp_path, step, divided)
    again = made()
    assert again.fit(tmp_path) and torch.equal(again.head.weight, whole.head.weight)


def test_a_kept_checkpoint_is_not_lost_where_the_disk_is_full_for_a_moment(tmp_path, monkeypatch):
    for struck in ("epoch-1.pt", CHECKPOINT):
        out, full, writable = tmp_path / struck, [True], writing.temporary

        def temporary(path, struck=struck, full=full, writable=writable):
            if path.name == struck and full and (path.parent / CHECKPOINT).exists():
                full.clear()
                raise OSError(28, "No space left on device")
            return writable(path)

        monkeypatch.setattr(writing, "temporary", temporary)
        with pytest.raises(OSError, match="No space left.*repeat the call to go on"):
            made().fit(out, keep_every=1)
        made().fit(out, keep_every=1)
        monkeypatch.undo()
        assert {path.name for path in out.glob("epoch-*.pt")} == {f"epoch-{n}.pt" for n in range(1, 5)}


def test_kept_checkpoints_of_another_run_do_not_stay(tmp_path):
    made().fit(tmp_path, keep_every=1)
    made(epochs=2).fit(tmp_path, resume=False, keep_every=2)
    assert [path.name for path in tmp_path.glob("epoch-*.pt")] == ["epoch-2.pt"]


def test_a_lock_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(ValueError, match="lock must be no link, since its target would be written"):
        made().fit(tmp_path)
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.parametrize("make, message", [
    (lambda: made(head=nn.utils.weight_norm(nn.Linear(8, 8)), keys=Keys(0.9)),
     "encoder and head must allow a copy for keys .*parametrizations can be copied"),
    (lambda: Trainer(ImageViews(IMAGES, views.preset("qare")), nn.Flatten(), nn.Identity(), InfoNCE(0.2),
                     batch=16),
     "encoder or head must have a parameter that learns, got none"),
    (lambda: made().fit(""), "out must name a folder, got ''; '.' is the present one"),
    (lambda: made(lr_schedule=LRSchedule(warmup=50)),
     "warmup must be at most 4, the epochs, got 50; .* take a shorter one"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*weight_norm")
def test_what_no_training_can_do_is_refused_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("call", [
    made, lambda: features(nn.Flatten(), PIXELS), lambda: IMAGES.sample(4),
    lambda: linear_probe(PIXELS[:, 0, 0].float(), IMAGES.labels, PIXELS[:, 0, 0].float()),
    lambda: views.draw(views.preset("qare"), 4, torch.Generator().manual_seed(0)),
])  # fmt: skip
def test_another_default_device_is_refused(call):
    """torch.set_default_device("cuda") in a notebook's first cell; "meta" stands for it."""
    with torch.device("meta"), pytest.raises(ValueError, match="default device must be the CPU here, got"):
        call()
    call()


@pytest.mark.parametrize("workers", [0, 1])
def test_views_that_carry_a_graph_are_read_without_it(workers):
    """A transform that runs a network; in another process such a batch was dropped, and training waited."""
    frozen = nn.Linear(4, 4)
    items = [[frozen(x), frozen(x + 0.1)] for x in torch.randn(32, 4, generator=shifted(0))]
    machine = Machine("cpu", "float32", workers=workers, compiled=False)
    parts = nn.Linear(4, 8), nn.Linear(8, 4), InfoNCE(0.2)
    assert len(Trainer(LoaderViews(items), *parts, epochs=1, batch=16, device=machine).fit()) == 1
    assert frozen.weight.grad is None

"""What only a GPU can show: the engine on CUDA. `make gpu` runs this with all other tests of that mark."""

from dataclasses import replace

import pytest
import torch
from conftest import shifted
from looks_at_values import ON_A_GPU, why
from small_runs import Killed, same, stop_after

from setclr import losses, pretrain
from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr.training import trainer as engine

WITHOUT = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
pytestmark = [pytest.mark.gpu, WITHOUT]
PIXELS = torch.randint(0, 256, (160, 3, 32, 32), dtype=torch.uint8, generator=shifted(0))
FEW = ImageSet(PIXELS, torch.arange(160) % 5, tuple("abcde"))
SMALL = ImageRecipe("InfoNCE(temperature=0.2)", views="simclr", epochs=3, batch=32, last_norm=True)


def test_killed_and_resumed_is_never_killed(tmp_path, monkeypatch):
    """The same bits, with torch's deterministic algorithms."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    monkeypatch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
    how = dict(data=FEW, device="cuda", deterministic=True, compiled=False)
    with pytest.raises(Killed):
        pretrain(SMALL, tmp_path, on_epoch=stop_after(2), **how)
    assert same(pretrain(SMALL, tmp_path, **how), pretrain(SMALL, **how))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("loss", [kind() for kind in losses.LOSSES], ids=repr)
def test_a_step_never_waits_for_the_gpu(loss, compiled):
    """But at every tenth, where the losses are checked, and for those that `looks_at_values.py` lists."""
    if reason := why(loss, ON_A_GPU):
        pytest.skip(reason)
    recipe = replace(SMALL, loss=repr(loss), labels=loss.supervised, epochs=4)
    trainer = new_run(recipe, channels=3).trainer(FEW, torch.device("cuda"), compiled=compiled)
    steps = trainer.epoch()
    next(steps)
    torch.cuda.set_sync_debug_mode("error")
    try:
        next(steps)
        next(steps)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_every_precision_learns(precision):
    recipe = ImageRecipe("InfoNCE(temperature=0.2)", views="photo", epochs=8, batch=32, precision=precision)
    losses = pretrain(recipe, data=FEW, device="cuda").history.loss
    assert losses.iloc[-1] < losses.iloc[0] - 0.05

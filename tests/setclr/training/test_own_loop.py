"""The pieces for a training loop of your own, and what `setclr` itself exports."""

import copy
import doctest
import importlib
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

import setclr
from setclr import DistributedLoss, InfoNCE, Queue, losses, update_momentum


def test_a_queue_holds_the_latest_keys_in_their_order():
    queue, added = Queue(5, 3), torch.randn(4, 2, 3, dtype=torch.float64)
    start = queue.keys.clone()
    queue.add(added[0])
    torch.testing.assert_close(queue.keys, torch.cat([start[2:], normalize(added[0].float(), dim=1)]))
    for keys in added[1:]:
        queue.add(keys)
    torch.testing.assert_close(queue.keys, normalize(added.flatten(0, 1)[-5:].float(), dim=1))
    other = Queue(5, 3, seed=1)
    assert not torch.equal(other.keys, queue.keys)
    other.load_state_dict(queue.state_dict())
    assert torch.equal(other.keys, queue.keys) and not queue.keys.requires_grad
    queue.add(torch.randn(8, 3))  # more than it holds
    assert queue.keys.shape == (5, 3)
    with pytest.raises(ValueError, match=r"keys must be \(n, 3\) for this queue, got \(2, 4\)"):
        queue.add(torch.randn(2, 4))
    with pytest.raises(ValueError, match="size must be an integer >= 1, got 0"):
        Queue(0, 3)


def test_a_moving_average_follows():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    ema = copy.deepcopy(model).requires_grad_(False)
    before = [p.clone() for p in ema.parameters()]
    with torch.no_grad():
        for p in model.parameters():
            p += torch.randn_like(p)
    update_momentum(model, ema, 0.9)
    for old, new, follows in zip(before, model.parameters(), ema.parameters()):
        torch.testing.assert_close(follows, 0.9 * old + 0.1 * new.detach())
    with pytest.raises(ValueError, match="ema must be a copy of model, got parameters of other"):
        update_momentum(model, nn.Linear(2, 3), 0.9)
    with pytest.raises(ValueError, match="m must be >= 0 and <= 1, got 1.5"):
        update_momentum(model, ema, 1.5)


def test_a_loss_over_processes_is_the_loss_where_there_is_one():
    z, y, w = torch.randn(2, 6, 4), torch.tensor([0, 0, 1, 1, 2, 3]), torch.rand(6)
    loss = InfoNCE(0.2)
    over = DistributedLoss(loss)
    assert torch.equal(over(z, labels=y, weight=w), loss(z, labels=y, weight=w))
    assert torch.equal(over(z[0], z[1]), loss(z)) and torch.equal(over(z, keys=z + 1), loss(z, keys=z + 1))
    with pytest.raises(ValueError, match="loss must be a loss on embeddings"):
        DistributedLoss(nn.MSELoss())


def test_every_loss_is_exported_from_setclr():
    assert {name for name in setclr.__all__ if hasattr(losses, name)} == {*losses.BY_NAME, "learnable"}


MODULES = ("setclr", "setclr.losses", "setclr.inner", "setclr.training", "setclr.evaluation")
NAMES = [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]
CALLED = [pair for pair in NAMES if callable(getattr(importlib.import_module(pair[0]), pair[1]))]
NEEDS = {"TensorBoard": "tensorboard"}


@pytest.mark.parametrize("module, name", CALLED)
def test_every_public_name_has_an_example_that_runs(module, name, monkeypatch, tmp_path):
    pytest.importorskip(NEEDS.get(name, "torch"))
    monkeypatch.chdir(tmp_path)
    thing = getattr(importlib.import_module(module), name)
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(thing, name, importlib.import_module(thing.__module__), {})
    assert found.examples and not doctest.DocTestRunner().run(found).failed


LIGHT = """
import importlib.abc, sys
class Core(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torchvision", "sklearn", "skimage", "pandas", "PIL", "tqdm", "tyro"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Core())
import setclr, setclr.losses, setclr.inner, setclr.evaluation, setclr.training, torch
from setclr.training.optimisers import LARS
setclr.InfoNCE()(setclr.gather(torch.randn(2, 3, 4)))
wanting = set()
for module in (setclr, setclr.losses, setclr.inner, setclr.evaluation, setclr.training):
    for name in module.__all__:
        try:
            getattr(module, name)
        except ModuleNotFoundError as error:
            assert "pip install 'setclr[train]'" in str(error)
            wanting.add(name)
print(*sorted(wanting))
"""


def test_what_needs_torch_alone_imports_torch_alone():
    """Torch, numpy and scipy are all that is there; what reads images or writes tables says what it wants."""
    run = subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True, text=True, cwd="/")
    of_images = {"ImageViews", "LoaderViews", "Source", "Step", "features", "linear_probe", "pixels"}
    assert {*run.stdout.split()} == of_images | {"Keys", "TensorBoard", "Trainer", "pretrain"}

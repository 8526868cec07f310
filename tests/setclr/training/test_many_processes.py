"""Two processes are as one: every loss and gradient of one's own loop, and all that a Trainer does."""

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from conftest import SHIFT, shifted
from every_loss import EVERY
from small_runs import FEW, same
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from setclr import DistributedLoss, models, pretrain, views
from setclr.data import ImageSet
from setclr.evaluation import frozen
from setclr.experiments import load_run
from setclr.experiments.kinds import kind_of
from setclr.experiments.run import new_run
from setclr.graphs import GraphSet, load_graphs
from setclr.losses import InfoNCE, parse
from setclr.recipes import GraphRecipe, ImageRecipe, Recipe, VideoRecipe
from setclr.training import ImageViews, Machine, Trainer
from setclr.training.checkpoint import HISTORY
from setclr.training.distributed import SyncBatchNorm, from_first, gather, gather_alike, joined, rank, world
from setclr.training.grad_cache import Group
from setclr.video import VideoSet

pytestmark = pytest.mark.processes

EXPRESSIONS = [repr(loss) for loss in EVERY]
LEARNT = "InfoNCE(temperature=learnable(0.2))"
WITH_MORE = [repr(loss) for loss in EVERY if loss.takes >= {"keys", "memory"} and "=None" not in repr(loss)]
CASES = [*((text, False) for text in EXPRESSIONS), *((text, True) for text in WITH_MORE)]
CLASSES, WEIGHTS = torch.tensor([0, 1, 2, 0, 3, 1]), torch.tensor([1, 2, 0.5, 1, 3, 1], dtype=torch.float64)
ALIKE = ["InfoNCE(0.2)", "SparseCLR() + QARe()", "GroCo()", "IOT('rows')", "MMCL()"]
INFONCE = "InfoNCE(temperature=0.2)"
RECIPE = ImageRecipe(INFONCE + " + 0.5 * QARe()", views="photo", epochs=2, batch=16, lr=3e-3)
# A tenth of the rate of graphs, at which a difference in the last digit grows sevenfold in a step.
GRAPHS = GraphRecipe(INFONCE, first="drop", batch=16, epochs=4, drop_last=True, lr=1e-3)
RECIPES = {
    "adam": RECIPE,
    "groco": replace(RECIPE, loss="GroCo()", last_norm=True, optimiser="sgd", lr=0.1),
    "moco": replace(RECIPE, loss=INFONCE, key_momentum=0.9, queue=24),
    "moco-v3": replace(
        RECIPE, loss="GroCo()", key_momentum=0.9, key_schedule="cosine", predictor=2, last_norm=True
    ),
    "clusters": replace(RECIPE, loss="DeepCluster()", full_views=1, embedding=5, lr=1e-3),
    "infomax": replace(RECIPE, loss="DeepInfoMax()", full_views=1, lr=1e-3),
    "learnt": replace(RECIPE, loss=LEARNT, optimiser="adamw", weight_decay=0.1),
    "labels": replace(RECIPE, loss="SupCon(temperature=0.2)", labels=True, images_per_class=2),
    "last": replace(RECIPE, drop_last=False, normalised="cifar10"),
    "graphs": GRAPHS,
    "graphs, keys": replace(GRAPHS, loss="GroCo(negatives=5)", last_norm=True, key_momentum=0.9),
    "videos": VideoRecipe(INFONCE, frames=4, batch=16, epochs=4, queue=24, key_momentum=0.9),
    "multi-crop": replace(RECIPE, full_views=2, local_views=2, view_size=16, local_size=8, optimiser="lars"),
}
RECIPES = {name: replace(recipe, precision="float32") for name, recipe in RECIPES.items()}  # for float64


DATA = Path(__file__).resolve().parents[3] / "data"


def data_of(recipe: Recipe) -> ImageSet | GraphSet | VideoSet:
    if recipe.kind == "graph":  # of different sizes, so that each process has other numbers of nodes
        return GraphSet(load_graphs("mutag").graphs[:44])
    if recipe.kind == "video":
        some = torch.randint(0, 256, (40, 3, 6, 32, 32), dtype=torch.uint8, generator=shifted(0))
        return VideoSet(some, {"class": torch.arange(40) % 5}, {"class": tuple("abcde")})
    return FEW


def in_float64(group: Group) -> Group:
    if isinstance(group, torch.Tensor):
        return group.double()
    for view in group.views:
        view.x = view.x.double()
    return group


def train(recipe: Recipe) -> tuple[list, dict]:
    some = data_of(recipe)
    torch.manual_seed(recipe.seed)  # as `fit` does, for DeepInfoMax's prior
    run = new_run(recipe, kind_of(recipe).channels(some))
    # In float32 Adam turns rounding of gradients that are zero (a bias before a batch norm) into whole steps.
    run.encoder.double()
    run.head.double()
    trainer = run.trainer(some, torch.device("cpu"))
    trainer.loss.double()
    trainer.view_batches = ([in_float64(group) for group in groups] for groups in trainer.view_batches)
    losses = []
    for _ in range(recipe.epochs):
        for _ in trainer.epoch():
            losses.append(float(trainer.values[-1]))
        trainer.close_epoch()
    weights = {**run.encoder.state_dict(), **run.head.state_dict(prefix="head.")}
    return losses, {**weights, **trainer.loss.state_dict(prefix="loss.")}


def one_of_two(process: int, port: int, data: dict, results):
    os.environ.update(WORLD_SIZE="2", RANK=str(process), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)  # two processes with two threads each would wait for one another on two cores
    with joined("cpu") as device:
        assert (device, rank(), world()) == ("cpu", process, 2)
        losses_of_half(process, data, results)
        for name, recipe in RECIPES.items():
            results[name, process] = train(recipe)
        batch_norm(process, results)
        refusals(process)
        results["features", process] = embedded()
        with pytest.raises(ValueError, match="only the first one fails"):
            from_first(lambda: refuse())
        for bad in (DIFFERENT[process], replace(DIFFERENT[0], classes=tuple(NAMES[process]))):
            with pytest.raises(
                ValueError, match="images must be the same on all processes, got 3. images with"
            ):
                new_run(RECIPE, channels=3).trainer(bad, torch.device("cpu"))
        with pytest.raises(ValueError, match="must be divisible by the number of processes, 2.* got 33"):
            pretrain(replace(RECIPE, batch=33), root=DATA)


def losses_of_half(process: int, data: dict, results) -> None:
    """Embed one's own half, gather, and keep what every loss gave: its value, the gradient of the embeddings
    and, through DistributedDataParallel, that of the encoder's weights."""
    half = {name: x.chunk(2, dim=1)[process] for name, x in data.items() if name != "memory"}
    encoder = nn.Linear(5, 4, bias=False, dtype=torch.float64)
    encoder.load_state_dict({"weight": data["weight"]})
    model = DistributedDataParallel(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        warnings.simplefilter("error", FutureWarning)
        for text, more in CASES:
            encoder.zero_grad()
            z = model(half["images"])
            z.retain_grad()
            extra = {"keys": gather(half["keys"]), "memory": data["memory"]} if more else {}
            value = parse(text)(gather(z), **extra)
            value.backward()
            results[text, more, process] = (value.item(), z.grad / 2, encoder.weight.grad.clone())
    for text in ALIKE:
        for gathered in (gather, gather_alike):
            z = (half["images"] @ data["weight"].T).requires_grad_()
            parse(text)(gathered(z)).backward()
            results[gathered.__name__, text, process] = z.grad
    loss = parse(LEARNT)
    loss(gather(model(half["images"]))).backward()
    results["temperature", process] = loss.temperature.log.grad.clone()
    z = (half["images"] @ data["weight"].T).requires_grad_()
    mine = {"labels": CLASSES.chunk(2)[process], "weight": WEIGHTS.chunk(2)[process]}
    value = DistributedLoss(parse("InfoNCE(0.2)"))(z, half["keys"], data["memory"], **mine)
    value.backward()
    results["over", process] = (value.item(), z.grad / 2)


# What two processes see where a file is missing on one of them, or classes are in another order.
NAMES = ("ab", "ba")
DIFFERENT = [
    ImageSet(torch.zeros(n, 3, 16, 16, dtype=torch.uint8), torch.arange(n) % 2, tuple("ab")) for n in (32, 31)
]


def refusals(process: int) -> None:
    """What only several processes can get wrong: parts of other shapes, and weights without a gradient."""
    with pytest.raises(ValueError, match=r"one shape .*got \(2, 5, 3\) on process 0 and \(2, 4, 3\) on"):
        gather(torch.zeros(2, 5 - process, 3))
    with pytest.raises(ValueError, match="process 0 and .* on process 1; a loader needs drop_last=True"):
        gather(torch.zeros(*([2, 5, 3] if process else [5, 3])))
    assert gather(torch.arange(3)[None, :, None] + 3 * process).flatten().tolist() == list(range(6))

    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Conv2d(3, 4, 3), nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x).mean((2, 3))

    source, its_head = ImageViews(FEW, views.preset("photo")), models.head(4, 8, 8)
    how = Machine("cpu", "float32", compiled=False)
    trainer = Trainer(source, Idle(), its_head, InfoNCE(0.2), epochs=1, batch=16, device=how)
    with pytest.raises(ValueError, match="must get a gradient .*got none for 2, such as idle.weight; leave"):
        trainer.fit()

    z = torch.randn(2, 3, 4, requires_grad=True)
    (first,) = torch.autograd.grad(InfoNCE()(gather(z)), z, create_graph=True)
    first.square().sum().backward()  # a second derivative through gather
    assert z.grad.isfinite().all()
    with pytest.raises(RuntimeError, match="second derivative .* would be wrong: gather_alike"):
        torch.autograd.grad(InfoNCE()(gather_alike(z)), z, create_graph=True)


def refuse():
    assert rank() == 0
    raise ValueError("only the first one fails")


def batch_norm(process: int, results) -> None:
    """The layer alone, without learnt scale and with it, on (N, C) and (N, C, H, W)."""
    for shape in ((6, 4), (6, 4, 3, 3)):
        for affine in (False, True):
            x, norm = example(shape, affine)
            norm.__class__ = SyncBatchNorm
            mine = x.chunk(2)[process].detach().requires_grad_()
            y = norm(mine)
            (y**3).sum().backward()
            results["norm", shape, affine, process] = y.detach(), mine.grad, norm.state_dict()


def embedded() -> list[torch.Tensor]:
    """Features of images of which the second process has fewer, or none; gathered three rows at a time."""
    torch.manual_seed(2)
    images, encoder = torch.randint(0, 256, (23, 3, 16, 16), dtype=torch.uint8), models.encoder("conv4")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frozen, "VALUES", 3 * 2 * 64)
        return [frozen.features(encoder, images[:n], batch=4) for n in (23, 3)]


def example(shape: tuple, affine: bool) -> tuple[torch.Tensor, nn.Module]:
    torch.manual_seed(1)
    kind = nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d
    momentum = None if affine else 0.1  # None: the mean of all batches so far
    norm = kind(shape[1], affine=affine, momentum=momentum, dtype=torch.float64)
    if affine:
        nn.init.normal_(norm.weight)
    return torch.randn(shape, dtype=torch.float64) + 3, norm


@pytest.fixture(scope="module")
def given() -> dict:
    """What both processes get, and each has a half of."""
    torch.manual_seed(SHIFT)
    shapes = {"images": (2, 6, 5), "keys": (2, 6, 4), "memory": (7, 4), "weight": (4, 5)}
    return {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def together(given) -> dict:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(one_of_two, (port, given, results), nprocs=2)
        return dict(results)


@pytest.mark.parametrize("text, more", CASES, ids=lambda x: x if isinstance(x, str) else "keys, memory" * x)
def test_two_processes_give_the_loss_and_gradients_of_one(given, together, text, more):
    weight = given["weight"].clone().requires_grad_()
    z = given["images"] @ weight.T
    z.retain_grad()
    value = parse(text)(z, **({"keys": given["keys"], "memory": given["memory"]} if more else {}))
    value.backward()
    for process in (0, 1):
        there, _, gradient = together[text, more, process]
        assert there == pytest.approx(value.item(), rel=1e-9)
        torch.testing.assert_close(gradient, weight.grad, rtol=1e-7, atol=1e-9)
    gradient = torch.cat([together[text, more, process][1] for process in (0, 1)], dim=1)
    torch.testing.assert_close(gradient, z.grad, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("text", ALIKE)
def test_the_same_loss_on_every_process_needs_no_communication_backwards(together, text):
    for process in (0, 1):
        safe, alike = (together[name, text, process] for name in ("gather", "gather_alike"))
        assert torch.equal(safe, alike) and safe.abs().max() > 0


def test_a_learnable_temperature_gets_the_gradient_of_the_whole_batch_on_every_process(given, together):
    loss = parse(LEARNT)
    loss(given["images"] @ given["weight"].T).backward()
    for process in (0, 1):
        found = together["temperature", process]
        torch.testing.assert_close(found, loss.temperature.log.grad, rtol=1e-5, atol=0)


def test_a_loss_over_processes_gathers_all_that_it_is_given(given, together):
    z = (given["images"] @ given["weight"].T).requires_grad_()
    loss = parse("InfoNCE(0.2)")(z, given["keys"], given["memory"], labels=CLASSES, weight=WEIGHTS)
    loss.backward()
    for process in (0, 1):
        value, gradient = together["over", process]
        assert value == pytest.approx(loss.item(), rel=1e-12)
        torch.testing.assert_close(gradient, z.grad.chunk(2, dim=1)[process])


@pytest.mark.parametrize("name", RECIPES)
def test_two_epochs_and_more_on_two_processes_are_those_of_one(together, name):
    losses, weights = train(RECIPES[name])
    assert len(losses) >= 8 and losses[0] != losses[-1]
    for process in (0, 1):
        there, its_weights = together[name, process]
        assert there == pytest.approx(losses, rel=1e-6)
        for key, value in weights.items():
            torch.testing.assert_close(
                its_weights[key], value, rtol=1e-6, atol=1e-6, msg=lambda m, k=key: k + m
            )


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 3, 3)], ids=str)
def test_batch_norm_of_two_processes_is_that_of_the_whole_batch(together, shape, affine):
    x, norm = example(shape, affine)
    x.requires_grad_()
    y = norm(x)
    (y**3).sum().backward()
    for i, whole in enumerate((y.detach(), x.grad)):
        parts = torch.cat([together["norm", shape, affine, process][i] for process in (0, 1)])
        torch.testing.assert_close(parts, whole, rtol=1e-9, atol=1e-9)
    for key, value in norm.state_dict().items():
        torch.testing.assert_close(together["norm", shape, affine, 1][2][key], value)


def test_features_of_two_processes_are_those_of_one(together):
    for process in range(2):
        for found, expected in zip(together["features", process], embedded(), strict=True):
            torch.testing.assert_close(found, expected)


def test_two_processes_learn_the_same_temperature(together):
    """To the bit: each computes the loss of all embeddings, and gradients are averaged."""
    learnt = [together["learnt", process][1]["loss.temperature.log"] for process in (0, 1)]
    assert torch.equal(*learnt) and abs(learnt[0].exp().item() - 0.2) > 1e-3


HANGS = 900  # seconds


def torchrun(out, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "setclr", "pretrain", "photo-infonce", "--out", str(out), "--device", "cpu"]
    command += ["--images", "256", "--batch", "32", "--epochs", "4", "--root", str(DATA), *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_torchrun_stopped_half_way_goes_on_and_ends_as_it_would_have(tmp_path):
    whole = torchrun(tmp_path / "whole")
    assert whole.wait(HANGS) == 0, whole.stdout.read()
    stopped = torchrun(tmp_path / "stopped", "--epochs", "4")
    history = tmp_path / "stopped" / HISTORY
    while not history.exists() or len(history.read_text().splitlines()) < 2:
        assert stopped.poll() is None, stopped.stdout.read()
        time.sleep(0.05)
    stopped.send_signal(signal.SIGTERM)
    stopped.wait(HANGS)
    assert not load_run(tmp_path / "stopped").finished
    again = torchrun(tmp_path / "stopped")
    assert again.wait(HANGS) == 0, again.stdout.read()
    assert same(*(load_run(tmp_path / name) for name in ("whole", "stopped")))

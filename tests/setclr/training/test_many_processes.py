"""Two processes are as one: every loss and gradient of one's own loop, and all that a Trainer does."""

import os
import socket
import warnings
from dataclasses import replace

import pandas as pd
import pytest
import torch
import torch.multiprocessing as mp
from conftest import SHIFT, shifted
from every_loss import EVERY
from small_runs import FEW
from torch import Tensor, nn

from setclr import DistributedLoss, models, pretrain, views
from setclr.data import ImageSet
from setclr.evaluation import features, frozen, neighbours
from setclr.experiments.kinds import kind_of
from setclr.experiments.run import new_run
from setclr.graphs import GraphSet, load_graphs
from setclr.losses import InfoNCE, parse
from setclr.recipes import GraphRecipe, ImageRecipe, Recipe, VideoRecipe
from setclr.training import ImageViews, Machine, Trainer
from setclr.training.distributed import from_first, gather, gather_alike, joined, rank, synchronised, world
from setclr.training.grad_cache import Group, data_parallel
from setclr.video import VideoSet

pytestmark = pytest.mark.processes

CPU = torch.device("cpu")
LEARNT = "InfoNCE(temperature=learnable(0.2))"
WITH_MORE = [loss for loss in EVERY if loss.takes >= {"keys", "memory"} and "=None" not in repr(loss)]
CASES = [  # a loss, and what it gets beside the embeddings
    *((text, ()) for text in [*map(repr, EVERY), LEARNT]),
    *((repr(loss), ("keys", "memory")) for loss in WITH_MORE),
    ("InfoNCE(0.2)", ("keys", "memory", "labels", "weight")),
]
NORMS = [(shape, affine) for shape in ((6, 4), (6, 4, 3, 3)) for affine in (False, True)]
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
        found = losses_of(data) | {name: train(recipe) for name, recipe in RECIPES.items()}
        found |= {case: normed(*case) for case in NORMS} | {"features": embedded()}
        found["watched"] = watched()
        refusals(process)
        results[process] = found


def watched() -> pd.DataFrame:
    """The history of a run whose on_epoch embeds images, which the first process does alone."""
    embed = lambda run: {"width": features(run.encoder, FEW.images).shape[1]}  # noqa: E731
    return pretrain(replace(RECIPE, epochs=2), data=FEW, device="cpu", on_epoch=embed).history


def mine(x: Tensor, dim: int = 0) -> Tensor:
    """This process's share; all where there is one process."""
    return x.chunk(world(), dim)[rank()]


def losses_of(data: dict) -> dict[tuple, tuple]:
    """Embed one's own share, gather, and keep what every loss gave: its value, the gradient of the embeddings
    and those of the encoder's weights, through DistributedDataParallel, and of the loss's own."""
    given = {name: mine(data[name], dim) for name, dim in {"keys": 1, "labels": 0, "weight": 0}.items()}
    given["memory"], found = data["memory"], {}
    encoder = nn.Linear(5, 4, bias=False, dtype=torch.float64)
    encoder.load_state_dict({"weight": data["start"]})
    model = data_parallel(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        warnings.simplefilter("error", FutureWarning)
        for text, names in CASES:
            encoder.zero_grad()
            z, loss = model(mine(data["images"], dim=1)), parse(text).double()
            z.retain_grad()
            more = {name: given[name] for name in names}
            value = DistributedLoss(loss)(z, **more) if more else loss(gather(z))
            value.backward()
            learnt = [p.grad.clone() for p in (encoder.weight, *loss.parameters())]
            found[text, names] = value.item(), z.grad / world(), learnt
    return found


def refusals(process: int) -> None:
    """What only several processes can get wrong: data and batches that do not fit, parts of other shapes,
    weights without a gradient."""
    with pytest.raises(ValueError, match="only the first one fails"):
        from_first(refuse)
    names = ("abcde", "edcba")[process]  # as where files lie in another order
    for bad in (FEW.subset(torch.arange(70) >= process), replace(FEW, classes=tuple(names))):
        with pytest.raises(ValueError, match="images must be the same on all processes, got .. images with"):
            new_run(RECIPE, channels=3).trainer(bad, CPU)
    with pytest.raises(ValueError, match="must be divisible by the number of processes, 2.* got 33"):
        pretrain(replace(RECIPE, batch=33), data=FEW)

    with pytest.raises(ValueError, match=r"one shape .*got \(2, 5, 3\) on process 0 and \(2, 4, 3\) on"):
        gather(torch.zeros(2, 5 - process, 3))
    with pytest.raises(ValueError, match="process 0 and .* on process 1; a loader needs drop_last=True"):
        gather(torch.zeros(*([2, 5, 3] if process else [5, 3])))
    assert gather(torch.arange(3)[None, :, None] + 3 * process).flatten().tolist() == list(range(6))

    encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    encoder.register_parameter("idle", nn.Parameter(torch.zeros(2)))
    source, its_head = ImageViews(FEW, views.preset("photo")), models.head(4, 8, 8)
    how = Machine("cpu", "float32", compiled=False)
    with pytest.raises(RuntimeError, match="finished reduction in the prior iteration"):
        Trainer(source, encoder, its_head, InfoNCE(0.2), epochs=1, batch=16, device=how).fit()

    z = torch.randn(2, 3, 4, requires_grad=True)
    (first,) = torch.autograd.grad(InfoNCE()(gather(z)), z, create_graph=True)
    first.square().sum().backward()  # a second derivative through gather
    assert z.grad.isfinite().all()
    with pytest.raises(RuntimeError, match="second derivative .* would be wrong: gather_alike"):
        torch.autograd.grad(InfoNCE()(gather_alike(z)), z, create_graph=True)


def refuse() -> None:
    assert rank() == 0
    raise ValueError("only the first one fails")


def normed(shape: tuple, affine: bool) -> tuple[Tensor, Tensor, dict]:
    """Output, gradient and statistics of a batch norm, without learnt scale or with it, alone."""
    torch.manual_seed(1)
    kind = nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d
    momentum = None if affine else 0.1  # None: the mean of all batches so far
    norm = kind(shape[1], affine=affine, momentum=momentum, dtype=torch.float64)
    if affine:
        nn.init.normal_(norm.weight)
    x = mine(torch.randn(shape, dtype=torch.float64) + 3).requires_grad_()
    y = synchronised(norm, CPU)(x)
    (y**3).sum().backward()
    return y.detach(), x.grad, norm.state_dict()


def embedded() -> list[torch.Tensor]:
    """Features of images of which the second process has fewer, or none; gathered three rows at a time."""
    torch.manual_seed(2)
    images, encoder = torch.randint(0, 256, (23, 3, 16, 16), dtype=torch.uint8), models.encoder("conv4")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "VALUES", 3 * 64)
        return [frozen.features(encoder, images[:n], batch=4) for n in (23, 3)]


@pytest.fixture(scope="module")
def given() -> dict[str, Tensor]:
    """What both processes get, and each takes its share of."""
    torch.manual_seed(SHIFT)
    shapes = {"images": (2, 6, 5), "keys": (2, 6, 4), "memory": (7, 4), "start": (4, 5)}
    drawn = {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}
    weight = torch.tensor([1, 2, 0.5, 1, 3, 1], dtype=torch.float64)
    return {**drawn, "labels": torch.tensor([0, 1, 2, 0, 3, 1]), "weight": weight}


@pytest.fixture(scope="module")
def alone(given) -> dict[tuple, tuple]:
    return losses_of(given)


@pytest.fixture(scope="module")
def together(given) -> list[dict]:
    """What each of the two found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(one_of_two, (port, given, results), nprocs=2)
        return [results[0], results[1]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: ", ".join([case[0], *case[1]]))
def test_two_processes_give_the_loss_and_gradients_of_one(alone, together, case):
    value, gradient, learnt = alone[case]
    for found in together:
        assert found[case][0] == pytest.approx(value, rel=1e-9)
        torch.testing.assert_close(found[case][2], learnt, rtol=1e-7, atol=1e-9)
    parts = torch.cat([found[case][1] for found in together], dim=1)
    torch.testing.assert_close(parts, gradient, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", RECIPES)
def test_two_epochs_and_more_on_two_processes_are_those_of_one(together, name):
    """And the same bits on both: a learnt temperature too, since its gradients are averaged."""
    losses, weights = train(RECIPES[name])
    assert len(losses) >= 8 and losses[0] != losses[-1]
    (there, first), (again, second) = (found[name] for found in together)
    assert there == again == pytest.approx(losses, rel=1e-6)
    for key, value in weights.items():
        assert torch.equal(first[key], second[key]), key
        torch.testing.assert_close(first[key], value, rtol=1e-6, atol=1e-6, msg=lambda m, k=key: k + m)


@pytest.mark.parametrize("case", NORMS, ids=str)
def test_batch_norm_of_two_processes_is_that_of_the_whole_batch(together, case):
    *whole, state = normed(*case)
    for i, wanted in enumerate(whole):
        parts = torch.cat([found[case][i] for found in together])
        torch.testing.assert_close(parts, wanted, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(together[1][case][2], state)


def test_what_watches_on_one_of_two_processes_waits_for_none(together):
    """`setclr pretrain --knn-every 1` under torchrun waited for ever."""
    wanted = watched()["width"]
    assert [list(found["watched"].get("width", ())) for found in together] == [list(wanted), []]


def test_features_of_two_processes_are_those_of_one(together):
    for found in together:
        torch.testing.assert_close(found["features"], embedded())

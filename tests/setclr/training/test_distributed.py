"""Two processes with half of the images each give every loss and gradient of one with all of them."""

import socket
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from conftest import SHIFT
from every_loss import EVERY
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from setclr import DistributedLoss
from setclr.losses import parse
from setclr.training.distributed import gather, gather_alike, rank, world

EXPRESSIONS = [repr(loss) for loss in EVERY]
LEARNT = "InfoNCE(temperature=learnable(0.2))"
WITH_MORE = [repr(loss) for loss in EVERY if loss.takes >= {"keys", "memory"} and "=None" not in repr(loss)]


CLASSES, WEIGHTS = torch.tensor([0, 1, 2, 0, 3, 1]), torch.tensor([1, 2, 0.5, 1, 3, 1], dtype=torch.float64)
ALIKE = ["InfoNCE(0.2)", "SparseCLR() + QARe()", "GroCo()", "IOT('rows')", "MMCL()"]


def one_of_two(process: int, port: int, data: dict, results):
    """Embed one's own half, gather, and keep what every loss gave: its value, the gradient of the embeddings
    and, through DistributedDataParallel, that of the encoder's weights."""
    warnings.simplefilter("error", DeprecationWarning)
    warnings.simplefilter("error", FutureWarning)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=process, world_size=2)
    assert (rank(), world()) == (process, 2)
    half = {name: x.chunk(2, dim=1)[process] for name, x in data.items() if name != "memory"}
    encoder = nn.Linear(5, 4, bias=False, dtype=torch.float64)
    encoder.load_state_dict({"weight": data["weight"]})
    model = DistributedDataParallel(encoder)
    for text, more in [*((text, False) for text in EXPRESSIONS), *((text, True) for text in WITH_MORE)]:
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
    results["labels", process] = gather(torch.arange(3 * process, 3 * process + 3)[None, :, None]).flatten()
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def together():
    torch.manual_seed(SHIFT)
    data = {
        "images": torch.randn(2, 6, 5, dtype=torch.float64),
        "keys": torch.randn(2, 6, 4, dtype=torch.float64),
        "memory": torch.randn(7, 4, dtype=torch.float64),
        "weight": torch.randn(4, 5, dtype=torch.float64),
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(one_of_two, (port, data, results), nprocs=2)
        return data, dict(results)


@pytest.mark.parametrize(
    "text, more",
    [*((text, False) for text in EXPRESSIONS), *((text, True) for text in WITH_MORE)],
    ids=lambda x: x if isinstance(x, str) else "keys and memory" * x,
)
def test_two_processes_give_the_loss_and_gradients_of_one(together, text, more):
    data, results = together
    weight = data["weight"].clone().requires_grad_()
    z = data["images"] @ weight.T
    z.retain_grad()
    value = parse(text)(z, **({"keys": data["keys"], "memory": data["memory"]} if more else {}))
    value.backward()
    for process in (0, 1):
        there, _, gradient = results[text, more, process]
        assert there == pytest.approx(value.item(), rel=1e-9)
        torch.testing.assert_close(gradient, weight.grad, rtol=1e-7, atol=1e-9)
    gradient = torch.cat([results[text, more, process][1] for process in (0, 1)], dim=1)
    torch.testing.assert_close(gradient, z.grad, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("text", ALIKE)
def test_the_same_loss_on_every_process_needs_no_communication_backwards(together, text):
    for process in (0, 1):
        safe, alike = (together[1][name, text, process] for name in ("gather", "gather_alike"))
        assert torch.equal(safe, alike) and safe.abs().max() > 0


def test_a_learnable_temperature_gets_the_gradient_of_the_whole_batch_on_every_process(together):
    data, results = together
    loss = parse(LEARNT)
    loss(data["images"] @ data["weight"].T).backward()
    for process in (0, 1):
        found = results["temperature", process]
        torch.testing.assert_close(found, loss.temperature.log.grad, rtol=1e-5, atol=0)


def test_a_loss_over_processes_gathers_all_that_it_is_given(together):
    data, results = together
    z = (data["images"] @ data["weight"].T).requires_grad_()
    loss = parse("InfoNCE(0.2)")(z, data["keys"], data["memory"], labels=CLASSES, weight=WEIGHTS)
    loss.backward()
    for process in (0, 1):
        value, gradient = results["over", process]
        assert value == pytest.approx(loss.item(), rel=1e-12)
        torch.testing.assert_close(gradient, z.grad.chunk(2, dim=1)[process])


def test_labels_are_gathered_in_the_order_of_the_processes(together):
    for process in (0, 1):
        assert together[1]["labels", process].tolist() == [0, 1, 2, 3, 4, 5]


def test_one_process_gathers_nothing():
    z = torch.randn(2, 3, 4)
    assert gather(z) is z

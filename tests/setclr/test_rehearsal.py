"""A GPU rehearsed without one: on fake CUDA tensors, which have a device but no values, all must run forward.

What is left on the CPU fails there, and so does every look at a value. A backward pass of fake CUDA tensors
asks for a driver; tensors on the meta device, which have no values either, stand in for them.
"""

from contextlib import nullcontext

import pytest
import torch
from every_loss import EVERY, views
from looks_at_values import WITH_LABELS, why
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from setclr import models
from setclr.losses import InfoNCE, parse
from setclr.losses.base import WeightedSum
from setclr.training.optimisers import make_optimiser
from setclr_course.costs import launches
from setclr_course.papers.baselines import LocalFeatures
from setclr_course.papers.collection import PAPERS
from setclr_course.papers.supervised import Supervised

A_LOOK = "_local_scalar_dense|numpy|item|no data|unique"  # what is said of a look at a value on these devices
every_loss = pytest.mark.parametrize("loss", EVERY, ids=repr)


class NothingWaits(TorchDispatchMode):
    """Refuses x[tensor] = value, for which a GPU waits; seen on an H200."""

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        assert operation is not torch.ops.aten.index_put_.default, "x[tensor] = value makes a GPU wait"
        return operation(*arguments, **named or {})


def batch(loss, device: str, V: int) -> list[dict]:
    """z alone, and with each thing that the loss takes."""
    made = {
        "keys": torch.randn(V, 6, 5, device=device),
        "memory": torch.randn(7, 5, device=device),
        "labels": torch.zeros(6, device=device, dtype=torch.int64),
        "positives": (torch.arange(V * 6, device=device), torch.arange(V * 6, device=device).roll(1)),
    }
    converges = "iterations=None" in repr(loss)
    return [{}] + [{k: x} for k, x in made.items() if k in loss.takes and not (converges and k == "memory")]


def running(loss, extra: dict | None = None):
    """What follows runs through, or looks at a value where the list has this loss."""
    if why(loss, *([WITH_LABELS] if extra and "labels" in extra else [])) is None:
        return nullcontext()
    return pytest.raises((RuntimeError, NotImplementedError), match=A_LOOK)


@every_loss
def test_forward_on_fake_cuda(loss):
    V, text = views(loss, 3), repr(loss)
    with FakeTensorMode():
        with torch.device("cuda"):
            there = parse(text)  # with what it learns
        for dtype in (torch.float32, torch.bfloat16):
            z = torch.randn(V, 6, 5, device="cuda", dtype=dtype)
            for extra in batch(loss, "cuda", V):
                with running(loss, extra), NothingWaits():
                    there(z, **extra)
        if loss.has_assignment:
            with running(loss):
                there.assignment(z)


@pytest.mark.parametrize("loss", [x for x in EVERY if not isinstance(x, WeightedSum)], ids=repr)
def test_backward_on_the_meta_device(loss):
    """Where z has its gradient: two views, and as many as the loss takes."""
    there = parse(repr(loss)).to("meta")
    for V in {2, views(loss, 3)}:
        z = torch.randn(V, 6, 5, device="meta", requires_grad=True)
        for extra in batch(loss, "meta", V):
            with running(loss, extra):
                there.score(there.batch(z, **extra)).backward()


@pytest.mark.parametrize("name", [*PAPERS.losses])
def test_baselines_on_fake_cuda(name):
    loss = parse(f"{name}()")
    with FakeTensorMode():
        on_fake_cuda(loss)
        shape = (1, 6, 64 + 8) if loss.headless else (4, 6, 4)
        z, labels = torch.randn(shape, device="cuda").bfloat16(), torch.zeros(6, device="cuda").long()
        assert (loss(z, labels) if isinstance(loss, Supervised) else loss(z)).device.type == "cuda"


ENCODERS = [*models.ENCODERS, "timm:test_vit"]
SIDE = {"timm:test_vit": 160}


def network(name: str, local: bool = False) -> nn.Module:
    """Encoder and head; 32 px, 64 px or what the encoder wants."""
    encoder, features = models.encoder(name)
    head = models.head(features, 32, 16, last_norm=True)
    if local:
        return LocalFeatures(encoder, features, 8)
    return nn.Sequential(encoder, head)


def on_fake_cuda(module: nn.Module) -> None:
    """Put fake CUDA tensors in the place of the module's own."""
    for part in module.modules():
        for kept in (part._parameters, part._buffers):
            for name, x in kept.items():
                if x is not None:
                    there = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda")
                    learns = isinstance(x, nn.Parameter)
                    kept[name] = nn.Parameter(there, x.requires_grad) if learns else there


@pytest.mark.parametrize("name", ENCODERS)
def test_encoder_head_loss_and_optimisers_on_fake_cuda(name):
    model, side = network(name).to(memory_format=torch.channels_last), SIDE.get(name, 64)
    with FakeTensorMode():
        on_fake_cuda(model)
        x = torch.randint(0, 256, (6, 3, side, side), device="cuda", dtype=torch.uint8)
        z = model(x.to(memory_format=torch.channels_last).float() / 255)
        value = InfoNCE()(z.unflatten(0, (2, 3)))
        assert value.device.type == "cuda" and value.requires_grad
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        for optimiser in ("adam", "adamw", "lars"):
            make_optimiser(optimiser, model, nn.Identity(), 0.1).step()
        fused = [make_optimiser(x, model, nn.Identity(), 0.1).defaults["fused"] for x in ("adam", "sgd")]
        assert fused == [True, True]


SMALL = [name for name in ENCODERS if "resnet50" not in name and "imagenet" not in name]  # built as resnet18


@pytest.mark.parametrize("name, local", [*((name, False) for name in SMALL), ("conv4", True)])
def test_encoder_head_and_loss_are_one_graph(name, local):
    torch._dynamo.reset()
    model, side = network(name, local), SIDE.get(name, 32)
    loss = parse("DeepInfoMax()") if local else InfoNCE()
    graph = torch.compile(lambda x: loss(model(x).unflatten(0, (-1, 3))), backend="eager", fullgraph=True)
    assert graph(torch.rand(3 if local else 6, 3, side, side)).isfinite()


MOST = {"GroCo()": 200, "SparseCLR()": 120, "InfoNCE(0.5)": 60, "MMCL()": 120}


@pytest.mark.parametrize("text", MOST)
def test_launches_of_a_step(text):
    """Operations of forward and backward, V = 2, N = 256: the same on every machine."""
    loss, z = parse(text), torch.randn(2, 256, 128, device="meta", requires_grad=True)
    assert launches(lambda: loss.score(loss.batch(z)).backward()) <= MOST[text]

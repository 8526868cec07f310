"""What is counted, kept and timed of a loss and of a training step."""

import gc
import time

import pytest
import torch

from setclr import losses, models
from setclr.inner.dual import BORDER
from setclr.losses import MMCL, InfoNCE, QARe
from setclr.recipes.image import ImageRecipe
from setclr.training.devices import Precision
from setclr.training.grad_cache import GradCache
from setclr_course import costs

X = torch.zeros(4, 6)


@pytest.mark.parametrize("call, numbers", [
    (lambda: None, 0), (lambda: X.T[1:].unsqueeze(0), 0), (lambda: X + 1, 24), (lambda: X.sum(0), 6),
    (lambda: torch.empty_like(X), 0), (lambda: torch.zeros(2, 4, 6) @ X.T, 48 + 32),
])  # fmt: skip
def test_products_are_counted_and_numbers_written_without_views(call, numbers):
    assert costs.work(call) == (2 * 8 * 6 * 4 * (numbers == 80), numbers, 0)


def test_the_side_of_what_is_factorised():
    linalg = torch.linalg
    for call in (linalg.eigvalsh, linalg.cholesky, linalg.inv, lambda A: linalg.solve(A, A)):
        assert costs.work(lambda call=call: call(torch.eye(9))).side == 9


@pytest.mark.parametrize(
    "loss, side", [(QARe(), 6), (QARe("euclidean"), 12), (MMCL(), 24 + BORDER), (InfoNCE(), 0)], ids=repr
)
def test_the_losses_sides_are_those_of_their_docstrings(loss, side):
    assert costs.work(lambda: loss(costs.points(12, 5)).backward()).side == side


def test_what_is_kept_is_counted_once_and_released():
    x = torch.randn(10, requires_grad=True)
    with costs.Kept() as kept:
        y = x.exp()  # keeps its result
        total = (y * y).sum()  # keeps y twice more
        assert kept.now == kept.peak == 40
        total.backward()
        gc.collect()
        assert kept.now == 0 and kept.peak == 40
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).exp())


@pytest.mark.parametrize("loss", [kind() for kind in losses.LOSSES], ids=lambda loss: type(loss).__name__)
def test_watching_a_loss_changes_neither_it_nor_its_gradient(loss):
    z = costs.points(16, 8)
    (expected,) = torch.autograd.grad(loss(z), z)
    with costs.Kept() as kept:
        (found,) = torch.autograd.grad(loss(z), z)
    torch.testing.assert_close(found, expected)
    assert kept.peak == costs.kept_bytes(loss, z) >= 4 * 16 * 8


def test_seconds_are_measured_for_every_loss_and_size_without_the_first_call():
    slow, calls = torch.ones(300, 300), []
    contestants = {"fast": lambda z: z.sum(), "slow": lambda z: z.sum() + 0 * (slow @ slow @ slow).sum()}
    table = costs.seconds(contestants, [2, 4], 3, budget=0.01)
    assert {name: list(row) for name, row in table.items()} == {"fast": [2, 4], "slow": [2, 4]}
    for N in (2, 4):
        assert all(5 <= len(runs[N]) <= 50 for runs in table.values())
        assert 0 < min(table["fast"][N]) < min(table["slow"][N]) < 1
    assert costs.middle([5.0, 1.0, 2.0, 3.0, 4.0]) == (2.0, 3.0, 4.0)

    def lazy(z):
        calls.append(time.sleep(0 if calls else 0.3))
        return z.sum()

    (taken,) = costs.seconds({"lazy": lazy}, [4], 3, budget=0.01, least=1)["lazy"][4]
    assert 0 < taken < 0.3 and len(calls) == 2


def test_a_step_has_its_parts_and_each_loss_its_time_and_trains_as_the_trainer_would():
    """The clock's way round the loss gives the gradient that backward gives."""
    recipe = ImageRecipe("InfoNCE(0.5)", batch=4, hidden=8, embedding=4)
    parts, alone = costs.parts_of_a_step(recipe, {"a": InfoNCE(), "b": QARe()}, steps=2)
    assert list(parts | alone) == ["views", "encoder forward", "encoder backward", "optimiser", "a", "b"]
    assert all(len(runs) == 2 and min(runs) > 0 for runs in [*parts.values(), *alone.values()])
    trainer = costs.noise_trainer(recipe, 3, torch.device("cpu"))
    assert len(trainer.source) == 12
    x = next(trainer.view_batches)
    trainer.grad_cache.backward(x, trainer.loss)
    expected = [p.grad.clone() for p in trainer.model.parameters()]
    trainer.optimiser.zero_grad()

    def score(z):
        leaf = z.detach().requires_grad_()
        return (z * torch.autograd.grad(trainer.loss(leaf), leaf)[0]).sum()

    trainer.grad_cache.backward(x, score)
    for p, grad in zip(trainer.model.parameters(), expected):
        torch.testing.assert_close(p.grad, grad, rtol=1e-4, atol=1e-6)


def test_an_encoder_is_counted_without_being_computed_and_chunks_keep_less():
    encoder, width = models.encoder("conv4")
    x, (flops, kept) = torch.rand(2 * 3, 3, 32, 32), costs.encoder_cost("conv4", 3)
    assert costs.work(lambda: encoder(x).sum().backward()).flops == flops and width == 64
    with costs.Kept() as really:
        encoder(x).sum().backward()
    assert really.peak == pytest.approx(kept, rel=0.02)
    assert costs.encoder_cost("conv4", 6)[0] == 2 * flops
    peaks, precision = {}, Precision("float32", torch.device("cpu"))
    for chunk in (None, 4):
        embedder = GradCache(encoder, models.head(width, 8, 4), precision, chunk)
        with costs.Kept() as really:
            embedder.backward([torch.rand(2, 16, 3, 32, 32)], InfoNCE())
        peaks[chunk] = really.peak
    assert peaks[4] < 0.35 * peaks[None]

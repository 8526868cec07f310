"""Gradient caching: a batch in chunks gives the gradients of the batch in one go."""

import copy

import pytest
import torch
from torch import nn

from setclr import models
from setclr.losses import GroCo, InfoNCE
from setclr.training.devices import Precision
from setclr.training.grad_cache import GradCache, unchanged_buffers
from setclr_course.costs import Kept

CPU = Precision("float32", torch.device("cpu"))
LOSS = InfoNCE(0.2) + 0.3 * GroCo()


def gradients(encoder, head, views, chunk):
    """The loss, every gradient and every weight and buffer afterwards; the models are copies."""
    both = nn.ModuleList([copy.deepcopy(encoder), copy.deepcopy(head)])
    value = GradCache(*both, CPU, chunk).backward(views, LOSS)
    return value, {name: p.grad for name, p in both.named_parameters()}, both.state_dict()


def plain_encoder() -> nn.Module:
    """Without batch statistics, and blind to the size of an image."""
    layers = [nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers).double()


def head(features: int) -> nn.Module:
    return models.head(features, 8, 5, last_norm=True).double()


def some_views(*sizes_and_counts) -> list[torch.Tensor]:
    return [torch.rand(V, 10, 3, S, S, dtype=torch.float64) for V, S in sizes_and_counts]


@pytest.mark.parametrize("chunk", [1, 3, 9, 10, 64])
@pytest.mark.parametrize("groups", [[(2, 8)], [(2, 8), (3, 5)]], ids=["two views", "multi-crop"])
def test_without_batch_statistics_chunks_change_nothing(chunk, groups):
    encoder, its_head, views = plain_encoder(), head(6), some_views(*groups)
    value, whole, state = gradients(encoder, its_head, views, None)
    chunked, parts, its_state = gradients(encoder, its_head, views, chunk)
    torch.testing.assert_close(chunked, value, rtol=1e-12, atol=0)
    for name, gradient in whole.items():
        assert gradient.abs().max() > 1e-6 or "bias" in name
        torch.testing.assert_close(parts[name], gradient, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(its_state, state)


@pytest.mark.parametrize("chunk", [None, 3, 10])
def test_embedding_without_a_gradient_gives_what_the_loss_sees(chunk):
    encoder, its_head, views = plain_encoder(), head(6), some_views((2, 8), (3, 5))
    embedder, seen = GradCache(encoder, its_head, CPU, chunk), []
    z = embedder.embed(views)
    embedder.backward(views, lambda z: (seen.append(z), z.sum())[1])
    assert z.shape == (5, 10, 5) and not z.requires_grad
    torch.testing.assert_close(z, seen[0].detach(), rtol=1e-12, atol=1e-12)


def test_batch_norm_sees_a_chunk_at_a_time_and_counts_it_once():
    """The reference keeps the graph of every chunk, which is what caching avoids."""
    encoder, _ = models.encoder("conv4")
    encoder, its_head, views = encoder.double().train(), head(64), some_views((2, 16))
    value, gradient, state = gradients(encoder, its_head, views, 4)

    parts = [encoder(views[0][:, a : a + 4].flatten(0, 1)).unflatten(0, (2, -1)) for a in (0, 4, 8)]
    z = its_head(torch.cat(parts, dim=1).flatten(0, 1)).unflatten(0, (2, 10))
    expected = LOSS(z)
    expected.backward()
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    both = nn.ModuleList([encoder, its_head])
    for name, p in both.named_parameters():
        torch.testing.assert_close(gradient[name], p.grad, rtol=1e-8, atol=1e-12)
    torch.testing.assert_close(state, both.state_dict())
    assert encoder[1].num_batches_tracked == 3 and its_head[1].num_batches_tracked == 1


def test_memory_of_activations_is_that_of_a_chunk():
    encoder, its_head, views = plain_encoder(), head(6), some_views((2, 32))

    def kept_at_once(chunk):
        with Kept() as kept:
            gradients(encoder, its_head, views, chunk)
        return kept.peak

    assert kept_at_once(1) < 0.2 * kept_at_once(None)


def test_buffers_come_back_even_after_an_error():
    norm = nn.BatchNorm1d(3)
    before = copy.deepcopy(norm.state_dict())
    with pytest.raises(ZeroDivisionError), unchanged_buffers(norm):
        norm(torch.randn(4, 3))
        raise ZeroDivisionError
    torch.testing.assert_close(norm.state_dict(), before, rtol=0, atol=0)

"""A loss on the embedded photo patches makes features that are better than untrained ones."""

import pytest
import torch
from torch import nn
from torch.nn.functional import avg_pool2d

from setclr import data, models, views
from setclr.evaluation import knn
from setclr.losses import InfoNCE

SIDE = 16


@pytest.fixture(scope="module")
def patches() -> tuple:
    """Batches of two views, and images with labels to judge features by."""
    train, test = (data.load("photo-patches", split=split) for split in ("train", "test"))
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(len(train.images), generator=generator)
    batches = [
        views.augment(train.images[some], views.preset("photo", SIDE), generator)
        for some in chosen[: 40 * 64].split(64)
    ]
    return batches, train.subset(chosen[:1500]), test.subset(torch.arange(0, len(test.images), 2))


def made() -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    encoder, width = models.encoder("conv4")
    model = nn.Sequential(encoder, models.head(width, 64, 32, last_norm=True))
    return encoder, model, torch.optim.Adam(model.parameters(), lr=3e-3)


def step(loss, model, optimiser, batch) -> float:
    value = loss(model(batch.flatten(0, 1)).unflatten(0, batch.shape[:2]))
    optimiser.zero_grad()
    value.backward()
    optimiser.step()
    return value.item()


def test_features_become_better_than_untrained_ones(patches):
    batches, bank, test = patches

    def accuracy(encoder: nn.Module) -> float:
        encoder.eval()
        with torch.no_grad():
            features, asked = (encoder(avg_pool2d(x.images / 255, 32 // SIDE)) for x in (bank, test))
        return (knn(features, bank.labels, asked) == test.labels).float().mean().item()

    encoder, model, optimiser = made()
    values = [step(InfoNCE(), model, optimiser, batch) for batch in batches]
    assert sum(values[-10:]) < sum(values[:10])
    assert accuracy(encoder) > accuracy(made()[0]) + 0.01

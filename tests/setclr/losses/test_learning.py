"""Every loss, on the embedded photo patches, is lowered by its own step."""

import pytest
import torch
from torch import nn
from torch.nn.functional import avg_pool2d

from setclr import data, models, views
from setclr.evaluation import knn
from setclr.losses import LOSSES, InfoNCE, LinearAssignment, QARe, Triplet

SIDE = 16
OTHERWISE = {  # what an example of it is, where it isn't the class without arguments
    LinearAssignment: LinearAssignment(0.0, 0.1, "batch-hard"),  # one-to-one learns from mistakes alone
    Triplet: Triplet(1.6, "all", 10),
    QARe: InfoNCE() + 0.5 * QARe(),  # a regulariser
}
EXAMPLES = [OTHERWISE.get(kind, kind()) for kind in LOSSES] + [InfoNCE(candidates="other view")]


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


@pytest.mark.parametrize("loss", EXAMPLES, ids=repr)
def test_a_step_lowers_a_loss(patches, loss):
    _, model, optimiser = made()
    first, last = (step(loss, model, optimiser, patches[0][0]) for _ in range(2))
    assert last < first


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

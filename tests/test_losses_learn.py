"""Every loss, on the embedded photo patches, lowers itself and leaves features better than untrained ones."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from setclr import data, models, views
from setclr.evaluation import knn
from setclr.losses import LOSSES, InfoNCE, LinearAssignment, QARe, SetLoss, Triplet

STEPS, BATCH, SIDE = 100, 64, 16
OTHERWISE = {  # what an example of it is, where it isn't the class without arguments
    LinearAssignment: LinearAssignment(0.0, 0.1, "batch-hard"),  # one-to-one learns from mistakes alone
    Triplet: Triplet(1.6, "all", 10),
    QARe: InfoNCE() + 0.5 * QARe(),  # a regulariser
}
EXAMPLES = [OTHERWISE.get(kind, kind()) for kind in LOSSES] + [InfoNCE(candidates="other view")]


@pytest.fixture(scope="module")
def patches() -> tuple:
    """The batches of views that every loss trains on, and images to judge it by."""
    train, test = (data.load("photo-patches", split=split) for split in ("train", "test"))
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(len(train.images), generator=generator)
    batches = [
        views.augment(train.images[chosen[BATCH * step :][:BATCH]], views.preset("photo", SIDE), generator)
        for step in range(STEPS)
    ]
    bank, asked = chosen[:1500], torch.arange(0, len(test.images), 2)
    return batches, (train.images[bank], train.labels[bank]), (test.images[asked], test.labels[asked])


def accuracy(encoder: nn.Module, bank: tuple, test: tuple) -> float:
    encoder.eval()
    with torch.no_grad():
        features, asked = (encoder(avg_pool2d(images / 255, 32 // SIDE)) for images, _ in (bank, test))
    encoder.train()
    return (knn(features, bank[1], asked) == test[1]).float().mean().item()


def first_weights() -> tuple[nn.Module, int]:
    torch.manual_seed(0)
    return models.encoder("conv4")


@pytest.fixture(scope="module")
def untrained(patches) -> float:
    return accuracy(first_weights()[0], *patches[1:])


def learn(loss: SetLoss, batches: list[Tensor]) -> tuple[nn.Module, list[float]]:
    """The trained encoder and the loss of every step."""
    encoder, width = first_weights()
    model = nn.Sequential(encoder, models.head(width, 64, 32, last_norm=True))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    values = []
    for batch in batches:
        z = model(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])
        value = loss(z)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        values.append(value.item())
    return encoder, values


@pytest.mark.parametrize("loss", EXAMPLES, ids=repr)
def test_a_loss_learns(patches, untrained, loss):
    batches, bank, test = patches
    encoder, values = learn(loss, batches)
    first, last = (torch.tensor(x).mean().item() for x in (values[:5], values[-10:]))
    # seen: 0.038 at least, with two seeds, for LinearAssignment and Triplet with three
    assert last < first and accuracy(encoder, bank, test) > untrained + 0.01

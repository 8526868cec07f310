"""The linear probe: how much of the labels a linear map reads from frozen features."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import integer, number
from setclr.evaluation.knn import check_bank


@torch.enable_grad()
def linear_probe(
    bank: Tensor,
    bank_labels: Tensor,
    queries: Tensor,
    epochs: int = 100,
    batch: int = 128,
    lr: float = 1e-3,
    seed: int = 0,
) -> Tensor:
    """The label of each query by a linear classifier trained on the bank, as it is after the last epoch.

    Adam on the cross-entropy, no augmentation, no weight decay: the QARe paper's protocol. The features are
    divided by one number, their root mean square in the bank, so that lr means the same for every encoder.

    Args:
        bank: (N, D) features of the training images; bank_labels: (N,) integers ≥ 0; queries: (Q, D).
        epochs, batch, lr: of Adam.
        seed: of the order of the images.

    Returns:
        (Q,) labels.

    Raises:
        ValueError: an argument is not as above; the message names it.
    """
    check_bank(bank, bank_labels, queries)
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=1)
    number("lr", lr, above=0)
    scale = bank.float().square().mean().sqrt().clamp(min=1e-12)
    x, y = bank.detach().float() / scale, bank_labels.long()
    generator = torch.Generator().manual_seed(integer("seed", seed, least=0))
    probe = nn.utils.skip_init(nn.Linear, x.shape[1], int(y.max()) + 1, device=x.device)
    nn.init.zeros_(probe.weight)
    nn.init.zeros_(probe.bias)
    optimiser = torch.optim.Adam(probe.parameters(), lr)
    for _ in range(epochs):
        for index in torch.randperm(len(x), generator=generator).to(x.device).split(batch):
            optimiser.zero_grad()
            F.cross_entropy(probe(x[index]), y[index]).backward()
            optimiser.step()
    with torch.no_grad():
        return probe(queries.float() / scale).argmax(1)

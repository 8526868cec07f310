"""The linear probe: how much of the labels a linear map reads from frozen features.
By hand, since the QARe paper's protocol is Adam in batches, and since features stay on their device."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import integer, number
from setclr.evaluation.neighbours import check_bank, in_parts

VALUES = 2**25  # scaled or squared in one go


@torch.enable_grad()
def linear_probe(
    bank: Tensor, bank_labels: Tensor, queries: Tensor,
    epochs: int = 100, batch: int = 128, lr: float = 1e-3, seed: int = 0,
) -> Tensor:  # fmt: skip
    """The label of each query by a linear classifier trained on the bank, as it is after the last epoch.

    Adam on the cross-entropy, no augmentation, no weight decay: the QARe paper's protocol. All features are
    divided by their root mean square in the bank, so that lr means the same for every encoder.

    The bank (N, D) holds the training images' features, with bank_labels (N,), integers ≥ 0; the seed orders
    them. Returns labels (Q,) of the queries (Q, D). Raises ValueError where an argument is not as above.
    Cost: O(epochs N D C) time. The bank is not copied: each batch is scaled when it is used.
    """
    check_bank(bank, bank_labels, queries)
    integer("epochs", epochs, least=1)
    integer("batch", batch, least=1)
    number("lr", lr, above=0)
    bank, y = bank.detach(), bank_labels.long()
    scale = root_mean_square(bank).clamp(min=1e-12)
    generator = torch.Generator().manual_seed(integer("seed", seed, least=0))
    probe = nn.utils.skip_init(nn.Linear, bank.shape[1], int(y.max()) + 1, device=bank.device)
    nn.init.zeros_(probe.weight)
    nn.init.zeros_(probe.bias)
    optimiser = torch.optim.Adam(probe.parameters(), lr)
    for _ in range(epochs):
        for index in torch.randperm(len(bank), generator=generator).to(bank.device).split(batch):
            optimiser.zero_grad()
            F.cross_entropy(probe(bank[index].float() / scale), y[index]).backward()
            optimiser.step()
    with torch.no_grad():
        return torch.cat([probe(part.float() / scale).argmax(1) for part in in_parts(queries, VALUES)])


def root_mean_square(x: Tensor) -> Tensor:
    """The root mean square of all values of (N, D), in float32."""
    parts = in_parts(x, VALUES)
    squares = [part.float().square().mean().double() * (part.numel() / x.numel()) for part in parts]
    return torch.stack(squares).sum().float().sqrt()

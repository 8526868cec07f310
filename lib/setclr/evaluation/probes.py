"""The linear probe: how much of the labels a linear map reads from frozen features.
By hand, since the QARe paper's protocol is Adam in batches, and since features stay on their device. Adam and
the gradient of the cross-entropy are written out: torch's take three times as long for so small a layer."""

import torch
from torch import Tensor

from setclr.checks import integer, number
from setclr.evaluation.neighbours import check_bank, in_parts

VALUES = 2**25  # scaled or squared in one go


@torch.no_grad()
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
    y = bank_labels.long()
    scale = root_mean_square(bank).clamp(min=1e-12)
    generator = torch.Generator().manual_seed(integer("seed", seed, least=0))
    shape = int(y.max()) + 1, bank.shape[1] + 1  # the bias is the last column
    weight, first, second = torch.zeros(3, *shape, device=bank.device)
    step = 0
    right = -torch.ones(1, batch, device=bank.device)
    for _ in range(epochs):
        for index in torch.randperm(len(bank), generator=generator).to(bank.device).split(batch):
            x, step = with_one(bank.index_select(0, index), scale), step + 1
            error = (weight @ x.T).softmax(0)  # (C, n): so a CPU is ten times faster at it
            error.scatter_add_(0, y.index_select(0, index).unsqueeze(0), right[:, : len(index)])
            gradient = (error @ x).div_(len(index))
            first.lerp_(gradient, 0.1)
            second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            spread = second.sqrt().div_((1 - 0.999**step) ** 0.5).add_(1e-8)
            weight.addcdiv_(first, spread, value=-lr / (1 - 0.9**step))
    return torch.cat([(with_one(x, scale) @ weight.T).argmax(1) for x in in_parts(queries, VALUES)])


def with_one(x: Tensor, scale: Tensor) -> Tensor:
    """x / scale in float32, and a column of ones for the bias."""
    return torch.cat([x.float() / scale, scale.new_ones(len(x), 1)], dim=1)


def root_mean_square(x: Tensor) -> Tensor:
    """The root mean square of all values of (N, D), in float32."""
    parts = in_parts(x, VALUES)
    squares = [part.float().square().mean().double() * (part.numel() / x.numel()) for part in parts]
    return torch.stack(squares).sum().float().sqrt()

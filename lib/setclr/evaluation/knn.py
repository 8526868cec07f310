"""The weighted nearest-neighbour vote (Wu et al. 2018), as all four papers use it."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import integer, number

SIMILARITIES = 2**25  # held at a time


@torch.no_grad()
def knn(bank: Tensor, bank_labels: Tensor, queries: Tensor, k: int = 20, temperature: float = 0.07) -> Tensor:
    """The label of each query by its k most similar features of the bank.

    A neighbour of cosine similarity s votes with weight e^{s/T}. Ties go to the smaller label.

    Args:
        bank: (N, D) features whose labels are known.
        bank_labels: (N,) integers ≥ 0.
        queries: (Q, D).
        k: 1 ≤ k ≤ N. GroCo uses 1, 10 and 20.
        temperature: T > 0; GroCo uses 0.07, MMCL 0.5.

    Returns:
        (Q,) labels.

    Raises:
        ValueError: an argument is not as above; the message names it.

    Cost: O(Q N D) time; queries go in chunks, so that memory stays O(N + Q C).
    """
    check_bank(bank, bank_labels, queries)
    integer("k", k, least=1, most=len(bank), hint=f"the bank has {len(bank)} features")
    number("temperature", temperature, above=0, hint="the papers use 0.07 and 0.5")
    bank = F.normalize(bank.float(), dim=1)
    classes = int(bank_labels.max()) + 1
    chunk = max(1, SIMILARITIES // len(bank))
    votes = []
    for part in F.normalize(queries.float(), dim=1).split(chunk):
        similarity, neighbour = (part @ bank.T).topk(k, dim=1)
        weight = ((similarity - similarity[:, :1]) / temperature).exp()
        votes.append(
            weight.new_zeros(len(part), classes).scatter_add_(1, bank_labels.long()[neighbour], weight)
        )
    return torch.cat(votes).argmax(1)


def check_bank(bank: Tensor, labels: Tensor, queries: Tensor) -> None:
    """Raises ValueError unless bank (N, D), labels (N,) integers ≥ 0 and queries (Q, D) fit together."""
    if (
        bank.ndim != 2
        or queries.ndim != 2
        or bank.shape[1] != queries.shape[1]
        or not len(bank) * len(queries)
    ):
        raise ValueError(
            f"bank and queries must be (N, D) and (Q, D), got {tuple(bank.shape)} and {tuple(queries.shape)}"
        )
    if labels.shape != bank.shape[:1] or labels.is_floating_point() or int(labels.min()) < 0:
        raise ValueError(
            f"bank_labels must be {len(bank)} integers >= 0, got {labels.dtype} of shape "
            f"{tuple(labels.shape)}"
        )
    for name, x in (("bank", bank), ("queries", queries)):
        if not x.isfinite().all():
            raise ValueError(f"{name} must be finite, got NaN or inf: the encoder has diverged")

"""What one sees of a training: a bar, or a line an epoch in a log file, and how far the embeddings spread."""

import sys

import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm.auto import tqdm

COLLAPSED = 0.01  # an embeddings' std below which they are nearly one point


def logged() -> bool:
    """Whether messages go to a file, where a bar would fill a line a step."""
    return not (sys.stderr and sys.stderr.isatty()) and "ipykernel" not in sys.modules


def bar(total: int, first: int, title: str, shown: bool) -> tqdm:
    """A bar of `total` steps, where messages do not go to a file and it is `shown`."""
    silent = {} if shown and total and not logged() else {"disable": True}  # not set, TQDM_DISABLE decides
    return tqdm(total=total, initial=first, desc=title, unit="step", **silent)


def tell(row: dict, epochs: int) -> None:
    """Write the history's row as a line of a log file."""
    said = ", ".join(f"{name} {x:.4g}" for name, x in row.items() if name != "epoch")
    if sys.stderr:
        tqdm.write(f"epoch {row['epoch']} of {epochs}: {said}", file=sys.stderr)


@torch.no_grad()
def spread(z: Tensor) -> dict[str, float]:
    """How far embeddings (V, N, E) spread, as numbers of the history.

    "std" is the deviation of their unit vectors in a dimension, times √E: 1 on a whole sphere, 0 at one
    point. "rank" is the effective number of dimensions: e to the entropy of the shares of their squared
    singular values (Roy and Vetterli 2007). Cost: O(M E min(M, E)), M = V·N.
    """
    x = F.normalize(z.flatten(0, 1).double().cpu(), dim=1)
    shares = torch.linalg.eigvalsh(x.T @ x if x.shape[1] < len(x) else x @ x.T).clamp(min=1e-300) / len(x)
    rank = (-shares * shares.log()).sum().exp()  # the shares sum to 1, since the rows have length 1
    return {"std": round(float(x.std(0).mean()) * x.shape[1] ** 0.5, 4), "rank": round(float(rank), 2)}

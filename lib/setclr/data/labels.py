"""The check of labels that users give, of graphs and of Datasets, before they are converted."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

REMEDY = "number the classes 0, 1, ..."


def checked_labels(name: str, labels: Any, n: int) -> Tensor:
    """Labels as an int64 tensor (n,) on the CPU, each a class from 0, or -1 where there is no label.

    `labels` is a tensor, an array or a sequence of n whole numbers. 2.0 and True are whole; 0.7 and NaN are
    not. Raises ValueError for anything else. The message calls the labels `name`, and says what was given
    and where. Cost: one pass.
    """
    wanted = f"{name} must be {n} whole numbers (n,), each -1 or more"
    kind = type(labels).__name__
    try:
        if isinstance(labels, Tensor):
            labels = labels.detach().cpu()
            labels = labels.float() if labels.dtype == torch.bfloat16 else labels  # NumPy has no bfloat16
        found = np.asarray(labels)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{wanted}, got {kind} ({' '.join(str(error).split())}); {REMEDY}") from None
    if found.shape != (n,):
        raise ValueError(f"{wanted}, got {kind} of shape {found.shape}; {REMEDY}")
    if n and found.dtype.kind not in "buif":
        raise ValueError(f"{wanted}, got {found.tolist()[0]!r} among {found.dtype}; {REMEDY}")
    # NaN passes no comparison. Beyond 2**53 a float is no longer a number of its own.
    whole = (found >= -1) & (found <= 2**53)
    if found.dtype.kind == "f":
        whole &= found == np.floor(found)
    if not whole.all():
        place = int(whole.argmin())
        raise ValueError(f"{wanted}, got {found[place].item()!r} at place {place}; {REMEDY}")
    return torch.from_numpy(found.astype(np.int64))

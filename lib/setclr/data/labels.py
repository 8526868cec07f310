"""Labels that users give, of graphs, videos and Datasets: found, and checked before they are converted."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

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
        array = np.asarray(labels)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{wanted}, got {kind} ({' '.join(str(error).split())}); {REMEDY}") from None
    if array.shape != (n,):
        raise ValueError(f"{wanted}, got {kind} of shape {array.shape}; {REMEDY}")
    if n and array.dtype.kind not in "buif":
        raise ValueError(f"{wanted}, got {array.tolist()[0]!r} among {array.dtype}; {REMEDY}")
    # NaN passes no comparison. Beyond 2**53 a float is no longer a number of its own.
    whole = (array >= -1) & (array <= 2**53) & (array == np.floor(array))
    if not whole.all():
        place = int(whole.argmin())
        raise ValueError(f"{wanted}, got {array[place].item()!r} at place {place}; {REMEDY}")
    return torch.from_numpy(array.astype(np.int64))


def labels_of(dataset: Any, name: str) -> tuple[Tensor, tuple[str, ...]]:
    """The labels (N,) of a Dataset, and the names of its classes; without names, their numbers.

    Raises ValueError, with the `name` of the argument, if it is no Dataset with a length.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or isinstance(dataset, Tensor):
        got = type(dataset).__name__
        raise ValueError(f"{name} must be a Dataset with a length and numbered items, got {got}")
    if isinstance(dataset, Subset):
        labels, names = labels_of(dataset.dataset, name)
        return labels[torch.as_tensor(dataset.indices, dtype=torch.int64)], names
    attribute = "labels" if getattr(dataset, "targets", None) is None else "targets"
    given = getattr(dataset, attribute, None)
    if given is None:
        given = torch.full((len(dataset),), -1)
    labels = checked_labels(attribute, given, len(dataset))
    count = int(labels.max()) + 1 if len(labels) else 0
    names = tuple(map(str, getattr(dataset, "classes", ()))) or tuple(map(str, range(count)))
    return labels, names

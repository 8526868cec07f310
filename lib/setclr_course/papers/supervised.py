"""Cross-entropy of labels: supervised learning by the same training as the losses', to compare with."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import dense, finite, values_readable
from setclr.losses.base import Objective

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Supervised(Objective):
    """Cross-entropy of the labels of E classes: supervised learning, the first row of QARe's table 2.

    z (V, N, E) is not normalised: it is the output of a classifier.

    >>> import torch
    >>> from setclr_course.papers.supervised import Supervised
    >>> z, labels = torch.tensor([[[9.0, 0.0], [0.0, 9.0]]]), torch.tensor([0, 1])  # one view, two classes
    >>> round(Supervised()(z, labels).item(), 3)
    0.0
    """

    takes = frozenset({"labels"})
    classifies = True

    def forward(self, z: Tensor, labels: Tensor | None = None, weight: Tensor | None = None) -> Tensor:
        """The loss, a 0-d tensor, in float32 or wider.

        Args:
            z: (V, N, E) floating.
            labels: (N,) integers in 0 … E − 1, which are the same for every view.
            weight: (E,) weights of the classes in the mean; None: all 1.

        Raises ValueError: z or labels are not as above.
        """
        check_outputs(z)
        labels = checked_labels(labels, z)
        z = z.to(torch.promote_types(z.dtype, torch.float32))
        weight = None if weight is None else weight.to(z.dtype)
        return F.cross_entropy(z.flatten(0, 1), labels.repeat(len(z)), weight)


def check_outputs(z: Tensor) -> None:
    """Raises ValueError unless z is (V, N, E), floating, dense, not empty and finite."""
    if not isinstance(z, Tensor) or z.ndim != 3 or not z.is_floating_point() or 0 in z.shape:
        got = f"{tuple(z.shape)} {z.dtype}" if isinstance(z, Tensor) else type(z).__name__
        raise ValueError(f"z must be (V, N, E), floating and not empty, got {got}")
    dense("z", z)
    finite("z", z.detach())


def checked_labels(labels: Tensor | None, z: Tensor) -> Tensor:
    """The labels. Raises ValueError unless they are (N,) integers in 0 … E − 1, where z is."""
    _, N, E = z.shape
    wanted = f"labels must be a tensor of {N} integers on {z.device}"
    if not isinstance(labels, Tensor):
        raise ValueError(f"{wanted}, got {type(labels).__name__}; torch.tensor(labels) is one")
    dense("labels", labels)
    if labels.shape != (N,) or labels.dtype not in INTEGERS or labels.device != z.device:
        raise ValueError(f"{wanted}, got {labels.dtype} {tuple(labels.shape)} on {labels.device}")
    if values_readable(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < E:
        got = f"{int(labels.min())} to {int(labels.max())}; the recipe's embedding is the number of classes"
        raise ValueError(f"labels must be in 0 to {E - 1}, one of E = {E} outputs, got {got}")
    return labels.long()

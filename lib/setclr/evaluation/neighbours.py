"""Whose features are near: the weighted kNN vote (Wu et al. 2018), as all four papers use it, retrieval, and
the matching of two views (QARe, table 1)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import choice, integer, number

SIMILARITIES = 2**23  # held at once
ROWS = 8192  # of the bank, compared at once
VALUES = 2**22  # of a bank, read at once
CLASSES = 2**20  # at most
FAR = 30  # powers of two from 1 beyond which features are scaled first


@torch.no_grad()
def knn(bank: Tensor, bank_labels: Tensor, queries: Tensor, k: int = 20, temperature: float = 0.07) -> Tensor:
    """The label (Q,) of each query, by a vote of its k most similar features in the bank.

    A neighbour of cosine similarity s votes with weight e^{s/T}. Between equally similar features the
    choice is arbitrary, but the same for the same call on one machine.

    >>> import torch
    >>> from setclr.evaluation import knn
    >>> bank, labels = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), torch.tensor([0, 0, 1])
    >>> knn(bank, labels, torch.tensor([[1.0, 0.2], [0.1, 1.0]]), k=1)
    tensor([0, 1])

    Args:
        bank, bank_labels: (N, D) features and their labels (N,), integers ≥ 0 of two classes or more.
        queries: (Q, D).
        k: 1 ≤ k ≤ N. GroCo uses 1, 10 and 20.
        temperature: T > 0; GroCo uses 0.07, MMCL 0.5.

    Raises ValueError where an argument is not as above. Cost: O(Q N D) time. The bank is not copied:
    besides it and the queries, O(N + Q k + C) numbers are held at once.
    """
    check_features("bank_labels", bank_labels, bank=bank, queries=queries)
    similarity, index = nearest(bank, queries, k)
    return vote(similarity, bank_labels.long()[index], temperature)


@torch.no_grad()
def nearest(bank: Tensor, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k features of the bank (N, D) most similar to each query (Q, D): cosine similarities and indices
    into the bank, both (Q, k), the most similar first. Errors and cost are those of `knn`, without labels.

    >>> import torch
    >>> from setclr.evaluation import nearest
    >>> nearest(torch.eye(3), torch.tensor([[0.1, 1.0, 0.5]]), k=2)[1]
    tensor([[1, 2]])
    """
    check_features("bank", None, bank=bank, queries=queries)
    hint = f"the bank has {len(bank)} features: take a smaller k, or more images"
    integer("k", k, least=1, most=len(bank), hint=hint)
    norms = torch.cat([torch.linalg.vector_norm(in_range(rows), dim=1) for rows in in_parts(bank)])
    norms.clamp_(min=1e-12)
    numbers = torch.arange(len(bank), device=bank.device)
    values, indices = [], []
    for some in queries.split(max(1, SIMILARITIES // max(k, min(ROWS, len(bank))))):
        some = F.normalize(in_range(some), dim=1)
        best, index = some.new_empty(len(some), 0), numbers.new_empty(len(some), 0)
        for rows, norm, there in zip(bank.split(ROWS), norms.split(ROWS), numbers.split(ROWS)):
            value, at = (some @ in_range(rows).T).div_(norm).topk(min(k, len(rows)), dim=1)
            best, index = torch.cat([best, value], dim=1), torch.cat([index, there[at]], dim=1)
            best, at = best.topk(min(k, best.shape[1]), dim=1)
            index = index.gather(1, at)
        values.append(best)
        indices.append(index)
    return torch.cat(values), torch.cat(indices)


def vote(similarity: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """The label (Q,) with the largest sum of e^{s/T} over a query's neighbours. `similarity` and `labels`
    are (Q, k), the most similar neighbour first. Raises ValueError where the temperature T is not
    positive."""
    number("temperature", temperature, above=0, hint="the papers use 0.07 and 0.5")
    classes, winners = int(labels.max()) + 1, []
    chunk = max(1, SIMILARITIES // classes)
    for s, of in zip(similarity.split(chunk), labels.split(chunk)):
        weight = ((s - s[:, :1]) / temperature).exp()
        winners.append(weight.new_zeros(len(s), classes).scatter_add_(1, of, weight).argmax(1))
    return torch.cat(winners)


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """Accuracy in per cent."""
    return 100 * float((predicted.cpu() == labels.cpu()).float().mean())


@torch.no_grad()
def retrieval_at_1(features: Tensor, labels: Tensor) -> float:
    """Share of images whose nearest other image, by cosine similarity, is of their class.

    Where queries and bank are two sets, as in table 5 of the MMCL paper, use the accuracy of knn(…, k=1).

    >>> import torch
    >>> from setclr.evaluation import retrieval_at_1
    >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> retrieval_at_1(x, torch.tensor([0, 0, 1, 1]))
    1.0

    Raises ValueError unless features are (N, D), N ≥ 2, finite, and labels (N,) integers. Cost: O(N² D)
    time; O(N D) numbers are held at once.
    """
    check_features("labels", labels, features=features)
    first, second = nearest(features, features, 2)[1].T  # one of the two may be the image itself
    other = torch.where(first == torch.arange(len(first), device=first.device), second, first)
    labels = labels.to(other.device)
    return float((labels[other] == labels).double().mean())


def matching_accuracy(a: Tensor, b: Tensor, distance: str = "cosine") -> float:
    """Fraction of things whose two views the best one-to-one assignment pairs.

    Row i of a and row i of b, both (N, D), are the two views of thing i. Rows are scaled to length 1. The
    cost of a pair is 1 − its cosine similarity ("cosine"), or its Euclidean distance ("euclidean") as in
    the paper (QARe, section 5.1). The two weigh long distances differently. Among equally good assignments
    one is taken without a look at who belongs to whom, so that equal features match by chance: about one of
    N. Raises ValueError where the shapes differ or are not (N, D), or for another distance. Cost: O(N³), the
    Hungarian algorithm.

    >>> import torch
    >>> from setclr.evaluation import matching_accuracy
    >>> matching_accuracy(torch.eye(4), torch.eye(4)[[1, 0, 2, 3]])  # two of four find their own
    0.5
    """
    if a.ndim != 2 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"a and b must both be (N, D), got {tuple(a.shape)} and {tuple(b.shape)}")
    choice("distance", distance, ("cosine", "euclidean"))
    order = torch.randperm(len(b), generator=torch.Generator().manual_seed(0), device="cpu")
    x, y = (F.normalize(view.double(), dim=1) for view in (a, b[order.to(b.device)]))
    cost = 1 - x @ y.T
    if distance == "euclidean":
        cost = (2 * cost).clamp(min=0).sqrt()
    from scipy.optimize import linear_sum_assignment  # takes a second

    row, column = linear_sum_assignment(cost.numpy(force=True))
    return float((row == order.numpy()[column]).mean())


def check_features(of: str, labels: Tensor | None, classes: int = 2, **features: Tensor) -> None:
    """Raises ValueError unless these features, by name, are (N, D) of one D and finite, and the first of them
    has labels (`check_labels`), which the message calls `of`; None: none are needed."""
    for name, x in (features | ({} if labels is None else {of: labels})).items():
        if not isinstance(x, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(x).__name__}; torch.as_tensor makes one")
    shapes = [tuple(x.shape) for x in features.values()]
    if any(len(shape) != 2 or 0 in shape or shape[1] != shapes[0][1] for shape in shapes):
        names, got = (" and ".join(map(str, words)) for words in (features, shapes))
        raise ValueError(f"{names} must be (N, D), not empty and of one D, got {got}")
    if labels is not None:
        check_labels(of, labels, shapes[0][0], classes)
    for name, x in features.items():
        if not all(part.isfinite().all() for part in in_parts(x)):
            raise ValueError(f"{name} must be finite, got NaN or inf: the encoder has diverged")


def check_labels(name: str, labels: Tensor, n: int, classes: int = 2) -> None:
    """Raises ValueError unless labels are n integers ≥ 0, of 2 `classes` or more. -1 means no label."""
    if labels.shape != (n,) or labels.is_floating_point():
        got = f"{labels.dtype} of shape {tuple(labels.shape)}"
        raise ValueError(f"{name} must be {n} integers, got {got}")
    if lacking := int((labels < 0).sum()):
        raise ValueError(f"{name} must be >= 0, got {lacking} of {n} without a label (-1); leave these out")
    if (largest := int(labels.max())) >= CLASSES:
        remedy = "number the classes: labels.unique(return_inverse=True)[1]"
        raise ValueError(f"{name} must be below {CLASSES}, got {largest}; {remedy}")
    if classes > 1 and bool((labels == labels[0]).all()):
        only = f"got {int(labels[0])} alone: all would be right"
        raise ValueError(f"{name} must be of at least 2 classes, {only}")


def in_range(x: Tensor) -> Tensor:
    """Rows (N, D) in float32; those whose squares could overflow are scaled by a power of two, a copy."""
    largest = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True)).double()
    exponent = largest.frexp().exponent
    far = (exponent.abs() > FAR) & (largest > 0)
    return x.double().ldexp(-exponent * far).float() if bool(far.any()) else x.float()


def in_parts(x: Tensor, values: int | None = None) -> tuple[Tensor, ...]:
    """The rows of x (N, D) in parts of about `values` numbers (None: VALUES), so that work on a part
    holds little at once."""
    return x.split(max(1, (values or VALUES) // max(1, x.shape[1])))

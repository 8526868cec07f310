"""What patches have in common that are neighbours: tint, brightness, pattern."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import normalize

ANY = 400  # patches of the bank that stand for any


def looks(images: Tensor) -> dict[str, Tensor]:
    """What a patch looks like, in three ways, each (N, k) for images (N, 3, H, W) uint8.

    tint: the mean colour at length 1. brightness: the mean grey. pattern: the mean step from a pixel to its
    right neighbour, in grey deviations of the patch; gravel has large steps, grass small ones.
    """
    x = images.float() / 255
    grey = x.mean(1)
    steps = grey.diff(dim=2).abs().mean((1, 2)) / grey.flatten(1).std(1).clamp(min=1e-3)
    return {
        "tint": normalize(x.mean((2, 3)), dim=1),
        "brightness": grey.mean((1, 2))[:, None],
        "pattern": steps[:, None],
    }


def likeness(queries: Tensor, bank: Tensor, neighbours: Sequence[Tensor]) -> dict[str, list[float]]:
    """How much more alike patches are to their neighbours than any two are: 1 the same, 0 no more than any.

    queries (Q, 3, H, W) and bank (N, 3, H, W) uint8. One number for each of the `neighbours` (Q, k), which
    are indices into the bank.
    """
    ours, theirs = looks(queries), looks(bank)
    found = {}
    for name, mine in ours.items():
        any_two = (mine[:, None] - theirs[name][:: max(1, len(bank) // ANY)]).norm(dim=2).mean()
        near = [(mine[:, None] - theirs[name][some]).norm(dim=2).mean() for some in neighbours]
        found[name] = [1 - float(far / any_two) for far in near]
    return found

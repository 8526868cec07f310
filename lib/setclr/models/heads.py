"""Projection heads: features (N, D) → the embeddings (N, E) that a loss sees."""

from torch import nn

from setclr.checks import boolean, choice, integer

ACTIVATIONS = {"leaky_relu": nn.LeakyReLU, "relu": nn.ReLU}


def head(
    features: int, hidden: int, out: int, last_norm: bool = False, layers: int = 2,
    activation: str = "leaky_relu",
) -> nn.Module:  # fmt: skip
    """Projection head: features → hidden → … → out, batch norm and an activation between linear layers.

    The defaults are the QARe paper's. GroCo's is head(2048, 2048, 2048, last_norm=True, layers=3,
    activation="relu"), MMCL's head(2048, 512, 128, activation="relu"). Raises ValueError for bad arguments.

    Args:
        last_norm: end with a batch norm without scale and shift, as GroCo's authors do. GroCo needs it:
            with a plain linear output all embeddings become equal within an epoch.
        layers: number of linear layers; a single one is features → out, and `hidden` is not used.
        activation: a key of ACTIVATIONS.
    """
    for name, value in (("features", features), ("hidden", hidden), ("out", out), ("layers", layers)):
        integer(name, value, least=1)
    boolean("last_norm", last_norm)
    between = ACTIVATIONS[choice("activation", activation, ACTIVATIONS)]
    parts, width = [], features
    for _ in range(layers - 1):
        parts += [nn.Linear(width, hidden, bias=False), nn.BatchNorm1d(hidden), between()]
        width = hidden
    parts.append(nn.Linear(width, out))
    return nn.Sequential(*parts, *([nn.BatchNorm1d(out, affine=False)] if last_norm else []))

"""`GraphRecipe`, the settings of a training run on graphs, and the project's own recipes for graphs."""

from dataclasses import dataclass
from typing import Any

from setclr.checks import boolean, choice, integer, number
from setclr.recipes.contrasting import Contrasting

# Names here, and the names of the same sets in the TU collection (Morris et al. 2020).
GRAPH_SETS = {
    "mutag": "MUTAG",
    "proteins": "PROTEINS",
    "dd": "DD",
    "reddit-binary": "REDDIT-BINARY",
    "reddit-m5k": "REDDIT-MULTI-5K",
    "imdb-binary": "IMDB-BINARY",
}
AUGMENTATIONS = ("drop", "rewire", "mask", "walk")
GRAPH_VIEWS = ("same", *AUGMENTATIONS, "any")


@dataclass(frozen=True)
class GraphRecipe(Contrasting):
    """Settings of a pretraining run on graphs. Raises ValueError, naming the field, if a value is
    invalid."""

    data: str = "mutag"
    """A key of GRAPH_SETS."""
    first: str = "same"
    second: str = "any"
    """The two views: "same", "drop", "rewire", "mask", "walk", or "any", for each graph one of the four."""
    ratio: float = 0.2
    """Share of nodes or edges that an augmentation drops, rewires or masks; a walk keeps that share."""
    layers: int = 3
    width: int = 32
    """Layers and width of the encoder; its features and the embeddings have layers · width numbers."""
    last_norm: bool = False
    """End the head with a batch norm without scale and shift (GroCo needs it)."""
    lr: float = 0.01
    """Learning rate of Adam, constant."""
    epochs: int = 20
    batch: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("data", self.data, GRAPH_SETS)
        for name in ("first", "second"):
            choice(name, getattr(self, name), GRAPH_VIEWS)
        number("ratio", self.ratio, least=0, most=1)
        for name, least in (("layers", 1), ("width", 1), ("epochs", 0), ("batch", 2), ("seed", 0)):
            integer(name, getattr(self, name), least=least)
        boolean("last_norm", self.last_norm)
        number("lr", self.lr, above=0)


# The library's losses on MUTAG and PROTEINS, with equal settings otherwise and none of them tuned.
LOSSES = {
    "graphcl": "InfoNCE(temperature=0.2)",
    "mmcl": "MMCL(solver='inv')",
    "graphcl+qare": "InfoNCE(temperature=0.2) + 1.0 * QARe()",
    "sparseclr": "SparseCLR()",
    "sparseclr+qare": "SparseCLR() + 1.0 * QARe()",
    "groco": "GroCo(beta=1.0, negatives=10)",
    "iot": "IOT(constraint='rows', uniformity=0.5)",
    "mmcl-exact": "MMCL(solver='exact')",
}


def own_recipes() -> dict[str, dict[str, Any]]:
    """The fields of the project's own recipes; "untrained" is an encoder with initial weights."""
    made: dict[str, dict[str, Any]] = {}
    for data, left_out in (("mutag", ("graphcl", "mmcl")), ("proteins", ())):  # on MUTAG: rows of the paper
        for name, loss in LOSSES.items():
            if name not in left_out:
                made[f"graphs-{data}-{name}"] = dict(loss=loss, data=data, last_norm=name == "groco")
        made[f"graphs-{data}-untrained"] = dict(loss=LOSSES["graphcl"], data=data, epochs=0)
    return made

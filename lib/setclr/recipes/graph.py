"""`GraphRecipe`, the settings of a training run on graphs."""

from dataclasses import dataclass

from setclr.checks import choice
from setclr.recipes.recipe import PRECISIONS, SCHEDULES, Recipe
from setclr.settings import flag, one_of, real, text, whole

# Names here, and the names of the same sets in the TU collection (Morris et al. 2020).
GRAPH_SETS = {
    "mutag": "MUTAG", "proteins": "PROTEINS", "dd": "DD", "reddit-binary": "REDDIT-BINARY",
    "reddit-m5k": "REDDIT-MULTI-5K", "imdb-binary": "IMDB-BINARY",
}  # fmt: skip
AUGMENTATIONS = ("drop", "rewire", "mask", "walk")
GRAPH_VIEWS = ("same", *AUGMENTATIONS, "any")
TU = "tu:"


@dataclass(frozen=True)
class GraphRecipe(Recipe):
    """Settings of a pretraining run on graphs. Raises ValueError, naming the field, if a value is
    invalid."""

    kind, things, shown = "graph", "graphs", ("svm",)

    data: str = text("mutag")
    """A key of GRAPH_SETS, tu:PATH, the folder of a set in the TU collection's form, or a .pt file of plain
    tensors (`graphs.load_graphs`)."""
    encoder: str = one_of("gin", ("gin",))
    first: str = one_of("same", GRAPH_VIEWS)
    second: str = one_of("any", GRAPH_VIEWS)
    """The two views: "same", "drop", "rewire", "mask", "walk", or "any", for each graph one of the four."""
    ratio: float = real(0.2, least=0, most=1)
    """Share of nodes or edges that an augmentation drops, rewires or masks; a walk keeps that share."""
    layers: int = whole(3, 1, 64)
    width: int = whole(32, 1, 2**16)
    """Layers and width of the encoder; its features and the embeddings have layers · width numbers."""
    lr: float = real(0.01, above=0)
    schedule: str = one_of("constant", SCHEDULES)
    drop_last: bool = flag(False)
    precision: str = one_of("float32", PRECISIONS)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_graph_data(self.data)

    @property
    def embedding(self) -> int:
        """E: the dimensions of the embeddings that the loss sees."""
        return self.layers * self.width


def check_graph_data(name: str) -> str:
    """Which reader the name of a graph set asks for: "set", "tu" or "pt". Raises ValueError for other
    names."""
    if name.startswith(TU):
        return "tu"
    if name.endswith(".pt"):
        return "pt"
    choice("data", name, GRAPH_SETS, hint="or give tu:PATH, or a .pt file")
    return "set"

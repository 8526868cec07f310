"""The command `setclr graphs`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from setclr.cli import options
from setclr.cli.seeded import listed_or_measured


def graphs(
    words: Annotated[tuple[str, ...], arg(metavar="[WORD ...]")] = (),
    /,
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    results: Path = Path("data/results/graphs"),
    root: options.Root = Path("data"),
    device: Annotated[str, arg(help="cpu, cuda, cuda:1, …")] = "cpu",
    *,
    typed: str,
) -> None:
    """Pretrain on graphs, measure with an SVM, and record each of these recipes.

    Without words, list the recipes. Repeat the command to do what is left.

    Args:
        words: A recipe is taken if its name has all of them, as in "mutag groco".
        seeds: Every recipe is trained with each of these, which are also the seeds of the folds.
        results: Folder of the records.
    """
    from setclr.experiments.graph_campaigns import graph_campaign
    from setclr.recipes import GRAPH_RECIPES

    listed_or_measured(
        words, GRAPH_RECIPES, "graph",
        lambda recipes: graph_campaign(recipes, seeds, results, root, device, typed),
    )  # fmt: skip

"""The command `setclr graphs`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from setclr.cli import options


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
    """Pretrain on graphs, measure with an SVM and record all these recipes; none lists them. Repeat the
    command to do what is left.

    Args:
        words: A recipe is taken if its name has all of them, as in "mutag groco".
        seeds: Every recipe is trained with each of these; they are those of the folds, too.
        results: Folder of the records.
    """
    from setclr.checks import nearest
    from setclr.graphs.recipe import GRAPH_RECIPES, PRINTED
    from setclr.graphs.recording import graph_campaign

    names = [name for name in GRAPH_RECIPES if all(word in name for word in words)]
    if not names:
        near = ", ".join(nearest(" ".join(words), GRAPH_RECIPES, 3))
        raise ValueError(f"no graph recipe's name has all of {' '.join(words)!r}; the nearest are {near}")
    if words:
        for line in graph_campaign(names, seeds, results, root, device, typed):
            print(line, flush=True)
        return
    for name in names:
        said = f"  {PRINTED[name][1]}" if name in PRINTED else ""
        print(f"{name:34}{GRAPH_RECIPES[name].loss}{said}")

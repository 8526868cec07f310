"""The command `setclr graphs`."""

from collections.abc import Iterable, Sequence
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
    from setclr.graphs.recipe import GRAPH_RECIPES, PRINTED
    from setclr.graphs.recording import graph_campaign

    names = chosen(words, GRAPH_RECIPES, "graph")
    if words:
        for line in graph_campaign(names, seeds, results, root, device, typed):
            print(line, flush=True)
        return
    for name in names:
        said = f"  {PRINTED[name][1]}" if name in PRINTED else ""
        print(f"{name:34}{GRAPH_RECIPES[name].loss}{said}")


def chosen(words: Sequence[str], names: Iterable[str], kind: str) -> list[str]:
    """The names that have all of the words. Raises ValueError where none has, with the nearest."""
    from setclr.checks import nearest

    names = list(names)
    found = [name for name in names if all(word in name for word in words)]
    if not found:
        near = ", ".join(nearest(" ".join(words), names, 3))
        raise ValueError(f"no {kind} recipe's name has all of {' '.join(words)!r}; the nearest are {near}")
    return found

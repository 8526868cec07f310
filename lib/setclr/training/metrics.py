"""What a run shows while it trains: a progress bar, and what is told each epoch's numbers."""

from collections.abc import Callable

from tqdm.auto import tqdm

Metric = Callable[[list[dict]], object]  # called after every epoch with the history, a row for each epoch


def progress_bar(name: str, total: int, done: int, shown: bool) -> tqdm:
    """A bar of `total` steps of which `done` are taken before it begins."""
    silent = {} if shown and total else {"disable": True}  # else not set, so that TQDM_DISABLE works
    return tqdm(total=total, initial=done, desc=name, unit="step", **silent)


def advance(bar: tqdm, timed: bool = True) -> None:
    """Count one step. A step that is not `timed` has no part in the time that is left."""
    if timed or bar.disable:
        bar.update()
        return
    bar.n, bar.initial = bar.n + 1, bar.initial + 1
    bar.unpause()

"""What a run shows while it trains: a progress bar, and each epoch's numbers, for example for TensorBoard."""

from collections.abc import Callable
from pathlib import Path

from tqdm.auto import tqdm

Metric = Callable[[list[dict]], object]  # called after every epoch with the history, a row for each epoch


class TensorBoard:
    """A metric that writes every number of each epoch to TensorBoard's files in a folder.

    >>> from setclr.training import TensorBoard
    >>> board = TensorBoard("runs/mine")  # fit(metrics=[board]) opens the files after the first epoch
    >>> board.written  # rows so far
    0

    Raises ModuleNotFoundError if the package tensorboard is not installed.
    """

    def __init__(self, folder: str | Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("tensorboard is not installed: pip install tensorboard") from error
        self.folder, self.open = str(folder), SummaryWriter
        self.writer: SummaryWriter | None = None
        self.written = 0

    def __call__(self, rows: list[dict]) -> None:
        if self.writer is None:  # hide what an interrupted run wrote from this epoch on
            self.written = len(rows) - 1
            self.writer = self.open(self.folder, purge_step=self.written + 1)
        for row in rows[self.written :]:
            for name, value in row.items():
                self.writer.add_scalar(name, value, row["epoch"])
        self.written = len(rows)
        self.writer.flush()


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

"""Metrics: write each epoch's numbers to TensorBoard, or pass them to any function, beside history.csv."""

from collections.abc import Callable
from pathlib import Path

Metric = Callable[[list[dict]], object]  # called after every epoch with the history, a row for each epoch


class TensorBoard:
    """A metric that writes every number of each epoch to TensorBoard's files in a folder.

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

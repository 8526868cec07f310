"""`Published`: the numbers that a paper printed for one run."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Published:
    """The numbers that a paper printed for one run, and where."""

    paper: str
    """Who and when, such as "Shi 2023"."""
    table: str
    """Number of the table, or "text" for numbers in the text."""
    numbers: dict[str, float]
    """Per cent, as printed. "linear": accuracy of a linear probe, "linear-top5": its top-5 accuracy, "knn20":
    accuracy of 20 nearest neighbours; the note explains others. Empty where the paper prints none."""
    spread: dict[str, float] = field(default_factory=dict)
    """Standard deviation of the number of that name, where printed."""
    note: str = ""
    """Settings that the paper leaves open or its authors' program has otherwise, and the recipe's choice."""

    @property
    def where(self) -> str:
        """The place in the paper: the text or a table."""
        return "text" if self.table == "text" else f"table {self.table}"

    def __str__(self) -> str:
        """The main numbers as text: the linear probe, and the kNN of most neighbours."""
        printed = (*self.numbers.values(), *self.spread.values(), 0)
        digits = max(len(f"{x}".partition(".")[2]) for x in printed)
        knn = [name for name in self.numbers if name.startswith("knn")][-1:]
        shown = [name for name in ("linear", *knn) if name in self.numbers] or list(self.numbers)[:1]
        spread = {name: f" ± {x:.{digits}f}" for name, x in self.spread.items()}
        parts = [f"{name} {self.numbers[name]:.{digits}f}{spread.get(name, '')}" for name in shown]
        return ", ".join(parts) or "no number"

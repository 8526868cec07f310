"""Long tables of careful pages, folded."""

import html

import pandas as pd


class folded:
    """A table below a line that opens it; without HTML the table as it is."""

    def __init__(self, table: pd.DataFrame, title: str):
        self.table, self.title = table, title

    def _repr_html_(self) -> str:
        inside = self.table.to_html(border=0)
        return f"<details><summary>{html.escape(self.title)}</summary>{inside}</details>"

    def __repr__(self) -> str:
        return f"{self.title}\n{self.table.to_string()}"

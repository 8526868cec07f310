"""Prints the table of features beside other libraries, which stands in site/text/library.md."""

from pathlib import Path

import yaml

LIBRARIES = ("setclr", "lightly", "solo-learn", "pytorch-metric-learning", "open_clip")
FEATURES = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text())


def features() -> str:
    """Markdown table of the name that does what one asks for, a column a library; – where there is none."""
    rows = [["", *LIBRARIES], ["---"] * (1 + len(LIBRARIES))]
    for asked, names in FEATURES.items():
        cells = (names.get(library, "").partition(":")[2] for library in LIBRARIES)
        rows.append([asked, *(f"`{name}`" if name else "–" for name in cells)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    print(features())

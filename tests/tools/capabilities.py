"""Prints the table of what each loss takes, which stands in site/text/library.md."""

from setclr.losses import LOSSES


def capabilities() -> str:
    """Markdown table of the inputs that each loss takes, made from the classes."""
    columns = {"more than two views": "views", "`keys`": "keys", "`memory`": "memory", "`labels`": "labels"}
    columns["weights as `positives`"] = "soft positives"
    named = ("positive_views", "key_gradient")  # by the constructor
    rows = [["loss", *columns, *(f"`{name}`" for name in named)]]
    rows.append(["---", *[":-:"] * (len(rows[0]) - 1)])
    for loss in LOSSES:
        has = [kind in loss.takes for kind in columns.values()] + [name in loss.settings for name in named]
        rows.append([f"`{loss.__name__}`", *("✓" if x else "–" for x in has)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    print(capabilities())

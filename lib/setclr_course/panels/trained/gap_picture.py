"""The gaps between one loss and all others as a still picture."""

from setclr_course.kit.palette import PALE
from setclr_course.kit.scene import Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.kit.still import Picture, pictured
from setclr_course.panels.trained.comparison import Records, colour_of, gaps, pairs
from setclr_course.panels.trained.rulers import holding, round_ones


def gap_picture(records: Records, to: str = "infonce") -> Picture:
    """How far every other loss is above this one, a dot for each seed; pale where Holm's test of all pairs at
    0.05 does not keep the gap."""
    holm = {(set(pair) - {to}).pop(): p for pair, p in pairs(records)["holm"].items() if to in pair}
    found = {name: gaps(records, name, to) for name in holm}

    def draw(page: Page) -> str:
        x = holding([0, *(point for gap in found.values() for point in gap)])
        title = "pale: not kept by Holm's test; a dot for each seed"
        label = f"linear probe: points above {to} with the same seed"
        plot = page.plot("gaps", x, (len(found) - 0.4, -0.6), title, label, frame="bottom",
                         xticks=round_ones(x), yticks=dict(enumerate(found)))  # fmt: skip
        plot.line([0, 0], [-0.6, len(found) - 0.4], width=1)
        seed_rows(plot, [*found.values()], [PALE if holm[name] > 0.05 else colour_of(name) for name in found])
        words = [f"{name} {gap.mean():+.1f}{' (noise)' * (holm[name] > 0.05)}" for name, gap in found.items()]
        return f"Mean gap to {to} with the same seeds: {', '.join(words)}."

    return pictured(draw, "gaps", (8.6, 1.2 + 0.27 * len(found)))

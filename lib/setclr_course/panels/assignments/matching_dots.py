"""Matching accuracy of several losses with and without QARe, one dot for each seed (QARe, table 1)."""

import numpy as np

from setclr_course.kit.palette import BLUE, DUSK, GREY, INK, ORANGE
from setclr_course.kit.scene import Page, Plot
from setclr_course.kit.still import Picture, pictured

Results = dict[str, tuple[list[float], list[float]]]  # by loss: each seed's accuracy without and with QARe


def matching_dots(results: dict[str, Results], pixels: float) -> Picture:
    """Results in 0..1, a plot for each title, with a line for what raw pixels reach."""
    widths = [1 + len(losses) for losses in results.values()]
    names = [f"plot{k}" for k in range(len(results))]
    seeds = [seeds for losses in results.values() for both in losses.values() for seeds in both]
    top = 110 * max(pixels, *map(max, seeds))

    def draw(page: Page) -> str:
        said = [f"Pixels, tint and contrast taken out, match {pixels:.1%}."]
        for name, (title, losses) in zip(names, results.items()):
            plot = page.plot(name, (-0.5, len(losses) - 0.5), (0, top), title,
                             "● alone, ■ with QARe\n— mean, + gain by QARe", "matching accuracy, %",
                             dict(enumerate(losses)), range(0, 101, 20), frame="left")  # fmt: skip
            plot.line(plot.about["x"], [100 * pixels] * 2, GREY, dash="dot")
            words = [draw_loss(plot, at, *both) for at, both in enumerate(losses.items())]
            said.append(f"{title}: {'; '.join(words)}.")
            if name == names[0]:
                said_of_line = "pixels, tint and contrast taken out"
                plot.text(-0.45, 100 * pixels, said_of_line, DUSK, "small", "start", "top", up=-3)
        return " ".join(said)

    return pictured(draw, " ".join(names), (1 + 0.75 * sum(widths), 3.6), widths)


def draw_loss(plot: Plot, at: int, name: str, both: tuple[list[float], list[float]]) -> str:
    means = [100 * float(np.mean(seeds)) for seeds in both]
    for seeds, mean, x, colour, sign in zip(both, means, (at - 0.17, at + 0.17), (BLUE, ORANGE), "●■"):
        plot.line([x - 0.13, x + 0.13], [mean, mean], colour, 3)
        plot.dots([(x, 100 * seed) for seed in seeds], colour, sign, 7, INK)
    plot.text(at, 2, f"{means[1] - means[0]:+.1f}", size="small", rise="bottom", bold=True)
    return f"{name} {means[0]:.1f} %, with QARe {means[1]:.1f} %"

"""Matching accuracy of several losses with and without QARe, one dot for each seed (QARe, table 1)."""

import numpy as np

from setclr_course.kit.palette import BLUE, GREY, OCHRE, ORANGE
from setclr_course.kit.png import Picture, still

Results = dict[str, tuple[list[float], list[float]]]  # by loss: each seed's accuracy without and with QARe


def matching_dots(results: dict[str, Results], pixels: float) -> Picture:
    """Results in 0..1, one axes for each title, with a line for what raw pixels reach."""
    widths = [1 + len(losses) for losses in results.values()]

    def draw(figure) -> str:
        axes = figure.subplots(1, len(results), sharey=True, width_ratios=widths, squeeze=False)[0]
        sentences = [
            draw_losses(axis, title, losses, pixels) for axis, (title, losses) in zip(axes, results.items())
        ]
        axes[0].set(ylim=(0, None), ylabel="matching accuracy, %")
        axes[0].text(
            -0.45,
            100 * pixels - 0.6,
            "pixels, tint and contrast taken out",
            color="#555555",
            va="top",
            fontsize=8,
        )
        for k, (word, colour) in enumerate(
            (
                ("● the loss alone", BLUE),
                ("■ with QARe", OCHRE),
                ("bar: mean; number: what QARe adds", "black"),
            )
        ):
            axes[0].text(-0.45, 22 - 5 * k, word, color=colour, fontsize=9)
        return f"Pixels, tint and contrast taken out, match {pixels:.1%}. " + " ".join(sentences)

    return still(draw, (1 + 0.75 * sum(widths), 3.6))


def draw_losses(axis, title: str, losses: Results, pixels: float) -> str:
    words = []
    axis.axhline(100 * pixels, color=GREY, linestyle=":")
    for at, (name, both) in enumerate(losses.items()):
        means = [100 * float(np.mean(seeds)) for seeds in both]
        for seeds, mean, shift, colour, marker in zip(both, means, (-0.17, 0.17), (BLUE, ORANGE), "os"):
            x = np.full(len(seeds), at + shift)
            axis.plot(x[:1] + (-0.13, 0.13), [mean, mean], color=colour, linewidth=3)
            axis.plot(x, 100 * np.array(seeds), marker, color=colour, markersize=6, markeredgecolor="black",
                      linestyle="none")  # fmt: skip
        axis.text(
            at, 2, f"{means[1] - means[0]:+.1f}".replace("-", "−"), ha="center", weight="bold", fontsize=9
        )
        words.append(f"{name} {means[0]:.1f} %, with QARe {means[1]:.1f} %")
    axis.set(title=title, xlim=(-0.5, len(losses) - 0.5), xticks=range(len(losses)), xticklabels=losses)
    axis.tick_params(axis="x", length=0)
    return f"{title}: " + "; ".join(words) + "."

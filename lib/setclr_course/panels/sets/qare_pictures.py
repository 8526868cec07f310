"""Still pictures of what QARe costs: a spectrum of mostly zeros, and times (QARe, figure 3)."""

import numpy as np
from torch import Tensor
from torch.linalg import eigvalsh

from setclr_course.kit.palette import BLUE, GREY, OCHRE, VERMILION
from setclr_course.kit.png import Picture, still


def spectrum_picture(large: Tensor, small: Tensor) -> Picture:
    """The eigenvalues of a large and of a small symmetric matrix that share those which are not 0."""
    spectra = [eigvalsh(matrix).flip(-1).numpy() for matrix in (large, small)]
    sizes = [len(spectrum) for spectrum in spectra]

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.axhline(0, color=GREY, linewidth=0.8, zorder=0)
        styles = (("o", 130, BLUE, f"● {sizes[0]}×{sizes[0]}"), ("s", 26, OCHRE, f"■ {sizes[1]}×{sizes[1]}"))
        for spectrum, (marker, area, colour, word), y in zip(spectra, styles, (0.86, 0.74)):
            axis.scatter(1 + np.arange(len(spectrum)), spectrum, marker=marker, s=area, c=colour)
            axis.text(0.3, y, word + " matrix", color=colour, transform=axis.transAxes, weight="bold")
        axis.text(sizes[0], 0.08 * spectra[0][0], f"{sizes[0] - sizes[1]} times 0", ha="right")
        axis.set(
            xlabel="eigenvalue number, largest first", title="the large spectrum is the small one and zeros"
        )
        kept = ", ".join(f"{x:.1f}" for x in spectra[1])
        return f"The {sizes[1]} eigenvalues {kept} are in both spectra; the large one adds zeros."

    return still(draw, (7, 2.8))


def cost_picture(sizes: list[int], ratios: dict[str, list[float]], machine: str) -> Picture:
    """Time of InfoNCE with QARe in units of InfoNCE's own, by the number of images; one curve per form."""

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.axhline(1, color=GREY)
        axis.text(sizes[0], 0.92, "InfoNCE alone", color="#555555", va="top")
        for (name, ratio), marker, colour in zip(ratios.items(), "os", (VERMILION, BLUE)):
            axis.plot(sizes, ratio, marker=marker, color=colour)
            end = (sizes[-1], ratio[-1])
            axis.annotate(name, end, (6, 4), textcoords="offset points", color=colour)
        axis.set_xscale("log", base=2)
        axis.margins(y=0.15)
        axis.set(xlim=(sizes[0] / 1.1, sizes[-1] * 2.2), ylim=(0, None), xticks=sizes, xticklabels=sizes)
        axis.set(xlabel="images N in a batch", title=f"loss and gradient with QARe ÷ without ({machine})")
        words = (f"{name} {ratio[0]:.1f} to {ratio[-1]:.1f}" for name, ratio in ratios.items())
        return f"Time with QARe divided by time without, N = {sizes[0]} to {sizes[-1]}: {', '.join(words)}."

    return still(draw, (7, 3))

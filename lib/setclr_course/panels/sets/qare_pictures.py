"""Still pictures of what QARe costs: a spectrum of mostly zeros, and times (QARe, figure 3)."""

import numpy as np
from torch import Tensor
from torch.linalg import eigvalsh

from setclr_course.kit.palette import BLUE, DUSK, GREY, OCHRE, VERMILION
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured


def spectrum_picture(large: Tensor, small: Tensor) -> Picture:
    """The eigenvalues of a large and of a small symmetric matrix that share those which are not 0."""
    many, few = (eigvalsh(matrix).flip(-1).numpy() for matrix in (large, small))

    def draw(page: Page) -> str:
        top = 1.15 * many[0]
        x, y = (0.3, len(many) + 0.7), (-0.05 * top, top)
        title, numbers = "the large spectrum is the small one and zeros", range(1, len(many) + 1)
        below = "eigenvalue number, largest first"
        plot = page.plot("spectra", x, y, title, below, "", numbers, whole(top))
        plot.line(plot.about["x"], [0, 0], GREY, 1)
        plot.dots(np.column_stack([1 + np.arange(len(many)), many]), BLUE, "●", 14)
        plot.dots(np.column_stack([1 + np.arange(len(few)), few]), OCHRE, "■", 7)
        sizes = [f"{len(values)}×{len(values)} matrix" for values in (many, few)]
        plot.key((f"● {sizes[0]}", BLUE), (f"■ {sizes[1]}", OCHRE), where="top right")
        plot.text(len(many), 0.05 * top, f"{len(many) - len(few)} times 0", anchor="end", rise="bottom", up=6)
        kept = ", ".join(f"{x:.1f}" for x in few)
        return f"The {len(few)} eigenvalues {kept} are in both spectra; the large one adds zeros."

    return pictured(draw, "spectra", (7, 2.8))


def cost_picture(sizes: list[int], ratios: dict[str, list[float]], machine: str) -> Picture:
    """Time of InfoNCE with QARe in units of InfoNCE's own, by the number of images; one curve per form."""

    def draw(page: Page) -> str:
        top = 1.15 * max(max(ratio) for ratio in ratios.values())
        plot = page.plot("times", (sizes[0] / 1.1, sizes[-1] * 1.9), (0, top),
                         f"loss and gradient with QARe ÷ without ({machine})", "images N in a batch",
                         xticks={N: str(N) for N in sizes}, yticks=whole(top),
                         log="x")  # fmt: skip
        plot.line([sizes[0], sizes[-1]], [1, 1], GREY, 1.5)
        plot.text(sizes[0], 1, "InfoNCE alone", DUSK, "small", "start", "top", up=-3)
        for (name, ratio), sign, colour in zip(ratios.items(), "●■", (VERMILION, BLUE)):
            plot.line(sizes, ratio, colour)
            plot.dots(np.column_stack([sizes, ratio]), colour, sign, 8)
            plot.text(sizes[-1], ratio[-1], name, colour, anchor="start", right=8)
        words = (f"{name} {ratio[0]:.1f} to {ratio[-1]:.1f}" for name, ratio in ratios.items())
        return f"Time with QARe divided by time without, N = {sizes[0]} to {sizes[-1]}: {', '.join(words)}."

    return pictured(draw, "times", (7, 3))


def whole(top: float) -> range:
    """Ticks at a few whole numbers from 0 up."""
    return range(0, int(top) + 1, 1 + int(top) // 6)

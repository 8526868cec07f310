"""Which of the views of one image must find which, as a small table."""

from torch import Tensor

from setclr_course.kit.palette import GREY, INK
from setclr_course.kit.png import Picture, still


def positives_picture(allowed: Tensor, full: int) -> Picture:
    """A table of the views of an image, row who looks, column who is to be found.

    Args:
        allowed: (V, V) of bool, [v, u]: is u a positive of v?
        full: so many views, the first, are full ones.
    """
    V, pairs = len(allowed), int(allowed.sum())

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.imshow(allowed.float().numpy(), vmin=0, vmax=1)
        for edge in range(1, V):
            axis.axhline(edge - 0.5, color=GREY, linewidth=0.5)
            axis.axvline(edge - 0.5, color=GREY, linewidth=0.5)
        for v in range(V):
            axis.text(v, v, "self", color="white", ha="center", va="center", fontsize=9)
        names = [f"full {v + 1}" if v < full else f"small {v - full + 1}" for v in range(V)]
        axis.set_yticks(range(V), names)
        axis.set_xticks(range(V), names, rotation=45, ha="left", rotation_mode="anchor")
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.set_ylabel("this view …")
        axis.set_title("… has to find this one (bright)", fontsize=11, color=INK)
        return f"{pairs} of {V * (V - 1)} ordered pairs of views are pulled together: all find the full ones."

    return still(draw, (4.6, 4.2))

"""Curves that grow while a training runs, in the cell that runs it."""

import numpy as np
from IPython import get_ipython
from IPython.display import display

from setclr.data import ImageSet
from setclr.evaluation import features, pixels
from setclr.experiments.run import Run
from setclr_course.kit.palette import DUSK, GREEN, GREY, OCHRE, ORANGE, PINE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured
from setclr_course.kit.tiles import decoded
from setclr_course.panels.trained.comparison import colour_of
from setclr_course.panels.trained.film import vote
from setclr_course.panels.trained.rulers import holding, round_ones

READABLE = {ORANGE: OCHRE, GREEN: PINE}  # for words


class LiveCurves:
    """Hand it to `pretrain` as `on_epoch`: after every epoch it measures the kNN accuracy (k=10, T=0.1),
    which becomes part of the history, and draws the curves anew, in place, under the running cell.

    One object can follow several trainings, one after the other. What the cell shows at the end is a still
    picture; outside IPython nothing is shown, and `picture` holds it.

    Args:
        train, test: the images that are neighbours, and those whose class is asked for.
        most: of either at most this many are used, spread evenly over the classes.

    Attributes:
        curves: by loss, the accuracies by epoch; 0 is before training. A loss that is trained again takes the
            place of its first training.
        picture: the present picture; None before the first epoch.
    """

    def __init__(self, train: ImageSet, test: ImageSet, most: int = 4000):
        self.train, self.test = (x.sample(most) if len(x) > most else x for x in (train, test))
        self.raw = vote(pixels(decoded(self.train)), pixels(decoded(self.test)), self.train, self.test)
        self.curves: dict[str, dict[int, float]] = {}
        self.picture: Picture | None = None
        self._handle = None

    def __call__(self, run: Run) -> dict:
        """Add the run's last epoch; returns its metrics."""
        before = {epoch: row["knn"] for epoch, row in enumerate(run.rows, 1) if "knn" in row}
        first = self.curves.get(run.recipe.loss, {}).get(0) if run.rows else None
        bank, queries = (features(run.encoder, part.images) for part in (self.train, self.test))
        now = vote(bank, queries, self.train, self.test)
        at_0 = {} if first is None else {0: first}
        self.curves[run.recipe.loss] = at_0 | before | {len(run.rows): now}
        self.show()
        return {"knn": now}

    def show(self) -> None:
        """Draw, and replace the picture shown."""
        self.picture = pictured(self.draw, "knn", (9, 3.3))
        if get_ipython() is None:
            return
        if self._handle is None:
            self._handle = display(self.picture, display_id=True)
        else:
            self._handle.update(self.picture)

    def draw(self, page: Page) -> str:
        last = max(max(found) for found in self.curves.values())
        numbers = [100 * self.raw, *(100 * x for found in self.curves.values() for x in found.values())]
        x, y = (-0.1, last + 0.6), holding(numbers, 0.3)
        plot = page.plot("knn", x, y, "named right by ten neighbours, %", "epoch",
                         xticks=range(0, last + 1, 1 + last // 10), yticks=round_ones(y))  # fmt: skip
        plot.line(x, 100 * self.raw, GREY, dash="dot")
        said, seen = [(f"raw pixels {self.raw:.1%}", DUSK)], list[str]()
        for loss, found in self.curves.items():
            colour = colour_of(loss.split("(")[0].lower())
            dash, sign = [("", "—"), ("dash", "– –"), ("dot", "· ·")][seen.count(colour) % 3]
            seen.append(colour)
            points = np.array(sorted(found.items())) * (1, 100)
            plot.line(points[:, 0], points[:, 1], colour, dash=dash)
            plot.dots(points[-1], colour)
            words = f"{sign} {loss}, epoch {max(found)}: {found[max(found)]:.1%}"
            said.append((words, READABLE.get(colour, colour)))
        plot.key(*said, size="small")
        return ". ".join(words for words, _ in said) + "."

"""Curves that grow while a training runs, in the cell that runs it."""

import re

import numpy as np
from IPython import get_ipython
from IPython.display import display

from setclr.data import ImageSet
from setclr.evaluation import features, knn, pixels
from setclr.experiments.run import Run, new_run
from setclr_course.kit.palette import DUSK, GREEN, GREY, INK, OCHRE, OF_LOSS, ORANGE, PINE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured
from setclr_course.kit.tiles import decoded
from setclr_course.panels.trained.rulers import holding, round_ones

DASHES = {"": "—", "dash": "– –", "dot": "· ·"}  # of trainings whose losses begin alike
READABLE = {ORANGE: OCHRE, GREEN: PINE}  # for words


class LiveCurves:
    """Hand it to `pretrain` as `on_epoch`: after every epoch it measures the kNN accuracy (k=10, T=0.1),
    which becomes part of the history, and draws loss and accuracy anew, in place, under the running cell.

    One object can follow several trainings, one after the other. What the cell shows at the end is a still
    picture; outside IPython nothing is shown, and `picture` holds it. Losses have units of their own: each is
    drawn between its highest and its lowest value so far, with its last value as a number.

    Args:
        train, test: the images that are neighbours, and those whose class is asked for.
        most: of either at most this many are used, spread evenly over the classes.

    Attributes:
        curves: by loss, its values in all epochs, and the accuracies by epoch; 0 is before training. A loss
            that is trained again takes the place of its first training.
        picture: the present picture; None before the first epoch.
    """

    def __init__(self, train: ImageSet, test: ImageSet, most: int = 4000):
        self.train, self.test = (x.sample(most) if len(x) > most else x for x in (train, test))
        self.raw = self.vote(pixels(decoded(self.train)), pixels(decoded(self.test)))
        self.curves: dict[str, tuple[list[float], dict[int, float]]] = {}
        self.epochs = 1
        self.picture: Picture | None = None
        self._handle = None

    def __call__(self, run: Run) -> dict:
        """Add the run's last epoch; returns its metrics."""
        loss, epoch = run.recipe.loss, len(run.rows)
        self.epochs = max(self.epochs, run.recipe.epochs)
        if loss not in self.curves:
            self.curves[loss] = ([], {0: self.accuracy(new_run(run.recipe, run.channels))})
        accuracies = {0: self.curves[loss][1][0]}
        accuracies |= {i: row["knn"] for i, row in enumerate(run.rows, 1) if "knn" in row}
        if epoch not in accuracies:
            accuracies[epoch] = self.accuracy(run)
        self.curves[loss] = [row["loss"] for row in run.rows], accuracies
        self.show()
        return {"knn": accuracies[epoch]}

    def accuracy(self, run: Run) -> float:
        return self.vote(*(features(run.encoder, part.images) for part in (self.train, self.test)))

    def vote(self, bank, queries) -> float:
        predicted = knn(bank, self.train.labels, queries, k=min(10, len(bank)), temperature=0.1)
        return float((predicted == self.test.labels).float().mean())

    def show(self) -> None:
        """Draw, and replace the picture shown."""
        self.picture = pictured(self.draw, "loss knn", (9, 3.3))
        if get_ipython() is None:
            return
        if self._handle is None:
            self._handle = display(self.picture, display_id=True)
        else:
            self._handle.update(self.picture)

    def draw(self, page: Page) -> str:
        end, ticks = 1.3 * self.epochs, [x for x in round_ones((0, self.epochs)) if x % 1 == 0]
        numbers = [100 * x for _, found in self.curves.values() for x in found.values()]
        low, high = holding([100 * self.raw, *numbers])
        y = low, high + 0.12 * len(self.curves) * (high - low)  # room for words
        left = page.plot("loss", (0.5, end + 0.5), (-0.08, 1.08), "loss, each between its own extremes",
                         "epoch", xticks=ticks[1:])  # fmt: skip
        right = page.plot("knn", (-0.3, end), y, "kNN accuracy, %", "epoch", xticks=ticks,
                          yticks=[x for x in round_ones(y) if x <= 100])  # fmt: skip
        right.line([-0.3, end], 100 * self.raw, GREY, dash="dot")
        raw = f"raw pixels {self.raw:.1%}"
        right.text(end, 100 * self.raw, raw, DUSK, "small", "end", "bottom", up=2)
        said, before = [f"{raw.capitalize()}."], list[str]()
        for k, (loss, (losses, accuracies)) in enumerate(self.curves.items()):
            colour = OF_LOSS.get(re.split(r"\W", loss)[0], INK)
            dash, sign = list(DASHES.items())[before.count(colour) % len(DASHES)]
            before.append(colour)
            word = READABLE.get(colour, colour)
            last = accuracies[max(accuracies)]
            name = short(loss) if [*map(short, self.curves)].count(short(loss)) == 1 else loss
            points = np.array([(epoch, 100 * x) for epoch, x in sorted(accuracies.items())])
            right.line(points[:, 0], points[:, 1], colour, dash=dash)
            right.dots(points[-1], colour)
            right.note(f"{sign} {name} {last:.1%}", "top left", word, bold=True, line=k)
            of_loss = ""
            if losses:
                parts = (np.array(losses) - min(losses)) / (max(losses) - min(losses) or 1)
                left.line(range(1, len(losses) + 1), parts, colour, dash=dash)
                left.note(f"{sign} {name} {losses[-1]:.4g}", "top right", word, bold=True, line=k)
                of_loss = f", loss {losses[0]:.4g} after the first, {losses[-1]:.4g} now"
            said.append(f"{name}, epoch {len(losses)} of {self.epochs}: kNN {last:.1%}{of_loss}.")
        return " ".join(said)


def short(loss: str) -> str:
    """The loss without its arguments: "InfoNCE + 1.0 * QARe"."""
    return re.sub(r"\([^()]*\)", "", loss)

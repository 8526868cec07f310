"""Curves that grow while a training runs, in the cell that runs it."""

import re

from IPython import get_ipython
from IPython.display import display
from matplotlib.ticker import MaxNLocator

from setclr.data import ImageSet
from setclr.evaluation import features, knn, pixels
from setclr.experiments.run import Run, new_run
from setclr_course.kit.palette import BLUE, GREEN, GREY, OCHRE, PURPLE, VERMILION
from setclr_course.kit.png import Picture, still
from setclr_course.kit.tiles import decoded

STYLES = list(zip((BLUE, VERMILION, GREEN, PURPLE, OCHRE), ("-", "--", "-.", ":", (0, (5, 1)))))


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
        self.picture = still(self.draw, (9, 3.3))
        if get_ipython() is None:
            return
        if self._handle is None:
            self._handle = display(self.picture, display_id=True)
        else:
            self._handle.update(self.picture)

    def draw(self, figure) -> str:
        left, right = figure.subplots(1, 2)
        left.set(xlim=(0.5, 1.3 * self.epochs + 0.5), ylim=(-0.08, 1.08), yticks=[], xlabel="epoch",
                 title="loss, each between its own extremes")  # fmt: skip
        right.set(xlim=(-0.3, 1.3 * self.epochs), xlabel="epoch", title="kNN accuracy, %")
        right.axhline(100 * self.raw, color=GREY, linestyle=":")
        right.text(1.3 * self.epochs, 100 * self.raw, f"raw pixels {self.raw:.1%}", color="#555555",
                   ha="right", va="bottom", fontsize=9)  # fmt: skip
        sentences = [f"Raw pixels {self.raw:.1%}."]
        for k, (loss, (losses, accuracies)) in enumerate(self.curves.items()):
            colour, style = STYLES[k % len(STYLES)]
            last, height = accuracies[max(accuracies)], 0.95 - 0.08 * k
            name = short(loss) if [*map(short, self.curves)].count(short(loss)) == 1 else loss
            right.plot(
                *zip(*((e, 100 * x) for e, x in sorted(accuracies.items()))), color=colour, linestyle=style
            )
            right.plot(max(accuracies), 100 * last, "o", color=colour)
            right.text(0.02, height, f"{name} {last:.1%}", color=colour, transform=right.transAxes)
            said = f"{name}, epoch {len(losses)} of {self.epochs}: kNN {last:.1%}"
            if losses:
                high, low = max(losses), min(losses)
                parts = [(x - low) / (high - low or 1) for x in losses]
                left.plot(range(1, len(losses) + 1), parts, color=colour, linestyle=style)
                left.text(0.98, height, f"{name} {losses[-1]:.4g}", color=colour, ha="right",
                          transform=left.transAxes)  # fmt: skip
                said += f", loss {losses[0]:.4g} after the first, {losses[-1]:.4g} now"
            sentences.append(said + ".")
        for axis in (left, right):
            axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        low, high = right.get_ylim()
        right.set_ylim(low, high + 0.1 * len(self.curves) * (high - low))
        return " ".join(sentences)


def short(loss: str) -> str:
    """The loss without its arguments: "InfoNCE + 1.0 * QARe"."""
    return re.sub(r"\([^()]*\)", "", loss)

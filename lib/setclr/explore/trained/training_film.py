"""A training run as a film: where the encoder puts each photograph, epoch by epoch, and whom it takes for
neighbours."""

import itertools

import numpy as np
import torch

from setclr.explore.kit.panel import Drawing, Panel, options, slider
from setclr.explore.kit.parts import bare
from setclr.explore.kit.tiles import decoded, thumbnails
from setclr.explore.trained.film import NEIGHBOURS, Film
from setclr.explore.trained.quick_training import quick_sets, train_epoch
from setclr.palette import BLUE, GREEN, GREY, ORANGE, VERMILION
from setclr.recipes import RECIPES, Recipe
from setclr.training.checkpoint import new_run
from setclr.training.trainer import Trainer

MAP, THUMB = 480, 22  # pixels of the map and of a photograph on it


def training_film(films: dict[str, Film] | None = None, **initial) -> Panel:
    """The films of one or more runs, by the name of their loss, with sliders for the epoch and for one image.

    Without films it trains a Conv-4 for two epochs on a few hundred patches, in a few seconds.
    """
    films = films or {"InfoNCE": quick_film(RECIPES["photo-infonce"])}
    last = min(map(len, films.values())) - 1
    if last < 1:
        raise ValueError(
            f"films must have two frames or more, got {last + 1}; hand them to pretrain as on_epoch"
        )
    first = next(iter(films.values()))
    controls = {
        "loss": options("loss", films),
        "epoch": slider("epoch", last, 0, last, 1, {0: "untrained", last: "trained"}),
        "image": slider("image looked at", most_changed(first, last), 0, len(first.shown) - 1, 1),
    }
    return Panel(lambda figure, compact: build(figure, compact, films), controls, (9.5, 4.4), initial, 3.5)


def most_changed(film: Film, last: int) -> int:
    """The image that gained most neighbours from its own photograph between the first frame and the last."""
    gain = [
        same_photograph(film, last, i).sum() - same_photograph(film, 0, i).sum()
        for i in range(len(film.shown))
    ]
    return int(np.argmax(gain))


def same_photograph(film: Film, epoch: int, chosen: int) -> np.ndarray:
    """Which of the neighbours, nearest first, are of the chosen image's class."""
    neighbours = film.neighbours[epoch][chosen].astype(int)
    return (film.train.labels[neighbours] == film.shown.labels[chosen]).numpy()


def quick_film(recipe: Recipe, epochs: int = 2, n: int = 360) -> Film:
    train, test = quick_sets(n)
    film, run = Film(train, test), new_run(recipe, channels=3)
    film(run)
    trainer = Trainer(run, train, torch.device("cpu"))
    for _ in range(epochs):
        train_epoch(trainer)
        film(run)
    return film


def build(figure, compact: bool, films: dict[str, Film]) -> Drawing:
    if compact:
        plane = figure.subplots()
    else:
        left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1])
        plane = left.subplots()
        curve, strip = right.subplots(2, 1, height_ratios=[2.2, 1])
    bare(plane)
    plane.set_title("where the encoder puts them" if not compact else "")
    picture = plane.imshow(np.full((MAP, MAP, 3), 255, np.uint8), interpolation="nearest")
    artists = [picture]

    if not compact:
        longest = max(map(len, films.values()))
        top = max(max(film.accuracy) for film in films.values())
        curve.set(
            xlim=(-0.3, longest - 0.7),
            ylim=(0, min(1, top * 1.15)),
            xlabel="epoch",
            title="kNN accuracy on test patches",
        )
        looks = itertools.cycle(zip((BLUE, VERMILION, GREEN, ORANGE), ("-", "--", "-.", ":")))
        for place, ((name, film), (colour, style)) in enumerate(zip(films.items(), looks)):
            curve.plot(film.accuracy, color=colour, linestyle=style)
            curve.text(0.98, 0.04 + 0.1 * place, name, color=colour, ha="right", transform=curve.transAxes)
        now = curve.axvline(0, color=GREY, linewidth=1)
        dot = curve.plot([], [], "o", color="black")[0]
        number = curve.text(0.02, 0.92, "", transform=curve.transAxes, weight="bold")
        bare(strip)
        strip.set_title("image looked at, and its nearest training images")
        row = strip.imshow(np.full((40, 40 * (NEIGHBOURS + 1) + 20, 3), 255, np.uint8))
        artists += [now, dot, number, row]

    small = {name: thumbnails(decoded(film.shown), THUMB) for name, film in films.items()}

    def update(values: dict) -> str:
        film = films[values["loss"]]
        epoch, chosen = values["epoch"], values["image"]
        picture.set_data(map_of(film.places[epoch], small[values["loss"]], chosen))
        same = same_photograph(film, epoch, chosen)
        if not compact:
            now.set_xdata([epoch, epoch])
            dot.set_data([epoch], [film.accuracy[epoch]])
            number.set_text(f"epoch {epoch}: {film.accuracy[epoch]:.0%}")
            row.set_data(row_of(film, epoch, chosen, same))
        name = film.shown.classes[int(film.shown.labels[chosen])]
        return (
            f"{values['loss']}, epoch {epoch}: {film.accuracy[epoch]:.0%} of the test patches get the right "
            f"photograph by their neighbours' vote; {int(same.sum())} of the {NEIGHBOURS} nearest neighbours "
            f"of the patch looked at come from the same photograph ({name})."
        )

    return Drawing(artists, update)


def map_of(places: np.ndarray, small: np.ndarray, chosen: int) -> np.ndarray:
    """(MAP, MAP, 3) uint8: the test images at their places, the chosen one framed and on top."""
    canvas = np.full((MAP, MAP, 3), 255, np.uint8)
    corner = ((places.astype(float) + 1) / 2 * (MAP - THUMB - 6) + 3).astype(int)
    for i in [*range(chosen), *range(chosen + 1, len(small)), chosen]:
        x, y = corner[i]
        if i == chosen:
            canvas[y - 3 : y + THUMB + 3, x - 3 : x + THUMB + 3] = (213, 94, 0)
        canvas[y : y + THUMB, x : x + THUMB] = small[i]
    return canvas


def row_of(film: Film, epoch: int, chosen: int, same: np.ndarray) -> np.ndarray:
    """(40, 40·7 + 20, 3) uint8: the chosen image, then its neighbours, framed green where the photograph is
    the same."""
    canvas = np.full((40, 40 * (NEIGHBOURS + 1) + 20, 3), 255, np.uint8)
    canvas[4:36, 4:36] = thumbnails(decoded(film.shown)[[chosen]], 32)[0]
    for place, (index, right) in enumerate(zip(film.neighbours[epoch][chosen].astype(int), same)):
        x = 60 + 40 * place
        if right:
            canvas[1:39, x + 1 : x + 39] = (0, 158, 115)
        canvas[4:36, x + 4 : x + 36] = thumbnails(film.train.images[[index]], 32)[0]
    return canvas

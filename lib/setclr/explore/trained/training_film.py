"""A training run as a film: where the encoder puts each patch, epoch by epoch, and next to which others."""

import itertools

import numpy as np
import torch

from setclr.explore.kit.controls import options, slider
from setclr.explore.kit.panel import Drawing, Panel
from setclr.explore.kit.parts import Part, bare
from setclr.explore.kit.tiles import decoded, thumbnails
from setclr.explore.trained.film import NEIGHBOURS, Film
from setclr.explore.trained.quick_training import quick_sets, train_epoch
from setclr.palette import BLUE, GREEN, GREY, ORANGE, VERMILION
from setclr.recipes import RECIPES, Recipe
from setclr.training.run import new_run

MAP, THUMB = 480, 22  # pixels of the map and of a photograph on it


def training_film(films: dict[str, Film] | None = None, **initial) -> Panel:
    """The films of one or more runs, by the name of their loss, with sliders for the epoch and for one image.

    Without films it trains a Conv-4 for two epochs on a few hundred patches, in a few seconds.

    Raises:
        ValueError: a film has fewer than two frames.
    """
    films = films or {"InfoNCE": quick_film(RECIPES["photo-infonce"])}
    film, last = next(iter(films.values())), min(map(len, films.values())) - 1
    if last < 1:
        raise ValueError(
            f"films must have two frames or more, got {last + 1}; hand them to pretrain as on_epoch"
        )
    controls = {
        "loss": options("loss", films),
        "epoch": slider("epoch", last, 0, last, 1, {0: "untrained", last: "trained"}),
        "image": slider("image looked at", most_changed(film, last), 0, len(film.shown) - 1, 1),
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
    trainer = run.trainer(train, torch.device("cpu"))
    for _ in range(epochs):
        train_epoch(trainer)
        film(run)
    return film


def build(figure, compact: bool, films: dict[str, Film]) -> Drawing:
    left, right = (figure, None) if compact else figure.subfigures(1, 2, width_ratios=[1.15, 1])
    parts = [draw_map(left.subplots(), films, "" if compact else "where the encoder puts them")]
    if right is not None:
        curve, strip = right.subplots(2, 1, height_ratios=[2.2, 1])
        parts += [draw_accuracy(curve, films), draw_neighbours(strip)]

    def update(values: dict) -> str:
        film = films[values["loss"]]
        epoch, chosen = values["epoch"], values["image"]
        same = same_photograph(film, epoch, chosen)
        for part in parts:
            part.move(film, epoch, chosen)
        name = film.shown.classes[int(film.shown.labels[chosen])]
        return (
            f"{values['loss']}, epoch {epoch}: {film.accuracy[epoch]:.0%} of the test patches get the right "
            f"photograph by their neighbours' vote; {int(same.sum())} of the {NEIGHBOURS} nearest neighbours "
            f"of the patch looked at come from the same photograph ({name})."
        )

    return Drawing([artist for part in parts for artist in part.artists], update)


def draw_map(axis, films: dict[str, Film], title: str) -> Part:
    """The test images where the encoder puts them; like the others moved by film, epoch and chosen image."""
    bare(axis)
    axis.set_title(title)
    picture = axis.imshow(np.full((MAP, MAP, 3), 255, np.uint8), interpolation="nearest")
    small = {film: thumbnails(decoded(film.shown), THUMB) for film in films.values()}

    def move(film: Film, epoch: int, chosen: int) -> None:
        picture.set_data(map_of(film.positions[epoch], small[film], chosen))

    return Part([picture], move)


def draw_accuracy(axis, films: dict[str, Film]) -> Part:
    """The accuracy of every film over the epochs, with a dot and a number for the one shown."""
    longest, top = max(map(len, films.values())), max(max(film.accuracy) for film in films.values())
    axis.set(xlim=(-0.3, longest - 0.7), ylim=(0, min(1, top * 1.15)), xlabel="epoch")
    axis.set_title("kNN accuracy on test patches")
    styles = itertools.cycle(zip((BLUE, VERMILION, GREEN, ORANGE), ("-", "--", "-.", ":")))
    for k, ((name, film), (colour, style)) in enumerate(zip(films.items(), styles)):
        axis.plot(film.accuracy, color=colour, linestyle=style)
        axis.text(0.98, 0.04 + 0.1 * k, name, color=colour, ha="right", transform=axis.transAxes)
    now = axis.axvline(0, color=GREY, linewidth=1)
    dot = axis.plot([], [], "o", color="black")[0]
    number = axis.text(0.02, 0.92, "", transform=axis.transAxes, weight="bold")

    def move(film: Film, epoch: int, _: int) -> None:
        now.set_xdata([epoch, epoch])
        dot.set_data([epoch], [film.accuracy[epoch]])
        number.set_text(f"epoch {epoch}: {film.accuracy[epoch]:.0%}")

    return Part([now, dot, number], move)


def draw_neighbours(axis) -> Part:
    """The chosen image and its nearest training images."""
    bare(axis)
    axis.set_title("image looked at, and its nearest training images")
    row = axis.imshow(np.full((40, 40 * (NEIGHBOURS + 1) + 20, 3), 255, np.uint8))

    def move(film: Film, epoch: int, chosen: int) -> None:
        row.set_data(row_of(film, epoch, chosen))

    return Part([row], move)


def map_of(positions: np.ndarray, small: np.ndarray, chosen: int) -> np.ndarray:
    """(MAP, MAP, 3) uint8: the test images where they lie, the chosen one framed and on top."""
    canvas = np.full((MAP, MAP, 3), 255, np.uint8)
    corner = ((positions.astype(float) + 1) / 2 * (MAP - THUMB - 6) + 3).astype(int)
    for i in [*range(chosen), *range(chosen + 1, len(small)), chosen]:
        x, y = corner[i]
        if i == chosen:
            canvas[y - 3 : y + THUMB + 3, x - 3 : x + THUMB + 3] = (213, 94, 0)
        canvas[y : y + THUMB, x : x + THUMB] = small[i]
    return canvas


def row_of(film: Film, epoch: int, chosen: int) -> np.ndarray:
    """(40, 40·7 + 20, 3) uint8: the chosen image and its neighbours, green if of the same photograph."""
    canvas = np.full((40, 40 * (NEIGHBOURS + 1) + 20, 3), 255, np.uint8)
    canvas[4:36, 4:36] = thumbnails(decoded(film.shown)[[chosen]], 32)[0]
    neighbours, same = film.neighbours[epoch][chosen].astype(int), same_photograph(film, epoch, chosen)
    for k, (index, right) in enumerate(zip(neighbours, same)):
        x = 60 + 40 * k
        if right:
            canvas[1:39, x + 1 : x + 39] = (0, 158, 115)
        canvas[4:36, x + 4 : x + 36] = thumbnails(film.train.images[[index]], 32)[0]
    return canvas

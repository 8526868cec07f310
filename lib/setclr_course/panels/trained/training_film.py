"""A training run as a film: where the encoder puts each patch, epoch by epoch, and next to which others."""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.ticker import MaxNLocator

from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr_course.kit.palette import BLACK, INK, OF_LOSS
from setclr_course.kit.tiles import decoded, thumbnails
from setclr_course.panels.trained import quick_training
from setclr_course.panels.trained.film import NEIGHBOURS, Film
from setclr_course.panels.trained.likeness import likeness
from setclr_course.panels.trained.quick_training import quick_sets
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, box, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

MAP, THUMB = 520, 24  # pixels of the map and of a patch on it
SIDE, STEP, FIRST = (
    32,
    40,
    60,
)  # pixels of a patch in the row of neighbours, from one to the next, to the first
DASHES = {"tint": ":", "brightness": "--", "pattern": "-"}
FRAME, SAME = (213, 94, 0), (0, 158, 115)  # of the patch looked at, of neighbours from its photograph


class Shot(NamedTuple):
    """A film, ready to be shown."""

    film: Film
    places: np.ndarray  # (epochs + 1, n, 2): pixels on the map, of the middle of each patch
    small: np.ndarray  # (n, THUMB, THUMB, 3) uint8
    patches: np.ndarray  # (n, SIDE, SIDE, 3) uint8
    names: list[str]  # (n,) the photograph of each patch
    alike: dict[str, list[float]]  # tint, brightness, pattern: of neighbours, epoch by epoch

    def same(self, epoch: int, chosen: int) -> np.ndarray:
        """Which of the neighbours, nearest first, are from the chosen patch's photograph."""
        return np.array([name == self.names[chosen] for name in self.neighbours(epoch, chosen)])

    def neighbours(self, epoch: int, chosen: int) -> list[str]:
        """The photographs of the neighbours, nearest first."""
        train = self.film.train
        return [train.classes[int(train.labels[int(i)])] for i in self.film.neighbours[epoch][chosen]]


def training_film(films: dict[str, Film] | None = None, **initial) -> Panel:
    """The films of one or more runs, by the name of their loss: the epochs play, the framed patch is dragged.

    Without films it trains a Conv-4 for two epochs on a few hundred patches, in a few seconds.

    Raises:
        ValueError: a film has fewer than two frames.
    """
    if not films:
        from setclr.recipes import RECIPES  # built when asked for

        films = {"InfoNCE": quick_film(RECIPES["photo-infonce"])}
    last = min(map(len, films.values())) - 1
    if last < 1:
        raise ValueError(
            f"films must have two frames or more, got {last + 1}; hand them to pretrain as on_epoch"
        )
    shots = {name: shot(film) for name, film in films.items()}
    first = next(iter(shots.values()))
    controls = {
        "epoch": slider("epoch", 0, 0, last, 1, {0: "untrained", last: "trained"}),
        "patch": slider("patch looked at", most_changed(first, last), 0, len(first.names) - 1, 1),
        "loss": options("loss", films),
    }
    return Panel(partial(build, shots=shots), controls, (9, 4.6), initial, 3.8, 1, play="epoch")


def shot(film: Film) -> Shot:
    images = decoded(film.shown)
    neighbours = [torch.from_numpy(found.astype(int)) for found in film.neighbours]
    return Shot(
        film,
        (np.array(film.positions, float) + 1) / 2 * (MAP - THUMB - 6) + 3 + THUMB / 2,
        thumbnails(images, THUMB),
        thumbnails(images, SIDE),
        [film.shown.classes[int(label)] for label in film.shown.labels],
        likeness(images, decoded(film.train), neighbours),
    )


def most_changed(one: Shot, last: int) -> int:
    """The patch that gained most neighbours from its own photograph between the first frame and the last."""
    gain = [one.same(last, i).sum() - one.same(0, i).sum() for i in range(len(one.names))]
    return int(np.argmax(gain))


def quick_film(recipe: ImageRecipe, epochs: int = 2, n: int = 360) -> Film:
    train, test = quick_sets(n)
    film, run = Film(train, test), new_run(recipe, channels=3)
    film(run)
    quick_training.train(run, train, epochs, film)
    return film


def build(figure, compact: bool, shots: dict[str, Shot]) -> Drawing:
    left, right = (figure, None) if compact else figure.subfigures(1, 2, width_ratios=[1.15, 1])
    plane, strip = left.subplots(), None
    parts = [draw_map(plane, compact)]
    if right is not None:
        accuracy, alike, strip = right.subplots(3, 1, height_ratios=[1.25, 1.35, 0.7])
        parts += [draw_accuracy(accuracy, shots), draw_likeness(alike, shots), draw_neighbours(strip)]
    now: dict = {}

    def update(values: dict) -> str:
        now.update(values, shot=shots[values["loss"]])
        for part in parts:
            part.move(now["shot"], values["epoch"], values["patch"])
        return sentence(now["shot"], values)

    def nearest_patch(x: float, y: float) -> list[int]:
        far = np.hypot(*(now["shot"].places[now["epoch"]] - (x, y)).T)
        stays = far[now["patch"]] <= far.min() + 0.1  # where two lie on one place
        return [now["patch"] if stays else int(far.argmin())]

    looked_at = Handle(
        plane,
        ("patch",),
        lambda v: shots[v["loss"]].places[v["epoch"], v["patch"]],
        to=nearest_patch,
        label="the patch looked at",
    )
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, {"patch": looked_at}, lambda: links(plane, strip, now))


def sentence(one: Shot, values: dict) -> str:
    epoch, chosen = values["epoch"], values["patch"]
    alike = ", ".join(f"{name} {shares[epoch]:.2f}" for name, shares in one.alike.items())
    return (
        f"{values['loss']}, epoch {epoch}: {one.film.accuracy[epoch]:.0%} of the test patches get the right "
        f"photograph by their neighbours' vote. Alike in {alike}, where 1 is the same and 0 no more alike "
        f"than any two. Patch {chosen} ({one.names[chosen]}) has {one.same(epoch, chosen).sum()} of "
        f"{NEIGHBOURS} neighbours from its own photograph."
    )


def links(plane, strip, now: dict) -> list[Link]:
    """The patches of each photograph, on the map and among the neighbours."""
    one, epoch, chosen = now["shot"], now["epoch"], now["patch"]
    over: dict[str, list] = {}
    for name, place in zip(one.names, one.places[epoch]):
        over.setdefault(name, []).append(dot(plane, place))
    for k, name in enumerate(one.neighbours(epoch, chosen) if strip is not None else []):
        x = FIRST + STEP * k
        over.setdefault(name, []).append(box(strip, (x, 2), (x + SIDE + 6, SIDE + 8)))
    return [Link(marks, text=name) for name, marks in over.items()]


def draw_map(axis, compact: bool) -> Part:
    """The test patches where the encoder puts them; like the others moved by shot, epoch and chosen patch."""
    bare(axis)
    picture = axis.imshow(np.full((MAP, MAP, 4), 255, np.uint8), interpolation="nearest")
    if not compact:
        axis.set_title("near on the map: alike for the network", fontsize=10)
    said = axis.text(0.5, -0.02, "", ha="center", va="top", fontsize=8.5, transform=axis.transAxes)

    def move(one: Shot, epoch: int, chosen: int) -> None:
        picture.set_data(map_of(one.places[epoch], one.small, chosen))
        if compact:
            shares = [f"{name} {alike[epoch]:.2f}" for name, alike in one.alike.items()]
            said.set_text(f"{one.film.accuracy[epoch]:.0%} right\n{', '.join(shares)}")

    return Part([picture, said], move)


def draw_accuracy(axis, shots: dict[str, Shot]) -> Part:
    """The accuracy of every film over the epochs, with a dot and a number for the one shown."""
    films = {name: one.film for name, one in shots.items()}
    top = max(max(film.accuracy) for film in films.values())
    axis.set(xlim=(-0.3, max(map(len, films.values())) - 0.7), ylim=(0, min(1, top * 1.2)))
    title = axis.set_title("", fontsize=10)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.tick_params(labelsize=8)
    for k, (name, film) in enumerate(films.items()):
        colour = OF_LOSS.get(name, BLACK)
        axis.plot(film.accuracy, color=colour)
        axis.text(0.98, 0.05 + 0.14 * k, name, color=colour, ha="right", fontsize=9, transform=axis.transAxes)
    now = axis.plot([], [], "o", color=INK)[0]
    number = axis.text(0.02, 0.06, "", transform=axis.transAxes, fontsize=9, weight="bold")

    def move(one: Shot, epoch: int, _: int) -> None:
        shares = one.film.accuracy
        title.set_text(f"neighbours vote right: from {shares[0]:.0%} to {shares[-1]:.0%}")
        now.set_data([epoch], [shares[epoch]])
        number.set_text(f"epoch {epoch}: {shares[epoch]:.0%}")

    return Part([now, number, title], move)


def draw_likeness(axis, shots: dict[str, Shot]) -> Part:
    """In what neighbours are alike, epoch by epoch."""
    longest = max(len(one.film) for one in shots.values())
    axis.set(xlim=(-0.3, longest - 0.7), ylim=(-0.05, 1))
    axis.set_xlabel("epoch", fontsize=9)
    axis.set_ylabel("0: as any two\n1: the same", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    title = axis.set_title("", fontsize=10)
    lines = {name: axis.plot([], [], dash, color=INK, label=name)[0] for name, dash in DASHES.items()}
    axis.legend(loc="upper right", ncol=3, fontsize=8.5, frameon=False, borderaxespad=0)
    now = axis.plot([], [], "o", color=INK, markersize=5)[0]

    def move(one: Shot, epoch: int, _: int) -> None:
        for name, line in lines.items():
            line.set_data(range(len(one.alike[name])), one.alike[name])
        now.set_data([epoch] * len(lines), [one.alike[name][epoch] for name in lines])
        before, after = (max(lines, key=lambda name: one.alike[name][place]) for place in (0, -1))
        title.set_text(f"most alike in: first {before}, at last {after}")

    return Part([*lines.values(), now, title], move)


def draw_neighbours(axis) -> Part:
    """The chosen patch and its nearest training patches."""
    bare(axis)
    axis.set_title("nearest patches; green: same photograph", fontsize=10)
    row = axis.imshow(np.full((STEP, FIRST + STEP * NEIGHBOURS, 3), 255, np.uint8))

    def move(one: Shot, epoch: int, chosen: int) -> None:
        row.set_data(row_of(one, epoch, chosen))

    return Part([row], move)


def map_of(places: np.ndarray, small: np.ndarray, chosen: int) -> np.ndarray:
    """(MAP, MAP, 4) uint8: the test patches where they lie, the chosen one framed and on top."""
    canvas = np.full((MAP, MAP, 4), 255, np.uint8)
    corner = (places - THUMB / 2).astype(int)
    for i in [*range(chosen), *range(chosen + 1, len(small)), chosen]:
        x, y = corner[i]
        if i == chosen:
            canvas[y - 3 : y + THUMB + 3, x - 3 : x + THUMB + 3, :3] = FRAME
        canvas[y : y + THUMB, x : x + THUMB, :3] = small[i]
    return canvas


def row_of(one: Shot, epoch: int, chosen: int) -> np.ndarray:
    """(STEP, width, 3) uint8: the chosen patch and its neighbours, green if of the same photograph."""
    canvas = np.full((STEP, FIRST + STEP * NEIGHBOURS, 3), 255, np.uint8)
    canvas[1:-1, 1 : SIDE + 7] = FRAME
    canvas[4:-4, 4 : SIDE + 4] = one.patches[chosen]
    near = one.film.train.images[torch.from_numpy(one.film.neighbours[epoch][chosen].astype(int))]
    for k, (patch, right) in enumerate(zip(thumbnails(near, SIDE), one.same(epoch, chosen))):
        x = FIRST + STEP * k
        if right:
            canvas[1:-1, x + 1 : x + SIDE + 7] = SAME
        canvas[4:-4, x + 4 : x + SIDE + 4] = patch
    return canvas

"""A training run as a film: where the encoder puts each patch, epoch by epoch, and next to which others."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import options, slider
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import BLACK, GREEN, INK, OF_LOSS, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.trained.patches import patches_of

if TYPE_CHECKING:
    from setclr.data import ImageSet
    from setclr_course.panels.trained.film import Film

SIDE = 32  # pixels of a patch
WIDE = 0.095  # of a patch on the map, which reaches from -1 to 1
DASHES = {"tint": "dot", "brightness": "dash", "pattern": ""}


class Shot(NamedTuple):
    """A film, ready to be shown."""

    places: np.ndarray  # (epochs + 1, n, 2)
    near: np.ndarray  # (epochs + 1, n, 6): of each patch the nearest training patches
    accuracy: list[float]  # (epochs + 1,)
    alike: dict[str, list[float]]  # tint, brightness, pattern: of neighbours, epoch by epoch
    patches: np.ndarray  # (n, SIDE, SIDE, 3) uint8
    faces: list[str]  # (n,): what the page calls them
    names: np.ndarray  # (n,): the photograph of each patch
    train: np.ndarray  # (N, SIDE, SIDE, 3) uint8
    train_names: np.ndarray  # (N,)


class Now(NamedTuple):
    """An epoch of a film, and of the patch looked at its neighbours."""

    one: Shot
    name: str
    neighbours: np.ndarray  # (6,): their photographs, nearest first
    same: np.ndarray  # (6,) bool: that is the patch's own


class training_film(Panel):
    """The films of one or more runs, by the name of their loss: the epochs play, the framed patch is dragged.

    Without films it trains a Conv-4 for two epochs on a few hundred patches, in a few seconds.

    Raises:
        ValueError: a film has fewer than two frames.
    """

    size, row_height = (9, 4.7), 3.8
    mosaic, row_mosaic = "map accuracy; map alike; map strip", "map"
    widths, heights = (1.1, 1), (1.2, 1.45, 0.75)
    in_sight, play = 1, "epoch"

    def __init__(self, films: "Mapping[str, Film] | None" = None, **initial: Any):
        if not films:
            from setclr_course.panels.trained.quick_training import quick_film

            films = {"InfoNCE": quick_film()}
        last = min(map(len, films.values())) - 1
        if last < 1:
            raise ValueError(
                f"films must have two frames or more, got {last + 1}; hand them to pretrain as on_epoch"
            )
        self.shots = {name: shot(film) for name, film in films.items()}
        self.longest = max(map(len, films.values())) - 1
        first = next(iter(self.shots.values()))
        self.knobs = {
            "epoch": slider("epoch", 0, 0, last, 1, {0: "untrained", last: "trained"}),
            "patch": slider("patch looked at", most_changed(first, last), 0, len(first.names) - 1, 1),
            "loss": options("loss", films),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Now:
        one = self.shots[values["loss"]]
        name = one.names[values["patch"]]
        neighbours = one.train_names[one.near[values["epoch"], values["patch"]]]
        return Now(one, name, neighbours, neighbours == name)

    def draw(self, page: Page, values: dict, now: Now) -> None:
        epoch, patch, names = values["epoch"], values["patch"], now.one.names
        places, right = now.one.places[epoch], f"{now.one.accuracy[epoch]:.0%} right"
        title, below = "near on the map: alike for the network", ""
        if page.row:
            title, below = right, ", ".join(f"{name} {x[epoch]:.2f}" for name, x in now.one.alike.items())
        plane = page.plane("map", (-1.06, 1.06), (1.06, -1.06), title, xlabel=below)
        faces = now.one.faces
        page.pictures.update(zip(faces, now.one.patches))
        photographs = plane.photographs(places, faces, WIDE)
        framed = plane.photographs([places[patch]], [faces[patch]], WIDE, frame=VERMILION)
        to = nearest_to(places, patch)
        framed.handle("patch", places[patch], to=to, label="the patch looked at")
        strip = self.draw_strip(page, values, now, faces[patch])
        lit = {name: [photographs[names == name], strip[now.neighbours == name]] for name in set(names)}
        for k in range(len(names) - 1, -1, -1):  # the uppermost is found first
            page.link(names[k], photographs[k], lit=lit[names[k]], patch=k)
        for k, name in enumerate(now.neighbours):
            page.link(name, strip[k], lit=lit.get(name, ()))
        self.draw_accuracy(page, epoch, now, right)
        self.draw_likeness(page, epoch, now)

    def draw_strip(self, page: Page, values: dict, now: Now, face: str) -> Mark:
        """The patch looked at and its nearest training patches."""
        strip = page.plane("strip", (-0.5, 7), (-0.5, 0.5), "nearest patches; green: same photograph")
        strip.photographs([(0, 0)], [face], 0.84, frame=VERMILION)
        near = now.one.near[values["epoch"], values["patch"]]
        frames = [GREEN if same else "" for same in now.same]
        points = [(1.5 + k, 0) for k in range(len(near))]
        return strip.photographs(points, now.one.train[near], 0.84, frame=frames)

    def epochs(self) -> dict[str, Any]:
        """The axis of epochs."""
        step = -(-self.longest // 6)
        return {"x": (-0.3, self.longest + 0.3), "xticks": range(0, self.longest + 1, step)}

    def draw_accuracy(self, page: Page, epoch: int, now: Now, right: str) -> None:
        top = min(1, 1.2 * max(max(one.accuracy) for one in self.shots.values()))
        shares = np.arange(0, top + 1e-9, 0.2 if top > 0.45 else 0.1).tolist()
        first, *_, last = now.one.accuracy
        plot = page.plot(
            "accuracy", y=(0, top), title=f"neighbours vote right: from {first:.0%} to {last:.0%}",
            yticks={share: f"{share:.0%}" for share in shares}, room=(37, 0, 0, 0), **self.epochs(),
        )  # fmt: skip
        colours = {name: OF_LOSS.get(name, BLACK) for name in self.shots}
        for name, one in self.shots.items():
            plot.line(range(len(one.accuracy)), one.accuracy, colours[name])
        plot.dots([epoch, now.one.accuracy[epoch]])
        plot.note(f"epoch {epoch}: {right}", "bottom left", bold=True)
        plot.key(*colours.items(), where="bottom right")

    def draw_likeness(self, page: Page, epoch: int, now: Now) -> None:
        """In what neighbours are alike, epoch by epoch."""
        alike = now.one.alike
        first, last = (max(alike, key=lambda name: alike[name][place]) for place in (0, -1))
        plot = page.plot(
            "alike", y=(-0.05, 1.2), title=f"most alike: {first}, at last {last}", xlabel="epoch",
            yticks={0: "0 any two", 1: "1 same"}, **self.epochs(),
        )  # fmt: skip
        for k, (name, dash) in enumerate(DASHES.items()):
            plot.line(range(len(alike[name])), alike[name], INK, dash=dash)
            plot.dots([epoch, alike[name][epoch]], size=8)
            start = (self.longest + 0.6) * k / 3 - 0.25
            plot.line([start, start + 0.09 * (self.longest + 0.6)], 1.12, INK, dash=dash)
            plot.text(start + 0.1 * (self.longest + 0.6), 1.12, name, size="small", anchor="start")

    def say(self, values: dict, now: Now) -> str:
        epoch, one = values["epoch"], now.one
        alike = ", ".join(f"{name} {shares[epoch]:.2f}" for name, shares in one.alike.items())
        return (
            f"{values['loss']}, epoch {epoch}: {one.accuracy[epoch]:.0%} of the test patches get the right "
            f"photograph by their neighbours' vote. Alike in {alike}, where 1 is the same and 0 no more "
            f"alike than any two. Patch {values['patch']} ({now.name}) has {now.same.sum()} of "
            f"{len(now.same)} neighbours from its own photograph."
        )


def shot(film: "Film") -> Shot:
    from torch import from_numpy

    from setclr_course.panels.trained.likeness import likeness

    train, shown, near = film.train, film.shown, np.array(film.neighbours, int)
    alike = likeness(shown.images[:], train.images[:], [*from_numpy(near)])
    places, names = np.array(film.positions, float), np.array(shown.classes)[shown.labels]
    train_names = np.array(train.classes)[train.labels]
    patches, blank = small(shown), Page(())
    faces = [blank.picture(patch) for patch in patches]  # once: it takes as long as all the rest of an event
    return Shot(places, near, film.accuracy, alike, patches, faces, names, small(train), train_names)


def small(images: "ImageSet") -> np.ndarray:
    """The patches as they are, or of images a small form: (n, h, w, 3) uint8."""
    from setclr_course.kit.tiles import thumbnails

    pixels = images.images[:]
    return patches_of(images) if pixels.shape[-1] <= SIDE else thumbnails(pixels, SIDE)


def most_changed(one: Shot, last: int) -> int:
    """The patch that gained most neighbours from its own photograph between the first frame and the last."""
    first, final = ((one.train_names[one.near[epoch]] == one.names[:, None]).sum(1) for epoch in (0, last))
    return int((final - first).argmax())

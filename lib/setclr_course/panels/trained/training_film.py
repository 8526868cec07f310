"""A training run as a film: where the encoder puts each patch, epoch by epoch, and next to which others."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import BLACK, GREEN, INK, OF_LOSS, VERMILION
from setclr_course.kit.panel import Mark, Page, Panel, options, slider
from setclr_course.kit.tiles import thumbnails
from setclr_course.panels.trained.film import Film, made_up
from setclr_course.panels.trained.likeness import likeness
from setclr_course.panels.trained.rulers import round_ones

SIDE = 32  # pixels of a patch
WIDE = 0.095  # of a patch on the map, which reaches from -1 to 1
DASHES = {"tint": "dot", "brightness": "dash", "pattern": ""}


class Shot(NamedTuple):
    """A film, ready to be shown."""

    places: np.ndarray  # (epochs + 1, n, 2)
    near: np.ndarray  # (epochs + 1, n, 6): of each patch the nearest training patches
    accuracy: list[float]  # (epochs + 1,)
    alike: dict[str, list[float]]  # tint, brightness, pattern: of neighbours, epoch by epoch
    faces: np.ndarray  # (n, SIDE, SIDE, 3) uint8
    names: np.ndarray  # (n,): the photograph of each patch
    train: np.ndarray  # (N, SIDE, SIDE, 3) uint8
    train_names: np.ndarray  # (N,)


class training_film(Panel):
    """The films of one or more runs, by the name of their loss: the epochs play, the framed patch is dragged.

    Without films it shows one that is made up.

    Raises:
        ValueError: a film has fewer than two frames.
    """

    size, row_height = (9, 4.7), 3.8
    mosaic, row_mosaic = "map accuracy; map alike; map strip", "map"
    widths, heights = (1.1, 1), (1.2, 1.45, 0.75)
    in_sight, play = 1, "epoch"

    def __init__(self, films: Mapping[str, Film] | None = None, **initial: Any):
        films = films or {"InfoNCE": made_up()}
        frames = min(map(len, films.values()))
        if frames < 2:
            raise ValueError(f"films must have two frames or more, got {frames}; pretrain fills one on_epoch")
        self.shots = {name: shot(film) for name, film in films.items()}
        first, last = next(iter(self.shots.values())), frames - 1
        self.epochs = np.arange(frames)
        gained = np.diff((first.train_names[first.near[[0, last]]] == first.names[:, None]).sum(-1), axis=0)
        self.knobs = {
            "epoch": slider("epoch", 0, 0, last, 1, {0: "untrained", last: "trained"}),
            "patch": slider("patch looked at", int(gained.argmax()), 0, len(first.names) - 1, 1),
            "loss": options("loss", films),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> tuple[Shot, np.ndarray]:
        """The film, and the photographs (6,) of the nearest patches of the one looked at."""
        one = self.shots[values["loss"]]
        return one, one.train_names[one.near[values["epoch"], values["patch"]]]

    def draw(self, page: Page, values: dict, now: tuple[Shot, np.ndarray]) -> None:
        (one, neighbours), epoch, patch = now, values["epoch"], values["patch"]
        names, places, faces = one.names, one.places[epoch], one.faces
        title = f"epoch {epoch}: {one.accuracy[epoch]:.0%} right"
        plane = page.plane("map", (-1.06, 1.06), (1.06, -1.06), title, xlabel=shares(one, epoch))
        photographs = plane.photographs(places, faces, WIDE)
        framed = plane.photographs([places[patch]], [faces[patch]], WIDE, frame=VERMILION)
        framed.handle("patch", places[patch], to=nearest_to(places, patch), label="the patch looked at")
        strip = draw_strip(page, one, epoch, patch)
        lit = {name: [photographs[names == name], strip[neighbours == name]] for name in set(names)}
        for k in range(len(names) - 1, -1, -1):  # the uppermost is found first
            page.link(names[k], photographs[k], lit=lit[names[k]], patch=k)
        for k, name in enumerate(neighbours):
            page.link(name, strip[k], lit=lit.get(name, ()))
        self.draw_curves(page, epoch, one)

    def draw_curves(self, page: Page, epoch: int, one: Shot) -> None:
        """What share the neighbours name right, and in what they are alike, epoch by epoch."""
        epochs, top = self.epochs, 1.2 * max(max(shot.accuracy) for shot in self.shots.values())
        x, xticks = (-0.3, epochs[-1] + 0.3), epochs[:: -(-epochs[-1] // 6)].tolist()
        percent = {x / 100: f"{x:g} %" for x in round_ones((0, 100 * top), 5)}
        title = "right by their neighbours' vote"
        plot = page.plot("accuracy", x, (0, top), title, xticks=xticks, yticks=percent)
        colours = {name: OF_LOSS.get(name, BLACK) for name in self.shots}
        for name, shot in self.shots.items():
            plot.line(epochs, shot.accuracy[: len(epochs)], colours[name])
        plot.dots([epoch, one.accuracy[epoch]])
        plot.key(*colours.items(), where="bottom right")
        title, ends = "what neighbours share, by epoch", {0: "0 any two", 1: "1 same"}
        plot = page.plot("alike", x, (-0.05, 1.25), title, "epoch", xticks=xticks, yticks=ends)
        for name, dash in DASHES.items():
            plot.line(epochs, one.alike[name][: len(epochs)], INK, dash=dash)
        plot.dots([(epoch, found[epoch]) for found in one.alike.values()], size=8)
        plot.note("· · tint    – – brightness    — pattern", "top left", size="small")

    def say(self, values: dict, now: tuple[Shot, np.ndarray]) -> str:
        (one, neighbours), epoch, patch = now, values["epoch"], values["patch"]
        same = (neighbours == one.names[patch]).sum()
        return (
            f"{values['loss']}, epoch {epoch}: {one.accuracy[epoch]:.0%} of the test patches get the right "
            f"photograph by their neighbours' vote. Alike in {shares(one, epoch)}, where 1 is the same and 0 "
            f"no more alike than any two. Patch {patch} ({one.names[patch]}) has {same} of {len(neighbours)} "
            f"neighbours from its own photograph."
        )


def shares(one: Shot, epoch: int) -> str:
    """How alike neighbours are, in words."""
    return ", ".join(f"{name} {found[epoch]:.2f}" for name, found in one.alike.items())


def draw_strip(page: Page, one: Shot, epoch: int, patch: int) -> Mark:
    """The patch looked at and its nearest training patches."""
    strip = page.plane("strip", (-0.5, 7), (-0.5, 0.5), "nearest patches; green: same photograph")
    strip.photographs([(0, 0)], [one.faces[patch]], 0.84, frame=VERMILION)
    near = one.near[epoch, patch]
    frames = [GREEN if name == one.names[patch] else "" for name in one.train_names[near]]
    points = np.column_stack([1.5 + np.arange(len(near)), 0 * near])
    return strip.photographs(points, one.train[near], 0.84, frame=frames)


def shot(film: Film) -> Shot:
    train, shown, near = film.train, film.shown, np.array(film.neighbours, int)
    alike = likeness(shown.images[:], train.images[:], [*torch.from_numpy(near)])
    names, train_names = (np.array(part.classes)[part.labels] for part in (shown, train))
    faces, bank = (thumbnails(part.images[:], SIDE) for part in (shown, train))
    places = np.array(film.positions, float)
    return Shot(places, near, film.accuracy, alike, faces, names, bank, train_names)

"""Six photographs on the wires of a soft sorting network: drag their distances, see who ends where (GroCo,
figure 3, eq. 4)."""

import numpy as np
from matplotlib.patches import Rectangle

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, ORANGE
from setclr_course.panels.sorting.swap_matrices import PITCH, brief, layers_of
from setclr_course.panels.sorting.wires import DIGITS, draw_wires
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle, Link, box, dot
from setclr_course.pixels.outlines import ink, written
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import SHADES, Part, bare
from setclr_course.pixels.riders import riders

N = len(NAMES)
START = (6.0, 1.0, 4.0, 2.0, 7.0, 3.0)  # distances from an anchor, on a scale from 0 to 9
MOST = 9.0
LONG, ZERO = 0.38, -4.6  # a unit of distance on the picture, and where distance 0 is
TABLE = PITCH * N + 1.7  # where the table's first column is


def photo_wires(**initial) -> Panel:
    """Drag the photographs along their bars; play the layers."""
    controls = {
        "layer": slider("after layer", N, 0, N, 1, {0: "the list", N: "all layers"}),
        "beta": log_slider("steepness β", 8, 0.08, 800, 0.1, {0.1: "coins", 8: "8", 600: "hard"}),
    }
    for name, at in zip(NAMES, START):
        controls[name] = slider(f"{name}, distance", at, 0.0, MOST, 0.25)
    return Panel(build, controls, (9, 4), initial, 2.2, play="layer")


def build(figure, compact: bool) -> Drawing:
    axis = figure.subplots()
    if compact:
        bare(axis, (-0.6, PITCH * N + 0.6), (N - 0.3, -0.7))
    else:
        bare(axis, (ZERO - 0.6, TABLE + N - 0.3), (N + 0.2, -2.1))
    wires = draw_wires(axis, N, compact)
    parts = [] if compact else [draw_list(axis), draw_table(axis)]
    black, white = ink(axis, "black"), ink(axis, "white")
    now: dict = {}

    def update(values: dict) -> str:
        x = tuple(values[name] for name in NAMES)
        layers, step = layers_of(x, values["beta"], "odd-even"), values["layer"]
        held = [np.array(x), *(layer.values for layer in layers[:step])]
        product = layers[step - 1].product if step else np.eye(N)
        now.update(x=x, held=held, product=product, layers=layers)
        labels = wires.move(layers, step, held)
        for part in parts:
            labels += part.move(x, product)
        for pen, dark in ((black, False), (white, True)):
            ours = [(text, at) for text, at, on_dark in labels if on_dark == dark]
            texts, places = [text for text, _ in ours], [at for _, at in ours]
            pen.set_path(written(texts, places, DIGITS[compact], down=True))
        return sentence(values, product, held[-1])

    def handle(i: int, name: str) -> Handle:
        def at(values: dict) -> tuple[float, float]:
            return ZERO + LONG * values[name], i

        return Handle(axis, (name,), at, along="x", to=lambda x, _: [(x - ZERO) / LONG])

    handles = {} if compact else {name: handle(i, name) for i, name in enumerate(NAMES)}
    artists = [artist for part in (wires, *parts) for artist in part.artists]
    return Drawing([*artists, black, white], update, handles, lambda: links(axis, now))


def sentence(values: dict, product: np.ndarray, held: np.ndarray) -> str:
    p, true = product[:, 0], 1 + sum(values[name] < values["cat"] for name in NAMES[1:])
    return (
        f"After layer {values['layer']} of {N} at β = {values['beta']:.3g} the places hold "
        f"{', '.join(f'{x:.3g}' for x in held)}. The cat, at distance {values['cat']:g}, belongs to place "
        f"{true} and is there with probability {p[true - 1]:.2f}; it is most likely at place "
        f"{p.argmax() + 1}, with {p.max():.2f}."
    )


def links(axis, now: dict) -> list[Link]:
    """A cell of the table with the photograph and the place; a bead with what it holds."""
    found = []
    for (place, i), p in np.ndenumerate(now["product"]):
        cell = box(axis, (TABLE + i - 0.5, place - 0.5), (TABLE + i + 0.5, place + 0.5))
        seen = [dot(axis, (ZERO + LONG * now["x"][i], i)), dot(axis, (PITCH * (len(now["held"]) - 1), place))]
        found.append(Link([cell], seen, f"{NAMES[i]} at place {place + 1}: {p:.3f}"))
    for l, values in enumerate(now["held"]):
        here = now["layers"][l - 1].product[:, 0] if l else np.eye(N)[0]
        for place, value in enumerate(values):
            text = f"place {place + 1} after layer {l}: {value:.2f}, the cat with {here[place]:.2f}"
            found.append(Link([dot(axis, (PITCH * l, place))], text=text))
    return found


def draw_list(axis) -> Part:
    """A bar for each distance with the photograph at its end; moved by the distances (6,)."""
    axis.text(ZERO, -1.0, "distance: smaller is closer", fontsize=9)
    axis.text(0, -1.6, "places, the closest belongs on top", fontsize=11)
    bars = [axis.add_patch(Rectangle((ZERO, i - 0.08), 0, 0.16, color=GREY)) for i in range(N)]
    faces = riders(axis, two_views()[0], 0.86, -0.43)

    def move(x: tuple[float, ...], _: np.ndarray) -> list:
        for bar, value in zip(bars, x):
            bar.set_width(LONG * value)
        faces.move(np.column_stack([ZERO + LONG * np.array(x), np.arange(N)]))
        return []

    return Part([*bars, *faces.artists], move)


def draw_table(axis) -> Part:
    """Who is where: a column for each photograph, a row for each place; moved by the product (6, 6)."""
    edges = np.arange(N + 1) - 0.5
    mesh = axis.pcolormesh(TABLE + edges, edges, np.zeros((N, N)), cmap=SHADES, vmin=0, vmax=1)
    heads = riders(axis, two_views()[0], 0.86, -0.43)
    heads.move(np.column_stack([TABLE + np.arange(N), np.full(N, -1.05)]))
    axis.text(TABLE - 0.5, -1.75, "who is at which place", fontsize=11)
    axis.text(TABLE - 0.5, N - 0.1, "framed: the cat, as on the wires", fontsize=9)
    cat = axis.add_patch(Rectangle((TABLE - 0.5, -0.5), 1, N, fill=False, edgecolor=ORANGE, linewidth=2.4))

    def move(_: tuple[float, ...], product: np.ndarray) -> list:
        mesh.set_array(product)
        return [(brief(p), (TABLE + i, place), p < 0.5) for (place, i), p in np.ndenumerate(product)]

    return Part([mesh, cat], move)

"""Where the points of the playground are: at their start, and written as text, which a link can keep.

Text is `v1`, or of points that have been moved `v1:set:pinned and begun:loss 1:loss 2:steps:curve 1:curve 2`.
Places are hundredths of a degree, of which a circle has one a point and a sphere two, longitude and latitude.
"""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

VERSION = "v1"
OF_SET = ("set", "things", "views", "scatter", "surface", "same", "draw")  # of the controls
WHOLE = 36000  # hundredths of a degree


class Points(NamedTuple):
    begun: np.ndarray  # (M, 1 or 2): where training began
    now: tuple[np.ndarray, np.ndarray]  # where two losses have brought them
    pinned: np.ndarray  # (M,) bool
    steps: int
    every: int  # of so many steps a curve has one
    curves: tuple[list[int], list[int]]  # thousandths of the losses


def key_of(values: Mapping[str, Any]) -> str:
    """The set that the points are of, from the controls."""
    return "~".join(str(values[name]).replace(" ", "") for name in OF_SET)


def hundredths(degrees: np.ndarray) -> np.ndarray:
    return np.floor(100 * degrees + 0.5).astype(int)


def draws(seed: int, count: int) -> np.ndarray:
    """Numbers from 0 to 1, the same in every language."""
    states = accumulate(range(count + 5), lambda state, _: state * 48271 % 2147483647, initial=1 + seed)
    return np.array([*states][6:]) / 2147483647


def started(values: Mapping[str, Any]) -> np.ndarray:
    """(M, 1 or 2): things anywhere, and each of their views as far from them as it scatters."""
    n, views, far = values["things"], values["views"], values["scatter"]
    flat = values["surface"] == "circle"
    drawn = draws(values["draw"], 2 * n * (views + 1)).reshape(views + 1, n, 2)
    middle = np.stack([360 * drawn[0, :, 0], np.degrees(np.arcsin(2 * drawn[0, :, 1] - 1))], 1)
    if values["same"] == "yes":
        middle[-1] = middle[0]
    places = (middle + far * (2 * drawn[1:] - 1)).reshape(n * views, 2)
    places[:, 1] = places[:, 1].clip(-85, 85)
    whole = hundredths(places[:, :1] if flat else places)
    whole[:, 0] %= WHOLE
    return whole


def fresh(begun: np.ndarray) -> Points:
    return Points(begun, (begun, begun), np.zeros(len(begun), bool), 0, 1, ([], []))


def read(text: str, values: Mapping[str, Any]) -> Points:
    """The points that a text keeps; those of the start where it keeps those of another set."""
    _, *parts = text.split(":")
    if not parts or parts[0] != key_of(values):
        return fresh(started(values))
    begun = places_of(parts[1].replace("p", ""))
    one, two = (places_of(part) if part else begun for part in parts[2:4])
    steps, every = map(int, parts[4].split("~"))
    first, second = ([int(x) for x in part.split(".") if x] for part in parts[5:])
    pinned = np.char.endswith(parts[1].split("."), "p")
    return Points(begun, (one, two), pinned, steps, every, (first, second))


def places_of(part: str) -> np.ndarray:
    return np.array([[int(x) for x in one.split("~")] for one in part.split(".")])


def written(points: Points, values: Mapping[str, Any]) -> str:
    told = [["~".join(map(str, place)) for place in x.tolist()] for x in (points.begun, *points.now)]
    pins = ".".join(place + "p" * bool(pin) for place, pin in zip(told[0], points.pinned))
    curves = (".".join(map(str, curve)) for curve in points.curves)
    places = ("" if one == told[0] else ".".join(one) for one in told[1:])
    return ":".join([VERSION, key_of(values), pins, *places, f"{points.steps}~{points.every}", *curves])


def vectors(places: np.ndarray) -> np.ndarray:
    """Unit vectors (M, 2 or 3) at these places."""
    lon, *lat = np.radians(places.T / 100)
    if not lat:
        return np.stack([np.cos(lon), np.sin(lon)], 1)
    return np.stack([np.cos(lon) * np.cos(lat[0]), np.sin(lat[0]), np.sin(lon) * np.cos(lat[0])], 1)


def place_of(x: np.ndarray) -> list[int]:
    """The place of a unit vector (2 or 3,)."""
    if len(x) == 2:
        return [int(hundredths(np.degrees(np.arctan2(x[1], x[0])))) % WHOLE]
    lon, lat = np.arctan2(x[2], x[0]), np.arcsin(np.clip(x[1], -1, 1))
    return [int(hundredths(np.degrees(lon))) % WHOLE, int(hundredths(np.degrees(lat)))]


PLACE, CURVE = r"-?\d+(~-?\d+)?", r"(:(-?\d+(\.-?\d+)*)?)"
PLACES = rf":{PLACE}p?(\.{PLACE}p?)*(:({PLACE}(\.{PLACE})*)?){{2}}"
READABLE = re.compile(rf"{VERSION}(:[\w~]+{PLACES}:\d+~[1-9]\d*{CURVE}{{2}})?")

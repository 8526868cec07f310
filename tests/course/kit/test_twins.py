"""Panels that are written a second time in JavaScript: their scenes are Python's, at 2,000 random states."""

import json
import random
import re
from pathlib import Path

import pytest
from in_browser import chromium

from setclr_course import panels
from setclr_course.kit.atlas import twin_of
from setclr_course.kit.cast import kept
from setclr_course.kit.front import FOLDER
from setclr_course.kit.scene import Page

pytestmark = pytest.mark.browser
TWINS = sorted({path.stem for path in Path(panels.__file__).parent.glob("*/*.js")} & set(dir(panels)))
STATES = 2000
# As text, which leaves the browser sooner than objects. In JSON a number that is not finite would be null.
SEEN = """([all, cast]) => {
  const faces = JSON.parse(cast), seen = JSON.parse(all).map((values) => window.twin.seen(values, faces));
  const told = (_, value) => (typeof value == "number" && !isFinite(value) ? `${value}` : value);
  return JSON.stringify(seen, told);
}"""


@pytest.fixture(scope="module")
def page():
    with chromium() as browser:
        yield browser.new_page()


def joined(path: Path) -> str:
    """The twin with what it imports, as one module."""
    files = [FOLDER / "scene.js", FOLDER / "inner.js"]

    def add(file: Path) -> None:
        for name in re.findall(r'(?m)^import .* from "./(\w+\.js)"', file.read_text()):
            add(FOLDER / name if (FOLDER / name).exists() else file.with_name(name))
        if file not in files:
            files.append(file)

    add(path)
    return "\n".join(re.sub(r"(?m)^import .*\n", "", file.read_text()) for file in files)


def differences(one, other, place="") -> list[str]:
    """Where two scenes differ: numbers by more than 1e-6, anything else at all."""
    if isinstance(one, int | float) and isinstance(other, int | float) and not isinstance(one, bool):
        near = abs(one - other) <= 1e-6 * max(1, abs(one)) + 1e-5 * abs(one)
        return [] if near else [f"{place}: {one} {other}"]
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [said for key in one for said in differences(one[key], other[key], f"{place}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [s for i, (a, b) in enumerate(zip(one, other)) for s in differences(a, b, f"{place}[{i}]")]
    return [] if one == other else [f"{place}: {one!r} {other!r}"]


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_shows_what_the_panel_shows(page, name):
    panel, by = getattr(panels, name)(), random.Random(0)
    empty = Page([])
    cast = [[empty.picture(face) for face in row] for row in kept()]
    page.evaluate(
        """async (code) => {
          window.twin = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
        }""",
        joined(twin_of(type(panel))),
    )
    for _ in range(STATES // 100):
        states = [
            {name: knob.stop(by.randrange(knob.stops)) for name, knob in panel.knobs.items()}
            for _ in range(100)
        ]
        found = page.evaluate(SEEN, [json.dumps(states), json.dumps(cast)])
        for values, twin in zip(states, json.loads(found)):
            mine = panel.seen(values)
            assert twin["sentence"] == mine.sentence, values
            assert not (bad := differences(mine.scene, twin["scene"])), (values, bad[:5])

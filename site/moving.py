"""The README's moving picture, from the first panel of the course: `python site/moving.py` writes it."""

import io
from pathlib import Path

from PIL import Image

from setclr_course import panels
from setclr_course.kit.panel import Panel

TARGET = Path(__file__).resolve().parent.parent / "notebooks" / "pictures" / "one_idea.webp"
STEP, REST = 120, 2000  # milliseconds that a picture stays, and the first and the last one
QUALITY = 60


def frames(panel: Panel, name: str) -> list[Image.Image]:
    """The panel's picture at every stop of that slider."""
    knob, shown = panel.knobs[name], []
    for number in range(knob.stops):
        panel.controls[name].value = knob.stop(number)
        shown.append(Image.open(io.BytesIO(panel.still.png)).convert("RGB"))
    return shown


def main() -> None:
    first, *others = frames(panels.one_idea(), "step")
    stay = [REST, *[STEP] * (len(others) - 1), REST]
    first.save(TARGET, append_images=others, duration=stay, loop=0, quality=QUALITY, method=6)
    print(f"{TARGET.name}: {1 + len(others)} pictures, {TARGET.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()

"""What the objects of a notebook look like on the site: in a kernel that the builder runs, IPython asks here.

A panel leaves its atlas in the site's folder and an element that panels.js brings to life; a question and an
exercise become what questions.js listens to; a picture becomes a file. Scenes are JSON, packed by gzip to a
tenth; no file is named .gz, which some servers would have a browser unpack by itself.
"""

import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from IPython import get_ipython
from PIL import Image

from setclr_course.kit.front import png
from setclr_course.kit.panel import Panel
from setclr_course.kit.still import Picture
from setclr_course.teach.answers import Checked
from setclr_course.teach.asked import exercise
from setclr_course.teach.predictions import Prediction

PICTURES = "pictures"


def pack(scenes: Mapping[str, Any], file: Path) -> None:
    text = json.dumps(scenes, ensure_ascii=False, separators=(",", ":"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def unpacked(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode()


class Shown:
    """The objects of the page `name` as HTML. Its atlases go to a folder of that name in `atlas`, the
    pictures to one that all pages share; `address` leads from the page to `atlas`."""

    def __init__(self, atlas: Path, name: str, address: str) -> None:
        self.atlas, self.name, self.address = atlas, name, address
        self.panels: dict[tuple, str] = {}  # what is shown twice is made once

    def panel(self, panel: Panel) -> str:
        key = (panel, *panel.values.items())
        if key not in self.panels:
            name = f"{self.name}/{len(self.panels) + 1}"
            made = panel.atlas()
            pack(made.told, self.atlas / name / "atlas.packed")
            self.save(made.pictures)
            size = 'width="{}" height="{}"'.format(*panel.to_json()["size"])
            still = self.kept(panel.still.png)
            self.panels[key] = (
                f'<div class="setclr-panel" data-atlas="{self.address}/{name}/" '
                f'data-pictures="{self.address}/{PICTURES}/">'
                f'<img src="{self.address}/{PICTURES}/{still}" alt="" {size} loading="lazy">'
                f'<p class="setclr-sentence">{html.escape(panel.alt)}</p></div>'
            )
        return self.panels[key]

    def kept(self, still: bytes, name: str = "") -> str:
        """The name of this PNG among the pictures; one after what is in it, where none is given."""
        name = f"{name or hashlib.sha256(still).hexdigest()[:16]}.png"
        (self.atlas / PICTURES).mkdir(parents=True, exist_ok=True)
        (self.atlas / PICTURES / name).write_bytes(still)
        return name

    def save(self, pictures: Mapping[str, np.ndarray]) -> None:
        """Those that the marks of a scene name."""
        for name, pixels in pictures.items():
            self.kept(png(Image.fromarray(pixels), compress_level=4), name)

    def picture(self, picture: Picture) -> str:
        """A PNG, which panels.js paints anew in the colours of the page."""
        name, address = self.kept(picture.png), f"{self.address}/{PICTURES}"
        self.save(picture.pictures)
        pack(picture.to_json(), (self.atlas / PICTURES / name).with_suffix(".packed"))
        size = 'width="{}" height="{}"'.format(*picture.extent)
        said = "".join(f"<p>{html.escape(column.sentence)}</p>" for column in picture.columns)
        return (
            f'<figure class="setclr-still" data-scenes="{address}/{Path(name).stem}.packed" '
            f'data-pictures="{address}/"><div><img src="{address}/{name}" alt="" {size} loading="lazy"></div>'
            f'<figcaption style="max-width:{picture.extent[0]}px">{said}</figcaption></figure>'
        )

    def prediction(self, prediction: Prediction) -> str:
        asked, picture, beside = prediction.asked, prediction.picture, prediction.beside
        choices = "".join(
            '<button type="button" aria-pressed="false" class="setclr-choice" '
            f'data-said="{html.escape(why)}" data-sign="{prediction.sign(text)}">{html.escape(text)}</button>'
            for text, why in asked.choices.items()
        )
        first, opened = "", ""
        if beside is not None:
            shown = self.picture(beside.still if isinstance(beside, Panel) else beside)
            stands = "first" if picture is beside else "beside"
            first = f'<section class="setclr-{stands}">{shown}</section>'
        if picture is not None:
            inside = self.panel(picture) if isinstance(picture, Panel) else self.picture(picture)
            does = "comes alive" if picture is beside else "opens"
            opened = f"<details><summary>The picture {does} with your answer</summary>{inside}</details>"
        return (
            f'<div class="setclr-prediction" data-name="{prediction.name}">'
            f"<p><b>{html.escape(asked.text)}</b></p>{first}"
            f'<div role="group" aria-label="choices">{choices}</div>'
            f'<p class="setclr-said" aria-live="polite"></p>{opened}</div>'
        )

    def checked(self, checked: Checked) -> str:
        asked = exercise(checked.name)
        if asked.inputs is not None:  # a function
            said = f"{checked.name} wants {asked.wants}. It is checked in JupyterLab, by running this cell."
            return f'<p class="setclr-note">{html.escape(said)}</p>'
        told = {"right": asked.right, "tolerance": asked.tolerance, "hint": asked.hint, "wants": asked.wants,
                "why": asked.why, "mistakes": [asdict(mistake) for mistake in asked.mistakes]}  # fmt: skip
        label = html.escape(f"Your answer, {asked.wants}:")
        return (
            f'<form class="setclr-exercise" data-name="{checked.name}" '
            f'data-asked="{html.escape(json.dumps(told))}">'
            f'<label>{label} <input autocomplete="off"></label> <button class="setclr-choice">check</button>'
            '<p class="setclr-said" aria-live="polite"></p></form>'
        )


def into(atlas: str, name: str, address: str) -> None:
    """From now on, what this kernel displays is made for the site."""
    shown = Shown(Path(atlas), name, address)
    formatter = get_ipython().display_formatter.mimebundle_formatter
    ways: dict[type, Any] = {
        Panel: shown.panel,
        Picture: shown.picture,
        Prediction: shown.prediction,
        Checked: shown.checked,
    }
    for kind, way in ways.items():
        formatter.for_type(kind, lambda one, way=way: {"text/html": way(one)})

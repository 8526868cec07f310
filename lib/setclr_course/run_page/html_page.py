"""The page of a run as HTML: what was trained, its measurements, and pictures.

It has no links to other files and no paths of this machine, so that it can be sent to others. Its text is in
`page.html`. Its one script, `page.js` and the kit's, paints the pictures, and reads them from data in which
no name can end the script; where it does not run, the page shows them as PNG.
"""

import base64
import re
import shlex
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import setclr
from setclr.data import ImageSet
from setclr.experiments.run import Run
from setclr.recipes.recipe import completed
from setclr_course.kit import front
from setclr_course.kit.still import Picture
from setclr_course.run_page import pictures
from setclr_course.run_page.measured import COLUMNS, DRAWN, MATCHED, PAGE, K, Measured

FOLDER = Path(__file__).parent
HEADINGS = dict(zip(COLUMNS, (("kNN", "k = 1"), ("kNN", f"k = {K}"), ("kNN", "k = 20"), ("linear", "probe"),
                              ("retrieval", "@1"), ("matching", "of views"))))  # fmt: skip
# Fields of the recipe with a line of their own.
SAID = {"kind", "loss", "data", "encoder", "epochs", "batch", "seed"}


def page(
    name: str, run: Run, train: ImageSet, test: ImageSet, measured: Measured, source: str, command: str,
    machine: dict,
) -> str:  # fmt: skip
    """The page of a run as HTML, with `name` as its title.

    `measured` is the result of `evaluate_all` on `train` and `test`. Source, command and machine are
    those that `record` takes.
    """
    templates = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined)
    templates.trim_blocks = templates.lstrip_blocks = True
    templates.filters |= {"thousands": "{:,}".format, "decimal": "{:.1f}".format}
    templates.filters["base64"] = lambda png: base64.b64encode(png).decode()
    recipe = {name: nowhere(x) if isinstance(x, str) else x for name, x in run.recipe.to_dict().items()}
    source, command = nowhere(source), shlex.join(map(nowhere, shlex.split(command)))
    shares = pictures.confusion_shares(test.labels, measured.predicted, len(test.classes))
    drawn = drawn_pictures(run, train, test, measured, shares)
    faces = {name: pixels for one in drawn.values() for name, pixels in one.pictures.items()}
    scenes = {
        "told": {name: one.to_json() for name, one in drawn.items()},
        "pictures": {name: front.address(pixels) for name, pixels in faces.items()},
    }
    return templates.get_template("page.html").render(
        name=name, run=run, recipe=recipe, train=train, test=test, measured=measured,
        table=measured.table, source=source, command=command, machine=machine, version=setclr.__version__,
        headings=HEADINGS, K=K, T=PAGE.temperature, neighbours=PAGE.ks, drawn=DRAWN,
        matched=min(MATCHED, len(test)),
        chance=100 * float(test.labels.bincount().max()) / len(test), changed=changed_fields(recipe),
        weights=sum(parameter.numel() for parameter in run.encoder.parameters()),
        mistakes=pictures.mistakes(shares, test.classes),
        perplexity=f"{pictures.perplexity(len(measured.drawn)):.3g}",
        pictures=drawn, scenes=scenes, css=front.Front._css, script=front.joined(FOLDER / "page.js"),
    )  # fmt: skip


def drawn_pictures(
    run: Run, train: ImageSet, test: ImageSet, measured: Measured, shares: np.ndarray
) -> dict[str, Picture]:
    """The pictures of the page by their names in the template; without those of which there is nothing."""
    classes, labels, near = test.classes, test.labels, measured.nearest
    images = train.images[near.flatten()].unflatten(0, near.shape)
    shown = (test.images[measured.shown], labels[measured.shown], images, train.labels[near])
    drawn = {
        "loss": pictures.loss_curve(run.history) if run.rows else None,
        "confusion": pictures.confusion(shares, classes),
        "plane": pictures.plane(measured.points, labels[measured.drawn], classes),
        "nearest": pictures.nearest(*shown, classes),
    }
    return {name: picture for name, picture in drawn.items() if picture}


def changed_fields(recipe: dict) -> list[str]:
    """The recipe's fields that differ from the defaults, without those in SAID."""
    defaults = completed({})
    return [f"{name}={x!r}" for name, x in recipe.items() if name not in SAID and x != defaults[name]]


def nowhere(text: str) -> str:
    """The text, with what may be a path of this machine shortened to its last name.

    A path begins with /, ~, ./ or ../ where no name stands before it. It may hold spaces: it goes on to the
    last / before the next one. Relative paths such as data/x, and </i>, stay.
    """
    begins = r"(?<![\w./~<])(?:[/~](?!\s)|\.\.?/)|(?<=<)[/~](?=[^<>]*/)"
    first, *paths = re.split(f"(?={begins})", text)
    return first + "".join(Path(path).name for path in paths)

"""The page of a run as HTML: what was trained, its measurements, and pictures.

It has no links to other files and no paths of this machine, so that it can be sent to others. Its text is in
`page.html` for labelled images, in `seen.html` for all else. Its one script, `page.js` and the kit's, paints
the pictures, and reads them from data in which no name can end the script; where it does not run, the page
shows them as PNG.
"""

import base64
import re
import shlex
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import setclr
from setclr.data import ImageSet
from setclr.experiments.run import Run
from setclr.recipes.recipe import completed
from setclr_course.kit import front
from setclr_course.kit.still import Picture
from setclr_course.run_page import pictures
from setclr_course.run_page.measured import DRAWN, HEADINGS, MATCHED, PAGE, K, Measured
from setclr_course.run_page.seen import COLUMNS, ON_MAP, SIDE, Seen
from setclr_course.run_page.things import first_labels, pictures_of

FOLDER = Path(__file__).parent
# Fields of the recipe with a line of their own.
SAID = {"kind", "loss", "data", "encoder", "epochs", "batch", "seed"}


def page(
    name: str, run: Run, train: Any, test: Any, measured: Measured | Seen, source: str, command: str,
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
    drawn: dict[str, Picture | None] = {"loss": pictures.loss_curve(run.history)} if run.rows else {}
    drawn |= {"spread": pictures.spreads(run.history)} if "rank" in run.history else {}
    if isinstance(measured, Seen):
        template, told = "seen.html", of_seen(train, test, measured, drawn)
    else:
        template, told = "page.html", of_labelled(train, test, measured, drawn)
    shown = {name: picture for name, picture in drawn.items() if picture}
    faces = {name: pixels for one in shown.values() for name, pixels in one.pictures.items()}
    scenes = {
        "told": {name: one.to_json() for name, one in shown.items()},
        "pictures": {name: front.address(pixels) for name, pixels in faces.items()},
    }
    return templates.get_template(template).render(
        name=name, run=run, recipe=recipe, train=train, test=test, measured=measured, table=measured.table,
        kind=run.recipe.kind, things=run.recipe.things, source=source, command=command, machine=machine,
        version=setclr.__version__, changed=changed_fields(recipe),
        weights=sum(parameter.numel() for parameter in run.encoder.parameters()),
        perplexity=f"{pictures.perplexity(len(measured.drawn)):.3g}",
        pictures=shown, scenes=scenes, css=front.Front._css, script=front.joined(FOLDER / "page.js"), **told,
    )  # fmt: skip


def of_labelled(train: ImageSet, test: ImageSet, measured: Measured, drawn: dict) -> dict[str, Any]:
    """What `page.html` says of labelled images; their pictures come to those `drawn`."""
    classes, labels, near = test.classes, test.labels, measured.nearest
    shares = pictures.confusion_shares(labels, measured.predicted, len(classes))
    images = train.images[near.flatten()].unflatten(0, near.shape)
    shown = (test.images[measured.shown], labels[measured.shown], images, train.labels[near])
    drawn |= {
        "confusion": pictures.confusion(shares, classes),
        "plane": pictures.plane(measured.points, labels[measured.drawn], classes),
        "nearest": pictures.nearest(*shown, classes),
    }
    return dict(
        headings=HEADINGS, K=K, T=PAGE.temperature, neighbours=PAGE.ks, drawn=DRAWN,
        matched=min(MATCHED, len(test)), chance=100 * float(labels.bincount().max()) / len(test),
        mistakes=pictures.mistakes(shares, classes),
    )  # fmt: skip


def of_seen(train: Any, test: Any, measured: Seen, drawn: dict) -> dict[str, Any]:
    """What `seen.html` says of all else; its pictures come to those `drawn`."""
    near, bare = measured.nearest, not (train.classes or test.classes)
    beside = pictures_of(train, near.flatten(), SIDE).reshape(*near.shape, SIDE, SIDE, 3)
    labels = first_labels(test)[measured.drawn]
    drawn |= {
        "views": pictures.seen_views(measured.views),
        "plane": pictures.photo_map(
            measured.points, labels, pictures_of(test, measured.drawn[:ON_MAP], SIDE)
        ),
        "nearest": pictures.alike(pictures_of(test, measured.shown, SIDE), beside, measured.similar.numpy()),
    }
    return dict(bare=bare, same=train is test, free=COLUMNS, measured_on=measured.compared)


def changed_fields(recipe: dict) -> list[str]:
    """The recipe's fields that differ from the defaults, without those in SAID."""
    defaults = completed({"kind": recipe["kind"]})
    return [f"{name}={x!r}" for name, x in recipe.items() if name not in SAID and x != defaults[name]]


def nowhere(text: str) -> str:
    """The text, with what may be a path of this machine shortened to its last name.

    A path begins with /, ~, ./ or ../ where no name stands before it. It may hold spaces: it goes on to the
    last / before the next one. Relative paths such as data/x, and </i>, stay.
    """
    begins = r"(?<![\w./~<])(?:[/~](?!\s)|\.\.?/)|(?<=<)[/~](?=[^<>]*/)"
    first, *paths = re.split(f"(?={begins})", text)
    return first + "".join(Path(path).name for path in paths)

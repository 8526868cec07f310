"""One run on one page: what was trained, what it is worth, and pictures; HTML without scripts or links to
other files, so that it can be sent."""

import base64
from collections.abc import Iterable
from dataclasses import fields
from html import escape
from importlib.util import find_spec

import pandas as pd

import setclr
from setclr.data import ImageSet
from setclr.reports import pictures
from setclr.reports.pictures import Picture
from setclr.reports.tables import DRAWN, MATCHED, NEIGHBOURS, TEMPERATURE, K, Measured
from setclr.training.checkpoint import Run

HEADINGS = {
    "knn k=1": "kNN<br>k = 1",
    "knn": f"kNN<br>k = {K}",
    "knn k=20": "kNN<br>k = 20",
    "linear": "linear<br>probe",
    "retrieval@1": "retrieval<br>@1",
    "matching": "matching<br>of views",
}
ROWS = {"projection": "trained, projection space"}

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 56rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; margin-bottom: 0; }}
h2 {{ font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid #ccc; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .8rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }}
.numbers th + th, .numbers td {{ text-align: right; }}
.numbers tr.best th, .numbers tr.best td {{ font-weight: bold; background: #eef4f9; }}
.numbers th {{ font-weight: normal; }}
code {{ font-size: .9em; overflow-wrap: anywhere; }}
img {{ max-width: 100%; height: auto; }}
ul.note {{ padding-left: 1.2rem; }}
figure {{ margin: 0; }}
figure.wide {{ position: relative; left: 50%; width: min(96vw, 80rem); transform: translateX(-50%); }}
figure.wide figcaption {{ max-width: 56rem; margin: auto; }}
.note, figcaption, footer {{ font-size: .875rem; color: #444; }}
footer {{ margin-top: 3rem; border-top: 1px solid #ccc; }}
@media print {{ h2 {{ break-after: avoid; }} figure {{ break-inside: avoid; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(
    name: str, run: Run, train: ImageSet, test: ImageSet, measured: Measured, source: str, command: str,
    machine: dict,
) -> str:  # fmt: skip
    """The page of a run as HTML.

    Args:
        name: what the page is called.
        train, test, measured: what `evaluate_all` measured, and on what.
        source, command, machine: as `record` takes them.

    Raises:
        ValueError: matplotlib is not installed.
    """
    require_matplotlib()
    classes, labels = test.classes, test.labels
    near = train.images[measured.nearest.flatten()].unflatten(0, measured.nearest.shape)
    drawn, shares = labels[measured.drawn], pictures.shares(labels, measured.predicted, len(classes))
    shown = (test.images[measured.shown], labels[measured.shown], near, train.labels[measured.nearest])
    body = [
        f"<h1>{escape(name)}</h1>",
        f"<p>{headline(measured.table, test)}</p>",
        "<h2>What was trained</h2>",
        description(run, train, test, source, machine),
        "<h2>What its features are worth</h2>",
        numbers(measured.table),
        notes(measured.table, run, train, test),
        "<h2>Training</h2>",
        figure(pictures.loss_curve(run.history), f"Loss: {run.recipe.loss}.")
        if run.rows
        else "<p>No epoch was finished: there is no loss to show.</p>",
        "<h2>What is taken for what</h2>",
        figure(pictures.confusion(shares, classes),
               f"Test images by their true class (rows, per cent of each) and by the kNN vote (k = {K}, "
               f"T = {TEMPERATURE}) of the trained features. {pictures.mistakes(shares, classes)}"),
        "<h2>Test images in the plane</h2>",
        figure(pictures.plane(measured.points, drawn, classes),
               f"t-SNE of the trained features, of length 1, of {len(drawn):,} test images (at most "
               f"{DRAWN:,}, drawn at random): perplexity {pictures.perplexity(len(drawn)):.3g}, seed 0. "
               "Near is near; areas and gaps mean little."),
        "<h2>Nearest neighbours</h2>",
        figure(pictures.nearest(*shown, classes),
               "Left, test images, drawn evenly over the classes with a fixed seed. Beside each the training "
               "images nearest to it by cosine similarity of the trained features, the nearest first. Solid "
               "frame and ✓: its class; dashed frame and ✗: another, which is named."),
        f"<footer><p>Made by <code>{escape(command)}</code>, setclr {setclr.__version__}.</p></footer>",
    ]  # fmt: skip
    return PAGE.format(title=escape(name), body="\n".join(body))


def require_matplotlib() -> None:
    """Raises ValueError where it is not installed: before hours of measuring rather than after them."""
    if find_spec("matplotlib") is None:
        raise ValueError("a page has pictures, and matplotlib is not installed: pip install 'setclr[lab]'")


def headline(table: pd.DataFrame, test: ImageSet) -> str:
    """The one sentence that a reader in a hurry takes along."""
    others = [
        f"{name} {table.knn[name]:.1f} %" for name in ("untrained", "raw pixels") if name in table.index
    ]
    return (
        f"<strong>{table.knn['trained']:.1f} %</strong> of {len(test):,} test images are recognised by their "
        f"{K} nearest neighbours among the training images, with the trained features "
        f"({escape(', '.join(others))}; always the most frequent class: {chance(test):.1f} %)."
    )


def chance(test: ImageSet) -> float:
    return 100 * float(test.labels.bincount().max()) / len(test)


def description(run: Run, train: ImageSet, test: ImageSet, source: str, machine: dict) -> str:
    """The recipe, as far as it is not the defaults, and what it met."""
    recipe, done = run.recipe, len(run.rows)
    seconds = sum(row["seconds"] for row in run.rows)
    weights = sum(parameter.numel() for parameter in run.encoder.parameters())
    shape = " × ".join(map(str, train.images.shape[1:]))
    facts = {
        "loss": f"<code>{escape(recipe.loss)}</code>",
        "data": f"<code>{escape(recipe.data)}</code>: {len(train):,} training and {len(test):,} test images, "
        f"{shape}, {len(train.classes)} classes",
        "pixels": escape(source),
        "encoder": f"<code>{escape(recipe.encoder)}</code>, {weights:,} weights",
        "epochs": f"{done} of {recipe.epochs}" + (f", {seconds:,.0f} s" if done else ""),
        "batch": str(recipe.batch),
        "seed": str(recipe.seed),
        "evaluated on": escape(", ".join([machine["device"], f"torch {machine['torch']}"])),
    }
    said = {"loss", "data", "encoder", "epochs", "batch", "seed"}
    changed = [
        f"{field.name}={getattr(recipe, field.name)!r}"
        for field in fields(recipe)
        if field.name not in said and getattr(recipe, field.name) != field.default
    ]
    facts["other fields"] = f"<code>{escape(', '.join(changed))}</code>; " if changed else ""
    facts["other fields"] += "all others of the recipe are the defaults"
    return table_of(f'<tr><th scope="row">{key}</th><td>{value}</td></tr>' for key, value in facts.items())


def numbers(table: pd.DataFrame) -> str:
    """The measured numbers, the best of each kind of features in bold."""
    head = "".join(f'<th scope="col">{HEADINGS[column]}</th>' for column in table.columns)
    lines = [f'<thead><tr><th scope="col">features, %</th>{head}</tr></thead>']
    for name, row in table.iterrows():
        cells = "".join("<td>–</td>" if pd.isna(value) else f"<td>{value:.1f}</td>" for value in row)
        marked = ' class="best"' if name == "trained" else ""
        lines.append(f'<tr{marked}><th scope="row">{ROWS.get(name, name)}</th>{cells}</tr>')
    return table_of(lines, "numbers")


def notes(table: pd.DataFrame, run: Run, train: ImageSet, test: ImageSet) -> str:
    """How each number was computed."""
    matched = min(MATCHED, len(test))
    said = [
        f"All in per cent of {len(test):,} test images, features of the last epoch, no augmentation. By the "
        f"number of images alone, an accuracy is uncertain by ± {50 / len(test) ** 0.5:.1f} points (one "
        "standard error, at most).",
        f"kNN: each of the k = {', '.join(map(str, NEIGHBOURS))} training images of largest cosine "
        f"similarity s votes with e<sup>s/T</sup>, T = {TEMPERATURE}.",
        "Linear probe: one linear layer on the frozen features, Adam, 100 epochs, batch 128, lr 0.001, "
        "cross-entropy, no weight decay; not computed for raw pixels and projections.",
        "Retrieval@1: of all other test images, the most similar one is of the same class.",
        f"Matching: of {matched:,} test images, two augmented views each "
        f"(<code>{escape(run.recipe.views)}</code>, seed 0), how many the best one-to-one assignment "
        f"by cosine similarity brings together; chance {100 / matched:.1f} %.",
        ("Raw pixels: minus the mean of their channel. " if "raw pixels" in table.index else
         "Raw pixels: not computed, the images do not lie in memory. ")
        + "Untrained: the same encoder with the weights it started from. Projection space: the output of "
        f"the trained head, {run.recipe.embedding} dimensions, in which the loss is computed.",
    ]  # fmt: skip
    return '<ul class="note">' + "".join(f"<li>{line}</li>" for line in said) + "</ul>"


def table_of(lines: Iterable[str], kind: str = "facts") -> str:
    return f'<table class="{kind}">\n' + "\n".join(lines) + "\n</table>"


def figure(picture: Picture | None, caption: str) -> str:
    if picture is None:
        return "<p>Too few test images for this picture.</p>"
    data = base64.b64encode(picture.png).decode()
    return (
        f"<figure{' class=wide' if picture.width > 10 else ''}>"
        f'<img alt="{escape(picture.alt)}" width="{96 * picture.width:.0f}" '
        f'src="data:image/png;base64,{data}">\n<figcaption>{escape(caption)}</figcaption></figure>'
    )

"""The first page: its panel, a picture of each page that it leads to, dots for what a reader has answered."""

import html
import re
from itertools import pairwise
from pathlib import Path

import nbformat
from course import FOLDER

from setclr_course.teach.asked import exercise

DISCOVERY = re.compile(r"\*\*(\d\d) · (.+?)\.\*\* (.+?) → \[.*?\]\((\w+)\.ipynb\)", re.DOTALL)
IMAGE = re.compile(r'<img src="([^"]+)"')
PANEL = re.compile(r'<div class="setclr-panel".*?</div>', re.DOTALL)


def cells(page: Path) -> list[nbformat.NotebookNode]:
    return nbformat.read(page, as_version=4).cells


def outputs(cell: nbformat.NotebookNode) -> list[dict]:
    return [output.data for output in cell.get("outputs", []) if "data" in output]


def dots(page: Path) -> str:
    """A ring for each question and exercise of a page that the site can check; questions.js fills them."""
    source = "\n".join(cell.source for cell in cells(page))
    asked = set(re.findall(r'\bpredict\(\s*"([\d.]+)"', source))
    checked = set(re.findall(r'\bcheck\(\s*"([\d.]+)"', source))
    number = len(asked) + sum(exercise(name).inputs is None for name in checked)
    return f'<span class="setclr-dots" role="img" data-page="{page.name[:2]}">{"○" * number}</span>'


def card(address: str, image: str, name: str, said: str) -> str:
    return (
        f'<a class="setclr-page" href="{address}"><img src="{image}" alt="" loading="lazy">'
        f"<b>{html.escape(name)}</b><br>{said}</a>"
    )


def first_panel(page: Path) -> str:
    """The element of the first panel of a page that was run; of one as it is stored, a still picture."""
    for data in [data for cell in cells(page) for data in outputs(cell)]:
        if found := PANEL.search(data.get("text/html", "")):
            return f'<div class="setclr-front">{found.group()}</div>'
    return "![Six photographs in two views each, before, during and after training](pictures/one_idea.png)"


def discoveries(page: Path) -> str:
    """A card for each discovery of the page: its picture, its name and sentence; it leads to its own page."""
    cards = []
    for text, shown in pairwise(cells(page)):
        if not (found := DISCOVERY.match(text.source)) or not outputs(shown):
            continue
        number, name, said, leads = found.groups()
        data = outputs(shown)[0]
        image = IMAGE.search(data.get("text/html", ""))
        address = image[1] if image else f"data:image/png;base64,{''.join(data['image/png'].split())}"
        about = f"{html.escape(said)} {dots(FOLDER / f'{leads}.ipynb')}"
        cards.append(card(f"{leads}.html", address, f"{number} · {name}", about))
    return "".join(cards)


def with_dots(course: str) -> str:
    """The table of all pages, with their dots."""
    row = re.compile(r"^(\| \[\d\d\]\((\w+)\.ipynb\).*) \|$", re.MULTILINE)
    return row.sub(lambda found: f"{found[1]} {dots(FOLDER / f'{found[2]}.ipynb')} |", course)

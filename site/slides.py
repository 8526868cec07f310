"""Decks of slides, and the lab sheet: `python site/slides.py [PAGE …]` writes build/slides.

A page's deck has its title, what each section begins with, its questions, its pictures, its formulas, its
short pieces of code and what was seen. A picture stands alone on its slide, after the question that opens it.
What the page says beside them is in the speaker's notes (press S). Pages that `make site` has run bring their
panels alive, from the atlas in build/site; of others the stored pictures are shown.

The deck of the lecture is written by hand, deck/lecture.md, and names what it takes from the pages. Beside it
lies the lecture's lab sheet, once for students and once with what a teacher expects.
"""

import html
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from builder import SITE, WORK, from_npm, latest
from course import FOLDER, HERE, ROOT, chosen, notebooks
from lab_sheet import sheets
from nbconvert import SlidesExporter
from nbformat.v4 import new_markdown_cell, new_notebook
from sources import SHOWN, within
from sphinxcontrib.katex import katex_version

from setclr_course.kit.front import FOLDER as KIT

OUT = ROOT / "build" / "slides"
REVEAL = "reveal.js@5.2.1"
LISTED = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>SetCLR, slides</title><link rel="icon" href="beside/favicon.svg">
<link rel="stylesheet" href="beside/site.css">
<body style="margin: 3rem auto; max-width: 40rem"><h1>Slides</h1>
<p><a href="lecture.html">The lecture of 90 minutes</a> (<a href="lecture.html?print-pdf">to print</a>), its
<a href="lab_sheet.html">lab sheet</a> for students, and <a href="lab_sheet_answers.html">with answers</a></p>
<ul>
{}
</ul></body></html>
"""  # the decks of the pages, by their titles
LINES = 16  # of code that a slide holds
LECTURE = HERE / "deck" / "lecture.md"
TAKEN = re.compile(r"\{(question|panel|code) (\d\d)(.*)\}")  # a line of the lecture that shows this of a page
BESIDE = re.compile(r'<section class="setclr-(first|beside)">(.*?)</section>', re.S)


def slide(text: str, kind: str = "slide") -> nbformat.NotebookNode:
    return new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})


def tags_of(cell: nbformat.NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def picture_of(cell: nbformat.NotebookNode) -> str:
    """The panel, question, picture or card that a cell shows, or ""."""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        told = data.get("text/html", "")
        if SHOWN.search(told) or "setclr-card" in told:
            return told
        if "image/png" in data:
            said = data.get("text/plain", "")
            image = f'<img alt="" src="data:image/png;base64,{data["image/png"]}">'
            return f"<figure>{image}<figcaption>{html.escape(said)}</figcaption></figure>"
    return ""


def apart(shown: str) -> list[str]:
    """A question, the picture beside it, and the one that it opens; or what else is shown, alone. A picture
    that comes alive when the question is answered is shown alive."""
    beside = BESIDE.search(shown)
    question = BESIDE.sub("", shown)
    folded = re.search(r"<details>(<summary>.*?</summary>((?:<p>.*?</p>)*))(.*)</details>", question, re.S)
    opened = folded[3].strip() if folded else ""
    if folded and opened:
        question = question.replace(folded[0], f"<details>{folded[1]}</details>" if folded[2] else "")
    still = beside[2] if beside and not (beside[1] == "first" and opened) else ""
    return [question, *(f"<figure>{picture}</figure>" for picture in (still, opened) if picture)]


def shown_code(cell: nbformat.NotebookNode) -> str:
    """A short piece of code with what it printed, or ""."""
    code, printed = cell.source, "".join(output.get("text", "") for output in cell.outputs)
    if {"setup", "parameters"} & tags_of(cell) or "check(" in code:
        return ""
    if len((code + printed).splitlines()) > LINES:
        return ""
    return fenced(code, "python") + (f"\n{fenced(printed)}" if printed else "")


def fenced(text: str, language: str = "") -> str:
    """A block of code, in a fence that nothing in it closes."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return "\n".join([fence + language, text.rstrip("\n"), fence, ""])


def deck(page: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The slides of a notebook."""
    title, *rest = page.cells[0].source.split("\n\n")
    cells = [slide(f"{title}\n\n{rest[0]}"), slide("\n\n".join(rest[1:]), "notes")]
    heading, notes = title.lstrip("# "), ""
    for cell in page.cells[1:]:
        if cell.cell_type != "markdown":
            if shown := picture_of(cell):
                for piece in apart(shown):
                    cells += [slide(f"## {heading}\n\n{piece}"), slide(notes, "notes")]
            elif shown := shown_code(cell):
                cells += [slide(f"## {heading}\n\n{shown}"), slide(notes, "notes")]
            continue
        before, *sections = re.split(r"(?m)^## (.*)$", within(cell.source))
        for title, text in [(heading, before), *zip(sections[::2], sections[1::2])]:
            if title in ("Exercises", "Where to go on"):
                return new_notebook(cells=cells)
            begins, heading, notes = title != heading, title, text
            if not text.strip():  # the exercises begin here
                continue
            first, *more = text.strip().split("\n\n")
            formulas = [formula for part in more for formula in re.findall(r"\$\$.*?\$\$", part, re.S)]
            if title == "What we saw":
                cells.append(slide(f"## {title}\n\n{text}"))
            elif begins or formulas:
                cells += [slide("\n\n".join([f"## {title}", first, *formulas])), slide(text, "notes")]
    return new_notebook(cells=cells)


def taken(page: nbformat.NotebookNode, kind: str, named: str) -> list[str]:
    """What the lecture shows of a page: a question and its pictures, the last of them alone, or the beginning
    of a piece of code. Raises StopIteration where no cell has it."""
    cells = [cell for cell in page.cells if cell.cell_type == "code" and "setup" not in tags_of(cell)]
    cell = next(cell for cell in cells if named in cell.source)
    if kind == "code":
        return [fenced(cell.source.split("\n\n")[0], "python")]
    pieces = apart(picture_of(cell))
    return pieces if kind == "question" else pieces[-1:]


def lecture(text: str, page_of: Callable[[str], nbformat.NotebookNode]) -> nbformat.NotebookNode:
    """The deck of the lecture. In its text # begins a slide, > what the speaker reads; `page_of` gives the
    page that has this number."""
    cells, heading = [], ""
    for block in text.strip().split("\n\n"):
        if named := TAKEN.fullmatch(block):
            kind, number, rest = named.groups()
            pieces = taken(page_of(number), kind, rest.strip() if kind == "code" else number + rest)
            if kind != "code":
                cells += [slide(f"## {heading}\n\n{piece}") for piece in pieces]
                continue
            (block,) = pieces
        if block.startswith("> "):
            cells.append(slide(re.sub("(?m)^> ", "", block), "notes"))
        elif block.startswith("#"):
            heading = block.lstrip("# ")
            cells.append(slide(block))
        else:
            cells[-1].source += f"\n\n{block}"
    return new_notebook(cells=cells)


def beside(target: Path) -> None:
    """What the decks load, in a folder of their own."""
    npm = WORK / "npm"
    katex = from_npm(f"katex@{katex_version}", npm) / "dist"
    reveal = from_npm(REVEAL, npm)
    (target / "reveal").mkdir(parents=True)
    shutil.copy(reveal / "dist" / "reveal.esm.js", target / "reveal" / "reveal.mjs")
    shutil.copy(reveal / "plugin" / "notes" / "notes.esm.js", target / "reveal" / "notes.mjs")
    for name in ("reveal.css", "theme"):
        source, place = reveal / "dist" / name, target / "reveal" / "dist" / name
        place.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place)
    shutil.copytree(katex / "fonts", target / "katex" / "fonts")
    for name in ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js"):
        shutil.copy(katex / name, target / "katex")
    for path in (
        *HERE.glob("deck/*.css"),
        *HERE.glob("static/*"),
        *KIT.glob("*.js"),
        *KIT.glob("*.woff2"),
        *KIT.parent.glob("panels/*/*.js"),
        KIT / "panel.css",
    ):
        shutil.copy(path, target)


def write(pages: list[Path], out: Path, work: Path = WORK) -> None:
    """A deck of each of these pages, and what they load, into `out`; pages that ran in `work` are alive."""
    shutil.rmtree(out, ignore_errors=True)
    beside(out / "beside")
    exporter = SlidesExporter(template_name="deck", extra_template_basedirs=[str(HERE)])
    exporter.reveal_url_prefix, exporter.reveal_theme = "beside/reveal", "white"
    exporter.exclude_anchor_links = True

    def save(name: str, notebook: nbformat.NotebookNode) -> None:
        notebook.metadata["title"] = name
        text, _ = exporter.from_notebook_node(notebook)
        (out / f"{name}.html").write_text(text.replace('="atlas/', '="../site/atlas/'))

    listed, still = [], ': its panels are pictures; make site PAGES="{}" first, and they move'
    for page in pages:
        source = latest(page, work, SITE)
        notebook = deck(nbformat.read(source, as_version=4))
        title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
        listed.append(f'<li><a href="{page.stem}.html">{html.escape(title)}</a></li>')
        save(page.stem, notebook)
        print(f"{out / page.stem}.html{still.format(page.name[:2]) if source == page else ''}")
    text = LECTURE.read_text()
    named = {number for _, number, _ in TAKEN.findall(text)}
    used = {page.name[:2]: latest(page, work, SITE) for page in notebooks() if page.name[:2] in named}
    save("lecture", lecture(text, lambda number: nbformat.read(used[number], as_version=4)))
    lack = [number for number, source in used.items() if source.is_relative_to(FOLDER)]
    print(f"{out / 'lecture.html'}{still.format(' '.join(lack)) if lack else ''}")
    for name, text in sheets().items():
        (out / name).write_text(text)
        print(out / name)
    (out / "index.html").write_text(LISTED.format("\n".join(listed)))


if __name__ == "__main__":
    write(chosen(sys.argv[1:], notebooks()), OUT)
    print("To show them: python -m http.server --directory build 8000, and then in a browser")
    print("http://localhost:8000/slides/")

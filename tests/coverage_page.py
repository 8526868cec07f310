"""Where each figure, table and equation of the four papers is shown: the page notebooks/coverage.md.

python tests/coverage_page.py     write it anew (make coverage)

coverage_items.yml lists what the papers contain. What shows an item says so itself:
- a notebook's cell by a tag, "groco:figure6";
- a module, class or function by its docstring, in parentheses and with the paper's name first, "(GroCo, eq. 2
  to 4; MMCL, figure 3b)". Any other mention is in passing and does not count;
- a recipe by the table of `setclr.recipes.PUBLISHED` that it is a row of.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

import nbformat
import yaml
from notebook_tools import FOLDER, HERE, notebooks

from setclr.recipes import PUBLISHED

PAGE = FOLDER / "coverage.md"
LIBRARY = HERE.parent / "lib" / "setclr"
PAPERS: dict[str, dict] = yaml.safe_load((HERE / "coverage_items.yml").read_text())
NAMES = {paper["name"]: key for key, paper in PAPERS.items()}
KINDS = {
    "figure": "Figures",
    "table": "Tables",
    "eq": "Equations",
    "algorithm": "Algorithms",
    "proposition": "Propositions",
}

TAG = re.compile(rf"(\w+):((?:{'|'.join(KINDS)})\d+[a-z]?)")
NUMBERS = r"(?:\d[\d.]*[a-z]?|[A-E])(?:(?:, | and | to )(?:\d[\d.]*[a-z]?|[A-E]))*"
PART = rf"({'|'.join(KINDS)}|section|supplement|appendix)s?\.? ({NUMBERS})"
REFERENCE = re.compile(rf"{PART}(?:(?:, | and ){PART})*")
NEARLY = re.compile(rf"(({'|'.join(NAMES)})\b.*)?\b(eq\.|{'|'.join(KINDS)})s? \d", re.IGNORECASE)

OPENING = """# What of the four papers is here

Every figure, table, numbered equation, algorithm and proposition of the four papers and their supplements,
and what shows it: a section of a notebook, a recipe, or something in the library. An equation counts where it
is computed or drawn, not where it is only mentioned. A recipe is the setting of a table's row, with the
number that the paper printed; what has been trained here is smaller, and stands in `data/results`. A *slip*
cannot be meant as it is printed: what shows it gives a mathematical reason, or the paper's own numbers do.

`make coverage` writes this page, from the tags of the notebooks' cells, the docstrings and the recipes, and a
test compares it with them. Back to the [map](00_start_here.ipynb).

| paper | shown |
|---|---|"""


class Shown(NamedTuple):
    """One place that shows an item."""

    paper: str  # a key of PAPERS
    item: str  # a key of its items, "eq3"
    words: str  # what the link says
    target: str  # path from the page; a section of a notebook behind #


def listed(paper: str, item: str) -> str:
    """The item as it is listed: "figure1" for 1b where its parts are not listed one by one."""
    for name in (item, item.rstrip("abcdef")):
        if name in PAPERS.get(paper, {}).get("items", ()):
            return name
    raise ValueError(f"coverage_items.yml does not list {paper}:{item}")


def from_tags() -> list[Shown]:
    """The tagged cells, each as the section it stands in."""
    found = []
    for path in notebooks():
        section = ""
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                section = (re.findall(r"^## (.+)$", cell.source, re.MULTILINE) or [section])[-1]
            for tag in cell.metadata.get("tags", []):
                if ":" in tag:
                    spelled = TAG.fullmatch(tag)
                    if not spelled:
                        raise ValueError(f"{path.name}: the tag {tag} is not spelled as groco:eq3 is")
                    target = f"{path.name}#{section.replace(' ', '-')}"
                    words = f"{path.name[:2]} · {section}"
                    found.append(Shown(spelled[1], listed(*spelled.groups()), words, target))
    return found


def from_recipes() -> list[Shown]:
    """The tables that recipes are rows of."""
    found = []
    tables = ((name.split("-")[0], row.table) for name, row in PUBLISHED.items() if row.table != "text")
    rows = Counter((paper, f"table{table}") for paper, table in tables)
    for (paper, table), count in rows.items():
        words = f"{count} recipe{'s' * (count > 1)}: `{paper}-{table}-…`"
        found.append(Shown(paper, listed(paper, table), words, f"../lib/setclr/recipes/published/{paper}.py"))
    return found


def from_docstrings() -> list[Shown]:
    """The modules, classes and functions whose docstrings say so."""
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        if path.parent.name == ".ipynb_checkpoints":  # JupyterLab leaves a copy of what it opens
            continue
        module = ".".join(path.relative_to(LIBRARY).with_suffix("").parts)
        for name, node in _documented(ast.parse(path.read_text()), module):
            try:
                for paper, item in references(ast.get_docstring(node) or ""):
                    target = f"../{path.relative_to(HERE.parent).as_posix()}"
                    found.append(Shown(paper, listed(paper, item), f"`{name}`", target))
            except ValueError as wrong:
                raise ValueError(f"docstring of {name}: {wrong}") from None
    return found


def _documented(node, name: str) -> Iterator[tuple]:
    """All that can have a docstring, by its name in setclr: `losses.GroCo` for what a package exports."""
    yield name, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            package = name.partition(".")[0]
            exported = getattr(import_module(f"setclr.{package}"), child.name, None)
            short = getattr(exported, "__module__", None) == f"setclr.{name}"
            yield from _documented(child, f"{package if short else name}.{child.name}")


def references(docstring: str) -> list[tuple[str, str]]:
    """(paper, item) of every reference; ValueError for a parenthesis that is nearly one."""
    found = []
    for inside in re.findall(r"\(([^()]*)\)", " ".join(docstring.split())):
        for part in inside.split("; "):
            name, comma, rest = part.partition(", ")
            if comma and name in NAMES:
                found += [(NAMES[name], item) for item in _items(rest)]
            elif NEARLY.match(part):
                raise ValueError(f"({part}): write (PAPER, eq. 3), or leave out the parentheses")
    return found


def _items(text: str) -> list[str]:
    """ "section 4, eq. 2 to 4 and 7" → eq2, eq3, eq4, eq7."""
    if not REFERENCE.fullmatch(text):
        raise ValueError(f"({text}) is not spelled as (figure 1, eq. 2 to 4 and 7) is")
    items = []
    for kind, numbers in re.findall(PART, text):
        words = re.sub(",| and", "", numbers).split() if kind in KINDS else []
        for place, word in enumerate(words):
            between = range(int(words[place - 1]) + 1, int(words[place + 1])) if word == "to" else [word]
            items += [f"{kind}{number}" for number in between]
    return items


def shown() -> dict[tuple[str, str], list[Shown]]:
    """What shows each item that is shown: sections, recipes, the library."""
    places = {}
    for place in dict.fromkeys([*from_tags(), *from_recipes(), *from_docstrings()]):
        places.setdefault((place.paper, place.item), []).append(place)
    return places


def page() -> str:
    """The whole page, in Markdown."""
    places, counts, papers = shown(), [], []
    for key, paper in PAPERS.items():
        part, there = len(paper["in part"]), len(paper["items"]) - len(paper["not covered"])
        counts.append((there, len(paper["items"]), part))
        papers += [f"## {paper['title']}", f"{paper['work']}."]
        for kind, heading in KINDS.items():
            rows = [_row(key, item, places) for item in paper["items"] if item.startswith(kind)]
            if rows:
                table = ["| | what it is | where it is shown |", "|---|---|---|", *rows]
                papers += [f"### {heading}", "\n".join(table)]
    counts.append(tuple(map(sum, zip(*counts))))
    titles = [*(paper["title"] for paper in PAPERS.values()), "all four"]
    lines = [
        f"| {t} | {there} of {n}, {part} of them in part |" for t, (there, n, part) in zip(titles, counts)
    ]
    return "\n\n".join(["\n".join([OPENING, *lines]), *papers]) + "\n"


def _row(key: str, item: str, places: dict) -> str:
    paper = PAPERS[key]
    where = [f"[{place.words}](<{place.target}>)" for place in places.get((key, item), [])]
    for state in ("in part", "not covered"):
        if item in paper[state]:
            where.append(f"**{state}**: {paper[state][item]}")
    slip = f" (*slip*: {paper['slips'][item]})" if item in paper["slips"] else ""
    title = re.sub(r"^([a-z]+)", "\\1\u00a0", item).replace("eq", "eq.")  # they stay on one line
    return f"| {title} | {paper['items'][item]}{slip} | {'<br>'.join(where)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE.relative_to(HERE.parent))

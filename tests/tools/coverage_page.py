"""Where each figure, table and equation of the four papers is shown: the page notebooks/coverage.md.

python tests/tools/coverage_page.py     write it anew (make coverage)

coverage_items.yml lists what the papers contain. What shows an item says so itself:
- a notebook's cell by a tag, "groco:figure6", or "groco:table4:printed" if it has only printed numbers;
- a module, class or function by its docstring, in parentheses and with the paper's name first, "(GroCo, eq. 2
  to 4; MMCL, figure 3b)". Any other mention is in passing and does not count;
- a recipe by the table of `setclr.recipes.PUBLISHED` that it is a row of, or by the figure or table in small
  of `setclr_course.papers.figures`, and its records in data/results or its folder original.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

import yaml
from notebook_tools import FOLDER, ROOT, TOOLS, name_of, notebooks

from setclr.recipes import PUBLISHED, RECIPES
from setclr_course.papers.figures import FIGURES

PAGE = FOLDER / "coverage.md"
RESULTS = ROOT / "data" / "results"
LIBRARY = ROOT / "lib"
IMAGES = {name: row for name, row in PUBLISHED.items() if RECIPES.kind(name) == "image"}
TRAINED = {name for name in PUBLISHED if RECIPES.kind(name) in ("image", "graph")}
PAPERS: dict[str, dict] = yaml.safe_load((TOOLS / "coverage_items.yml").read_text())
NAMES = {paper["name"]: key for key, paper in PAPERS.items()}
KINDS = {"figure": "Figures", "table": "Tables", "eq": "Equations", "algorithm": "Algorithms",
         "proposition": "Propositions"}  # fmt: skip

TAG = re.compile(rf"(\w+):((?:{'|'.join(KINDS)})\d+[a-z]?)(:printed)?")
NUMBERS = r"(?:\d[\d.]*[a-z]?|[A-E])(?:(?:, | and | to )(?:\d[\d.]*[a-z]?|[A-E]))*"
PART = rf"({'|'.join(KINDS)}|section|supplement|appendix)s?\.? ({NUMBERS})"
REFERENCE = re.compile(rf"{PART}(?:(?:, | and ){PART})*")
NEARLY = re.compile(rf"(({'|'.join(NAMES)})\b.*)?\b(eq\.|{'|'.join(KINDS)})s? \d", re.IGNORECASE)

PRINTED = "setclr_course.panels.sorting.beta_table"  # it shows what a paper printed
SETTINGS = ("setclr.recipes", "setclr.evaluation", "setclr_course.papers", PRINTED)  # they hold settings
# The columns of figures and tables.
HOW = {"full": "run at the paper's size", "small": "run or drawn small", "settings": "settings"}

OPENING = (TOOLS / "coverage_opening.md").read_text().rstrip()


class Shown(NamedTuple):
    """One place that shows an item."""

    paper: str  # a key of PAPERS
    item: str  # a key of its items, "eq3"
    words: str  # what the link says
    target: str  # path from the page; a section of a notebook behind #
    how: str = "small"  # a key of HOW


def listed(paper: str, item: str) -> str:
    """The item as it is listed: "figure1" for 1b where its parts are not listed one by one."""
    for name in (item, item.rstrip("abcdef")):
        if name in PAPERS.get(paper, {}).get("items", ()):
            return name
    raise ValueError(f"coverage_items.yml does not list {paper}:{item}")


def sections(cell: dict) -> list[str]:
    """The titles of the sections that begin in a cell of a notebook's file."""
    text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def from_tags() -> list[Shown]:
    """The tagged cells, each as the section it stands in."""
    found = []
    for path in [*notebooks(), *notebooks("careful")]:
        section = ""
        for cell in json.loads(path.read_text())["cells"]:
            section = (sections(cell) or [section])[-1]
            for tag in cell["metadata"].get("tags", []):
                if ":" in tag:
                    if not (spelled := TAG.fullmatch(tag)):
                        raise ValueError(f"{path.name}: the tag {tag} is not spelled as groco:eq3 is")
                    page = name_of(path)
                    target = f"{page}.ipynb" + f"#{section.replace(' ', '-')}" * bool(section)
                    words = f"{page[: page.index('_')]} · {section or 'the beginning'}"
                    how = "settings" if spelled[3] else "small"
                    found.append(Shown(spelled[1], listed(*spelled.groups()[:2]), words, target, how))
    return found


def rows_of_tables(names: Iterable[str]) -> Counter[tuple[str, str]]:
    """How many of these rows each table has, by paper and item."""
    tables = [(name.split("-")[0], PUBLISHED[name].table) for name in names]
    return Counter((paper, f"table{table}") for paper, table in tables if table != "text")


def from_recipes() -> list[Shown]:
    """The tables that recipes are rows of."""
    found = []
    for (paper, table), count in rows_of_tables(IMAGES).items():
        words = f"{count} recipe{'s' * (count > 1)}: `{paper}-{table}-…`"
        target = f"../lib/setclr_course/papers/{paper}.toml"
        found.append(Shown(paper, listed(paper, table), words, target, "settings"))
    for figure, (_, names, _) in FIGURES.items():
        paper, item = figure.split("-")
        words, target = f"{len(names)} recipes in small: `small-…`", "../lib/setclr_course/papers/small.toml"
        found.append(Shown(paper, listed(paper, item), words, target, "settings"))
    return found


def from_records() -> list[Shown]:
    """The tables of which rows were trained here, as long as the paper trained them or in small."""
    found, names, all_rows = [], {}, rows_of_tables(TRAINED)
    for folder in ("", "original"):  # with rows of the papers' tables on the papers' own pixels
        paths = list((RESULTS / folder).glob("*-seed*.json"))
        names[folder] = {path.stem.rpartition("-seed")[0] for path in paths}
        for path in paths:
            if (name := path.stem.rpartition("-seed")[0]) in TRAINED:
                assert json.loads(path.read_text())["recipe"]["epochs"] == RECIPES[name].epochs, path.name
        for (paper, table), count in rows_of_tables(sorted(names[folder] & TRAINED)).items():
            says, where = f"{count} of {all_rows[paper, table]} rows", f"../data/results/{folder}"
            found.append(Shown(paper, listed(paper, table), says, where.rstrip("/"), "full"))
    for figure, (_, called, _) in FIGURES.items():
        if count := sum(name in names[""] for name in called.values()):
            paper, item = figure.split("-")
            says = f"{count} of {len(called)} rows"
            found.append(Shown(paper, listed(paper, item), says, "../data/results", "small"))
    return found


def from_docstrings() -> list[Shown]:
    """The modules, classes and functions whose docstrings say so."""
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        if path.parent.name == ".ipynb_checkpoints":  # JupyterLab leaves a copy of what it opens
            continue
        module = ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__")
        for name, node in _documented(ast.parse(path.read_text()), module):
            try:
                for paper, item in references(ast.get_docstring(node) or ""):
                    target = f"../{path.relative_to(ROOT).as_posix()}"
                    how = "settings" if module.startswith(SETTINGS) else "small"
                    found.append(Shown(paper, listed(paper, item), f"`{name}`", target, how))
            except ValueError as wrong:
                raise ValueError(f"docstring of {name}: {wrong}") from None
    return found


def _documented(node, name: str) -> Iterator[tuple]:
    """All that can have a docstring, by its name: `losses.GroCo` for what a package of setclr exports."""
    yield name.removeprefix("setclr."), node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            package = ".".join(name.split(".")[:2])
            exported = getattr(import_module(package), child.name, None)
            short = getattr(exported, "__module__", None) == name
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
    for place in dict.fromkeys([*from_records(), *from_tags(), *from_recipes(), *from_docstrings()]):
        places.setdefault((place.paper, place.item), []).append(place)
    return places


def page(places: dict[tuple[str, str], list[Shown]]) -> str:
    """The whole page, in Markdown."""
    counts, papers = [], []
    for key, paper in PAPERS.items():
        counts.append(_counts(key, places))
        papers += [f"## {paper['title']}", f"{paper['work']}."]
        for kind, heading in KINDS.items():
            items = [item for item in paper["items"] if item.startswith(kind)]
            if items:
                columns = list(HOW.values()) if kind in ("figure", "table") else ["where it is shown"]
                head = ["", "what it is", *columns]
                rows = [head, ["---"] * len(head), *(_row(key, item, places) for item in items)]
                papers += [f"### {heading}", "\n".join(f"| {' | '.join(row)} |" for row in rows)]
    counts.append(list(map(sum, zip(*counts))))
    titles = [*(paper["title"] for paper in PAPERS.values()), "all four"]
    lines = [f"| {title} | {' | '.join(map(str, numbers))} |" for title, numbers in zip(titles, counts)]
    return "\n\n".join(["\n".join([OPENING, *lines]), *papers]) + "\n"


def _counts(key: str, places: dict) -> list[int]:
    """A paper's numbers in the opening table: of all items, then of its figures and tables."""
    items = PAPERS[key]["items"]
    best = {item: next((how for how in HOW if _of(places, key, item, how)), None) for item in items}
    every = Counter(best.values())
    results = Counter(how for item, how in best.items() if item.startswith(("figure", "table")))
    counts = [len(items), every["full"] + every["small"], every["settings"], every[None]]
    return [*counts, len(PAPERS[key]["in part"]), results.total(), *(results[how] for how in HOW)]


def _of(places: dict, key: str, item: str, how: str) -> list[Shown]:
    return [place for place in places.get((key, item), []) if place.how == how]


def _row(key: str, item: str, places: dict) -> list[str]:
    paper, results = PAPERS[key], item.startswith(("figure", "table"))
    hows = [[how] for how in HOW] if results else [list(HOW)]
    cells = [
        [f"[{place.words}](<{place.target}>)" for how in some for place in _of(places, key, item, how)]
        for some in hows
    ]
    filled = [column for column, cell in enumerate(cells) if cell]
    for state in ("in part", "not covered"):
        if item in paper[state]:
            cells[filled[0] if filled else 0].append(f"**{state}**: {paper[state][item]}")
    slip = f" (*slip*: {paper['slips'][item]})" if item in paper["slips"] else ""
    title = re.sub(r"^([a-z]+)", "\\1\u00a0", item).replace("eq", "eq.")  # they stay on one line
    return [title, paper["items"][item] + slip, *("<br>".join(cell) for cell in cells)]


if __name__ == "__main__":
    PAGE.write_text(page(shown()))
    print(PAGE.relative_to(ROOT))

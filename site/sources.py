"""From the project's notebooks and texts to the sources that Sphinx reads."""

import copy
import re
import shutil
from pathlib import Path

import home
import nbformat
import rendering
from course import FOLDER, HANGS, HERE, ROOT, joined, name_of
from nbclient import NotebookClient
from opening import with_closed

from setclr_course import panels
from setclr_course.search import recorded
from setclr_course.teach.cards import CARDS

SHOWN = re.compile(r'class="setclr-(panel|prediction|still)"')
# A paragraph in brackets is an aside, which stands in the margin where there is room.
ASIDE = re.compile(r"(?:(?<=\n\n)|\A)(\((?:[^()]|\([^()]*\))*\))(?=\n\n|\Z)")
# How to run a notebook, which makes no sense where everything moves; up to the end of the paragraph.
IN_JUPYTER = re.compile(
    r"(On the website everything moves already\.\s+)?In JupyterLab, choose \*.*?(?=\n\n|\Z)", re.S
)
PACKAGES = {
    "losses": "Losses",
    "inner": "Inner problems",
    "views": "Views",
    "data": "Data",
    "models": "Encoders and heads",
    "recipes": "Recipes",
    "training": "Training",
    "evaluation": "Evaluation",
    "experiments": "Experiments",
    "graphs": "Graphs",
    "video": "Videos",
    "papers": "The papers",
    "panels": "Panels",
    "teach": "Teaching",
}
OF_COURSE = ("papers", "panels", "teach")  # packages of setclr_course


def run(source: Path, folder: Path, atlas: Path) -> nbformat.NotebookNode:
    """The notebook after it has run in full, with panels, questions and exercises as the site has them.

    `folder` is what the site's pages lie in, `atlas` what the atlases of all pages lie in; both as they will
    be found from the page. Raises CellExecutionError where a cell fails, RuntimeError where showing it does.
    """
    page = nbformat.read(source, as_version=4)
    name = name_of(source)
    mine = atlas / name
    shutil.rmtree(mine, ignore_errors=True)
    mine.mkdir(parents=True)
    up = "../" * name.count("/")
    first = (
        f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
        "from rendering import into\n"
        f"into({str(atlas)!r}, {name!r}, {f'{up}{atlas.relative_to(folder)}'!r})\n"
        f"sys.path.pop(0)"
    )
    page.cells.insert(0, nbformat.v4.new_code_cell(first))
    client = NotebookClient(
        page, timeout=HANGS, resources={"metadata": {"path": str(source.parent)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        store_widget_state=False, shutdown_kernel="immediate",
    )  # fmt: skip
    client.execute()
    del page.cells[0]
    for cell in page.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                raise RuntimeError(f"{name}: {output.ename}: {output.evalue}\n{cell.source}")
    return page


def readable(page: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook as a page of the site: code that only shows something is folded, or left out."""
    page = copy.deepcopy(page)
    page.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    cells: list[nbformat.NotebookNode] = []
    for cell in page.cells:
        tags = set(cell.metadata.get("tags", []))
        cell.metadata = {}
        if cell.cell_type != "code":
            cell.source = ASIDE.sub(r"> \1", IN_JUPYTER.sub("", within(cell.source)))
        elif "find_spec" in cell.source:
            continue
        else:
            cell.outputs = joined([out for out in cell.outputs if out.get("name") != "stderr"])
            for output in cell.outputs:
                if "data" in output:
                    output.data = with_closed(output.data)
            cell.metadata = folding(cell, tags)
            if cells and cell.metadata.get("setup") and cells[-1].metadata == cell.metadata:
                cells[-1].source += f"\n\n{cell.source}"
                continue
        cells.append(cell)
    page.cells = cells
    return page


def folding(cell: nbformat.NotebookNode, tags: set[str]) -> dict:
    """The metadata by which myst-nb folds a cell."""
    told = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
    if {"setup", "parameters"} & tags:
        beginning = "parameters" in tags or "import " in cell.source
        name = "Imports and parameters" if beginning else "Compared with the library"
        if "aside" in tags:  # its first line says what it is
            name = cell.source.splitlines()[0].removeprefix("# ")
        how = {"code_prompt_show": name, "code_prompt_hide": name}
        return {"setup": True, "tags": ["hide-input", "setup"], "mystnb": how}
    if "setclr-exercise" in told:
        return {"tags": ["remove-input"]}
    if SHOWN.search(told):
        return {"tags": ["hide-input"]}
    return {}


def within(text: str) -> str:
    """A text with links to the pages alone: README's tables are on a page, and what else the repository has
    is named and not linked, or left out where it stands alone in brackets."""
    there = r"\[([^\]]*)\]\(<?(?:\.\./)+(?:lib|tests|examples|data)/[^)]*\)"
    text = re.sub(r"\]\((\.\./)*\.\./README\.md\)", r"](\1results.md)", text)
    text = re.sub(r"\]\(((?:\.\./)*)\.\./site/text/", r"](\1", text)
    return re.sub(there, r"\1", re.sub(rf" \({there}\)", "", text))


def as_in_jupyter(title: str) -> str:
    """The name of a heading in a link, as JupyterLab makes it."""
    return title.replace(" ", "-")


def inert(tables: str) -> str:
    """The tables of records, in which what a record says stands as it is: no HTML, links or formulas. Strokes
    between cells and bold titles stay."""
    stay = r"\\[\\|<]|(?<=\| )\*\*(?=\w)|(?<=\w)\*\*(?= \|)"
    live = r"[\\`*_\[\]<>&${}~^@]"
    return re.sub(f"({stay})|{live}", lambda found: found[1] or f"&#{ord(found[0])};", tables)


def replace(page: Path, mark: str, by: str) -> None:
    page.write_text(page.read_text().replace(mark, by))


def texts(target: Path, first: Path, atlas: Path) -> None:
    """Everything that is no notebook: written by hand, or made of the library. The first panel of the page
    `first` stands on the first page of all; the playground has its own, and its scene in `atlas`."""
    shutil.copytree(HERE / "text", target, dirs_exist_ok=True)
    for path in FOLDER.glob("*.md"):
        (target / path.name).write_text(within(path.read_text()))
    shutil.copytree(FOLDER / "pictures", target / "pictures", dirs_exist_ok=True)
    teaching = (ROOT / "TEACHING.md").read_text().replace("](README.md)", "](course.md)")
    (target / "teaching.md").write_text(re.sub(r"(\]\(|\]: )(?:notebooks|site/text)/", r"\1", teaching))
    (target / "api").mkdir(exist_ok=True)
    for package, title in PACKAGES.items():
        whole = f"setclr_course.{package}" if package in OF_COURSE else f"setclr.{package}"
        (target / "api" / f"{package}.md").write_text(
            f"# {title}\n\n```{{eval-rst}}\n.. automodule:: {whole}\n   :members:\n```\n"
        )
    playground = rendering.Shown(atlas, "play", atlas.name).panel(panels.playground())
    replace(target / "play.md", "<!-- the playground -->", playground)
    playing = home.card("play.html", home.IMAGE.search(playground)[1], "Play", "All losses in one panel.")
    replace(target / "index.md", "<!-- the panel -->", home.first_panel(first))
    replace(target / "index.md", "<!-- the pages -->", home.discoveries(first) + playing)
    course = target / "course.md"
    course.write_text(home.with_dots(course.read_text()))
    shown = "\n".join(card.page_of() for card in CARDS.values())
    (target / "cards.md").write_text(f"# A card for each loss\n\n{shown}\n")
    table = inert(recorded.summary(ROOT / "data" / "results"))
    replace(target / "results.md", "<!-- the table -->", table)

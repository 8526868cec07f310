"""Running notebooks, and keeping what is saved small and showable.

python tests/tools/notebook_tools.py COMMAND, of which these are the commands:

build [08 …]   run all, or these, in full into build/, an HTML page beside each
save [08 …]    the same, then keep the pictures in notebooks/
strip          remove what running in JupyterLab leaves in notebooks/
student        the course as students get it, without solutions and outputs, into build/student/

A page of the path is named by its number, what belongs to it by folder and number: careful/08, solutions/08.
"""

import base64
import copy
import html
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import nbformat
import papermill
from ipykernel.ipkernel import IPythonKernel
from nbconvert import HTMLExporter

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parents[1]
FOLDER, BUILD = ROOT / "notebooks", ROOT / "build"
HANGS = 1800  # seconds: a cell that takes longer hangs
FOLDED = {"setup", "parameters"}  # tags of cells whose source is hidden
PACKED = ("lib", "data/results", "data/checkpoints", "data/README.md", "site/text/training.md", "Makefile",
          "pyproject.toml", "constraints.txt", "Dockerfile", ".dockerignore", "LICENSE",
          "LICENSE-TEXT")  # fmt: skip
NOT_PACKED = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*", "solutions", "pictures")
PACK = """# SetCLR, the course

You need make and Python 3.11 or newer. In this folder, type

    make lab

It installs what the pages need, once, some minutes and 7 GB, and opens JupyterLab on the first page. Without
a GPU 2 GB do: on Linux `make lab CPU=URL`, with the index of CPU builds that pytorch.org names; elsewhere
`make lab CPU=1`. Press *Run*, *Run All Cells*, and drag a point. Your changes stay in this folder. The
solutions are with your lecturer.
"""  # what students read first
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {what: told for what, told in IPythonKernel.language_info.items() if what != "version"},
}  # of a notebook, as JupyterLab writes it when it is opened (at_once.py)
WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks(folder: str = "") -> list[Path]:
    """The pages of the path, or those in "careful" or "solutions"."""
    found = sorted((FOLDER / folder).glob("[0-9][0-9]_*.ipynb"))
    if not found:
        raise FileNotFoundError(f"{FOLDER / folder}: no notebooks there")
    return found


def every_notebook() -> list[Path]:
    return [path for folder in ("", "careful", "solutions") for path in notebooks(folder)]


def name_of(path: Path) -> str:
    """A notebook's path in its folder, without the ending: "careful/07_support_vectors"."""
    return str(path.relative_to(FOLDER).with_suffix(""))


def chosen(prefixes: Iterable[str], pages: list[Path]) -> list[Path]:
    """Those of the pages whose names begin so, or all. Ends the program where there is none."""
    found = [page for page in pages if name_of(page).startswith(tuple(prefixes) or "")]
    if not found:
        sys.exit(f"no notebook begins with {' or '.join(prefixes)}")
    return found


def run(source: Path, target: Path, parameters: dict | None = None, folder: Path = FOLDER):
    """Run a notebook from this folder; returns what it became. Raises if a cell fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return papermill.execute_notebook(
        str(source), str(target), parameters or {}, cwd=str(folder), kernel_name="python3",
        execution_timeout=HANGS, progress_bar=False, shutdown_kernel="immediate",
    )  # fmt: skip


def hidden_errors(notebook) -> list[str]:
    """Exceptions that ipywidgets printed into an Output widget, where no cell fails because of them."""
    models = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {})
    outputs = [o for model in models.get("state", {}).values() for o in model["state"].get("outputs", [])]
    return [f"{o['ename']}: {o['evalue']}" for o in outputs if o.get("output_type") == "error"]


def strip(notebook):
    """Leave source, tags and pictures: no widget state or views, no counts, no metadata of who ran it."""
    notebook.metadata = copy.deepcopy(METADATA)
    for cell in notebook.cells:
        tags = [t for t in cell.metadata.get("tags", []) if t != "injected-parameters"]
        cell.metadata = {"tags": tags} if tags else {}
        if FOLDED & set(tags):
            cell.metadata["jupyter"] = {"source_hidden": True}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = joined([kept for kept in map(_shown, cell.outputs) if kept])
    return notebook


def _shown(output):
    """An output as a reader without a kernel sees it; None if nothing is left (a progress bar, say)."""
    if output.output_type == "stream":
        return None if output.name == "stderr" else output
    if WIDGET in output.get("data", {}):
        del output.data[WIDGET]
        if not {"image/png", "text/html"} & set(output.data):
            return None
    if "execution_count" in output:
        output.execution_count = None
    if "metadata" in output:
        output.metadata = {k: v for k, v in output.metadata.items() if k == "image/png"}
    return output


def joined(outputs: list) -> list:
    """With what a cell printed in several goes in one box."""
    found: list = []
    for output in outputs:
        if output.output_type == "stream" and found and found[-1].output_type == "stream":
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def to_html(notebook) -> str:
    """The page: some cells folded, each picture with the sentence that stands in its text/plain."""
    shown = copy.deepcopy(notebook)
    folded = [bool(FOLDED & set(cell.metadata.get("tags", []))) for cell in shown.cells]
    shown.cells = [_folded(cell) if fold else cell for cell, fold in zip(shown.cells, folded)]
    page, _ = HTMLExporter().from_notebook_node(shown)
    for cell in shown.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                sentence = f'alt="{html.escape(output.data.get("text/plain", ""))}"'
                page = page.replace('alt="No description has been provided for this image"', sentence, 1)
    return page


def _folded(cell):
    """A cell as a page can fold it: what JupyterLab does by itself for a hidden source."""
    printed = "".join(output.get("text", "") for output in cell.outputs)
    word = next(tag for tag in cell.metadata.tags if tag in FOLDED).capitalize()
    fold = f"<details><summary>{word}</summary>\n\n```python\n{cell.source}\n```\n\n{printed}\n</details>"
    return nbformat.v4.new_markdown_cell(fold)


def build(prefixes: tuple[str, ...] = (), save: bool = False) -> None:
    """Run the notebooks whose names begin so, or all."""
    for source in chosen(prefixes, every_notebook()):
        target = BUILD / source.relative_to(FOLDER)
        ran = run(source, target, folder=source.parent)
        if hidden_errors(ran):
            raise RuntimeError(f"{source.name}: a widget hides {hidden_errors(ran)}")
        ran = strip(nbformat.read(target, as_version=4))
        nbformat.write(ran, target)
        if save:
            nbformat.write(ran, source)
            if source == notebooks()[0]:
                keep_row(ran, FOLDER / "pictures" / "one_idea.png")
        target.with_suffix(".html").write_text(to_html(ran))
        print(f"{name_of(source)}: {target.stat().st_size // 1000} KB")


def student(target: Path = BUILD / "student") -> None:
    """The course as students get it: a folder in which `make lab` works, without solutions and outputs, and
    with right answers that nobody reads by chance."""
    from setclr_course.teach.computed import seal

    shutil.rmtree(target, ignore_errors=True)
    for name in PACKED:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=NOT_PACKED)
        else:
            shutil.copy(ROOT / name, target / name)
    rules = (ROOT / "Makefile").read_text().split("\n\n")  # without those whose files are not handed out
    kept = [rule for rule in rules if not re.search(r"tests/|site/|BIN\)/(ruff|mypy)|-m pytest", rule)]
    (target / "Makefile").write_text("\n\n".join(kept))
    seal(target / "lib/setclr_course/teach")
    (target / "README.md").write_text(PACK)
    shutil.copytree(FOLDER, target / FOLDER.name, ignore=NOT_PACKED)
    for handed in (target / FOLDER.name).rglob("*.ipynb"):
        page = nbformat.read(handed, as_version=4)
        for cell in page.cells:
            if cell.cell_type == "code":
                cell.outputs = []
            else:
                cell.source = without_dead_links(cell.source, handed.parent)
        nbformat.write(page, handed)
    for text in target.rglob("*.md"):
        text.write_text(without_dead_links(text.read_text(), text.parent))
    print(target)


def without_dead_links(text: str, folder: Path) -> str:
    """The text as it stands in that folder: of a link to what is not there, its words stay."""

    def words(link: re.Match) -> str:
        if (folder / link["to"]).exists():
            return link[0]
        return "with your lecturer" if "solutions/" in link["to"] else link["said"]

    return re.sub(r"\[(?P<said>[^\]]*)\]\((?!http|#)(?P<to>[^)#\s]+)[^)]*\)", words, text)


def keep_row(notebook, path: Path) -> None:
    """The first row of three pictures as a file: the README shows that of the first notebook."""
    row = next(cell for cell in notebook.cells if ".row(" in cell.source)
    path.write_bytes(base64.b64decode(row.outputs[0].data["image/png"]))


def main(command: str = "", *prefixes: str) -> None:
    if command == "strip":
        for path in every_notebook():
            nbformat.write(strip(nbformat.read(path, as_version=4)), path)
    elif command in ("build", "save"):
        build(prefixes, save=command == "save")
    elif command == "student":
        student()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])

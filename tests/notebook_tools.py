"""Running notebooks, and keeping what is saved small and showable.

python tests/notebook_tools.py build [08 …]   run all, or these, in full into build/, an HTML page beside each
python tests/notebook_tools.py save [08 …]    the same, then keep the pictures in notebooks/
python tests/notebook_tools.py strip          remove what running in JupyterLab leaves in notebooks/
"""

import base64
import copy
import html
import sys
from pathlib import Path

import nbformat
import papermill
from nbconvert import HTMLExporter

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "notebooks"
BUILD = HERE.parent / "build"
HANGS = 1800  # seconds: a cell that takes longer hangs
WIDGET = "application/vnd.jupyter.widget-view+json"


def notebooks() -> list[Path]:
    found = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))
    if not found:
        raise FileNotFoundError(f"{FOLDER}: no notebooks there")
    return found


def run(source: Path, target: Path, parameters: dict | None = None):
    """Run a notebook from its own folder; returns what it became. Raises if a cell fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return papermill.execute_notebook(
        str(source), str(target), parameters or {}, cwd=str(FOLDER), kernel_name="python3",
        execution_timeout=HANGS, progress_bar=False,
    )  # fmt: skip


def hidden_errors(notebook) -> list[str]:
    """Exceptions that ipywidgets printed into an Output widget, where no cell fails because of them."""
    models = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {})
    outputs = [o for model in models.get("state", {}).values() for o in model["state"].get("outputs", [])]
    return [f"{o['ename']}: {o['evalue']}" for o in outputs if o.get("output_type") == "error"]


def strip(notebook):
    """Leave source, tags and pictures: no widget state or views, no counts, no metadata of who ran it."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        tags = [t for t in cell.metadata.get("tags", []) if t != "injected-parameters"]
        cell.metadata = {"tags": tags} if tags else {}
        if {"solution", "setup"} & set(tags):
            cell.metadata["jupyter"] = {"source_hidden": True}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [kept for kept in map(_shown, cell.outputs) if kept]
    return notebook


def _shown(output):
    """An output as a reader without a kernel sees it; None if nothing is left (a progress bar, say)."""
    if output.output_type == "stream":
        return None if output.name == "stderr" else output
    if WIDGET in output.get("data", {}):
        if "image/png" not in output.data:
            return None
        del output.data[WIDGET]
    if "execution_count" in output:
        output.execution_count = None
    if "metadata" in output:
        output.metadata = {k: v for k, v in output.metadata.items() if k == "image/png"}
    return output


def to_html(notebook) -> str:
    """The page: solutions folded, each picture with the sentence that stands in its text/plain."""
    shown = copy.deepcopy(notebook)
    shown.cells = [_folded(c) if "solution" in c.metadata.get("tags", []) else c for c in shown.cells]
    page, _ = HTMLExporter().from_notebook_node(shown)
    for cell in shown.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                sentence = f'alt="{html.escape(output.data.get("text/plain", ""))}"'
                page = page.replace('alt="No description has been provided for this image"', sentence, 1)
    return page


def _folded(cell):
    """A solution as a page can fold it: what JupyterLab does by itself for a hidden source."""
    printed = "".join(output.get("text", "") for output in cell.outputs)
    fold = f"<details><summary>Solution</summary>\n\n```python\n{cell.source}\n```\n\n{printed}\n</details>"
    return nbformat.v4.new_markdown_cell(fold)


def build(prefixes: tuple[str, ...] = (), save: bool = False) -> None:
    """Run the notebooks whose names begin so, or all."""
    chosen = [source for source in notebooks() if source.name.startswith(prefixes or "")]
    if not chosen:
        sys.exit(f"no notebook begins with {' or '.join(prefixes)}")
    for source in chosen:
        ran = run(source, BUILD / source.name)
        if hidden_errors(ran):
            raise RuntimeError(f"{source.name}: a widget hides {hidden_errors(ran)}")
        ran = strip(nbformat.read(BUILD / source.name, as_version=4))
        nbformat.write(ran, BUILD / source.name)
        if save:
            nbformat.write(ran, source)
            if source == notebooks()[0]:
                keep_first_picture(ran, FOLDER / "pictures" / "one_idea.png")
        (BUILD / source.name).with_suffix(".html").write_text(to_html(ran))
        print(f"{source.name}: {(BUILD / source.name).stat().st_size // 1000} KB")


def keep_first_picture(notebook, path: Path) -> None:
    """The first picture as a file: the README shows that of the first notebook."""
    pictures = [
        o.data["image/png"]
        for c in notebook.cells
        for o in c.get("outputs", [])
        if "data" in o and "image/png" in o.data
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(base64.b64decode(pictures[0]))


def main(command: str = "", *prefixes: str) -> None:
    if command == "strip":
        for path in notebooks():
            nbformat.write(strip(nbformat.read(path, as_version=4)), path)
    elif command in ("build", "save"):
        build(prefixes, save=command == "save")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])

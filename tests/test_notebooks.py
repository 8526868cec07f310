"""Every notebook: run in fast mode with all its sliders swept, and held to the book of notebooks."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml
from notebook_tools import FOLDER, WIDGET, hidden_errors, notebooks, run, strip

PARAMETERS = yaml.safe_load((Path(__file__).parent / "notebook_parameters.yml").read_text())
NOTEBOOKS = notebooks()
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)

SWEEP = """
import gc

from setclr.explore.kit.panel import Panel

panels = [thing for thing in gc.get_objects() if type(thing) is Panel]
for panel in panels:
    for name, control in panel.controls.items():
        low, high = getattr(control, "min", None), getattr(control, "max", None)
        values = control.options if low is None else [low, high]
        if type(control).__name__ == "FloatLogSlider":
            values = [10**low, 10**high]
        sentences = set()
        for value in values:
            control.value = value
            sentences.add(panel.alt)
        assert len(sentences) == len(values), f"{name} of {panel.values} moves nothing"
    panel.reset()
print(f"swept {len(panels)} panels")
"""


def test_the_parameters_file_knows_every_notebook():
    assert sorted(PARAMETERS) == [path.stem for path in NOTEBOOKS]


@every_notebook
def test_it_runs_with_small_parameters_and_all_sliders(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(SWEEP))
    nbformat.write(notebook, tmp_path / path.name)
    parameters = {k: str(tmp_path) if v == "TEMPORARY" else v for k, v in PARAMETERS[path.stem].items()}
    run(tmp_path / path.name, tmp_path / "out.ipynb", parameters)
    ran = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert not hidden_errors(ran)
    printed = "".join(output.get("text", "") for output in ran.cells[-1].outputs)
    swept = re.search(r"swept (\d+) panels", printed)
    live = [
        cell
        for cell in code_cells(ran)
        if any({WIDGET, "image/png"} <= set(output.get("data", {})) for output in cell.outputs)
    ]
    assert int(swept[1]) >= 1 and len(live) >= 1
    for cell in live:
        name = cell.source.splitlines()[-1]
        earlier = "\n".join(c.source for c in ran.cells[: ran.cells.index(cell)] if c.cell_type == "code")
        three = rf'(?m)^{name}\.row\("\w+", \[[^,\]]+,[^,\]]+,[^,\]]+\]\)$'
        assert re.search(three, earlier), f"no row of three values before the panel {name}"


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@every_notebook
def test_it_is_saved_small_and_stripped(path):
    text, notebook = path.read_text(), nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert len(text) < 500_000
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert WIDGET not in text
    assert nbformat.writes(strip(nbformat.read(path, as_version=4))) == nbformat.writes(notebook), (
        "run make format"
    )
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", text), "a path of somebody's machine"


@every_notebook
def test_its_pictures_are_kept_with_a_sentence_each(path):
    notebook = nbformat.read(path, as_version=4)
    assert all(c.get("outputs") is not None for c in code_cells(notebook))
    assert not [o for c in code_cells(notebook) for o in c.outputs if o.output_type == "error"]
    pictures = [o for c in code_cells(notebook) for o in c.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 2
    for picture in pictures:
        assert len(picture.data["text/plain"]) > 30 and "<" not in picture.data["text/plain"]


@every_notebook
def test_its_shape_follows_the_book(path):
    notebook = nbformat.read(path, as_version=4)
    code = code_cells(notebook)
    lines = [len(cell.source.splitlines()) for cell in code]
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert max(lines) <= 30
    assert sum(lines) / len(code) <= 9
    assert 60 <= len(prose.split()) / len(code) <= 110
    assert sum(len(re.findall(r"^ *assert |torch.testing.assert_", cell.source, re.M)) for cell in code) >= 3
    assert len([c for c in code if "parameters" in c.metadata.get("tags", [])]) == 1
    imports = next(
        c for c in code if re.match("(import|from) ", c.source) and "setup" not in c.metadata.get("tags", [])
    )
    assert len([line for line in imports.source.splitlines() if line]) <= 12
    for part in ("**You will learn**", "**You need**", "**Takes**", "Predict before you drag", "<details>",
                 "## What we saw", "## Exercises"):  # fmt: skip
        assert part in prose, f"no {part}"
    assert prose.count("<details>") == prose.count("</details>") >= 2, "fewer than two predictions"
    solutions = [c for c in code if "solution" in c.metadata.get("tags", [])]
    assert 2 <= len(solutions) <= 3
    assert all(c.metadata.jupyter.source_hidden and "assert" in c.source for c in solutions)


@every_notebook
def test_its_links_lead_somewhere(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!http)([^)#]+)\)", cell.source):
                assert (FOLDER / target).exists(), target


# Every figure of the four papers but those that show what large trainings came to: MMCL 3a and 3c, QARe 2.
FIGURES = {
    "groco": ["1", "2", "3", "4", "5", "6", "7"],
    "iot": ["1", "2", "3", "4", "5a", "5b", "5c", "6"],
    "mmcl": ["1", "2", "3b", "4"],
    "qare": ["1", "3"],
}


def test_every_figure_of_the_papers_has_a_cell_that_is_tagged_with_it():
    tags = {
        t for p in NOTEBOOKS for c in nbformat.read(p, as_version=4).cells for t in c.metadata.get("tags", [])
    }
    references = {t for t in tags if ":" in t}
    assert all(re.fullmatch(r"(groco|qare|iot|mmcl):(figure|table|eq)\d+[a-z]?", t) for t in references)
    figures = {f"{paper}:figure{number}" for paper, numbers in FIGURES.items() for number in numbers}
    assert not figures - references
    assert {"groco:table8a", "groco:table8b", "qare:table1"} <= references

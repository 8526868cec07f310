"""Every notebook: run in fast mode with all its sliders swept, and held to the book of notebooks."""

import re
import subprocess
from functools import cache
from pathlib import Path

import nbformat
import notebook_tools as tools
import pytest
import reading_time
import yaml
from notebook_tools import FOLDER, name_of, notebooks
from pictures import grey_level

from setclr_course.teach.asked import content, pages

PARAMETERS = yaml.safe_load((tools.TOOLS / "notebook_parameters.yml").read_text())
PATH, CAREFUL, SOLUTIONS = (notebooks(folder) for folder in ("", "careful", "solutions"))
every_notebook = pytest.mark.parametrize("path", [*PATH, *CAREFUL, *SOLUTIONS], ids=name_of)
of_the_path = pytest.mark.parametrize("path", PATH, ids=name_of)

SWEEP = """
import gc, json

from setclr_course.kit.panel import Panel

panels = [thing for thing in gc.get_objects() if issubclass(type(thing), Panel)]
for panel in [one for one in panels if type(one).__name__ != "playground"]:  # whose knobs are of one loss
    in_sight = panel.to_json()["in_sight"]
    for place, (name, control) in enumerate(panel.controls.items()):
        knob = control.knob
        values = [knob.stop(0), knob.stop(knob.stops - 1)] if hasattr(knob, "low") else list(knob.names)
        if place >= in_sight and len(values) == 2:  # folded away: to the farther end, and back
            far = max(values, key=lambda value: abs(knob.number(value) - knob.number(control.value)))
            values = [far, control.value]
        seen = set()
        for value in values:
            control.value = value
            seen.add((panel.alt, json.dumps(panel.scene)))
        assert len(seen) == len(values), f"{name} of {panel.values} moves nothing"
    panel.reset()
for explorer in [thing for thing in gc.get_objects() if type(thing).__name__ == "Explorer"]:
    for name, control in explorer.controls.items():
        ends = [control.min, control.max] if hasattr(control, "min") else [False, True]
        ends = [0.02, 2.0] if hasattr(control, "base") else ends  # on a scale of logarithms
        values, seen = getattr(control, "options", ends), set()
        for value in values if control.layout.display != "none" and not control.disabled else ():
            control.value = value
            seen.add((repr(explorer.loss), explorer.said.value))
        assert len(seen) in (0, len(values)), f"{name} of {explorer.loss} moves nothing"
print(f"swept {len(panels)} panels")
"""


def test_the_parameters_file_knows_every_notebook():
    assert sorted(PARAMETERS) == sorted(map(name_of, [*PATH, *CAREFUL]))


# Careful pages and solutions run with `make test-careful`, so that `make test` stays short.
RUNS = [*PATH, *(pytest.param(path, marks=pytest.mark.careful) for path in [*CAREFUL, *SOLUTIONS])]


def small(path, folder) -> dict:
    """The parameters with which a page runs quickly."""
    fast = PARAMETERS.get(name_of(path), {})
    for i in range(fast.get("photographs") == "TEMPORARY" and 8):
        grey_level(folder / f"{i}.png", 30 * i)
    return {key: str(folder) if value == "TEMPORARY" else value for key, value in fast.items()}


@pytest.mark.parametrize("path", RUNS, ids=name_of)
def test_it_runs_with_small_parameters_and_all_sliders(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(SWEEP))
    nbformat.write(notebook, tmp_path / path.name)
    tools.run(tmp_path / path.name, tmp_path / "out.ipynb", small(path, tmp_path), path.parent)
    ran = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert not tools.hidden_errors(ran)
    printed = "".join(output.get("text", "") for output in ran.cells[-1].outputs)
    assert int(re.search(r"swept (\d+) panels", printed)[1]) >= (path in PATH)


@cache
def read(path):
    """A notebook as it is saved, which no test changes."""
    return nbformat.read(path, as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose_of(notebook) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


LINK = re.compile(r"\]\((?!http)([^)#]+)[^)]*\)")


@every_notebook
def test_it_is_saved_small_and_stripped_and_its_links_lead_somewhere(path):
    """And the site lists it: Sphinx would refuse a page that no list of contents has, but only once built."""
    text, notebook = path.read_text(), read(path)
    nbformat.validate(notebook)
    assert len(text) < 500_000
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert tools.WIDGET not in text
    stripped = tools.strip(nbformat.read(path, as_version=4))
    assert nbformat.writes(stripped) == nbformat.writes(notebook), "run make format"
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users)/", text), "a path of somebody's machine"
    assert not [link for link in LINK.findall(prose_of(notebook)) if not (path.parent / link).exists()]
    texts = FOLDER.parent / "site" / "text"
    contents = texts / "course.md" if path in PATH else texts / path.parent.name / "index.md"
    assert re.search(rf"(?m)^{path.stem}$", contents.read_text())


@every_notebook
def test_its_pictures_are_kept_with_a_sentence_each(path):
    outputs = [out for cell in code_cells(read(path)) for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    for cell in code_cells(read(path)):
        kinds = [out.output_type for out in cell.outputs]
        assert ("stream", "stream") not in zip(kinds, kinds[1:]), "what a cell prints stands in one box"
    pictures = [out.data for out in outputs if "image/png" in out.get("data", {})]
    opened = sum("<img" in out.get("data", {}).get("text/html", "") for out in outputs)
    assert len(pictures) + opened >= 2 or path not in PATH
    for picture in pictures:
        assert len(picture["text/plain"]) > 30 and "<" not in picture["text/plain"]


PANEL = re.compile(r"(?m)^(\w+ = )?panels\.\w+\(|predict\(\"[\d.]+\", \w")


def tags_of(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def words(cells) -> int:
    return sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")


@of_the_path
def test_a_page_begins_with_the_thing(path):
    """Where the first panel stands, and how long the code is."""
    seen = [cell for cell in read(path).cells if not tags_of(cell) & tools.FOLDED]
    code = [cell for cell in seen if cell.cell_type == "code"]
    assert len(code) <= 16 and max(len(cell.source.splitlines()) for cell in code) <= 30
    first = next(i for i, cell in enumerate(seen) if cell.cell_type == "code" and PANEL.search(cell.source))
    assert first < 5, "the first panel stands in the fifth visible cell or before"
    box = next(i for i, cell in enumerate(seen) if "**You will learn**" in cell.source)
    assert words(seen[box + 1 : first]) <= 80


def test_pages_are_short_and_they_and_the_lecturers_guide_say_how_long_they_take():
    """After `python tests/tools/reading_time.py`, which reckons."""
    assert all(reading_time.reckoned(p)[0] <= (1800 if p.name < "10" else 2200) for p in PATH)
    assert not [path for path, text in reading_time.rewritten().items() if path.read_text() != text]


@of_the_path
def test_a_page_has_all_its_parts_and_the_solutions_answer_every_exercise(path):
    page, number = read(path), path.name[:2]
    prose, code = prose_of(page), "\n".join(cell.source for cell in code_cells(page))
    for part in ("**You will learn**", "**You need**", "**To read**", "**To compute**", "er is closer",
                 "## What we saw", "## Exercises", "coverage.md" if number == "00" else "Still open",
                 "★ ", "★★ ", "★★★ "):  # fmt: skip
        assert part in prose, f"no {part}"
    assert "<details>" not in prose, "predict() asks, and folds by itself"
    predicted = set(re.findall(r'predict\("([\d.]+)"', code))
    written = content(pages()[number])
    assert predicted == {f"{number}.{k}" for k in written["questions"]}
    asked = re.findall(r'answer = \.\.\.\ncheck\("([\d.]+)", answer\)', code)
    assert asked == [f"{number}.{k}" for k in written["exercises"]]
    assert len([cell for cell in code_cells(page) if "parameters" in tags_of(cell)]) == 1

    solved = "\n".join(cell.source for cell in code_cells(read(FOLDER / "solutions" / path.name)))
    for k in written["exercises"]:
        assert f'assert check("{number}.{k}", answer)' in solved


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """The students' pack, in a folder far from this one."""
    folder = tmp_path_factory.mktemp("pack") / "student"
    tools.student(folder)
    return folder


def test_students_get_no_solutions_no_outputs_and_no_dead_links(pack):
    texts = {path: path.read_text() for path in pack.rglob("*.md")}
    pages = {path: nbformat.read(path, as_version=4) for path in sorted(pack.rglob("*.ipynb"))}
    assert [path.name for path in pages if path.parent == pack / "notebooks"] == [p.name for p in PATH]
    assert not [*pack.rglob("*solutions*"), *pack.rglob("exam*")]
    assert (pack / "Dockerfile").exists()  # an image of it has no solutions
    offered = subprocess.run(["make", "-C", pack, "help"], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"(?m)^ +make (\S+)", offered) == ["help", "lab", "pretrain", "clean"]
    for path, page in pages.items():
        assert not [cell for cell in page.cells if cell.get("outputs")], path
        texts[path] = prose_of(page)
    for path, text in texts.items():
        assert [target for target in LINK.findall(text) if not (path.parent / target).exists()] == [], path
    assert "with your lecturer" in texts[pack / "notebooks" / PATH[1].name]


def secrets(page: Path) -> list[str]:
    """What students read after an answer, and right answers with more digits than chance would repeat."""
    exercises = content(page)["exercises"].values()
    said = [why for one in content(page)["questions"].values() for why in one["choices"].values()]
    said += [mistake["reason"] for one in exercises for mistake in one.get("mistakes", ())]
    numbers = [str(one["right"]) for one in exercises if isinstance(one.get("right"), float)]
    return [*said, *(one["why"] for one in exercises), *(one for one in numbers if len(one) > 5)]


def test_no_answer_can_be_read_in_the_students_pack(pack):
    secret = [text for page in pages().values() for text in secrets(page)]
    kinds = (".py", ".toml", ".sealed", ".js", ".html", ".md", ".ipynb")
    for folder in ("lib", "notebooks"):
        for path in (pack / folder).rglob("*"):
            if path.suffix in kinds:
                text = path.read_text().replace(" \\\n", " ")
                assert not [one for one in secret if one in text], path
    assert not [*pack.rglob("computed*")]


IN_PACK = [p if p.name[:2] == "01" else pytest.param(p, marks=pytest.mark.careful) for p in PATH]


@pytest.mark.parametrize("path", IN_PACK, ids=name_of)
def test_a_page_runs_in_the_students_pack(path, pack, tmp_path, monkeypatch):
    """With the pack's own library and data, outside the repository."""
    monkeypatch.setenv("PYTHONPATH", str(pack / "lib"))
    page = nbformat.read(pack / "notebooks" / path.name, as_version=4)
    page.cells.append(nbformat.v4.new_code_cell("import setclr_course\nprint(setclr_course.__file__)"))
    nbformat.write(page, tmp_path / "page.ipynb")
    files = tmp_path / "page.ipynb", tmp_path / "ran.ipynb"
    ran = tools.run(*files, small(path, tmp_path), pack / "notebooks")
    assert ran.cells[-1].outputs[0].text.startswith(str(pack))

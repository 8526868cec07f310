"""The exercises as otter-grader's assignments: what is handed out, what right and wrong answers get."""

import itertools
import json
import re
import subprocess
import sys

import nbformat
import pytest
from notebook_tools import ROOT, notebooks

from setclr_course.kit.panel import Panel

sys.path.insert(0, str(ROOT / "site"))
import grading


@pytest.mark.parametrize("page", notebooks(), ids=lambda path: path.stem)
def test_the_master_has_every_exercise_of_the_page_with_its_solution(page):
    cells = grading.master(page).cells
    begun = [cell.source for cell in cells if "BEGIN QUESTION" in cell.source]
    assert [code.split("name: ")[1].split("\n")[0] for code in begun] == [
        f"exercise_{page.name[:2]}_{k}" for k in (1, 2, 3)
    ]
    solved = [cell.source for cell in cells if "BEGIN SOLUTION NO PROMPT" in cell.source]
    assert len(solved) == 3 and not any("check(" in code for code in solved)
    assert all(re.search(r"\banswer\b.*[=:]", code) for code in solved)
    asked = [cell.source for cell in cells if cell.source.startswith("★")]
    assert len(asked) == 3 and not any("](../" in text for text in asked)
    for k in [k for k, cell in enumerate(cells) if cell.source == "# BEGIN TESTS"]:
        shown, hidden = cells[k + 1].source, cells[k + 2].source  # shown: whether it is answered, no more
        assert "check" not in shown and "check(" in hidden and "hidden: true" in hidden


@pytest.mark.parametrize("page", notebooks(), ids=lambda path: path.stem)
def test_a_task_has_the_panel_that_it_speaks_of_or_names_its_page(page):
    """On the pages of the losses no panel waits for what other cells compute."""
    cells = grading.master(page).cells
    for before, cell in itertools.pairwise(cells):
        if before.cell_type == "markdown" and (said := re.search(grading.PANEL, before.source)):
            if f"{said[0]} of page {page.name[:2]}" in before.source:
                assert page.name[:2] > "08"
            else:
                names: dict = {}
                exec(cell.source, names)
                (panel,) = (one for one in names.values() if isinstance(one, Panel))
                panel.close()


@pytest.mark.careful
def test_otter_gives_a_point_for_a_right_answer_and_none_for_a_wrong_one(tmp_path):
    (page,) = [page for page in notebooks() if page.name.startswith("01")]
    grading.assign(page, tmp_path)
    handed = nbformat.read(tmp_path / "student" / "page.ipynb", as_version=4)
    assert not any("0.8432" in cell.source or "SOLUTION" in cell.source for cell in handed.cells)
    tests = str(handed.metadata)
    assert "not answered yet" in tests and "check(" not in tests
    for cell in handed.cells:
        cell.source = cell.source.replace("answer_01_1 = ...", "answer_01_1 = 0.8433")
        cell.source = cell.source.replace("answer_01_2 = ...", "answer_01_2 = 1.0")
    nbformat.write(handed, tmp_path / "back.ipynb")
    (archive,) = (tmp_path / "autograder").glob("*.zip")
    otter = [sys.executable, "-m", "otter", "run", "back.ipynb", "-a", str(archive), "-o", "."]
    subprocess.run(otter, cwd=tmp_path, check=True, capture_output=True)
    tests = json.loads((tmp_path / "results.json").read_text())["tests"]
    scores = {test["name"]: test["score"] for test in tests if "score" in test}
    assert scores == {"exercise_01_1": 1, "exercise_01_2": 0, "exercise_01_3": 0}

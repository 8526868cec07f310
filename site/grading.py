"""The exercises as an assignment that otter-grader hands out and grades: `python site/grading.py [PAGE …]`.

For each page it writes build/grading/PAGE: `page.ipynb`, from which `otter assign` makes `student/`, what is
handed out, and `autograder/` with the archive by which `otter run` grades what comes back. The exercises are
the page's, with the panel that they speak of; the answers of the master are those of its solutions. What is
handed out says whether an exercise is answered. Whether it is right, `setclr_course.teach.check` says in
tests that the archive alone holds. Otter refuses a master whose own answers are not right.
"""

import ast
import builtins
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from course import FOLDER, ROOT, chosen, notebooks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from sources import within

OUT = ROOT / "build" / "grading"
CONFIG = """# ASSIGNMENT CONFIG
requirements: false
export_cell: false
run_tests: true
generate:
    show_stdout: true
"""


def tasks(page: nbformat.NotebookNode) -> dict[str, str]:
    """The text of every exercise of a page by its name."""
    found, text = {}, ""
    for cell in page.cells:
        if cell.cell_type == "markdown":
            text = within(cell.source)
        elif name := re.search(r'check\("([\d.]+)", answer\)', cell.source):
            found[name.group(1)] = text[text.index("★") :]
    return found


def solutions(page: nbformat.NotebookNode) -> tuple[str, dict[str, str]]:
    """The imports of the solutions, and the code of each by the exercise's name."""
    setup, found, code = "", {}, []
    for cell in page.cells:
        if cell.cell_type == "markdown":
            code = []
        elif "setup" in cell.metadata.get("tags", []):
            setup = cell.source
        else:
            code.append(cell.source)
            if name := re.search(r'check\("([\d.]+)", answer\)', cell.source):
                text = re.sub(r"(?m)^.*check\(.*\n?", "", "\n".join(code)).strip()
                found[name.group(1)] = text.replace(
                    "../../data", str(ROOT / "data")
                )  # otter runs it elsewhere
    return setup, found


ORDER = {"first": 0, "second": 1, "third": 2, "last": -1}
PANEL = re.compile(rf"\b({'|'.join(ORDER)}) panel\b")


def names(code: str, kind: type[ast.expr_context]) -> set[str]:
    """The names that some code reads, or makes."""
    found = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name))
    return {node.id for node in found if isinstance(node.ctx, kind)}


def panel_of(page: nbformat.NotebookNode, text: str) -> str:
    """The code that opens the panel which a task speaks of, such as "in the second panel"; "" where it speaks
    of none, or where the panel shows what other cells have computed."""
    if not (said := PANEL.search(text)):
        return ""
    code = [cell.source for cell in page.cells if cell.cell_type == "code"]
    shows = [source for source in code if re.search(r"\bpanels\.\w+\(", source)][ORDER[said[1]]]
    shows = re.sub(r"(?m)^predict\([^,]*, (\w+)(\.row\(.*\))?(, beside=.*)?\)$", r"\1", shows)
    needs = names(shows, ast.Load) - names(shows, ast.Store) - set(dir(builtins)) - {"panels"}
    (parameters,) = (cell.source for cell in page.cells if "parameters" in cell.metadata.get("tags", []))
    given = [line for line in parameters.splitlines() if line.split(" = ")[0] in needs]
    if len(given) < len(needs):
        return ""
    return "\n".join(["from setclr_course import panels", "", *given, shows])


def question(name: str, text: str, solution: str, panel: str = "") -> list[nbformat.NotebookNode]:
    """The cells of one exercise, in otter's form."""
    answer = f"answer_{name.replace('.', '_')}"
    asked = (
        f"# BEGIN SOLUTION NO PROMPT\n{solution}\n{answer} = answer\n# END SOLUTION\n"
        f'""" # BEGIN PROMPT\n{answer} = ...\n"""; # END PROMPT'
    )
    config = '""" # BEGIN TEST CONFIG\n{}\n""" # END TEST CONFIG\n'
    answered = config.format("points: 0") + f'assert {answer} is not ..., "{name} is not answered yet"'
    right = config.format("points: 1\nhidden: true")
    right += "from setclr_course.teach import check\n\n"
    right += f'right = check("{name}", {answer})\nassert right, right.said'
    return [
        new_raw_cell(f"# BEGIN QUESTION\nname: exercise_{name.replace('.', '_')}"),
        new_markdown_cell(text),
        *([new_code_cell(panel)] if panel else []),
        new_raw_cell("# BEGIN SOLUTION"),
        new_code_cell(asked),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        new_code_cell(answered),
        new_code_cell(right),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]


def master(page: Path) -> nbformat.NotebookNode:
    """The notebook from which otter makes all others."""
    whole = nbformat.read(page, as_version=4)
    asked = tasks(whole)
    setup, solved = solutions(nbformat.read(FOLDER / "solutions" / page.name, as_version=4))
    if asked.keys() != solved.keys():
        raise ValueError(f"{page.name} asks {sorted(asked)}, and its solutions have {sorted(solved)}")
    cells = [new_raw_cell(CONFIG), new_markdown_cell(f"# Exercises of {page.stem}"), new_code_cell(setup)]
    for name, text in asked.items():
        panel = panel_of(whole, text)
        if not panel:  # then it is on the page
            text = PANEL.sub(rf"\1 panel of page {page.name[:2]}", text)
        cells += question(name, text, solved[name], panel)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return new_notebook(cells=cells, metadata=kernel)


def assign(page: Path, target: Path) -> None:
    """Write the master, and have otter make of it what is handed out and what grades."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    nbformat.write(master(page), target / "page.ipynb")
    otter = [sys.executable, "-m", "otter", "assign", "page.ipynb", ".", "--no-pdfs"]
    made = subprocess.run(otter, cwd=target, capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"otter could not make the assignment of {page.name}:\n{made.stderr}")


def main(*prefixes: str) -> None:
    for page in chosen(prefixes, notebooks()):
        assign(page, OUT / page.stem)
        print(OUT / page.stem)


if __name__ == "__main__":
    main(*sys.argv[1:])

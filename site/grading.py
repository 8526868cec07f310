"""The exercises as an assignment that otter-grader hands out and grades: `python site/grading.py [PAGE …]`.

For each page it writes build/grading/PAGE: `page.ipynb`, from which `otter assign` makes `student/`, what is
handed out, and `autograder/` with the archive by which `otter run` grades what comes back. The exercises are
the page's, the answers of the master those of its solutions, and what is right is what
`setclr_course.teach.check` says; otter refuses a master whose own answers are not.
"""

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


def question(name: str, text: str, solution: str) -> list[nbformat.NotebookNode]:
    """The cells of one exercise, in otter's form."""
    answer = f"answer_{name.replace('.', '_')}"
    asked = (
        f"# BEGIN SOLUTION NO PROMPT\n{solution}\n{answer} = answer\n# END SOLUTION\n"
        f'""" # BEGIN PROMPT\n{answer} = ...\n"""; # END PROMPT'
    )
    test = "from setclr_course.teach import check\n\n"
    test += f'right = check("{name}", {answer})\nassert right, right.said'
    return [
        new_raw_cell(f"# BEGIN QUESTION\nname: exercise_{name.replace('.', '_')}\npoints: 1"),
        new_markdown_cell(text),
        new_raw_cell("# BEGIN SOLUTION"),
        new_code_cell(asked),
        new_raw_cell("# END SOLUTION"),
        new_raw_cell("# BEGIN TESTS"),
        new_code_cell(test),
        new_raw_cell("# END TESTS"),
        new_raw_cell("# END QUESTION"),
    ]


def master(page: Path) -> nbformat.NotebookNode:
    """The notebook from which otter makes all others."""
    asked = tasks(nbformat.read(page, as_version=4))
    setup, solved = solutions(nbformat.read(FOLDER / "solutions" / page.name, as_version=4))
    if asked.keys() != solved.keys():
        raise ValueError(f"{page.name} asks {sorted(asked)}, and its solutions have {sorted(solved)}")
    cells = [new_raw_cell(CONFIG), new_markdown_cell(f"# Exercises of {page.stem}"), new_code_cell(setup)]
    for name, text in asked.items():
        cells += question(name, text, solved[name])
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

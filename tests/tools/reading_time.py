"""How many words and minutes each page of the path takes.

python tests/tools/reading_time.py prints them, and writes the minutes where pages and TEACHING.md say them.

The words are those of a page's text, of its questions with their choices, and of its loss's card. Two hundred
are read in a minute; each panel, question and exercise takes a minute more.
"""

import math
import re
from pathlib import Path

import nbformat
from notebook_tools import ROOT, notebooks

from setclr_course.teach.asked import question
from setclr_course.teach.cards import card

A_MINUTE = 200  # words
SAID = re.compile(r"(\*\*To[\s>]+read\*\*[\s>]+)(\d+)([\s>]+minutes)")
TOTAL = re.compile(r"(00\s+to\s+\d+,\s+take\s+)(\d+)(\s+hours)")
TEACHING = ROOT / "TEACHING.md"


def reckoned(path: Path) -> tuple[int, int]:
    """The words of a page, and the minutes that it takes. Signs alone, as a table's lines, are no words."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    read = [cell.source for cell in cells if cell.cell_type == "markdown"]
    for one in map(question, re.findall(r'predict\("([\d.]+)"', code)):
        read += [one.text, *one.choices]
    read += [card(name)._repr_mimebundle_()[0]["text/plain"] for name in re.findall(r'card\("(\w+)"\)', code)]
    count = len(re.findall(r"\S*\w\S*", " ".join(read)))
    todo = re.findall(r'(?<!beside=)\bpanels\.\w+\(|predict\("|check\("', code)
    return count, math.ceil(count / A_MINUTE) + len(todo)


def rewritten() -> dict[Path, str]:
    """Pages and TEACHING.md with the minutes, and the hours of all pages, as they are reckoned."""
    found, taught = {}, TEACHING.read_text()
    takes = {path: reckoned(path)[1] for path in notebooks()}
    for path, minutes in takes.items():
        page = nbformat.read(path, as_version=4)
        for cell in page.cells:
            said = SAID.sub(rf"\g<1>{minutes}\3", cell.source)
            cell.source = TOTAL.sub(rf"\g<1>{round(sum(takes.values()) / 60)}\3", said)
        found[path] = nbformat.writes(page) + "\n"
        taught = re.sub(rf"(?m)^(\| \[{path.name[:2]}\] .*\| )\d+( \| \d+ \|)$", rf"\g<1>{minutes}\2", taught)
    return found | {TEACHING: taught}


if __name__ == "__main__":
    for path, text in rewritten().items():
        path.write_text(text)
    for path in notebooks():
        print("{}: {} words, {} minutes".format(path.stem, *reckoned(path)))

"""The lecture's lab sheet, text/lab_sheet.md, as pages to print: for students, and with answers.

What is expected names where it is seen: a panel, one of its controls and the places to which it is moved; an
exercise; or a page as it is saved. A sheet with a number that is not seen there is not printed.
"""

import re
from collections.abc import Iterator

import nbformat
from course import HERE, notebooks
from nbconvert.filters import markdown2html

from setclr_course import panels
from setclr_course.teach.asked import exercise

TEXT = HERE / "text" / "lab_sheet.md"
EXPECTED = re.compile(r"<details><summary>Expected</summary>\n(.*?)</details>\n", re.S)
SHEET = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>SetCLR, lab sheet</title><link rel="icon" href="beside/favicon.svg">
<link rel="stylesheet" href="beside/sheet.css">
<body>{}</body></html>
"""


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def seen(where: str) -> Iterator[str]:
    """What is seen at `panels.NAME()` *control* 1, 2, 3, at Exercise 01.1, or on Page 01."""
    if moved := re.search(r"`(.*)` \*(.*)\* (.*)", where):
        panel = eval(moved[1], {"panels": panels})
        yield f"{panel.values} {moved[3]}"
        for column in panel.row(moved[2], map(float, moved[3].split(", "))).columns:
            yield column.sentence
    elif asked := re.search(r"Exercise (.*)", where):
        right = exercise(asked[1]).right
        yield f"{right} {right:.2f}"
    for page in notebooks():
        if f"Page {page.name[:2]}" in where:
            for cell in nbformat.read(page, as_version=4).cells:
                for output in cell.get("outputs", []):
                    yield output.get("text", "") + str(output.get("data", {}).get("text/plain"))


def unseen(text: str) -> list[str]:
    """The numbers that are expected and not seen, with what they are expected of."""
    found = []
    for answer in EXPECTED.findall(text):
        where, _, said = answer.replace("\n", " ").partition(": ")
        found += [f"{number} of {where}" for number in sorted(numbers(said) - numbers(" ".join(seen(where))))]
    return found


def sheet(text: str, answers: bool) -> str:
    """The lab sheet as a page to print: with what a teacher expects, or with room for what students find."""
    title, _, tasks = text.partition("# ")[2].partition("\n")
    head, kept = (
        '<p class="names">Names:</p>\n\n<p class="names">The course is at:</p>',
        '<p class="room"></p>\n',
    )
    if answers:
        head, kept = "With what a teacher expects.", r'<div class="expected">\n\1</div>\n'
    tasks = re.sub(r"\]\((\w+)\.(?:ipynb|md)", r"](../site/\1.html", EXPECTED.sub(kept, tasks))
    return SHEET.format(markdown2html(f"# {title}\n\n{head}\n{tasks}"))


def sheets() -> dict[str, str]:
    """Both pages by the names of their files. Raises ValueError where a number is not seen."""
    text = TEXT.read_text()
    if wrong := unseen(text):
        raise ValueError(f"{TEXT} expects what is not seen: {'; '.join(wrong)}")
    return {"lab_sheet.html": sheet(text, False), "lab_sheet_answers.html": sheet(text, True)}

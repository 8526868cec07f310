"""The coverage page says what notebooks, recipes and docstrings say, and leaves out nothing of the papers."""

import json
import re

import coverage_page
import pytest
from coverage_page import PAGE, PAPERS, page, references, sections, shown

PLACES = shown()


def test_the_page_is_what_the_tags_docstrings_and_recipes_say():
    assert PAGE.read_text() == page(PLACES), "run make coverage"


@pytest.mark.parametrize("key", PAPERS)
def test_every_item_is_either_shown_or_left_out_for_a_reason(key):
    paper = PAPERS[key]
    there = {item for of, item in PLACES if of == key}
    assert not there & set(paper["not covered"]), "shown: strike it from 'not covered'"
    assert there | set(paper["not covered"]) == set(paper["items"])
    assert set(paper["in part"]) <= there and set(paper["slips"]) <= set(paper["items"])


def test_every_figure_has_a_cell_that_is_tagged_with_it():
    tagged = {(place.paper, place.item) for place in coverage_page.from_tags()}
    assert {(key, item) for key in PAPERS for item in PAPERS[key]["items"] if "figure" in item} <= tagged
    assert {("groco", "table8a"), ("groco", "table8b"), ("qare", "table1")} <= tagged


def test_planted_records_are_found_and_only_those_of_the_papers_own_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage_page, "RESULTS", tmp_path)

    def found_with(name: str, epochs: int) -> list[tuple]:
        (path := tmp_path / f"{name}-seed0.json").parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"recipe": {"epochs": epochs}}))
        return [place[1:] for place in coverage_page.from_records()]

    assert not found_with("jpeg75/qare-table2-conv4-cifar10-simclr", 200)  # other pixels
    assert not found_with("original/claim-conv4-cifar10-simclr-qare", 200)  # no row of a table
    (full,) = found_with("original/qare-table3-conv4-cifar10-sparseclr", 200)
    assert full == ("table3", "1 of 18 rows", "../data/results/original", "full")
    small = ("table8c", "1 of 3 rows", "../data/results", "small")
    assert found_with("small-groco-table8c-batch32", 10) == [full, small]


def test_what_is_only_printed_is_not_shown_and_a_note_stands_where_its_item_does():
    planted = {("groco", item): PLACES["groco", item] for item in ("table4", "table8a", "table8b", "figure1")}
    assert coverage_page._counts("groco", planted) == [36, 1, 3, 32, 9, 24, 0, 1, 3]
    for cells in (line.split(" | ") for line in PAGE.read_text().splitlines() if "**in part**" in line):
        assert "](" in next(cell for cell in cells if "**in part**" in cell), cells[0]


def test_links_lead_to_files_and_sections():
    links = re.findall(r"\]\(<?([^)>#]+)(?:#([^>]+))?>?\)", PAGE.read_text())
    assert len(links) == PAGE.read_text().count("](") > 200
    assert all((PAGE.parent / target).exists() for target, _ in links)
    for target in {target for target, section in links if section}:
        cells = json.loads((PAGE.parent / target).read_text())["cells"]
        there = [section.replace(" ", "-") for cell in cells for section in sections(cell)]
        named = {section for other, section in links if other == target and section}
        assert all(there.count(section) == 1 for section in named), target


def test_a_reference_is_read_in_its_one_spelling():
    assert references("The swap (GroCo, eq. 2 to 4; MMCL, figure 3b), as eq. 9 and table 2 have it.") == [
        ("groco", "eq2"), ("groco", "eq3"), ("groco", "eq4"), ("mmcl", "figure3b"),
    ]  # fmt: skip
    assert references("(Ye 2019; IOT-CL, section 3.4, figures 1, 5c\n    and 6, algorithm 1)") == [
        ("iot", "figure1"), ("iot", "figure5c"), ("iot", "figure6"), ("iot", "algorithm1"),
    ]  # fmt: skip
    assert not references("As in GroCo's table 7 (m = ∞), (QARe, section 4.2), (the printed eq. 13 is 0).")

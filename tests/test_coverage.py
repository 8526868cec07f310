"""The coverage page says what notebooks, recipes and docstrings say, and leaves out nothing of the papers."""

import json
import re

import coverage_page
import nbformat
import pytest
from coverage_page import PAGE, PAPERS, listed, page, references, sections, shown

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


@pytest.mark.parametrize("text", ["(eq. 3)", "(GroCo eq. 3)", "(QARe paper, table 1)", "(Algorithm 1)",
                                  "(MMCL, by eq. 3)", "(MMCL, equation 3)", "(2019; Table 8)"])  # fmt: skip
def test_what_is_nearly_a_reference_is_refused(text):
    with pytest.raises(ValueError, match="write|spelled"):
        references(text)


def test_an_item_that_the_paper_has_not_is_refused():
    assert listed("qare", "figure1b") == "figure1" and listed("groco", "table8a") == "table8a"
    for paper, item in (("groco", "eq12"), ("groco", "table8e"), ("mmcl", "figure3"), ("moco", "eq1")):
        with pytest.raises(ValueError, match=f"{paper}:{item}"):
            listed(paper, item)


def test_a_tag_in_another_spelling_is_refused(tmp_path, monkeypatch):
    cell = nbformat.v4.new_code_cell(metadata={"tags": ["groco:eq.3"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "01_some.ipynb")
    monkeypatch.setattr(coverage_page, "notebooks", lambda folder="": [tmp_path / "01_some.ipynb"])
    monkeypatch.setattr(coverage_page, "name_of", lambda path: path.stem)
    with pytest.raises(ValueError, match="spelled as groco:eq3"):
        coverage_page.from_tags()

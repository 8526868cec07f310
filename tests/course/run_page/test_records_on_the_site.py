"""What records say stands on the site as text, never as HTML, a link, a role or a formula."""

import json
import re
import subprocess
import sys
from html import unescape
from types import SimpleNamespace

import pytest
from conftest import a_record
from notebook_tools import ROOT

sys.path.insert(0, str(ROOT / "site"))
import slides
from sources import inert

from setclr_course.search import recorded

HOSTILE = [
    "<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "<svg onload=alert(3)>", "[a](http://b.c)",
    "![a](http://b.c)", "{download}`/etc/passwd`", "$x^2$ **b** _c_", "&lt;i&gt; a\\<b>", "<http://b.c>",
    "a|b\\|c\\",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The results' page that Sphinx makes of records with such names, data, pixels, losses, devices, columns;
    and of a damaged one."""
    here = tmp_path_factory.mktemp("site")
    results = here / "results"
    results.mkdir()
    for k, text in enumerate(HOSTILE):
        recipe = {"loss": f"InfoNCE(){text}", "data": f"folder:/x/{text}", "encoder": f"conv4{text}"}
        measured = {"trained": {"knn": 1.0}}
        one = a_record(recipe | {"seed": 0}, accuracy_percent=measured, pixels=text, machine={"device": text})
        (results / f"{k}{text.replace('/', '')}.json").write_text(json.dumps(one))
    (results / "<b>damaged<b>.json").write_text("{}")
    (here / "src").mkdir()
    (here / "src" / "index.md").write_text("# Results\n\n" + inert(recorded.summary(results)))
    settings = 'extensions = ["myst_nb"]\nmyst_enable_extensions = ["dollarmath"]\nsmartquotes = False\n'
    (here / "src" / "conf.py").write_text(settings)
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", here / "src", here / "out"]
    subprocess.run(sphinx, check=True)
    made = (here / "out" / "index.html").read_text()
    return made[made.index("<h1>") : made.index('<div class="sphinxsidebar')]


def test_what_records_say_is_shown_as_it_stands(page):
    cells = [unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall(r"<td>(.*?)</td>", page, re.S)]
    for k, text in enumerate(HOSTILE):
        (row,) = (at for at, cell in enumerate(cells) if cell == f"{k}{text.replace('/', '')}")
        assert cells[row + 1].endswith(f", 50, {text}") and cells[row + 2] == f"InfoNCE(){text}"
        assert cells[row + 3] == f"conv4{text}, 1, float32" and text in cells[row + 9]
    assert "<strong>kNN</strong>" in page and "&lt;b&gt;damaged&lt;b&gt;.json is damaged" in page


def test_nothing_in_it_is_live(page):
    tags = set(re.findall(r"<(\w+)", page))
    assert not tags & {"img", "script", "svg", "i", "b", "em", "code"}, tags
    assert 'http://b.c"' not in page and "math" not in page


def test_what_a_cell_printed_stays_in_its_block_on_a_slide():
    printed = "a\n```\n<script>alert(1)</script>\n````\n"
    cell = SimpleNamespace(metadata={}, source="print(name)", outputs=[{"text": printed}])
    assert f"\n`````\n{printed}`````\n" in slides.shown_code(cell)
    usual = SimpleNamespace(metadata={}, source="print(1)", outputs=[{"text": "1\n"}])
    assert slides.shown_code(usual) == "```python\nprint(1)\n```\n\n```\n1\n```\n"

"""The papers' rows: their TOML files are read, and damaged ones are refused."""

import subprocess
import sys
from collections import Counter

import pytest

from setclr_course.papers.rows import read, rows

SOUND = """
paper = "Ada 1843"
columns = "knn20, linear"
[notes]
first = "by {data}"
second = "; weight decay {weight_decay}"
[base.all]
data = ["cifar10", "svhn"]
weight_decay = 1e-6
[[row]]
name = "ada-table1-{data}"
like = "all"
loss = "InfoNCE(temperature={tau})"
fill.tau = [0.5, 1.0]
printed = ["1.5 2.25±0.50", ""]
notes = "first second"
"""


def read_text(text, folder):
    (folder / "ada.toml").write_text(text, encoding="utf-8")
    return read([folder / "ada.toml"])


def test_a_row_with_lists_is_several_rows(tmp_path):
    found = read_text(SOUND, tmp_path)
    fields = {"weight_decay": 1e-6, "protocol": "setclr"}
    assert found.recipes == {
        "ada-table1-cifar10": {"data": "cifar10", "loss": "InfoNCE(temperature=0.5)", **fields},
        "ada-table1-svhn": {"data": "svhn", "loss": "InfoNCE(temperature=1.0)", **fields},
    }
    first, second = found.published.values()
    assert (first.paper, first.table, first.note) == ("Ada 1843", "1", "by cifar10; weight decay 1e-6")
    assert (first.numbers, first.spread) == ({"knn20": 1.5, "linear": 2.25}, {"linear": 0.5})
    assert second.numbers == {}


@pytest.mark.parametrize("sound, damaged, words", [
    ('like = "all"', 'like = "al"', "like must be a base above it, got 'al'; did you mean 'all'"),
    ('"first second"', '"first zweite"', "notes must be pieces .*, got 'zweite'; there are: first"),
    ("[0.5, 1.0]", "[0.5]", "tau must be a list of 2 values, as data is, got .0.5."),
    ("ada-table1-{data}", "ada-table1", "name must be new, got 'ada-table1'; rename"),
    ("2.25±0.50", "", "printed must be 2 numbers, not 1, got '1.5 '; it has the columns knn20, linear"),
    ("2.25±0.50", "2,25", "printed must be numbers, got '2,25'; write 59.64"),
    ("{tau}", "{tao}", "placeholder in .* must be a key of the row, got 'tao'; did you mean 'tau'"),
    ("columns = ", "column = ", "columns must be given"),
    ('name = "ada-table1-{data}"', "", "name must be given, got None"),
    ("[base.all]", "[base.all", "must be TOML: .*line 7"),
    ("[base.all]", '[base.it]\nlike = "all"\n[base.all]', "base 'it': like must be a base above it, got"),
    ("[base.all]", '[figure.one]\nnote = "."\nrows = "a"\n[base.all]', "rows must be names of recipes"),
])  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path, sound, damaged, words):
    assert sound in SOUND
    with pytest.raises(ValueError, match=rf"^ada\.toml.*{words}"):
        read_text(SOUND.replace(sound, damaged), tmp_path)


def test_no_row_is_lost_and_graphs_and_videos_say_so():
    """`read` refuses a name that is there twice, so that as many rows as names are written."""
    found = Counter(name.split("-")[0] for name in rows().recipes)
    papers = {"qare": 68, "groco": 72, "iot": 67, "mmcl": 45}
    assert found == papers | {"variant": 27, "column": 4, "tree": 2, "small": 57}
    assert len(rows().published) == 252 and len({row.paper for row in rows().published.values()}) == 4
    kinds = {(name.split("-")[1], row["kind"]) for name, row in rows().recipes.items() if "kind" in row}
    assert kinds == {("table4", "graph"), ("table5", "video")}


def test_reading_takes_nothing_heavy():
    """`setclr.recipes` has torch; what is tested is the reader, so that package is passed over."""
    code = """
import sys, types, setclr
sys.modules["setclr.recipes"] = package = types.ModuleType("setclr.recipes")
package.__path__ = [setclr.__path__[0] + "/recipes"]
from setclr_course.papers.rows import rows
assert rows().recipes and not {"torch", "numpy", "pandas"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)

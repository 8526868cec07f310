"""What is no whole record is named with its remedy by all that read records, and never a traceback."""

import copy
import json
import re
from dataclasses import fields, replace

import pytest
from conftest import a_record
from pictures import BROKEN, NO_FILES

from setclr.cli import main
from setclr.experiments.records import OLDER, Record, read_record
from setclr.recipes import RECIPES
from setclr_course.search.campaigns import precision_of
from setclr_course.search.comparing import read
from setclr_course.search.recorded import line_of, ours, summary
from setclr_course.search.searches import chosen

NAME = "compare-photo-infonce"
GOOD = a_record(RECIPES[NAME].to_dict())


def without(field: str) -> dict:
    """The record without a field, which may be one of a field: "recipe.loss"."""
    outer, _, last = field.rpartition(".")
    kept = copy.deepcopy(GOOD)
    del (kept[outer] if outer else kept)[last]
    return kept


NEEDED = ["accuracy_percent", "epochs", "training_seconds", "images", "pixels", "recipe", "machine"]
NEEDED += ["accuracy_percent.trained", "images.train", "recipe.loss", "machine.device"]
OF_OTHER_KINDS = [
    *(({one.name: [0]}, rf"{one.name}(\.0)? must be .*, got (\[0\]|0)") for one in fields(Record)),
    ({"accuracy_percent": {"trained": 3}}, "accuracy_percent.trained must be dict, got 3"),
    ({"accuracy_percent": {"trained": {"knn": "high"}}}, "trained.knn must be .*, got 'high'"),
    ({"recipe": {"loss": "InfoNCE()", "lr": "fast"}}, "recipe.lr must be .*, got 'fast'"),
    ({"recipe": {"loss": "InfoNCE()", "new": [1]}}, r"recipe.new must be .*, got \[1\]"),
]
DAMAGED = [
    (b" \n", "Expecting value: line 2"),
    (b"\xff\xfe{}", "codec can't decode"),
    (b"[" * 100_000, "recursion"),
    (b"[]", r"the record must be dict, got \[\]"),
    *((json.dumps(GOOD).encode()[:end], ": line 1 ") for end in (0, 1, 99, -1)),  # cut off
    *((without(field), f"{field} must be .*, got None") for field in NEEDED),
    *((GOOD | other, words) for other, words in OF_OTHER_KINDS),
]


def put(folder, name, content):
    """Write a record, or bytes that are none."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(content).encode() if isinstance(content, dict) else content
    (folder / f"{name}.json").write_bytes(content)


@pytest.mark.parametrize("content, words", DAMAGED)
def test_a_damaged_record_is_named_with_the_field_and_the_remedy(content, words, tmp_path):
    put(tmp_path, "x-seed0", content)
    with pytest.raises(ValueError, match=rf"x-seed0\.json is damaged or no record \(.*{words}.*; remove it"):
        read_record(tmp_path / "x-seed0.json")


def test_all_that_reads_a_folder_leaves_the_damaged_out_and_says_so(tmp_path, capsys, monkeypatch):
    """And what is no file, for which nothing waits."""
    results, recipe = tmp_path / "data" / "results", replace(RECIPES[NAME], precision="auto")
    put(results, "good-seed0", GOOD | {"precision": "bf16"})
    whole = summary(results)
    for number, (content, _) in enumerate(DAMAGED):
        put(results, f"bad{number:02}-seed0", content)
    for kind, make in (NO_FILES | BROKEN).items():
        make(results / f"{kind}.json")
    count = len(DAMAGED) + len(NO_FILES | BROKEN)
    table, *said = summary(results).split("\n\n")
    assert table.strip() == whole and len(said[0].splitlines()) + len(said[1:]) == count
    monkeypatch.chdir(tmp_path)
    main(["results", "data/results"])
    assert capsys.readouterr().out.count("Left out: ") == count
    main(["recipes", NAME])
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(NAME) and last.startswith("left out: data/results/") and "is damaged" in last
    assert precision_of(recipe, results, "bad00") == "auto"
    put(results, "bad00-seed1", GOOD | {"precision": "bf16"})
    assert precision_of(recipe, results, "bad00") == "bf16", "that of the first whole record"


def test_older_records_are_read_with_what_they_lack(tmp_path):
    put(tmp_path, "x", without("precision") | {"recipe": {"loss": "InfoNCE()"}})
    record = read_record(tmp_path / "x.json")
    assert (record.protocol, record.precision, record.recipe["seed"]) == ("setclr", "float32", 0)


def test_tables_for_claims_are_not_made_without_a_damaged_record(tmp_path):
    put(tmp_path, "x-seed0", {})
    with pytest.raises(ValueError, match=r"seed0\.json is damaged"):
        read(tmp_path)


def test_a_search_chooses_among_whole_trials_beside_a_damaged_one(tmp_path):
    settings = {x: replace(RECIPES[NAME], epochs=1, lr=lr) for x, lr in (("low", 1e-3), ("high", 1e-2))}
    for title, knn in (("low", 50.0), ("high", 40.0)):
        recipe = replace(settings[title], seed=0).to_dict()
        put(tmp_path, f"{title}-seed0", a_record(recipe, accuracy_percent={"trained": {"knn": knn}}))
    put(tmp_path, "low-seed1", b"")
    assert chosen(settings, tmp_path, "setclr") == "low"
    put(tmp_path, "high-seed0", b"")
    assert chosen(settings, tmp_path, "setclr") is None


def test_records_that_lack_a_row_or_a_column_are_read(tmp_path):
    for seed, measured in enumerate(({"knn": 40.0}, {"linear": 41.0}, {})):
        recipe = RECIPES[NAME].to_dict() | {"seed": seed}
        put(tmp_path, f"x-seed{seed}", a_record(recipe, accuracy_percent={"trained": measured}))
    assert "| 40.0 |" in summary(tmp_path)
    assert line_of(["<b>", "a|b", r"\<"]) == r"| \<b> | a\|b | \\\< |"
    table = read(tmp_path)
    assert table["knn"].isna().tolist() == [False, True, True] and not table["collapsed"].any()


def test_text_of_a_record_stays_in_its_cell(tmp_path, capsys):
    """A stroke would make more cells, a newline more lines; a terminal would obey an escape code."""
    evil, recipe = "o|r\n| x |\x1b[31mred", replace(RECIPES[NAME], epochs=1)
    named = {"pixels": evil, "machine": {"device": evil}, "protocol": "p|\x1b[2J"}
    put(tmp_path, "x-seed0", a_record(recipe.to_dict() | {"data": evil, "encoder": evil}, **named))
    main(["results", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("\x1b" not in line for line in lines)
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    said = ours(recipe, [Record(**OLDER | a_record(recipe.to_dict(), pixels=evil))])
    assert "red" in said and said.isprintable()

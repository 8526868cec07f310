"""data/results/all.csv is what all records say, and the README's table is what it says."""

import json
import shutil

import pandas as pd
from notebook_tools import ROOT

from setclr.cli import main
from setclr.experiments.records import everything, spread

RESULTS = ROOT / "data" / "results"
README = (ROOT / "README.md").read_text()
ROWS = {"SimCLR": "2-conv4-cifar10-simclr", "SimCLR + QARe": "2-conv4-cifar10-simclr+qare",
        "SparseCLR": "3-conv4-cifar10-sparseclr",
        "SparseCLR + QARe": "3-conv4-cifar10-sparseclr+qare"}  # fmt: skip


def test_the_table_of_all_records_is_theirs():
    """`setclr results --csv data/results/all.csv` writes it."""
    kept, made = (RESULTS / "all.csv").read_text(), everything(RESULTS)[0]
    assert made.to_csv(index=False, lineterminator="\n") == kept


def test_the_readme_says_what_the_table_says():
    kept = pd.read_csv(RESULTS / "all.csv")
    for title, name in ROWS.items():
        of = kept[kept["record"].str.startswith(f"original/qare-table{name}-seed")]
        shown = spread(of["trained, linear"].tolist())
        seeds = ", ".join(map(str, sorted(of["seed"])))
        line = next(line for line in README.split("\n") if line.startswith(f"| {title} | "))
        assert f" | {shown} | {seeds} | " in line


def test_a_damaged_record_is_named_and_left_out(tmp_path, capsys):
    whole = next(RESULTS.glob("original/*.json"))
    (tmp_path / "below" / "trials").mkdir(parents=True)
    shutil.copy(whole, tmp_path / "below" / "trials" / "a-seed0.json")
    (tmp_path / "b.json").write_text(json.dumps({"recipe": {}}))
    main(["results", str(tmp_path), "--csv", str(tmp_path / "all.csv")])
    said = capsys.readouterr().out
    assert "all.csv: 1 records" in said and f"Left out: {tmp_path / 'b.json'} is damaged or no record" in said
    (row,) = pd.read_csv(tmp_path / "all.csv").to_dict("records")
    record = json.loads(whole.read_text())
    assert row["record"] == "below/trials/a-seed0" and row["seed"] == record["recipe"]["seed"]
    assert row["trained, linear"] == record["accuracy_percent"]["trained"]["linear"]
    assert f"{row['device']}, {row['threads']} threads" == record["machine"]["device"]

"""data/results/all.csv is what all records say, and the README's table is what it says."""

import json
import shutil

import pandas as pd
from notebook_tools import ROOT
from scipy import stats

from setclr.cli import main
from setclr.recipes import PUBLISHED
from setclr_course.search.recorded import everything, spread
from setclr_course.search.statistics import paired

RESULTS = ROOT / "data" / "results"
README = (ROOT / "README.md").read_text()
RESULTS_PAGE = " ".join((ROOT / "site/text/results.md").read_text().split())
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


def test_neither_of_qares_gains_is_shown_and_no_row_differs_from_the_printed_one():
    """Sentences of the page of results, from the table: kNN beside the probe, two losses at once, Welch."""
    kept = pd.read_csv(RESULTS / "all.csv")

    def row(name: str, measure: str) -> pd.Series:
        of = kept[kept["record"].str.startswith(f"original/qare-table{name}-seed")]
        return of.set_index("seed")[f"trained, {measure}"]

    sparse = [row(ROWS["SparseCLR + QARe"], x) - row(ROWS["SparseCLR"], x) for x in ("knn", "linear")]
    knn, probe = (paired(gain, 0 * gain, questions=questions) for gain, questions in zip(sparse, (1, 2)))
    said = f"By kNN the gain there is {knn.difference:.1f} (95 %: {knn.low:.1f} to {knn.high:.1f})"
    both = f"by the probe, its interval goes from {probe.low:.1f} to {probe.high:.1f}"
    assert said.replace("-", "−") in RESULTS_PAGE and both.replace("-", "−") in RESULTS_PAGE
    smallest = []
    for name in [*ROWS.values(), "2-conv4-cifar10-random", "2-conv4-cifar10-supervised"]:
        ((measure, printed),) = (published := PUBLISHED[f"qare-table{name}"]).numbers.items()
        spread_of = float(str(published).split("± ")[1])
        ours = row(name, measure)
        three, many = (printed, spread_of, 3), (ours.mean(), ours.std(), len(ours))
        smallest.append(stats.ttest_ind_from_stats(*three, *many, equal_var=False).pvalue)
    assert f"the smallest p, that of SimCLR + QARe, is {min(smallest):.2f}" in RESULTS_PAGE
    assert smallest.index(min(smallest)) == list(ROWS).index("SimCLR + QARe")


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

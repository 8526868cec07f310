"""What lies in data/: this version reads every checkpoint and record, and the pages say what these say."""

import ast
import contextlib
import io
import json
import re
import shutil
from dataclasses import replace

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from notebook_tools import FOLDER, ROOT
from scipy import stats

from setclr.cli import main
from setclr.experiments import load_run
from setclr.experiments.records import read_record
from setclr.recipes import PUBLISHED, RECIPES, Recipe
from setclr.recipes.recipe import completed
from setclr_course.panels.trained.matching_rates import OWN, PATCHES, found, read_rows
from setclr_course.papers.figures import FIGURES, frame
from setclr_course.papers.folds import folded
from setclr_course.papers.tables import graph_curves, of_seeds, recorded
from setclr_course.search import comparing, searches
from setclr_course.search.recorded import everything, spread
from setclr_course.search.statistics import holm, paired

DATA = ROOT / "data"
README, RESULTS = (" ".join((ROOT / x).read_text().split()) for x in ("README.md", "site/text/results.md"))
CHECKPOINTS = sorted(DATA.glob("checkpoints/*/checkpoint.pt"))
RECORDS = sorted(path for folder in ("", "original/") for path in DATA.glob(f"results/{folder}*.json"))
assert CHECKPOINTS and RECORDS


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda p: p.parent.name)
def test_a_checkpoint_loads_and_embeds(path):
    run = load_run(path.parent)
    assert run.finished and len(run.history) == run.recipe.epochs
    size = (8, 32, 32) if run.recipe.kind == "video" else (32, 32)
    assert run.encoder(torch.rand(2, run.channels, *size)).isfinite().all()


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.stem)
def test_a_record_holds_a_recipe_of_this_version(path):
    record = json.loads(path.read_text())
    recipe = Recipe.from_dict(record["recipe"])
    assert recipe.to_dict() == completed(record["recipe"])
    assert set(record["accuracy_percent"]) >= (
        {"trained"} if recipe.kind == "video" else {"trained", "untrained"}
    )
    assert recipe.kind == "video" or len(record["history"]) == record["epochs"] <= recipe.epochs
    if path.parent.name == "original":
        assert recipe == replace(RECIPES[path.stem.partition("-seed")[0]], seed=recipe.seed, data=recipe.data)


@pytest.mark.parametrize("name", [n for n in RECIPES if RECIPES[n].data in ("mutag", "moving-patches")
                                  and n != "graph-infonce"])  # fmt: skip
def test_the_columns_of_mutag_and_moving_patches_are_recorded(name):
    records = of_seeds(DATA / "results", name)
    assert list(records) == ([0, 1, 2, 3, 4] if RECIPES[name].data == "mutag" else [0, 1, 2])
    for seed, record in records.items():
        assert Recipe.from_dict(record.recipe) == replace(RECIPES[name], seed=seed)
        if RECIPES[name].kind == "graph":
            curve = [row["svm"] for row in record.history]
            assert len(curve) == record.epochs == RECIPES[name].epochs
            last = record.accuracy_percent["trained"]["svm"]
            assert not curve or curve[-1] == pytest.approx(last, abs=0.006)


# Cells that print what records hold and nothing else, with those that they need before them.
SAVED = {
    "01_five_numbers": "c03 harm",
    "03_sparse_support": "c03 harm",
    "09_matching_views": "c03 c13b",
    "careful/10_pretrain_small": "pretrain_small-03 pretrain_small-19",
    "11_pretrain_cifar": "c03 c05 c07 c09 c10 c12 c13b c14 c15b c19b 166ae29f",
    "careful/11_pretrain_cifar": "03 05 07 09 11 07bf7624 d24fbd53 15 18 20 20a 31",
    "12_pretrain_imagenet": "c03 c16 c17",
    "careful/12_pretrain_imagenet": "k03 k30",
    "careful/13_what_was_learned": "c03 ef06ac05 39b94407",
    "15_molecules": "cell03 cell22",
    "16_what_moves": "cell03 cell22",
}


@pytest.mark.parametrize("page", SAVED)
def test_what_is_saved_is_what_the_records_say(page, monkeypatch):
    """A page saved before its records were made anew would show other numbers than the records."""
    path = next(FOLDER.glob(f"{page}.ipynb"))
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    monkeypatch.chdir(path.parent)
    names: dict = {}
    exec(next(c.source for c in cells.values() if "parameters" in c.metadata.get("tags", [])), names)
    for word in SAVED[page].split():
        cell = next(cell for key, cell in cells.items() if key == word or key == f"pretrain_cifar-{word}")
        assert ran(cell.source, names) == saved(cell)


def ran(source: str, names: dict) -> str:
    """What a cell prints, and the table that it ends with."""
    *lines, last = ast.parse(source).body
    table = isinstance(last, ast.Expr) and not ast.unparse(last).startswith(("print", "predict", "panel"))
    lines += [] if table else [last]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if table else None
    shown = value._repr_html_() if isinstance(value, pd.DataFrame | folded) else ""
    return printed.getvalue() + shown


def saved(cell) -> str:
    texts = [out.text for out in cell.outputs if out.output_type == "stream"]
    shown = [out.get("data", {}).get("text/html", "") for out in cell.outputs]
    return "".join(texts + [text for text in shown if "<table" in text])


def test_the_table_of_two_cameras_is_the_recorded_one():
    """Each arm at the rate that it chose on held-out things, and the gains at each rate that all share."""
    rows = read_rows(DATA / "results")
    for row in rows.values():
        held_out = {float(rate): np.mean(runs["matched_percent"]) for rate, runs in row["choose"].items()}
        assert row["chosen"] == max(sorted(held_out), key=held_out.get)
        assert all(runs["seed"] == list(range(10)) for runs in row["report"].values())
    for patches in PATCHES:
        own, *shared = (found(rows, patches, rate) for rate in (OWN, "0.001", "0.003", "0.01"))
        for name, loss in own.items():
            sides = " | ".join(f"{spread(x)} at {rate}" for x, rate in zip(loss.right, loss.rates))
            gains = [at[name].gain for at in (own, *shared)]
            first, *more = (minus(f"{x.difference:+.1f} ({x.low:+.1f} to {x.high:+.1f})") for x in gains)
            assert f"| {patches} | {name} | {sides} | {first} |" in RESULTS
            assert f"| {patches} | {name} | {' | '.join(more)} |" in RESULTS


COLUMN = {
    title: f"qare-table{2 + title.startswith('Sparse')}-conv4-cifar10-" + title.lower().replace(" ", "")
    for title in ("SimCLR", "SimCLR + QARe", "SparseCLR", "SparseCLR + QARe", "supervised", "Deep InfoMax",
                  "RotationNet", "DeepCluster")
} | {"random weights": "qare-table2-conv4-cifar10-random"}  # fmt: skip
CLAIM = ("SimCLR", "SimCLR + QARe", "SparseCLR", "SparseCLR + QARe")  # in the README


def minus(text: str) -> str:
    """Numbers with the sign that the pages have."""
    return text.replace("-", "−")


# By table in small: the row that all others are compared with, and what Holm's test keeps of that.
KEPT = {
    "iot-table1": ("ua", set()),
    "iot-table3": ("lambda0", {"lambda1 above by knn", "lambda5 above by knn"}),
    "mmcl-table6": ("rbf", {f"{a} below by {one}" for a in ("linear", "tanh") for one in ("linear", "knn")}),
    "mmcl-table7": ("mmcl-{batch}", {
        "hcl-batch64 above by linear", "hcl-batch64 above by knn",
        "dcl-batch64 below by linear", "simclr-batch64 below by knn",
    }),
}  # fmt: skip


@pytest.mark.parametrize("figure", KEPT)
def test_a_table_in_small_with_rates_of_its_own_is_the_recorded_one(figure):
    """Each row at the rate that is best on validation images; its differences from one row, all at once."""
    found, (beside, kept) = frame(figure, DATA / "results"), KEPT[figure]
    runs = found.pivot(index="seed", columns="row")
    base = {row: beside.format(batch=row.split("-")[-1]) for row in runs["linear"]}
    couples = [(row, other) for row, other in base.items() if row != other]
    told = {one: comparing.told_apart(runs[one], couples).set_index("a") for one in ("linear", "knn")}
    sure = {one: table[table["holm"] <= 0.05] for one, table in told.items()}
    assert kept == {f"{x.Index} {'above' if x.difference > 0 else 'below'} by {one}"
                    for one, table in sure.items() for x in table.itertuples()}  # fmt: skip
    if figure.startswith("iot"):
        half = (told["linear"]["high"] - told["linear"]["low"]) / 2
        assert f"p by Holm is {min(one['holm'].min() for one in told.values()):.2f}" in RESULTS
        assert f"reach {half.min():.1f} to {half.max():.1f} points to either side" in RESULTS
    for row, own in found.groupby("row"):
        name, cells = FIGURES[figure].rows[row], []
        trials = map(read_record, (DATA / "results/small-rates").glob(f"*/{name}-seed0.json"))
        rates = {one.recipe["lr"]: one.accuracy_percent["trained"]["knn"] for one in trials}
        assert RECIPES[name].lr == max(rates, key=rates.get) and own["seed"].tolist() == list(range(5))
        assert len(rates) == 5 or min(rates) < RECIPES[name].lr < max(rates)
        for measure in ("linear", "knn"):
            x = told[measure].loc[row] if row != base[row] else None
            off = "–" if x is None else minus(f"{x.difference:+.1f} ({x.low:+.1f} to {x.high:+.1f})")
            cells += [spread(own[measure]), off]
        assert f" | {RECIPES[name].lr:g} | {' | '.join(cells)} |" in RESULTS, row


def of_column(title: str, folder: str) -> dict[int, float]:
    """What was published of a row of COLUMN, measured, by seed; of the records in that folder."""
    (metric,) = PUBLISHED[COLUMN[title]].numbers  # "linear", or "classifier" where one was trained
    records = of_seeds(DATA / "results" / folder, COLUMN[title])
    return {seed: one.accuracy_percent["trained"][metric] for seed, one in records.items()}


def gap(a: dict[int, float], b: dict[int, float]) -> str:
    """The difference a − b, paired by seed: a mean with its interval, or that of one seed."""
    both = sorted(a.keys() & b.keys())
    if len(both) == 1:
        return minus(f"{a[both[0]] - b[both[0]]:.1f}")
    mean, low, high, _ = paired([a[seed] for seed in both], [b[seed] for seed in both])
    return minus(f"{mean + 0.0:.1f} (95 %: {low:.1f} to {high:.1f})")


def test_the_column_is_the_recorded_one():
    """Means, spreads and differences of QARe's column: on original pixels in the README and on the page of
    results, on JPEG where there is no other; the gain with its interval; what JPEG costs."""
    for title, name in COLUMN.items():
        own, jpeg = (of_column(title, folder) for folder in ("original", "jpeg75"))
        ours, ((metric, printed),) = own or jpeg, PUBLISHED[name].numbers.items()
        seeds, values = ", ".join(map(str, ours)), list(ours.values())
        shown = str(PUBLISHED[name]).removeprefix(f"{metric} ")
        off = minus(f"{np.mean(values) - printed:.1f}")
        line = f"| {title} | {shown} | {spread(values)} | {seeds} | {off} |"
        assert line in RESULTS and (line in README) == (title in CLAIM)
        if own:
            short, cost = title.replace("supervised", "supervised training"), gap(own, jpeg)
            assert f"{short} loses {cost}" in RESULTS or f"{short} {cost}" in RESULTS
    plain, qare = ([of_column(title, "original") for title in CLAIM[k::2]] for k in (0, 1))
    first, second = map(gap, qare, plain)
    assert f"the gain on SimCLR is {first.replace(' (', ' here (')}, that on SparseCLR {second}" in RESULTS
    assert f"{first} on SimCLR and {second} on SparseCLR" in README


def test_the_answer_is_written_when_all_runs_of_the_question_are_in():
    arms = [*(COLUMN[title] for title in CLAIM), *(name for name in RECIPES if name.startswith("claim-"))]
    found = sum(len(of_seeds(DATA / "results/original", name)) for name in arms)
    assert len(arms) == 8 and (f"{found} of 40 runs are on record" in RESULTS) == (found < 40)


def trained_as(folder: str, metric: str) -> list[float]:
    """A measure of all records of a folder of data/results, seed by seed."""
    paths = sorted((DATA / "results" / folder).glob("*-seed*.json"))
    assert [path.stem[-1] for path in paths] == ["0", "1", "2"]
    return [read_record(path).accuracy_percent["trained"][metric] for path in paths]


def test_the_authors_own_training_is_the_recorded_one():
    """Means and spreads, and the intervals of differences. Those of the supervised training are Welch's,
    because their seeds are not ours."""
    one, other = (trained_as(f"deepcluster/{folder}", "linear") for folder in ("recipe", "program"))
    less, low, high, _ = paired(one, other)
    said = f"way {spread(other)}: {less:.1f} less (95 %: {low:.1f} to {high:.1f} paired by seed, "
    low, high = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert minus(f"{spread(one)} by the probe, the program's {said}{low:.1f} to {high:.1f}") in RESULTS
    kept = json.loads((DATA / "results/supervised/program.json").read_text())
    theirs, ours = list(kept["classifier_percent"].values()), trained_as("supervised/ours", "classifier")
    assert kept["epochs"] == 50 and len(theirs) == 3
    low, high = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    said = f"has {spread(theirs)}; ours has {spread(ours)} "
    assert minus(f"{said}(their difference, 95 %, Welch: {low:.1f} to {high:.1f})") in RESULTS


def test_the_searched_comparison_is_the_recorded_one():
    """Settings, none of them at an end of its grid, means and spreads of all losses, ten seeds each. All
    records are of today's recipes and grid: others would make the rest of a search another one."""
    searched = {name: recipe for name, recipe in RECIPES.items() if name.startswith("compare-photo-")}
    tried = searches.tried(searched, DATA / "results/search")
    runs, grown = comparing.read(DATA / "results/search"), set()
    assert set(runs["name"]) == set(tried) == set(searched) and not runs["collapsed"].any()
    files = [*(DATA / "results/search").rglob("*.json")]
    assert len(files) == sum(map(len, tried.values())) + len(runs)
    assert re.match(r"(\d+) of \1 runs", searches.so_far(searched, range(10), DATA / "results/search"))
    for path in files:
        assert ("validation" in json.loads(path.read_text())["images"]) == ("trials" in path.parts)
    for name, of in runs.groupby("name"):
        lr, parameter, value = of[["lr", "hyperparameter", "value"]].iloc[0]
        short = name.removeprefix("compare-photo-")
        line = f"| {short} | {lr:g} | {parameter} {value:g} | {spread(of.knn)} | {spread(of.linear)} |"
        assert line in RESULTS and of["seed"].tolist() == list(range(10))
        for chosen, among in ((lr, tried[name]["lr"]), (value, tried[name]["value"])):
            assert among.min() < chosen < among.max()
        if len(tried[name].query("seed == 0")) > 20:
            grown.add(short)
    assert grown == {"infonce+qare", "sparseclr+qare", "iot-rows", "mmcl-exact"}


def test_what_is_said_of_the_searched_losses_is_what_the_records_say():
    """How far the intervals of the nine against InfoNCE reach."""
    runs = comparing.read(DATA / "results/search")
    runs["name"] = runs["name"].str.removeprefix("compare-photo-")
    knn, linear = (runs.pivot(index="name", columns="seed", values=one) for one in ("knn", "linear"))
    for x, reach in ((knn, "1.8 to 2.8"), (linear, "1.1 to 3.5")):
        nine = {name: paired(x.loc[name], x.loc["infonce"], questions=9) for name in x.index.drop("infonce")}
        halves = [(one.high - one.low) / 2 for one in nine.values()]
        assert f"{min(halves):.1f} to {max(halves):.1f}" == reach and reach in RESULTS and max(halves) < 4
        for off in (nine["infonce+qare"], nine["iot-both"]):
            assert minus(f"({off.low:.1f} to {off.high:.1f})") in RESULTS


SIZES = json.loads((DATA / "results/sizes/graphs.json").read_text())["svm"]  # of two numbers of a graph


def on_graphs(data: str) -> dict[str, list]:
    """The curves of the records on a set of graphs, seed by seed."""
    return {name: graph_curves(runs) for name, runs in recorded(DATA / "results", "graph", data).items()}


def ends(curves: list) -> list[float]:
    return [curve[-1] for curve in curves]


def test_the_columns_of_graphs_are_the_recorded_ones():
    """MUTAG's printed rows in the README; both columns on the page of results, beside the untrained encoder
    and beside two numbers of a graph."""
    for data in ("mutag", "imdb-binary"):
        for name, curves in on_graphs(data).items():
            shown = str(PUBLISHED.get(name, "–")).removeprefix("svm ")
            best = f" {spread(list(map(max, curves)))} |" if data == "mutag" else ""
            assert f"| {name.split(f'-{data}-')[1]} | {shown} | {spread(ends(curves))} |{best} " in RESULTS
            assert len(curves) == 5
        assert spread(SIZES[data]) in RESULTS and len(SIZES[data]) == 5
    page = (ROOT / "notebooks/15_molecules.ipynb").read_text()
    assert f"give the SVM {spread(SIZES['imdb-binary'])} here" in page
    last = {name: ends(curves) for name, curves in on_graphs("mutag").items()}
    for title in ("GraphCL", "MMCL"):
        row = f"mmcl-table4-mutag-{title.lower()}"
        off = minus(f"{np.mean(last[row]) - PUBLISHED[row].numbers['svm']:.1f}")
        shown = str(PUBLISHED[row]).removeprefix("svm ")
        assert f"| {title}, MUTAG | {shown} | {spread(last[row])} | 0–4 | {off} |" in README
    assert f"untrained has {spread(last['graphs-mutag-untrained'])}" in README


def test_what_is_said_of_leads_on_graphs_is_what_the_records_say():
    """On IMDB-BINARY each loss is above the untrained encoder, by Holm's test of all eight, and none is above
    two numbers of a graph; on MUTAG none is above either."""
    leads = []
    for data, sure in (("mutag", 0), ("imdb-binary", 8)):
        last = {name: ends(curves) for name, curves in on_graphs(data).items()}
        mmcl, graphcl = (last[f"mmcl-table4-{data}-{name}"] for name in ("mmcl", "graphcl"))
        leads.append(gap(dict(enumerate(mmcl)), dict(enumerate(graphcl))))
        untrained = last.pop(f"graphs-{data}-untrained")
        for beside, above in ((untrained, sure), (SIZES[data], 0)):
            gaps = [paired(ours, beside) for ours in last.values()]
            found = [gap.difference > 0 for gap, p in zip(gaps, holm([gap.p for gap in gaps])) if p <= 0.05]
            assert sum(found) == above
    assert f"it is {leads[0]} on MUTAG and {leads[1]} here." in RESULTS


# data/results/all.csv is what all records say, and the README's table is what it says.


def test_the_table_of_all_records_is_theirs():
    """`setclr results --csv data/results/all.csv` writes it."""
    kept, made = (DATA / "results" / "all.csv").read_text(), everything(DATA / "results")[0]
    assert made.to_csv(index=False, lineterminator="\n") == kept


def test_neither_of_qares_gains_is_shown_and_no_row_differs_from_the_printed_one():
    """Sentences of the page of results, from the table: kNN beside the probe, two losses at once, Welch."""
    kept = pd.read_csv(DATA / "results" / "all.csv")

    def row(title: str, measure: str) -> pd.Series:
        of = kept[kept["record"].str.startswith(f"original/{COLUMN[title]}-seed")]
        return of.set_index("seed")[f"trained, {measure}"]

    sparse = [row("SparseCLR + QARe", x) - row("SparseCLR", x) for x in ("knn", "linear")]
    knn, probe = (paired(gain, 0 * gain, questions=questions) for gain, questions in zip(sparse, (1, 2)))
    said = f"By kNN the gain there is {knn.difference:.1f} (95 %: {knn.low:.1f} to {knn.high:.1f})"
    both = f"by the probe, its interval goes from {probe.low:.1f} to {probe.high:.1f}"
    assert said.replace("-", "−") in RESULTS and both.replace("-", "−") in RESULTS
    p = {}
    for title in (*CLAIM, "random weights", "supervised"):
        ((measure, printed),) = (published := PUBLISHED[COLUMN[title]]).numbers.items()
        spread_of = float(str(published).split("± ")[1])
        ours = row(title, measure)
        three, many = (printed, spread_of, 3), (ours.mean(), ours.std(), len(ours))
        p[title] = stats.ttest_ind_from_stats(*three, *many, equal_var=False).pvalue
    assert f"the smallest p, that of {min(p, key=p.get)}, is {min(p.values()):.2f}" in RESULTS


def test_a_damaged_record_is_named_and_left_out(tmp_path, capsys):
    whole = next(DATA.glob("results/original/*.json"))
    (tmp_path / "below" / "trials").mkdir(parents=True)
    shutil.copy(whole, tmp_path / "below" / "trials" / "a-seed0.json")
    (tmp_path / "b.json").write_text(json.dumps({"accuracy_percent": {}}))
    (tmp_path / "another.json").write_text(json.dumps({"seconds": 3}))
    main(["results", str(tmp_path), "--csv", str(tmp_path / "all.csv")])
    said = capsys.readouterr().out
    assert "all.csv: 1 records" in said and "another" not in said
    assert f"Left out: {tmp_path / 'b.json'} is damaged or no record" in said
    assert pd.read_csv(tmp_path / "all.csv")["record"].tolist() == ["below/trials/a-seed0"]

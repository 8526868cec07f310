"""The panels of a search and of the papers' figures in small: Student's tests and Holm's, by seed."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from setclr_course import panels
from setclr_course.kit.palette import WHITE
from setclr_course.panels.trained import knob_curves
from setclr_course.panels.trained.comparison import MEASURES
from setclr_course.panels.trained.paired_gaps import made_up, told_apart
from setclr_course.search.comparing import pairs
from setclr_course.search.statistics import holm

both_measures = pytest.mark.parametrize("measure, column", [("kNN", "knn"), ("linear probe", "linear")])


# Settings of one knob


@both_measures
@pytest.mark.parametrize("loss", ["infonce", "groco"])
def test_the_sentence_is_that_of_the_trials(loss, measure, column):
    trials = knob_curves.made_up()
    runs, panel = trials[loss], panels.knob_curves(trials, loss=loss, measure=measure)
    settings = product(enumerate(sorted(set(runs["lr"])), 1), enumerate(sorted(set(runs["value"])), 1))
    for (i, rate), (j, value) in settings:
        seen = panel.seen({**panel.values, "rate": i, "knob": j})
        here = runs[(runs["lr"] == rate) & (runs["value"] == value)][column]
        assert f" {value:g} at rate {rate:g}: {here.mean():.1f} % by {measure}" in seen.sentence
        assert f"({len(here)} of 3 seeds)" in seen.sentence
        first = runs[(runs["lr"] == rate) & (runs["seed"] == 0)][column]
        assert seen.sentence.endswith(f"the knob moves it by {first.max() - first.min():.1f} points.")
    best = runs[runs["seed"] == 0].sort_values("knn").iloc[-1]
    knob = {"infonce": "temperature", "groco": "beta"}[loss]
    assert f"Chosen by kNN: {knob} {best.value:g} at {best.lr:g}, {best[column]:.1f} %." in panel.alt


def test_settings_that_diverged_are_shown_as_nothing():
    runs = knob_curves.made_up()["infonce"]
    gone = (runs["lr"] == 0.01) & (runs["value"] == 1.0)
    runs.loc[gone, ["knn", "linear"]], runs.loc[gone, "collapsed"] = np.nan, True
    panel = panels.knob_curves({"infonce": runs}, knob=5)
    assert "at rate 0.01: it diverged." in panel.alt and "nan" not in panel.alt
    assert np.isnan(knob_curves.searched(runs).seeds[:, -1, -1]).all()
    cells = next(mark for mark in panel.scene["plots"][0]["marks"] if mark["kind"] == "cells")
    assert cells["words"][-1] == "×" and not [link for link in panel.scene["links"] if "nan" in link[0]]
    runs.loc[runs["lr"] == 0.01, ["knn", "linear"]] = np.nan
    assert panels.knob_curves({"infonce": runs}).alt.endswith("At rate 0.01 every run diverged.")


# Final runs


def final_runs() -> pd.DataFrame:
    """Five runs of four losses that nobody has trained."""
    noise, rows = np.random.default_rng(6), []
    for name, mean in {"p": 58.0, "q": 56.5, "r": 56.2, "s": 53.0}.items():
        for seed in range(5):
            knn, linear = mean + noise.normal(0, 0.5), mean + 2 + noise.normal(0, 0.5)
            rows.append((f"loss {name}", seed, knn, linear, False))
    return pd.DataFrame(rows, columns=["name", "seed", "knn", "linear", "collapsed"])


@both_measures
def test_the_gaps_are_those_of_the_searchs_pairs_and_what_holm_keeps_is_filled(measure, column):
    runs = final_runs()
    table, panel = pairs(runs), panels.paired_gaps(runs, measure=measure)
    table = table[table["metric"] == column]
    names = list(runs.groupby("name")["knn"].mean().sort_values(ascending=False).index)
    for place, base in enumerate(names):
        panel.controls["row"].value = round(100 * place / 3)
        kept = []
        for pair in table[table["holm"] <= 0.05].itertuples():
            if base in (pair.a, pair.b):
                other, sign = (pair.b, -1) if pair.a == base else (pair.a, 1)
                low, high = sorted((sign * pair.low, sign * pair.high))
                assert f"{other} {sign * pair.difference:+.1f} ({low:+.1f} to {high:+.1f})" in panel.alt
                kept.append(names.index(other))
        mean = runs.loc[runs["name"] == base, column].mean()
        assert panel.alt.startswith(f"final runs by {measure}, {base}: {mean:.1f} %, the mean of 5 seeds. ")
        assert f"Holm's test of all 6 pairs keeps {len(kept)} of 3 gaps to it" in panel.alt
        dots = panel.scene["plots"][1]["marks"][-1]
        assert sorted(int(y) for y, c in zip(dots["y"], dots["colour"]) if c != WHITE) == sorted(kept)
    assert kept, "the last of the made-up losses is far below the others"


def test_final_runs_that_collapsed_have_no_gaps_and_stand_last():
    runs = final_runs()
    lost = runs["name"] == "loss p"
    runs.loc[lost & (runs["seed"] == 2), "collapsed"] = True
    panel = panels.paired_gaps(runs, row=0)
    assert "loss p:" in panel.alt and "the mean of 4 seeds. " in panel.alt and "of 3 gaps" in panel.alt
    runs.loc[lost, ["knn", "linear"]], runs.loc[lost, "collapsed"] = np.nan, True
    panel = panels.paired_gaps(runs)
    assert panel.alt == "loss p: no run learnt, so it has no gaps." and len(panel.scene["links"]) == 3
    panel.controls["row"].value = 0
    assert "Holm's test of all 3 pairs keeps 1 of 2 gaps" in panel.alt and "nan" not in panel.alt
    with pytest.raises(ValueError, match="runs must hold two losses with two seeds in common"):
        panels.paired_gaps(runs[runs["name"] == "loss q"])


# Figures of papers


@both_measures
def test_rows_are_compared_by_scipys_paired_test_and_holms_steps(measure, column):
    frame, _ = made_up()["table A"]
    wide = frame.pivot(index="seed", columns="row", values=column)
    base, found = wide["setting q"], told_apart(frame, "setting q", column)
    tests = {row: stats.ttest_rel(wide[row], base) for row in wide if row != "setting q"}
    for (row, test), adjusted in zip(tests.items(), holm([test.pvalue for test in tests.values()])):
        gap, ends = (wide[row] - base).mean(), test.confidence_interval(1 - 0.05 / 3)
        columns = ["difference", "holm", "low", "high"]
        assert [*found.loc[row, columns]] == pytest.approx([gap, adjusted, ends.low, ends.high])
    panel = panels.paired_gaps(figure="table A", row=35, measure=measure)
    apart = found[found["holm"] <= 0.05]
    assert panel.alt.startswith(f"table A by {measure}, setting q: {base.mean():.1f} %, the mean of 3")
    assert f"Holm's test keeps {len(apart)} of 3 gaps to it" in panel.alt


def test_dots_are_the_runs_and_the_gaps_stand_beside_those_of_the_paper():
    figures = made_up()
    panel = panels.paired_gaps(figures, figure="table B", measure="linear probe", row=0)
    (frame, printed), (here, gaps) = figures["table B"], panel.scene["plots"]
    dots = next(mark for mark in here["marks"] if mark["kind"] == "dots" and mark["size"] == 7)
    assert dots["x"] == pytest.approx(frame["linear"].tolist(), rel=1e-5)
    means, (theirs, ours) = frame.groupby("row")["linear"].mean(), gaps["marks"][-2:]
    assert theirs["sign"] == "◆" and gaps["xlabel"].endswith("◆ in the paper")
    for mark, numbers in ((theirs, printed["linear"]), (ours, means)):
        assert mark["x"] == pytest.approx([numbers.iloc[k] - numbers.iloc[0] for k in (1, 2)], rel=1e-5)


def test_runs_that_diverged_and_rows_that_the_paper_does_not_print_are_left_out():
    frame, printed = made_up()["table A"]
    frame.loc[frame["row"] == "setting p", ["knn", "linear"]] = np.nan
    panel = panels.paired_gaps({"table A": (frame, printed.drop("setting q"))})
    assert "of 2 gaps to it" in panel.alt and len(panel.scene["links"]) == 3
    with pytest.raises(ValueError, match="figures must have records, got none of table A"):
        panels.paired_gaps({"table A": (frame[:0], printed)})
    curve = pd.DataFrame(columns=["knn", "linear"], dtype=float)  # of which nothing is printed
    panel = panels.paired_gaps({"a curve": (frame, curve)})
    assert "setting s:" in panel.alt and panel.scene["plots"][1]["xlabel"] == "points above it"


def test_the_heads_outputs_are_offered_where_all_figures_have_them():
    frame, printed = made_up()["table B"]
    figures = {"table B": (frame.assign(**{"knn-projection": frame["knn"] - 9}), printed)}
    panel = panels.paired_gaps(figures, row=0, measure="kNN in the head's outputs")
    mean = frame.loc[frame["row"] == "setting p", "knn"].mean() - 9
    assert f"by kNN in the head's outputs, setting p: {mean:.1f} %" in panel.alt
    measures = panels.paired_gaps(figures | {"table A": made_up()["table A"]}).knobs["measure"].names
    assert measures == tuple(MEASURES)

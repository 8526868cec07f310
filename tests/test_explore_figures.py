"""The panel of paired gaps with the papers' figures in small: its tests are Student's and Holm's, by seed."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from setclr_course import panels
from setclr_course.kit.palette import BLUE, GREEN, GREY
from setclr_course.kit.scene import Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import MEASURES
from setclr_course.panels.trained.paired_gaps import made_up, told_apart


@pytest.mark.parametrize("measure, column", [("kNN", "knn"), ("linear probe", "linear")])
def test_rows_are_compared_by_scipys_paired_test_and_holms_steps(measure, column):
    frame, _ = made_up()["table A"]
    wide = frame.pivot(index="seed", columns="row", values=column)
    p = {row: stats.ttest_rel(wide[row], wide["setting q"]).pvalue for row in wide if row != "setting q"}
    found = told_apart(frame, "setting q", column)
    worst = 0.0
    for place, row in enumerate(sorted(p, key=p.__getitem__)):
        worst = max(worst, min((len(p) - place) * p[row], 1))
        gap = (wide[row] - wide["setting q"]).mean()
        assert [*found.loc[row, ["difference", "holm"]]] == pytest.approx([gap, worst])
        test = stats.ttest_rel(wide[row], wide["setting q"]).confidence_interval(1 - 0.05 / len(p))
        assert [*found.loc[row, ["low", "high"]]] == pytest.approx([test.low, test.high])
    panel = panels.paired_gaps(figure="table A", row=35, measure=measure)
    apart = found[found["holm"] <= 0.05]
    assert panel.alt.startswith(
        f"table A by {measure}, setting q: {wide['setting q'].mean():.1f} %, the mean of 3"
    )
    assert f"Holm's test keeps {len(apart)} of 3 gaps to it" in panel.alt
    assert all(f"{row} {gap:+.1f} (" in panel.alt for row, gap in apart["difference"].items())


@pytest.mark.parametrize("figure, places", [("table A", {0: "p", 35: "q", 65: "r", 100: "s"}),
                                            ("table B", {0: "p", 50: "q", 100: "r"})])  # fmt: skip
def test_the_grip_is_dragged_from_row_to_row(figure, places):
    panel = panels.paired_gaps(figure=figure)
    for at, (row, name) in enumerate(places.items()):
        seen = panel.seen({**panel.values, "row": row})
        assert f"{figure} by kNN, setting {name}:" in seen.sentence
        assert panel.handles["row"].values(panel.knobs, 0, at)["row"] == pytest.approx(row, abs=2.5)
        assert seen.handles["row"].point[1] == at
    assert panel.handles["row"].ends == (0, len(places) - 1)


def test_dots_are_the_runs_and_the_gaps_stand_beside_those_of_the_paper():
    figures = made_up()
    panel = panels.paired_gaps(figures, figure="table B", measure="linear probe", row=0)
    (frame, printed), (here, gaps) = figures["table B"], panel.scene["plots"]
    dots = next(mark for mark in here["marks"] if mark["kind"] == "dots" and mark["size"] == 7)
    assert dots["x"] == pytest.approx(frame["linear"].tolist(), rel=1e-5)
    every = np.concatenate([both[["knn", "linear"]].to_numpy().ravel() for both, _ in figures.values()])
    assert here["x"][0] < every.min() and every.max() < here["x"][1]
    means, (theirs, ours) = frame.groupby("row")["linear"].mean(), gaps["marks"][-2:]
    assert theirs["sign"] == "◆" and gaps["xlabel"].endswith("◆ in the paper")
    for mark, numbers in ((theirs, printed["linear"]), (ours, means)):
        assert mark["x"] == pytest.approx([numbers.iloc[k] - numbers.iloc[0] for k in (1, 2)], rel=1e-5)
    assert max(map(abs, theirs["x"] + ours["x"])) < gaps["x"][1]


def test_rows_of_seeds_have_a_mean_where_there_are_several():
    plot = Page(["plot"]).plot("plot", (0, 9), (0, 9))
    rows = seed_rows(plot, [[], [3.0], [4.0, 7.0]], [BLUE, GREEN, GREY])
    dots, lines = plot.marks
    assert dots["x"] == [3, 4, 7] and dots["colour"] == [GREEN, GREY, GREY]
    assert dots["y"] == pytest.approx([1, 2 - 0.18, 2 + 0.18])
    assert (lines["x"], lines["u"], lines["y"], lines["v"]) == ([5.5], [5.5], [1.7], [2.3])
    assert [[tuple(piece.numbers) for piece in row] for row in rows] == [[(), ()], [(0,), ()], [(1, 2), (0,)]]


def test_runs_that_diverged_and_rows_that_the_paper_does_not_print_are_left_out():
    frame, printed = made_up()["table A"]
    frame.loc[frame["row"] == "setting p", ["knn", "linear"]] = np.nan
    panel = panels.paired_gaps({"table A": (frame, printed.drop("setting q"))})
    assert "of 2 gaps to it" in panel.alt and len(panel.scene["links"]) == 3
    panel.controls["row"].value = 0
    assert panel.alt == "setting p: no run learnt, so it has no gaps."
    here = panel.scene["plots"][0]
    assert here["x"][0] < panel.handles["row"].point[0] < here["x"][1]
    with pytest.raises(ValueError, match="figures must have records, got none of table A"):
        panels.paired_gaps({"table A": (frame[:0], printed)})
    curve = pd.DataFrame(columns=["knn", "linear"], dtype=float)  # of which nothing is printed
    panel = panels.paired_gaps({"a curve": (frame, curve)})
    assert "setting s:" in panel.alt and panel.knobs["measure"].names == tuple(MEASURES)
    assert panel.scene["plots"][1]["xlabel"] == "points above it"


def test_the_heads_outputs_are_offered_where_all_figures_have_them():
    figures = {title: (frame.assign(**{"knn-projection": frame["knn"] - 9}), printed)
               for title, (frame, printed) in made_up().items()}  # fmt: skip
    panel = panels.paired_gaps(figures, figure="table B", row=0, measure="kNN in the head's outputs")
    frame, _ = made_up()["table B"]
    mean = frame.loc[frame["row"] == "setting p", "knn"].mean() - 9
    assert f"by kNN in the head's outputs, setting p: {mean:.1f} %" in panel.alt
    figures["table A"] = made_up()["table A"]
    assert len(panels.paired_gaps(figures).knobs["measure"].names) == 2

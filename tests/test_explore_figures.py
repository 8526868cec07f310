"""The panel of the papers' figures in small: its comparisons are Student's and Holm's, paired by seed."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from setclr_course import panels
from setclr_course.kit.palette import BLUE, GREEN, GREY
from setclr_course.kit.scene import Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import MEASURES
from setclr_course.panels.trained.small_figures import made_up, told_apart


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
        assert found[row] == (pytest.approx(gap), pytest.approx(worst))
    panel = panels.small_figures(figure="table A", row=35, measure=measure)
    apart = [row for row, (_, after) in found.items() if after <= 0.05]
    assert f"setting q has {wide['setting q'].mean():.1f} % by {measure}" in panel.alt
    assert f"Of 3 other rows, paired by seed, Holm's test tells {len(apart)} apart" in panel.alt
    assert all(f"{row} {found[row][0]:+.1f}" in panel.alt for row in apart)


@pytest.mark.parametrize("figure, places", [("table A", {0: "p", 35: "q", 65: "r", 100: "s"}),
                                            ("table B", {0: "p", 50: "q", 100: "r"})])  # fmt: skip
def test_the_grip_is_dragged_from_row_to_row(figure, places):
    panel = panels.small_figures(figure=figure)
    for at, (row, name) in enumerate(places.items()):
        seen = panel.seen({**panel.values, "row": row})
        assert f"{figure} in small: setting {name} has" in seen.sentence
        assert panel.handles["row"].values(panel.knobs, 0, at)["row"] == pytest.approx(row, abs=2.5)
        assert seen.handles["row"].point[1] == at
    assert panel.handles["row"].ends == (0, len(places) - 1)


def test_dots_are_the_runs_and_what_the_paper_printed_on_axes_that_hold_both_figures():
    figures = made_up()
    panel = panels.small_figures(figures, figure="table B", measure="linear probe")
    frame, printed = figures["table B"]
    for plot, numbers, part in zip(panel.scene["plots"], (frame["linear"], printed["linear"]), (0, 1)):
        dots = next(mark for mark in plot["marks"] if mark["kind"] == "dots" and mark["size"] == 7)
        assert dots["x"] == pytest.approx(numbers.tolist(), rel=1e-5)
        every = [both[part][["knn", "linear"]].to_numpy() for both in figures.values()]
        assert plot["x"][0] < min(x.min() for x in every) and max(x.max() for x in every) < plot["x"][1]


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
    panel = panels.small_figures({"table A": (frame, printed.drop("setting q"))})
    assert "Of 2 other rows" in panel.alt and len(panel.scene["links"]) == 3
    panel.controls["row"].value = 0
    assert "setting p diverged. Of 0 other rows" in panel.alt
    here = panel.scene["plots"][0]
    assert here["x"][0] < panel.handles["row"].point[0] < here["x"][1]
    with pytest.raises(ValueError, match="figures must have records, got none of table A"):
        panels.small_figures({"table A": (frame[:0], printed)})
    curve = pd.DataFrame(columns=["knn", "linear"], dtype=float)  # of which nothing is printed
    panel = panels.small_figures({"a curve": (frame, curve)})
    assert "setting s has" in panel.alt and panel.knobs["measure"].names == tuple(MEASURES)
    assert ["no numbers are printed"] in [mark.get("said") for mark in panel.scene["plots"][1]["marks"]]


def test_the_heads_outputs_are_offered_where_all_figures_have_them():
    figures = {title: (frame.assign(**{"knn-projection": frame["knn"] - 9}), printed)
               for title, (frame, printed) in made_up().items()}  # fmt: skip
    panel = panels.small_figures(figures, figure="table B", row=0, measure="kNN in the head's outputs")
    frame, _ = made_up()["table B"]
    mean = frame.loc[frame["row"] == "setting p", "knn"].mean() - 9
    assert f"setting p has {mean:.1f} % by kNN in the head's outputs" in panel.alt
    figures["table A"] = made_up()["table A"]
    assert len(panels.small_figures(figures).knobs["measure"].names) == 2

"""The panel of the papers' figures in small: its comparisons are Student's and Holm's, paired by seed."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from setclr_course import panels
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


def test_the_grip_is_dragged_from_row_to_row():
    panel = panels.small_figures(row=100)
    handle = panel.handles["row"]
    for row, name in ((0, "p"), (35, "q"), (65, "r"), (100, "s")):
        place = handle.place({**panel.values, "row": row})
        moved = handle.values(panel.controls, place)
        assert moved["row"] == pytest.approx(row, abs=2.5), "the slider's step is 5"
        panel.controls["row"].value = row
        assert f"setting {name} has" in panel.alt
    ends = [handle.place({**panel.values, "row": row})[1] for row in (0, 100)]
    panel.controls["figure"].value = "table B"  # whose three rows fill the height of four
    for row, name, height in ((0, "p", ends[0]), (50, "q", sum(ends) / 2), (100, "r", ends[1])):
        panel.controls["row"].value = row
        place = handle.place(panel.values)
        assert f"table B in small: setting {name} has" in panel.alt
        assert place[1] == pytest.approx(height, abs=2e-5), "places are given to five digits"
        assert handle.values(panel.controls, place)["row"] == pytest.approx(row)


def test_runs_that_diverged_and_rows_that_the_paper_does_not_print_are_left_out():
    frame, printed = made_up()["table A"]
    frame.loc[frame["row"] == "setting p", ["knn", "linear"]] = np.nan
    panel = panels.small_figures({"table A": (frame, printed.drop("setting q"))})
    assert "Of 2 other rows" in panel.alt and len(panel.front.shown["links"]) == 3
    panel.controls["row"].value = 0
    assert "setting p diverged. Of 0 other rows" in panel.alt
    with pytest.raises(ValueError, match="figures must have records, got none of table A"):
        panels.small_figures({"table A": (frame[:0], printed)})
    curve = pd.DataFrame(columns=["knn", "linear"], dtype=float)  # of which nothing is printed
    panel = panels.small_figures({"a curve": (frame, curve)})
    assert "setting s has" in panel.alt and list(panel.controls["measure"].options) == [*MEASURES]


def test_the_heads_outputs_are_offered_where_all_figures_have_them():
    figures = {title: (frame.assign(**{"knn-projection": frame["knn"] - 9}), printed)
               for title, (frame, printed) in made_up().items()}  # fmt: skip
    panel = panels.small_figures(figures, figure="table B", row=0, measure="kNN in the head's outputs")
    frame, _ = made_up()["table B"]
    mean = frame.loc[frame["row"] == "setting p", "knn"].mean() - 9
    assert f"setting p has {mean:.1f} % by kNN in the head's outputs" in panel.alt
    figures["table A"] = made_up()["table A"]
    assert len(panels.small_figures(figures).controls["measure"].options) == 2

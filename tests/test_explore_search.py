"""The panel of a search's trials: what it says is what the trials were."""

import numpy as np
import pytest

from setclr import explore
from setclr.explore.trained.knob_curves import axes_of, first_seed, made_up


@pytest.mark.parametrize("measure, column", [("kNN", "knn"), ("linear probe", "linear")])
@pytest.mark.parametrize("loss", ["infonce", "groco"])
def test_the_sentence_is_that_of_the_trials(loss, measure, column):
    trials = made_up()
    runs = trials[loss]
    rates, values = axes_of(runs)
    panel = explore.knob_curves(trials, loss=loss, measure=measure)
    for i, rate in enumerate(rates, 1):
        for j, value in enumerate(values, 1):
            panel.controls["rate"].value, panel.controls["knob"].value = i, j
            here = runs[(runs["lr"] == rate) & (runs["value"] == value)][column]
            assert f" {value:g} at rate {rate:g}: {here.mean():.1f} % by {measure}" in panel.alt
            assert (f"± {here.std():.1f} over 3 seeds" in panel.alt) == (len(here) == 3)
            first = runs[(runs["lr"] == rate) & (runs["seed"] == 0)][column]
            assert panel.alt.endswith(f"the knob moves it by {first.max() - first.min():.1f} points.")


def test_the_chosen_setting_is_the_one_with_the_best_knn_of_the_first_seed():
    runs = made_up()["groco"]
    best = runs[runs["seed"] == 0].sort_values("knn").iloc[-1]
    panel = explore.knob_curves({"groco": runs}, measure="linear probe")
    assert f"Chosen by kNN: beta {best.value:g} at {best.lr:g}, {best.linear:.1f} %." in panel.alt


def test_a_setting_is_dragged_in_both_directions_and_linked_to_its_numbers():
    panel = explore.knob_curves()
    rates, values = axes_of(made_up()["infonce"])
    handle, where = panel.handles["setting"], {**panel.values, "knob": 5, "rate": 1}
    assert handle.values(panel.controls, handle.place(where)) == {"knob": 5, "rate": 1}
    links = panel.front.shown["links"]
    assert len(links) == len(rates) * len(values)
    assert "rate 0.0003, temperature 0.05: kNN" in links[0]["text"]


def test_settings_that_diverged_are_shown_as_nothing():
    runs = made_up()["infonce"]
    gone = (runs["lr"] == 0.01) & (runs["value"] == 1.0)
    runs.loc[gone, ["knn", "linear"]], runs.loc[gone, "collapsed"] = np.nan, True
    panel = explore.knob_curves({"infonce": runs}, knob=5)
    assert "at rate 0.01: it diverged." in panel.alt
    assert np.isnan(first_seed(runs, "knn")[-1, -1]) and "nan" not in panel.alt
    texts = [link["text"] for link in panel.front.shown["links"]]
    assert texts[-1] == "rate 0.01, temperature 1: it diverged" and not [x for x in texts if "nan" in x]
    runs.loc[runs["lr"] == 0.01, ["knn", "linear"]] = np.nan
    panel = explore.knob_curves({"infonce": runs})
    assert panel.alt.endswith("At rate 0.01 every run diverged.") and "nan" not in panel.alt

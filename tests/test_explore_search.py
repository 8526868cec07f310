"""The panels of a search: what they say is what its trials and its final runs were."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from setclr_course import panels
from setclr_course.kit.palette import WHITE
from setclr_course.panels.trained.knob_curves import made_up, searched


@pytest.mark.parametrize("measure, column", [("kNN", "knn"), ("linear probe", "linear")])
@pytest.mark.parametrize("loss", ["infonce", "groco"])
def test_the_sentence_is_that_of_the_trials(loss, measure, column):
    trials = made_up()
    runs = trials[loss]
    panel = panels.knob_curves(trials, loss=loss, measure=measure)
    settings = product(enumerate(sorted(set(runs["lr"])), 1), enumerate(sorted(set(runs["value"])), 1))
    for (i, rate), (j, value) in settings:
        seen = panel.seen({**panel.values, "rate": i, "knob": j})
        here = runs[(runs["lr"] == rate) & (runs["value"] == value)][column]
        assert f" {value:g} at rate {rate:g}: {here.mean():.1f} % by {measure}" in seen.sentence
        assert f"({len(here)} of 3 seeds)" in seen.sentence
        first = runs[(runs["lr"] == rate) & (runs["seed"] == 0)][column]
        assert seen.sentence.endswith(f"the knob moves it by {first.max() - first.min():.1f} points.")
        curve = next(mark for mark in seen.scene["plots"][1]["marks"] if mark.get("width") == 3)
        assert curve["y"][j - 1] == pytest.approx(here.mean(), rel=1e-5)


def test_the_chosen_setting_is_the_one_with_the_best_knn_of_the_first_seed():
    runs = made_up()["groco"]
    best = runs[runs["seed"] == 0].sort_values("knn").iloc[-1]
    panel = panels.knob_curves({"groco": runs}, measure="linear probe")
    assert f"Chosen by kNN: beta {best.value:g} at {best.lr:g}, {best.linear:.1f} %." in panel.alt


def test_a_setting_is_dragged_in_both_directions_and_linked_to_its_numbers():
    panel = panels.knob_curves()
    assert panel.handles["setting"].values(panel.knobs, 4.2, -0.1) == {"knob": 5, "rate": 1}
    assert panel.handles["knob"].values(panel.knobs, 9, 0) == {"knob": 5}
    links = panel.scene["links"]
    assert len(links) == 4 * 5 and links[0][0].startswith("rate 0.0003, temperature 0.05: ")
    assert [len(over) for _, over, *_ in links] == [1] * 15 + [2] * 5, "the curve is that of the last rate"


def test_settings_that_diverged_are_shown_as_nothing():
    runs = made_up()["infonce"]
    gone = (runs["lr"] == 0.01) & (runs["value"] == 1.0)
    runs.loc[gone, ["knn", "linear"]], runs.loc[gone, "collapsed"] = np.nan, True
    panel = panels.knob_curves({"infonce": runs}, knob=5)
    assert "at rate 0.01: it diverged." in panel.alt
    assert np.isnan(searched(runs).seeds[:, -1, -1]).all() and "nan" not in panel.alt
    cells = next(mark for mark in panel.scene["plots"][0]["marks"] if mark["kind"] == "cells")
    assert cells["words"][-1] == "×"
    texts = [link[0] for link in panel.scene["links"]]
    assert texts[-1] == "rate 0.01, temperature 1: it diverged" and not [x for x in texts if "nan" in x]
    runs.loc[runs["lr"] == 0.01, ["knn", "linear"]] = np.nan
    panel = panels.knob_curves({"infonce": runs})
    assert panel.alt.endswith("At rate 0.01 every run diverged.") and "nan" not in panel.alt


def final_runs() -> pd.DataFrame:
    """Five runs of four losses that nobody has trained."""
    noise, rows = np.random.default_rng(6), []
    for name, mean in {"p": 58.0, "q": 56.5, "r": 56.2, "s": 53.0}.items():
        for seed in range(5):
            knn, linear = mean + noise.normal(0, 0.5), mean + 2 + noise.normal(0, 0.5)
            rows.append((f"loss {name}", seed, knn, linear, False))
    return pd.DataFrame(rows, columns=["name", "seed", "knn", "linear", "collapsed"])


@pytest.mark.parametrize("measure, column", [("kNN", "knn"), ("linear probe", "linear")])
def test_the_gaps_are_those_of_scipys_paired_test_with_holm_and_bonferroni_for_all_pairs(measure, column):
    runs = final_runs()
    wide = runs.pivot(index="seed", columns="name", values=column)
    tests = {pair: stats.ttest_rel(*(wide[name] for name in pair)) for pair in combinations(wide, 2)}
    p, after, worst = {pair: test.pvalue for pair, test in tests.items()}, {}, 0.0
    for place, pair in enumerate(sorted(p, key=p.__getitem__)):
        worst = after[pair] = max(worst, min((len(p) - place) * p[pair], 1))
    panel = panels.paired_gaps(runs, measure=measure)
    names = list(runs.groupby("name")["knn"].mean().sort_values(ascending=False).index)
    for place, base in enumerate(names):
        panel.controls["row"].value = round(100 * place / 3)
        kept = 0
        for name in names:
            pair = (name, base) if (name, base) in tests else (base, name)
            if name != base and after[pair] <= 0.05:
                test, sign = tests[pair], 1 if pair[0] == name else -1
                ends = sorted(sign * end for end in test.confidence_interval(1 - 0.05 / len(tests)))
                gap, kept = (wide[name] - wide[base]).mean(), kept + 1
                assert f"{name} {gap:+.1f} ({ends[0]:+.1f} to {ends[1]:+.1f})" in panel.alt
        mean = wide[base].mean()
        assert panel.alt.startswith(f"final runs by {measure}, {base}: {mean:.1f} %, the mean of 5 seeds. ")
        assert f"Holm's test of all 6 pairs keeps {kept} of 3 gaps to it" in panel.alt
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
    said = [mark for mark in panel.scene["plots"][0]["marks"] if mark["kind"] == "text"]
    assert [(mark["said"], mark["y"]) for mark in said] == [(["no run learnt"], [3])]
    panel.controls["row"].value = 0
    assert "Holm's test of all 3 pairs keeps 1 of 2 gaps" in panel.alt and "nan" not in panel.alt
    with pytest.raises(ValueError, match="runs must hold two losses with two seeds in common"):
        panels.paired_gaps(runs[runs["name"] == "loss q"])


def test_the_grip_of_the_gaps_goes_from_loss_to_loss():
    panel = panels.paired_gaps(final_runs(), row=0)
    handle = panel.handles["row"]
    assert [handle.values(panel.knobs, 0, y)["row"] for y in (-2, 0.1, 3, 7)] == [0, 5, 100, 100]
    panel.controls["row"].value = 35
    assert "from loss q, p after Holm" in panel.scene["links"][0][0] and len(panel.scene["links"]) == 4


@pytest.mark.parametrize("base", range(4))
def test_the_axes_hold_all_runs_and_intervals_and_only_what_holm_keeps_is_filled(base):
    panel = panels.paired_gaps(final_runs(), row=round(100 * base / 3))
    runs, gaps = panel.scene["plots"]
    for plot in (runs, gaps):
        x = [x for mark in plot["marks"] if not mark.get("within") for x in [*mark["x"], *mark.get("u", [])]]
        assert plot["x"][0] <= min(x) and max(x) <= plot["x"][1]
    dots, (rows, at) = gaps["marks"][-1], panel.solve(panel.values)
    filled = {int(y) for y, colour in zip(dots["y"], dots["colour"]) if colour != WHITE}
    found = rows.gaps[base]
    kept = {rows.names.index(name) for name in found.index[found["holm"] <= 0.05]}
    assert filled == kept and at == base and set(dots["y"]) == set(range(4)) - {base}

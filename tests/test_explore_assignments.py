"""The panels of the careful page 02 show what the library computes."""

import itertools

import numpy as np
import pytest
import torch

from setclr.inner import linear_assignment, top_probability
from setclr_course import panels
from setclr_course.kit.palette import SKY, VERMILION
from setclr_course.panels.assignments import pair_curves
from setclr_course.panels.assignments.assignment_plane import DEAREST, N, five_things
from setclr_course.panels.assignments.softened_assignment import CURVE, KINDS, THINGS, curve
from setclr_course.panels.assignments.things import random_things


def plots_of(panel) -> dict:
    return {plot["name"]: plot for plot in panel.scene["plots"]}


def of_kind(plot: dict, kind: str) -> list[dict]:
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


def test_things_are_drawn_as_torch_draws_them():
    generator = torch.Generator().manual_seed(7)
    first = torch.rand(1, 2, generator=generator, dtype=torch.float64)
    more = torch.rand(12, 2, generator=generator, dtype=torch.float64)
    one, two = torch.from_numpy(random_things(7, 2)[0])
    inner = torch.tensor([1.35, 0.8], dtype=torch.float64)
    assert torch.equal(one, inner * (2 * first[0] - 1))
    candidates = inner * (2 * more - 1)
    assert torch.equal(two, candidates[torch.cdist(candidates, one[None]).argmax()])


@pytest.mark.parametrize("place", [(0.2, -0.3, 0.0, 0), (-1.4, -0.3, 0.0, 0), (0.9, 0.5, 0.4, 7)])
def test_the_plane_shows_the_costs_the_cheapest_matching_and_both_losses(place):
    panel = panels.assignment_plane(**dict(zip(("x", "y", "margin", "seed"), place)))
    x, y, margin, seed = place
    things = five_things(x, y, seed)
    S_m = torch.cdist(*torch.from_numpy(things)).numpy() + margin * np.eye(N)
    best = min(itertools.permutations(range(N)), key=lambda p: S_m[range(N), p].sum())
    plots = plots_of(panel)

    (cells,) = of_kind(plots["cost"], "cells")
    assert [float(word) for word in cells["words"]] == [round(float(v), 2) for v in S_m.ravel()]
    true, right, wrong = of_kind(plots["plane"], "segments")
    np.testing.assert_allclose(np.stack([true["u"], true["v"]], 1), things[1], atol=1e-5)
    for mark, colour, hits in ((right, SKY, True), (wrong, VERMILION, False)):
        pairs = [(i, j) for i, j in enumerate(best) if (i == j) == hits]
        assert mark["colour"] == colour and len(mark["x"]) == len(pairs)
        for k, (i, j) in enumerate(pairs):
            assert (mark["x"][k], mark["y"][k]) == pytest.approx(things[0, i], abs=1e-5)
            assert (mark["u"][k], mark["v"][k]) == pytest.approx(things[1, j], abs=1e-5)
    frames, (circles,) = of_kind(plots["cost"], "boxes")[-1], of_kind(plots["cost"], "dots")
    assert frames["x"] == [j - 0.5 for j in best]
    assert frames["edge"] == [SKY if i == j else VERMILION for i, j in enumerate(best)]
    np.testing.assert_allclose(np.array(circles["x"]) - 0.33, S_m.argmin(1), atol=1e-5)

    truth, one, rows = S_m.trace() / N, S_m[range(N), best].sum() / N, S_m.min(1).mean()
    words = [word for _, word in plots["bars"]["yticks"]]
    assert [float(word.split()[-1]) for word in words] == pytest.approx(
        [truth, truth - one, truth - rows], abs=6e-4
    )
    ends = [max(boxes["u"]) for boxes in of_kind(plots["bars"], "boxes")]
    assert ends == pytest.approx([truth, one, rows], abs=1e-5)
    assert f"so the loss is {truth - one:.3f}" in panel.alt and f"loss {truth - rows:.3f};" in panel.alt


def test_draws_differ_and_keep_the_moved_square():
    draws = [five_things(0.4, 0.1, seed) for seed in range(10)]
    assert len({tuple(one.ravel()) for one, _ in draws}) == 10
    for things in draws:
        assert things[1, 2].tolist() == [0.4, 0.1]
        assert torch.pdist(torch.from_numpy(things[0])).min() > 0.4


def test_the_bars_stay_on_their_axis():
    panel = panels.assignment_plane()
    for x, y, seed in itertools.product((-1.5, 1.5), (-0.9, 0.9), range(10)):
        costs = panel.solve({"x": x, "y": y, "margin": 0.6, "seed": seed}).costs
        assert costs.max() < DEAREST


def test_a_thing_wanted_twice_is_named_and_the_square_can_be_dragged():
    panel = panels.assignment_plane()
    columns = panel.solve(panel.values).columns.tolist()
    assert columns[1:] == [[0, 1, 2, 3, 4], [0, 1, 0, 3, 4]]
    assert panel.alt.endswith("wanted by more than one row: ■1.")
    panel.on_event({"event": "", "handle": "square", "x": -0.91, "y": -0.3})
    assert panel.values["x"] == -0.9
    assert "wrong pairs of the best: ●1–■2, ●2–■3, ●3–■1." in panel.alt


@pytest.mark.parametrize("temperature, n", [(0.005, 5), (0.5, 6), (50.0, 2)])
def test_the_soft_tables_are_the_librarys(temperature, n):
    panel = panels.softened_assignment(temperature=temperature, N=n)
    now, plots = panel.solve(panel.values), plots_of(panel)
    S = torch.cdist(*torch.from_numpy(THINGS[:, :n]))
    for way, kind in KINDS.items():
        solved = linear_assignment(S, temperature, way)
        np.testing.assert_allclose(now.matrix[way], solved.matrix, atol=1e-10)
        (cells,) = of_kind(plots[f"{way}-table"], "cells")
        assert (cells["columns"], len(cells["shades"])) == (n, n * n)
        (sums,) = of_kind(plots[f"{way}-table"], "text")
        assert sums["said"] == [f"{total:.1f}" for total in solved.matrix.sum(0).tolist()]
        (lines,) = of_kind(plots[way], "segments")
        np.testing.assert_allclose(lines["width"], 5.5 * solved.matrix.flatten(), rtol=1e-4, atol=1e-9)
        loss = float(S.trace() - solved.value) / n
        assert f"{loss:.3f}" in panel.alt
        said = [word for text in of_kind(plots["loss"], "text") for word in text["said"]]
        assert f"{kind.sign} " in "".join(said) and any(word.endswith(f": {loss:.3g}") for word in said)


def test_the_truth_is_never_best_and_rows_are_never_cheaper_to_satisfy():
    for n in range(2, 7):
        S = torch.cdist(*torch.from_numpy(THINGS[:, :n]))
        one, rows = (curve(way, n) for way in KINDS)
        assert 0.02 < one[0] < rows[0] and (one < rows).all()
        for way, losses in zip(KINDS, (one, rows)):
            value = linear_assignment(S, float(CURVE[30]), way).value
            assert losses[30] == pytest.approx(float(S.trace() - value) / n, abs=1e-10)


def test_the_pairs_losses_are_the_librarys_and_the_forces_their_slopes():
    panel = panels.pair_curves(temperature=0.4, margin=0.3, beta=2.0)
    now = panel.solve(panel.values)
    gap = torch.from_numpy(pair_curves.GAP.copy()).requires_grad_()
    contrastive = torch.nn.functional.cross_entropy(
        torch.stack([gap, 0 * gap], 1) / 0.4, torch.zeros(len(gap), dtype=torch.long), reduction="none"
    )
    triplet = torch.nn.functional.margin_ranking_loss(
        gap, 0 * gap, torch.ones_like(gap), margin=0.3, reduction="none"
    )
    groco = -top_probability(torch.stack([-gap / 2, gap / 2], 1), 1, 2.0)[:, 1].log()
    for found, loss in zip(now, (contrastive, triplet, groco)):
        np.testing.assert_allclose(found.loss, loss.detach(), atol=1e-12)
        (slope,) = torch.autograd.grad(loss.sum(), gap)
        smooth = np.abs(pair_curves.GAP - 0.3) > 0.03  # the triplet's has a kink there
        smooth[[0, -1]] = False
        np.testing.assert_allclose(found.force[smooth], -slope[smooth], atol=1e-3)

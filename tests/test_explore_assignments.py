"""The panels of the careful page 02 show what the library computes."""

import numpy as np
import pytest
import torch

from setclr.inner import linear_assignment, top_probability
from setclr_course import panels
from setclr_course.panels.assignments import pair_curves
from setclr_course.panels.assignments.softened_assignment import CURVE, THINGS, curve
from setclr_course.panels.assignments.things import WAYS, random_things


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


@pytest.mark.parametrize("temperature, n", [(0.005, 5), (0.5, 6), (50.0, 2)])
def test_the_soft_tables_are_the_librarys(temperature, n):
    panel = panels.softened_assignment(temperature=temperature, N=n)
    now, plots = panel.solve(panel.values), plots_of(panel)
    S = torch.cdist(*torch.from_numpy(THINGS[:, :n]))
    for way, word in WAYS.items():
        solved = linear_assignment(S, temperature, way)
        np.testing.assert_allclose(now.shares[way], solved.matrix, atol=1e-10)
        (cells,) = of_kind(plots[way], "cells")
        assert (cells["columns"], len(cells["shades"])) == (n, n * n)
        sums = of_kind(plots[way], "text")[-1]
        assert sums["said"] == [f"{total:.1f}" for total in solved.matrix.sum(0).tolist()]
        loss = float(S.trace() - solved.value) / n
        assert f"{loss:.3f}" in panel.alt
        said = [word for text in of_kind(plots["loss"], "text") for word in text["said"]]
        assert f"{word}: {loss:.3g}" in said


def test_the_truth_is_never_best_and_rows_are_never_cheaper_to_satisfy():
    for n in range(2, 7):
        S = torch.cdist(*torch.from_numpy(THINGS[:, :n]))
        one, rows = (curve(way, n) for way in WAYS)
        assert 0.02 < one[0] < rows[0] and (one < rows).all()
        for way, losses in zip(WAYS, (one, rows)):
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
    for (found, force), loss in zip(now, (contrastive, triplet, groco)):
        np.testing.assert_allclose(found, loss.detach(), atol=1e-12)
        (slope,) = torch.autograd.grad(loss.sum(), gap)
        smooth = np.abs(pair_curves.GAP - 0.3) > 0.03  # the triplet's has a kink there
        smooth[[0, -1]] = False
        np.testing.assert_allclose(force[smooth], -slope[smooth], atol=1e-3)

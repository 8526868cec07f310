"""The curves of the careful page 01 show what the library computes."""

import numpy as np
import torch

from setclr.inner import top_probability
from setclr_course import panels
from setclr_course.panels.assignments import pair_curves


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

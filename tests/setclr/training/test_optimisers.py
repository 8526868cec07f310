"""LARS against its formula in numpy and its laws; Adam and SGD as torch has them; scaled rates."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import shifted
from hypothesis import given
from hypothesis import strategies as st
from small_runs import FEW
from torch import nn

from setclr.experiments.run import new_run, peak_rate
from setclr.recipes import ImageRecipe
from setclr.training.optimisers import LARS, check_optimiser, make_optimiser


def some(seed: int) -> list[torch.Tensor]:
    generator, shapes = shifted(seed), ((4, 3), (2, 3, 3, 3), (5,), ())
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


PARAMETERS, GRADIENTS = some(0), [some(seed) for seed in (1, 2, 3)]


def moved(optimiser_of, parameters=PARAMETERS, gradients=GRADIENTS) -> list[torch.Tensor]:
    """The parameters after a step for each of the lists of gradients."""
    kept = [nn.Parameter(p.clone()) for p in parameters]
    optimiser = optimiser_of(kept)
    for step in gradients:
        for p, g in zip(kept, step):
            p.grad = g.clone()
        optimiser.step()
    return [p.detach() for p in kept]


@given(
    st.floats(0.01, 5), st.floats(0, 0.99), st.sampled_from([0.0, 1e-6, 0.1]), st.sampled_from([1e-3, 0.02])
)
def test_lars_is_the_literal_formula(lr, momentum, decay, trust):
    found = moved(lambda p: LARS(p, lr, momentum, decay, trust))
    for i, p in enumerate(PARAMETERS):
        w, m = p.numpy().copy(), 0.0
        for step in GRADIENTS:
            g = step[i].numpy()
            if w.ndim >= 2:
                g = g + decay * w
                g = g * trust * np.sqrt((w**2).sum()) / np.sqrt((g**2).sum())
            m = momentum * m + g
            w = w - lr * m
        np.testing.assert_allclose(found[i].numpy(), w, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weight, gradient", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_zero_norms_take_the_plain_step(weight, gradient):
    p, g = torch.full((2, 2), weight), torch.full((2, 2), gradient)
    (after,) = moved(lambda p: LARS(p, lr=0.5), [p], [[g]])
    torch.testing.assert_close(after, p - 0.5 * g)


def test_parameters_without_gradient_stay_and_a_closure_is_evaluated_with_gradients():
    p = nn.Parameter(torch.ones(3))
    optimiser = LARS([p], lr=1.0, weight_decay=0.1)
    optimiser.step()
    assert torch.equal(p, torch.ones(3))

    def closure():
        loss = p.square().mean()
        loss.backward()
        return loss

    assert float(optimiser.step(closure).detach()) == 1 and not torch.equal(p, torch.ones(3))


ORACLES = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.3, weight_decay=0.01),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.8, weight_decay=0.01),
    "lars": lambda p: LARS(p, lr=0.3, momentum=0.8, weight_decay=0.01),
}


@pytest.mark.parametrize("name", ORACLES)
def test_recipes_get_the_optimiser_they_name_with_all_its_settings(name):
    def made(parameters):
        return make_optimiser(name, nn.ParameterList(parameters), nn.Identity(), 0.3, 0.8, 0.01)

    torch.testing.assert_close(moved(made), moved(ORACLES[name]))  # a fused optimiser rounds otherwise


def test_the_rate_grows_with_the_batch():
    plain = ImageRecipe("InfoNCE()", views="photo", optimiser="lars", lr=0.3, batch=64)
    scaled = replace(plain, lr_batch=32)
    assert peak_rate(plain) == 0.3 and peak_rate(scaled) == pytest.approx(0.6)
    trainer = new_run(scaled, channels=3).trainer(FEW, torch.device("cpu"))
    assert [group["initial_lr"] for group in trainer.optimiser.param_groups] == [peak_rate(scaled)]


def test_every_parameter_that_learns_is_in_the_optimiser():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    sgd = torch.optim.SGD(model[0].parameters(), 0.1)
    with pytest.raises(ValueError, match=r"lacks 1.weight \(2 in all\); add it, or .*requires_grad_"):
        check_optimiser(sgd, model)
    model[1].requires_grad_(False)
    assert check_optimiser(sgd, model).param_groups[0]["initial_lr"] == 0.1

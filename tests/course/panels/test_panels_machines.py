"""The panels of MMCL: the machines they draw are those of the library, scikit-learn and the formulas."""

import numpy as np
import pytest
import torch
from sklearn.svm import SVC
from sweep import marks, points, slope
from torch.nn.functional import normalize

from setclr.evaluation import pixels
from setclr.inner import kernel, svm_dual
from setclr_course import panels
from setclr_course.kit.few_patches import few_patches
from setclr_course.kit.inner import delta
from setclr_course.panels.machines import machine_plane as plane
from setclr_course.panels.machines import solver_race as race
from setclr_course.panels.machines import solvers
from setclr_course.panels.machines.street import OTHERS, RIDGE

AMONG = {"x": 0.2, "y": 0.3}  # a place of ✚ that no line separates


def pool(values):
    return torch.tensor(np.array([[values["x"], values["y"]], *plane.NEGATIVES]))


@pytest.mark.parametrize("kind", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.3, 100.0])
def test_decision_value_equals_scikit_learns(kind, C):
    panel = panels.machine_plane(kernel=kind, bandwidth=0.7, **AMONG)
    values = panel.values | {"C": C}
    found, places, n = panel.solve(values), pool(values), len(plane.NEGATIVES)
    gram = kernel(places, places, kind, 0.7) + torch.diag(torch.tensor([0.0, *n * [0.1]]))
    oracle = SVC(kernel="precomputed", C=C, tol=1e-10, class_weight={1: 1e6, -1: 1}).fit(gram, [1] + [-1] * n)
    expected = oracle.decision_function(kernel(torch.tensor(plane.PLANE), places, kind, 0.7))
    np.testing.assert_allclose(found.field.ravel(), expected, atol=1e-5 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_kernels_and_their_slopes_are_those_of_the_library_and_the_push_leads_uphill(kind):
    x, y = torch.randn(2, 6, 2, dtype=torch.float64)
    k = kernel(x[:1], y, kind, 0.7)[0]
    np.testing.assert_allclose(plane.kernel(x.numpy(), y.numpy(), kind, 0.7)[0], k)
    expected = [slope(lambda z, one=one: kernel(z[None], one[None], kind, 0.7), x[0]) for one in y]
    np.testing.assert_allclose(plane.slopes(x[0].numpy(), y.numpy(), kind, 0.7), expected, atol=1e-12)
    panel = panels.machine_plane(kernel=kind, toward=1.0)
    now = panel.solve(panel.values)
    signed = torch.tensor([now.alpha.sum(), *-now.alpha])

    def score(z: torch.Tensor) -> torch.Tensor:
        return kernel(z[None], pool(panel.values), kind, 1.0)[0] @ signed

    up = slope(score, now.z)
    np.testing.assert_allclose(now.way, up / np.linalg.norm(up), atol=1e-9)
    assert now.score == pytest.approx(score(torch.tensor(now.z)).item())


@pytest.mark.parametrize("name", ["C", "bandwidth", "ridge", "x"])
@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_exact_weights_are_the_librarys_and_stand_on_the_law_wherever_a_slider_is(name, kind):
    panel = panels.machine_plane(kernel=kind)
    for at in np.linspace(0, panel.knobs[name].stops - 1, 4):
        values = panel.values | {name: panel.knobs[name].stop(round(at))}
        now, places = panel.solve(values), pool(values)
        law = np.clip((1 + now.f) / values["ridge"], 0, values["C"])
        np.testing.assert_allclose(now.alpha, law, atol=1e-6)
        K = kernel(places, places, kind, values["bandwidth"])
        alpha = svm_dual(K, C=values["C"], ridge=values["ridge"]).alpha[1:]
        np.testing.assert_allclose(now.alpha, alpha, rtol=1e-6, atol=1e-6 * (1 + alpha.max()))


@pytest.mark.parametrize("dimension", [3, 256])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_race_starts_at_doing_nothing_steps_as_it_says_and_ends_at_the_optimum(dimension, C):
    found, K = race.race(dimension, C), race.gram(dimension)
    np.testing.assert_allclose(found.gap[0], 1)
    assert (found.gap[1:, :2] <= found.gap[:-1, :2] + 1e-12).all() and found.gap[-1, 2] < 1e-9
    D = delta(K, race.RIDGE)
    for alpha, solver in ((found.exact, "exact"), (found.path[-1, 2], "exact"), (found.clipped, "inv")):
        theirs = svm_dual(torch.tensor(K), C=C, ridge=race.RIDGE, solver=solver).alpha[1:]
        np.testing.assert_allclose(alpha, theirs, atol=1e-9)
    best, clipped = (solvers.objective(D, alpha) for alpha in (found.exact, found.clipped))
    assert found.clipped_gap == pytest.approx((clipped - best) / -best)
    low, *_, high = np.linalg.eigvalsh(D)
    momentum = (high**0.5 - low**0.5) / (high**0.5 + low**0.5)
    for k, (step, further) in enumerate(((1e-3, 0), (1 / high, 0), (1 / high, momentum))):
        path = found.path[:21, k]
        ahead = path + further * np.diff(path, axis=0, prepend=path[:1])
        np.testing.assert_allclose(path[1:], np.clip(ahead - step * (ahead @ D - 2), 0, C)[:-1], atol=1e-12)


def test_images_stand_in_the_order_of_their_weights():
    panel, x = panels.support_images(query=7, C=0.5), pixels(few_patches(4).images[:40]).double()
    x = normalize(x, dim=1)
    alpha, now = svm_dual(kernel(x, x), 7, C=0.5).alpha.numpy(), panel.solve(panel.values)
    np.testing.assert_allclose(now.alpha, alpha, atol=1e-6)
    assert now.order[0] == 7 and (np.diff(now.alpha[now.order[1:]]) <= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_street_is_that_of_the_library_and_its_lines_are_where_f_says(seed):
    """Its points lie anywhere."""
    street, drawn = panels.street(), np.random.default_rng(seed)
    values = {name: knob.stop(drawn.integers(knob.stops)) for name, knob in street.knobs.items()}
    seen, now = street.seen(values), street.solve(values)
    places = torch.tensor(now.points[[5, 0, 1, 2, 3, 4]])
    gram = kernel(places, places, "linear")
    solved = svm_dual(gram, 0, C=values["bound"], ridge=RIDGE, solver="exact", rounds=200).alpha[1:].numpy()
    np.testing.assert_allclose(now.alpha, solved, atol=1e-6)
    np.testing.assert_allclose(now.normal, solved @ (now.points[5] - now.points[:5]), atol=1e-5)
    np.testing.assert_allclose(now.alpha, np.clip((1 + now.f[:5]) / RIDGE, 0, values["bound"]), atol=1e-5)
    assert now.f[5] == pytest.approx(1)
    (kerbs, _), near = marks(seen, "plane", "segments"), 1e-4 * (1 + np.abs(now.normal).max())
    np.testing.assert_allclose(points(kerbs) @ now.normal + now.offset, [-1, 1], atol=near)
    held = seen.sentence.split("held open by ")[1].split(";")[0]
    assert {name for name in OTHERS if name in held} == {n for n, a in zip(OTHERS, now.alpha) if a > 0}


@pytest.mark.parametrize("near, far, ridge", [(1.0, 2.0, 0.1), (2.5, 0.5, 1.0), (0.2, 3.0, 0.01)])
def test_the_three_ways_on_a_ray_are_those_of_the_library(near, far, ridge):
    panel = panels.ray(near=near, far=far, ridge=ridge)
    gram = kernel(*[torch.tensor([[0.0], [near], [far]], dtype=torch.float64)] * 2, "linear")
    now = panel.solve(panel.values)
    for alpha, solver in ((now.alpha[0], "exact"), (now.alpha[2], "inv")):
        found = svm_dual(gram, 0, C=1e9, ridge=ridge, solver=solver).alpha[1:]
        np.testing.assert_allclose(alpha, found, rtol=1e-6, atol=1e-6)
    assert now.g[0] <= min(0, now.g[2]) and now.g[1] <= now.g[0] + 1e-9
    assert ("worse than doing nothing" in panel.alt) == (now.g[2] > 0)

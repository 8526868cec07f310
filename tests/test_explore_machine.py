"""The three panels of MMCL: what is drawn is what the library, scikit-learn and the literal formulas say."""

import numpy as np
import pytest
import torch
from matplotlib.path import Path
from sklearn.svm import SVC
from torch.nn.functional import normalize

from setclr.inner import kernel, svm_dual
from setclr.inner.descent import projected_gradient
from setclr.inner.dual import Machines
from setclr.losses import MMCL
from setclr_course import panels
from setclr_course.panels.machines import machine_plane as plane
from setclr_course.panels.machines import solver_race as race
from setclr_course.panels.machines import support_images as pictures

Z_PLUS = torch.tensor([0.2, 0.3], dtype=torch.float64)  # not separable by a line


@pytest.mark.parametrize("kind", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.3, 5.0, 100.0])
def test_decision_value_equals_scikit_learns(kind, C):
    found = plane.machine(Z_PLUS, plane.NEGATIVES, plane.PLANE, kind, 0.7, solver="exact", C=C, ridge=0.1)
    pool = torch.cat([Z_PLUS[None], plane.NEGATIVES])
    n = len(plane.NEGATIVES)
    gram = kernel(pool, pool, kind, 0.7) + 0.1 * torch.diag((torch.arange(n + 1) > 0).double())
    oracle = SVC(kernel="precomputed", C=C, tol=1e-10, class_weight={1: 1e6, -1: 1}).fit(gram, [1] + [-1] * n)
    expected = oracle.decision_function(kernel(plane.PLANE, pool, kind, 0.7))
    np.testing.assert_allclose(found.score + found.offset, expected, atol=1e-5 * (1 + np.abs(expected).max()))


def test_minus_the_mean_score_of_second_views_is_the_loss():
    x = normalize(torch.randn(2, 5, 2, dtype=torch.float64), dim=-1)
    losses = []
    for u, i in np.ndindex(2, 5):
        negatives = x[:, [j for j in range(5) if j != i]].flatten(0, 1)
        how = {"solver": "exact", "C": 3.0, "ridge": 0.1}
        losses.append(-plane.machine(x[u, i], negatives, x[1 - u, [i]], "rbf", 0.5, **how).score)
    torch.testing.assert_close(torch.stack(losses).mean(), MMCL(bandwidth=0.5, C=3.0, solver="exact")(x))


def drawn(panel) -> tuple[np.ndarray, np.ndarray]:
    """Decision values and weights of the negatives as the right half shows them."""
    squares = panel.artists[-2]
    return np.asarray(squares.get_offsets()).T


@pytest.mark.parametrize("name", ["C", "bandwidth", "ridge", "x"])
@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_exact_weights_stand_on_the_law_wherever_a_slider_is(name, kind):
    panel = panels.machine_plane(kernel=kind)
    control = panel.controls[name]
    log = name != "x"
    for at in np.linspace(control.min, control.max, 7):
        control.value = 10**at if log else at
        f, alpha = drawn(panel)
        values = panel.values
        inside = (f > plane.SHOWN[0]) & (f < plane.SHOWN[1])
        law = np.clip((1 + f) / values["ridge"], 0, values["C"])
        np.testing.assert_allclose(alpha[inside], law[inside], atol=1e-6)
        assert "; 0 stand off the blue line" in panel.alt


def test_tanh_comes_to_rest_and_clipped_weights_stand_off():
    panel = panels.machine_plane(kernel="tanh")
    for C in (0.1, 1, 100, 1000):
        panel.controls["C"].value = C
        assert "found by pgd" in panel.alt and "; 0 stand off" in panel.alt
    panel.reset()
    panel.controls["kernel"].value, panel.controls["weights"].value = "rbf", "clipped"
    assert "; 0 stand off" not in panel.alt
    pool = torch.cat([torch.tensor([[1.0, 0.5]], dtype=torch.float64), plane.NEGATIVES])
    expected = svm_dual(kernel(pool, pool), solver="inv").alpha[1:]
    np.testing.assert_allclose(drawn(panel)[1], expected)


def test_marks_and_numbers_are_the_weights():
    panel = panels.machine_plane(C=1.0)
    pool = torch.cat([torch.tensor([[1.0, 0.5]], dtype=torch.float64), plane.NEGATIVES])
    alpha = svm_dual(kernel(pool, pool), C=1.0).alpha[1:].numpy()
    _, street, squares, crosses = panel.artists[:4]
    hollow = (squares.get_facecolors() == 1).all(1)
    np.testing.assert_array_equal(hollow, alpha == 0)
    np.testing.assert_array_equal(crosses.get_offsets(), plane.NEGATIVES[alpha >= 1])
    np.testing.assert_allclose(np.diff(squares.get_sizes()), 260 * np.diff(alpha) / alpha.max())
    shown = [text.get_text() for text in panel.artists if hasattr(text, "get_text")]
    assert set(shown) - {"z", "z⁺", "bound C", ""} == {f"{a:.2g}" for a in np.sort(alpha)[-5:]}
    assert f"{(alpha > 0).sum()} of 12 negatives weigh more than 0, 1 of them the bound C" in panel.alt


def test_lines_and_bands_are_where_the_decision_value_says():
    how = {"solver": "exact", "C": 100.0, "ridge": 0.1}
    found = plane.machine(Z_PLUS, plane.NEGATIVES, plane.PLANE, "rbf", 1.0, **how)
    field = (found.score + found.offset).view(60, 60).numpy()
    paths, lines, levels = plane.contours(field)
    assert set(levels) == {-1, 0, 1}
    for line, level in zip(lines, levels):
        there = plane.machine(Z_PLUS, plane.NEGATIVES, torch.tensor(line), "rbf", 1.0, **how)
        assert (there.score + there.offset - level).abs().max() < 0.02
    places, value = plane.PLANE[::7].numpy(), field.ravel()[::7]
    clear = (np.abs(value[:, None] - [-1, 0, 1]).min(1) > 0.02) & (np.abs(places).max(1) < 2.1)
    for (low, high), path in zip(plane.BANDS, paths):
        rings = [Path(ring).contains_points(places[clear]) for ring in path.to_polygons()]  # holes too
        band = (value > low) & (value < high)
        np.testing.assert_array_equal(np.sum(rings, axis=0) % 2 == 1, band[clear])
    assert len(plane.contours(np.full((60, 60), -3.0))[1]) == 0


def test_the_push_leads_downhill():
    panel = panels.machine_plane(toward=1.0)
    (push,) = (artist for artist in panel.artists if hasattr(artist, "set_UVC"))
    z_plus = torch.tensor([1.0, 0.5], dtype=torch.float64)
    z, way = plane.NEGATIVES.mean(0), torch.tensor([push.U[0], push.V[0]])
    step = 1e-5 * torch.stack([0 * way, way, way.flip(0) * torch.tensor([1, -1])])
    how = {"solver": "exact", "C": 100.0, "ridge": 0.1}
    score = plane.machine(z_plus, plane.NEGATIVES, z + step, "rbf", 1.0, **how).score
    assert score[1] > score[0] and abs(score[2] - score[0]) < 1e-3 * (score[1] - score[0])


@pytest.mark.parametrize("dimension", race.DIMENSIONS)
def test_the_race_starts_at_doing_nothing_and_ends_at_the_optimum(dimension):
    found = race.race(dimension)
    np.testing.assert_allclose(found.gap[0], 1)
    assert (found.gap[1:, :2] <= found.gap[:-1, :2] + 1e-12).all() and found.gap.min() > -1e-9
    assert found.gap[-1, 2].max() < 1e-9
    K = race.gram(int(dimension))
    D = race.delta(K)
    for b in (0, 10, 30):
        C = float(race.BOUNDS[b])
        inv = np.clip(np.linalg.solve(D, np.full(len(D), 2.0)), 0, C)
        best = race.objective(D, found.exact[b])
        np.testing.assert_allclose(found.clipped[b], inv, atol=1e-9)
        assert found.clipped_gap[b] == pytest.approx((race.objective(D, inv) - best) / -best)
        alpha = np.zeros(len(D))
        for m in range(20):
            np.testing.assert_allclose(found.path[m, 0, b], alpha, atol=1e-12)
            alpha = np.clip(alpha - 1e-3 * (D @ alpha - 2), 0, C)
        point = torch.zeros(1, dtype=torch.int64)
        library = projected_gradient(Machines(K, point, point[None], C, race.RIDGE), 1e-9, 5000)[0, 1:]
        np.testing.assert_allclose(found.path[-1, 2, b], library, atol=1e-6)


def test_clipping_is_worse_than_nothing_in_few_dimensions_and_fair_in_many():
    at_100 = {dimension: race.race(dimension).clipped_gap[-1] for dimension in race.DIMENSIONS}
    assert at_100["3"] > 1 and at_100["16"] > 1 > at_100["64"] > at_100["256"]


def test_the_race_draws_what_was_computed():
    panel = panels.solver_race(steps=100.0, C=1.0, dimensions="16")
    found = race.race("16")
    b = int(np.abs(race.BOUNDS - 1).argmin())
    lines, dots = panel.artists[:3], panel.artists[3]
    for k, line in enumerate(lines):
        drawn_gap = np.maximum(found.gap[1:, k, b], race.LOW / 10)
        np.testing.assert_array_equal(line.get_ydata(), drawn_gap)
        assert dots.get_offsets()[k, 1] == max(found.gap[100, k, b], race.LOW)
    bars = [np.array([s[1, 1] for s in c.get_segments()]) for c in panel.artists[-3:]]
    for bar, alpha in zip(bars, (found.exact[b], found.path[100, 1, b], found.clipped[b])):
        np.testing.assert_allclose(np.sort(bar), np.sort(alpha) / found.exact[b].max())
    assert (np.diff(bars[0]) <= 0).all()


def test_every_bound_of_the_slider_is_computed():
    control = panels.solver_race().controls["C"]
    asked = 10 ** np.arange(control.min, control.max + control.step / 2, control.step)
    np.testing.assert_allclose(asked, race.BOUNDS)


def test_images_stand_in_the_order_of_their_weights():
    features, images, labels = pictures.drawn_batch()
    assert images.dtype == torch.uint8 and images.shape == (40, 3, 32, 32)
    panel = panels.support_images(query=7, C=0.5)
    x = normalize(features.double(), dim=1)
    alpha = svm_dual(kernel(x, x), 7, C=0.5).alpha
    frames, words = panel.artists[1], panel.artists[2:]
    expected = alpha.sort(descending=True).values[:39].tolist()
    said = [word.get_text().removesuffix(" own") for word in words]
    assert said == ["query"] + [f"{a:.2g}" if a > 0 else "" for a in expected]
    own = sum(word.get_text().endswith(" own") for word in words)
    assert own == ((alpha > 0) & (labels == labels[7])).sum()
    widths = np.array(frames.get_linewidths())
    assert (widths == 3.5).sum() == 1 + (alpha >= 0.5).sum() and (widths == 0.8).sum() == 39 - (
        alpha > 0
    ).sum()
    mosaic = panel.artists[0].get_array()
    np.testing.assert_array_equal(mosaic[:32, :32, :3], images[7].permute(1, 2, 0))
    assert (mosaic[:32, :32, 3] == 255).all() and (mosaic[-20:-12, -20:-12, 3] == 100).any()


def test_images_of_ones_own_without_labels():
    features, images, _ = pictures.drawn_batch()
    panel = panels.support_images(features[:12], images[:12, :1])
    assert panel.controls["query"].max == 11
    assert "0 of the" in panel.alt and "of 11 others" in panel.alt
    assert panel.row("query", [0, 5, 11]).alt

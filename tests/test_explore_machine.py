"""The three panels of MMCL: what is drawn is what the library, scikit-learn and the literal formulas say."""

import itertools

import numpy as np
import pytest
import torch
from matplotlib.path import Path
from sklearn.svm import SVC
from torch.nn.functional import normalize

from setclr.evaluation import pixels
from setclr.inner import kernel, svm_dual
from setclr.inner.descent import projected_gradient
from setclr.inner.dual import Machines
from setclr.losses import MMCL
from setclr_course import panels
from setclr_course.kit.few_patches import few_patches
from setclr_course.kit.inner import dual, rbf
from setclr_course.kit.palette import BLUE, GREEN, VERMILION
from setclr_course.kit.tiles import tiles
from setclr_course.panels.machines import machine_plane as plane
from setclr_course.panels.machines import solver_race as race
from setclr_course.panels.machines import solvers
from setclr_course.panels.machines import support_images as pictures

AMONG = {"x": 0.2, "y": 0.3}  # a place of ✚ that no line separates


def marks(scene, plot, kind):
    (found,) = (found for found in scene["plots"] if found["name"] == plot)
    return [mark for mark in found["marks"] if mark["kind"] == kind]


def places(mark):
    return np.array([mark["x"], mark["y"]], float).T


def pool(values):
    return torch.tensor(np.array([[values["x"], values["y"]], *plane.NEGATIVES]))


@pytest.mark.parametrize("kind", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.3, 5.0, 100.0])
def test_decision_value_equals_scikit_learns(kind, C):
    values = panels.machine_plane(kernel=kind, bandwidth=0.7, **AMONG).values | {"C": C}
    found, points = panels.machine_plane().solve(values), pool(values)
    n = len(plane.NEGATIVES)
    gram = kernel(points, points, kind, 0.7) + 0.1 * torch.diag((torch.arange(n + 1) > 0).double())
    oracle = SVC(kernel="precomputed", C=C, tol=1e-10, class_weight={1: 1e6, -1: 1}).fit(gram, [1] + [-1] * n)
    expected = oracle.decision_function(kernel(torch.tensor(plane.PLANE), points, kind, 0.7))
    np.testing.assert_allclose(found.field.ravel(), expected, atol=1e-5 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_kernels_and_their_slopes_are_those_of_the_library(kind):
    x, y = torch.randn(2, 6, 2, dtype=torch.float64)
    z = x[0].clone().requires_grad_()
    k = kernel(z[None], y, kind, 0.7)[0]
    np.testing.assert_allclose(plane.kernel(x.numpy(), y.numpy(), kind, 0.7)[0], k.detach())
    slopes = plane.slopes(x[0].numpy(), y.numpy(), kind, 0.7)
    expected = [torch.autograd.grad(one, z, retain_graph=True)[0] for one in k]
    np.testing.assert_allclose(slopes, torch.stack(expected), atol=1e-12)


def test_minus_the_mean_score_of_second_views_is_the_loss():
    x = normalize(torch.randn(2, 5, 2, dtype=torch.float64), dim=-1).numpy()
    losses = []
    for u, i in np.ndindex(2, 5):
        points = np.concatenate([x[u, [i]], *np.delete(x, i, axis=1)])
        alpha = dual(rbf(points, points, 0.5), C=3.0)
        losses.append(-np.array([alpha.sum(), *-alpha]) @ rbf(points, x[1 - u, [i]], 0.5))
    assert np.mean(losses) == pytest.approx(
        MMCL(bandwidth=0.5, C=3.0, solver="exact")(torch.tensor(x)).item()
    )


@pytest.mark.parametrize("name", ["C", "bandwidth", "ridge", "x"])
@pytest.mark.parametrize("kind", ["rbf", "linear"])
def test_exact_weights_stand_on_the_law_wherever_a_slider_is(name, kind):
    panel = panels.machine_plane(kernel=kind)
    knob = panel.knobs[name]
    for at in np.linspace(0, knob.stops - 1, 7):
        values = panel.values | {name: knob.stop(round(at))}
        seen, now = panel.seen(values), panel.solve(values)
        np.testing.assert_allclose(
            now.alpha, np.clip((1 + now.f) / values["ridge"], 0, values["C"]), atol=1e-6
        )
        np.testing.assert_allclose(
            places(marks(seen.scene, "law", "dots")[-1]),
            np.stack([now.f.clip(*plane.SHOWN), plane.rise(now.alpha)], 1),
            rtol=1e-4,
            atol=1e-5,
        )


def test_the_blue_line_is_the_law():
    for C in (0.1, 3.0, 1000.0):
        values = panels.machine_plane().values | {"C": C}
        law = next(
            m for m in marks(panels.machine_plane().seen(values).scene, "law", "line") if len(m["x"]) > 9
        )
        f, height = places(law).T
        np.testing.assert_allclose(height, plane.rise(np.clip((1 + f) / values["ridge"], 0, C)), atol=1e-3)
        assert (f[0], f[-1]) == plane.SHOWN


def test_marks_and_numbers_are_the_weights():
    panel = panels.machine_plane(C=1.0)
    points = pool(panel.values)
    alpha = svm_dual(kernel(points, points), C=1.0).alpha[1:].numpy()
    dots = marks(panel.scene, "plane", "dots")
    crosses = [mark for mark in dots if mark["sign"] == "✕"]
    np.testing.assert_array_equal([mark["colour"] != "#ffffff" for mark in crosses], alpha > 0)
    np.testing.assert_array_equal(places(dots[0]), plane.NEGATIVES[alpha >= 1])
    areas = np.array([mark["size"] for mark in crosses]) ** 2
    np.testing.assert_allclose(np.diff(areas), 460 * np.diff(alpha) / alpha.max(), atol=0.01)
    (shown,) = (text["said"] for text in marks(panel.scene, "plane", "text"))
    assert shown == [f"{a:.2g}" if a > 0 and a in np.sort(alpha)[-5:] else "" for a in alpha]
    assert f"{(alpha > 0).sum()} of 12 negatives weigh more than 0, 1 of them the bound C" in panel.alt


def test_lines_and_bands_are_where_the_decision_value_says():
    values = panels.machine_plane(**AMONG).values
    seen, now = panels.machine_plane().seen(values), panels.machine_plane().solve(values)
    signed = np.array([now.alpha.sum(), *-now.alpha])
    for line, level in zip(marks(seen.scene, "plane", "line"), (-1, 0, 1)):
        there = places(line)[np.isfinite(places(line)[:, 0])]
        f = rbf(there, pool(values).numpy()) @ signed + now.offset
        assert len(there) > 9 and np.abs(f - level).max() < 0.02
    some, value = plane.PLANE[::7], now.field.ravel()[::7]
    clear = (np.abs(value[:, None] - [-1, 0, 1]).min(1) > 0.02) & (np.abs(some).max(1) < 2.1)
    for area, level in zip(marks(seen.scene, "plane", "area"), (-np.inf, -1, 0, 1)):
        rings = [Path(np.transpose(ring)).contains_points(some[clear]) for ring in area["rings"]]  # holes too
        np.testing.assert_array_equal(np.sum(rings, axis=0) % 2 == 1, value[clear] > level)


def test_the_push_leads_downhill():
    panel = panels.machine_plane(toward=1.0)
    now = panel.solve(panel.values)
    (push,) = marks(panel.scene, "plane", "arrows")
    way = np.array([push["u"][0] - push["x"][0], push["v"][0] - push["y"][0]]) * 2
    np.testing.assert_allclose(way, now.way, atol=1e-4)
    signed = np.array([now.alpha.sum(), *-now.alpha])
    steps = now.z + 1e-5 * np.array([0 * way, way, way[::-1] * [1, -1]])
    score = rbf(steps, pool(panel.values).numpy()) @ signed
    assert score[1] > score[0] == pytest.approx(now.score)
    assert abs(score[2] - score[0]) < 1e-3 * (score[1] - score[0])


def test_both_signs_can_be_dragged_and_keep_their_places():
    panel = panels.machine_plane()
    panel.on_event({"event": "a:1", "handle": "★", "x": plane.MIDDLE[0], "y": plane.MIDDLE[1]})
    assert panel.values["toward"] == 1
    panel.on_event({"event": "a:2", "handle": "✚", "x": -1.0, "y": 0.4})
    assert (panel.values["x"], panel.values["y"], panel.values["toward"]) == (-1, 0.4, 1)


@pytest.mark.parametrize("dimension", [3, 16, 64, 256])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_race_starts_at_doing_nothing_and_ends_at_the_optimum(dimension, C):
    found = race.race(dimension, C)
    np.testing.assert_allclose(found.gap[0], 1)
    assert (found.gap[1:, :2] <= found.gap[:-1, :2] + 1e-12).all() and found.gap[-1, 2] < 1e-9
    K = race.gram(dimension)
    D = solvers.delta(K, race.RIDGE)
    exact, inv = (
        svm_dual(torch.tensor(K), C=C, ridge=race.RIDGE, solver=solver).alpha[1:].numpy()
        for solver in ("exact", "inv")
    )
    np.testing.assert_allclose(found.exact, exact, atol=1e-9)
    np.testing.assert_allclose(found.clipped, inv, atol=1e-9)
    best = solvers.objective(D, exact)
    assert found.clipped_gap == pytest.approx((solvers.objective(D, inv) - best) / -best)


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_the_racers_step_as_they_say_and_arrive_where_the_librarys_does(C):
    K, found = race.gram(16), race.race(16, C)
    D = solvers.delta(K, race.RIDGE)
    for k, step in ((0, 1e-3), (1, 1 / np.linalg.eigvalsh(D)[-1])):
        alpha = np.zeros(len(D))
        for place in found.path[1:21, k]:
            alpha = np.clip(alpha - step * (alpha @ D - 2), 0, C)
            np.testing.assert_allclose(place, alpha, atol=1e-12)
    point = torch.zeros(1, dtype=torch.int64)
    machine = Machines(torch.tensor(K), point, point[None], C, race.RIDGE)
    np.testing.assert_allclose(found.path[-1, 2], projected_gradient(machine, 1e-9, 5000)[0, 1:], atol=1e-6)


def test_the_library_and_the_panels_have_one_delta():
    K = race.gram(3)
    point, alpha = torch.zeros(1, dtype=torch.int64), torch.rand(1, len(K), dtype=torch.float64)
    alpha[0, 0] = 0
    gradient = Machines(torch.tensor(K), point, point[None], 1.0, 0.3).gradient(alpha)[0, 1:]
    np.testing.assert_allclose(solvers.delta(K, 0.3) @ alpha[0, 1:].numpy() - 2, gradient)


def test_clipping_is_worse_than_nothing_in_few_dimensions_and_fair_in_many():
    at_100 = {dimension: race.race(dimension, 100.0).clipped_gap for dimension in (3, 16, 64, 256)}
    assert at_100[3] > 1 and at_100[16] > 1 > at_100[64] > at_100[256]


def test_the_race_draws_what_was_computed():
    panel = panels.solver_race(steps=100.0, C=1.0, dimensions="16")
    found = race.race(16, 1.0)
    lines = [line for line in marks(panel.scene, "gaps", "line") if len(line["x"]) > 9]
    (dots,) = marks(panel.scene, "gaps", "dots")
    for k, line in enumerate(lines):
        expected = found.gap[race.DRAWN, k].clip(race.LOW / 10)
        np.testing.assert_allclose(line["y"], expected, rtol=1e-5)
        assert dots["y"][k] == pytest.approx(max(found.gap[100, k], race.LOW), rel=1e-5)
    assert len(lines) == 3 and dots["x"] == [100] * 3
    shares = [np.subtract(m["v"], m["y"]) for m in marks(panel.scene, "weights", "boxes")]
    for bars, alpha in zip(shares, (found.exact, found.path[100, 1], found.clipped)):
        np.testing.assert_allclose(np.sort(bars), np.sort(alpha) / found.exact.max(), atol=1e-5)
    assert (np.diff(shares[0]) <= 0).all()


def test_no_bar_and_no_gap_leaves_its_axis():
    C = panels.solver_race.knobs["C"]
    for dimension, stop in itertools.product((3, 16, 64, 256), range(0, C.stops, 5)):
        found = race.race(dimension, C.stop(stop))
        assert max(found.clipped.max(), found.path[:, 1].max()) / found.exact.max() < 1.4
        assert found.clipped_gap < 10 and found.gap.max() < 1.001  # the key stands above 10


def test_images_stand_in_the_order_of_their_weights():
    panel, some = panels.support_images(query=7, C=0.5), few_patches(4)
    x = normalize(pixels(some.images[:40]).double(), dim=1)
    alpha, labels = svm_dual(kernel(x, x), 7, C=0.5).alpha.numpy(), some.labels[:40].numpy()
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.alpha, alpha, atol=1e-6)
    assert now.order[0] == 7 and (np.diff(now.alpha[now.order[1:]]) <= 0).all()

    def drawn(kind):
        return [mark for plot in ("heavy", "light") for mark in marks(panel.scene, plot, kind)]

    faces = [name for mark in drawn("photographs") for name in mark["faces"]]
    for name, j in zip(faces, now.order, strict=True):
        np.testing.assert_array_equal(panel.pictures[name], tiles(some.images)[j])
    frames = [frame for mark in drawn("photographs") for frame in mark["frame"]]
    assert frames == [GREEN] + [BLUE if a > 0 else VERMILION for a in now.alpha[now.order[1:]]]
    numbers, own = (sum((mark["said"] for mark in drawn("text")[k::2]), []) for k in (0, 1))
    assert numbers == ["query"] + [f"{a:.2g}" if a > 0 else "" for a in now.alpha[now.order[1:]]]
    assert len(own) == ((alpha > 0) & (labels == labels[7])).sum() > 0
    pale, thick = (sum(len(box["x"]) for box in drawn("boxes")[k::2]) for k in range(2))
    assert pale == 39 - (alpha > 0).sum() > 0 and thick == 1 + (alpha >= 0.5).sum()


def test_the_query_is_dragged_or_clicked():
    panel = panels.support_images()
    order = panel.solve(panel.values).order
    x, y = marks(panel.scene, "heavy", "photographs")[0]["x"][6], pictures.HIGH
    panel.on_event({"event": "a:1", "handle": "query", "x": x + 0.3, "y": y - 0.2})
    assert panel.values["query"] == order[6]
    assert {sets["query"] for *_, sets in panel.scene["links"]} == set(range(40))


def test_a_batch_of_ones_own():
    some = few_patches(4)
    panel = panels.support_images(pixels(some.images[:12]), some.images[:12, :1], torch.arange(12))
    assert panel.knobs["query"].high == 11
    assert "0 of the" in panel.alt and "of 11 others" in panel.alt
    assert panel.row("query", [0, 5, 11]).alt

"""Panels of pages 01, 03 and 05 to 07: sorting, shares by water and sand, and machines are the library's."""

import re

import numpy as np
import pytest
import torch
from conftest import shifted
from numpy.linalg import norm
from sklearn.svm import SVC
from sweep import drag, marks, points, slope
from torch.nn import functional as F
from torch.nn.functional import normalize

from setclr.evaluation import pixels
from setclr.inner import kernel, sinkhorn, sorting_network, svm_dual, top_probability
from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses import IOT, GroCo, InfoNCE
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.kit.few_patches import few_patches
from setclr_course.kit.inner import delta
from setclr_course.panels.couplings.buckets import BUCKETS, cost
from setclr_course.panels.couplings.sinkhorn_rounds import after, made_up_cost
from setclr_course.panels.machines import machine_plane as plane
from setclr_course.panels.machines import solver_race as race
from setclr_course.panels.machines import solvers
from setclr_course.panels.machines.street import OTHERS, RIDGE
from setclr_course.panels.sorting import beta_table, five, groups, network
from setclr_course.panels.sorting.walk import RATE, walk
from setclr_course.panels.sparse import share_triangle as nearest

# What the sorting panels show is what the library computes.


EIGHT = (6.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 5.0)


def double(x) -> torch.Tensor:
    return torch.as_tensor(np.array(x, float))


# The losses of lists, and five numbers, the positive first


def info_nce(positives: torch.Tensor, negatives: torch.Tensor, temperature: float) -> torch.Tensor:
    near, far = positives / temperature, (negatives / temperature).logsumexp(-1, keepdim=True)
    return (torch.logaddexp(near, far) - near).mean(-1)


def groco(positives: torch.Tensor, negatives: torch.Tensor, beta: float) -> torch.Tensor:
    x = torch.cat([negatives.sort().values, positives.sort().values], -1)
    p = top_probability(x, positives.shape[-1], beta)
    wanted = (torch.arange(x.shape[-1]) >= negatives.shape[-1]).to(p).expand_as(p)
    return F.binary_cross_entropy(p, wanted, reduction="none").mean(-1)


LOSSES = {"InfoNCE": info_nce, "GroCo": groco}


def test_five_numbers_are_one_row_of_the_losses():
    """A list of one positive and four negatives is a row of a batch of two views of three images."""
    z = torch.randn(2, 3, 4, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    of_anchor = [[(a + 3) % 6, *(c for c in range(6) if c % 3 != a % 3)] for a in range(6)]
    rows = torch.stack([x[columns] @ x[a] for a, columns in enumerate(of_anchor)]).split([1, 4], dim=1)
    torch.testing.assert_close(info_nce(*rows, 0.3).mean(), InfoNCE(0.3)(z))
    torch.testing.assert_close(groco(*rows, 2.0).mean(), GroCo(2.0, negatives=4)(z))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("knob", [0.3, 100.0])
def test_a_walk_is_gradient_descent_step_by_step(loss, knob):
    for start in ((-0.05, -2.0, -0.1, 0.0, 0.1), *np.random.default_rng(0).normal(size=(3, 5)).tolist()):
        path = walk(loss, knob, tuple(start))[:40]
        downhill = slope(lambda x: LOSSES[loss](x[:, :1], x[:, 1:], knob), path[:-1])
        np.testing.assert_allclose(path[1:], path[:-1] - RATE * downhill, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("temperature", [0.1, 5.0])
def test_the_bars_are_a_softmax_and_stand_on_the_beads(temperature):
    panel = panels.beads(temperature=temperature, rocket=-0.2)
    s = double([panel.values[name] for name in five.FIVE])
    share = (s / temperature).softmax(0)
    (bars,) = marks(panel, "line", "boxes")
    np.testing.assert_allclose(bars["v"], share, rtol=1e-5)
    np.testing.assert_allclose(np.add(bars["x"], bars["u"]) / 2, s, atol=1e-6)
    assert f"the loss is {-share[0].log():.2f}" in panel.alt


# Networks on wires


@pytest.mark.parametrize("beta", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("numbers", [EIGHT, EIGHT[:5]])
def test_the_layers_make_the_network(numbers, beta):
    found = network.run(numbers, beta, len(numbers))
    values, P = sorting_network(double(numbers), beta)
    np.testing.assert_allclose(found.products[-1], P, atol=1e-13)
    np.testing.assert_allclose(found.values[-1], values, atol=1e-12)
    np.testing.assert_allclose(found.values, found.products @ numbers, atol=1e-12)
    for layer, one, other in zip(found.matrices, found.products[:-1], found.products[1:], strict=True):
        np.testing.assert_allclose(layer @ one, other, atol=1e-15)


# One anchor and its groups


@pytest.mark.parametrize("beta, temperature", [(1.0, 0.5), (100.0, 0.05)])
def test_pushes_are_minus_the_slopes(beta, temperature):
    s = np.array([0.0, 0.5, -0.4, 0.25, -0.15, 0.38, -0.65, 0.12, 0.6, 0.2])  # two positives come last
    sorting, push = groups.groco(s, beta, preorder=True), groups.info_nce(s, temperature)
    assert sorting.loss == pytest.approx(groco(double(s[8:]), double(s[:8]), beta).item(), rel=1e-9)
    for pushed, loss, knob in ((sorting.push, groco, beta), (push, info_nce, temperature)):
        downhill = slope(lambda x, loss=loss, knob=knob: loss(x[8:], x[:8], knob), s)
        np.testing.assert_allclose(pushed, -downhill, rtol=1e-5, atol=1e-8)
    assert push.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("preorder", ["on", "off"])
def test_first_places_are_a_row_of_the_loss(preorder):
    """A batch of the anchor, its views and five negatives; all others are farther."""
    panel = panels.first_places(preorder=preorder)
    found = panel.solve(panel.values)
    z = torch.zeros(3, 6, 20, dtype=torch.float64)
    z[:, :, 0] = -0.99
    z[0, 0, 0], z[1, 0, 0], z[2, 0, 0] = 1, 1 - found.d[5], 1 - found.d[6]
    z[0, 1:, 0] = 1 - double(found.d[:5])
    z[..., 1:19] = torch.eye(18, dtype=torch.float64).view(3, 6, 18) * (1 - z[..., :1] ** 2).sqrt()
    row = GroCo(8.0, 5, preorder=preorder == "on").assignment(z)[0]
    np.testing.assert_allclose(row[[1, 2, 3, 4, 5, 6, 12]], found.groco.chance, atol=1e-9)
    (bars,) = marks(panel, "chances", "boxes")
    np.testing.assert_allclose(bars["v"], found.groco.chance, rtol=1e-5)


# A swap, and a table


@pytest.mark.parametrize("beta", [0.8, 8.0])
def test_the_soft_step_is_the_librarys_and_its_slope(beta):
    panel = panels.soft_swap(beta=beta)
    for first, second in ((-0.2, 0.15), (0.3, 0.3), (0.9, -0.35)):
        now = panel.solve({"first": first, "second": second, "beta": beta})
        made = sorting_network(double([first, second]), beta)
        np.testing.assert_allclose(now.after, made.values, atol=1e-12)
        assert now.q == pytest.approx(made.P[0, 1].item())
        soft_step = slope(lambda x: torch.atan(beta * x) / np.pi + 0.5, first - second)
        assert now.slope == pytest.approx(soft_step.item())


def test_the_table_is_the_papers():
    best = [(beta_table.NEGATIVES[row], beta_table.BETAS[column]) for row, column in beta_table.BEST]
    assert best == [(1, 0.125), (5, 0.25), (10, 1), (20, 8)]
    assert np.isfinite(beta_table.ACCURACY).sum() == 15
    counted = 1 + np.arange(36.0).reshape(4, 9)
    picture = beta_table.beta_table({"noise": counted, "more": 2 * counted, "less": counted / 100})
    assert "noise: 2, 12, 23, 35; more: 4, 24" in picture.alt


# Shares, by water and by sand: the panels of pages 03 and 06 compute what the library does, and draw it.


COST = torch.from_numpy(cost(BUCKETS))


def constrained(d, epsilon: float, rounds: int = 100) -> dict[str, torch.Tensor]:
    """The shares by the library if their total is asked for, or rows too, or rows and columns."""
    return {
        "total": len(d) * (-d / epsilon).flatten().softmax(0).view(d.shape),
        "rows": (-d / epsilon).softmax(1),
        "both": len(d) * sinkhorn(d, epsilon, iterations=rounds).P,
    }


@pytest.mark.parametrize("epsilon, rounds", [(0.5, 1), (0.05, 8), (0.005, 30)])
def test_a_round_is_sinkhorns(epsilon, rounds):
    panel, d = panels.sinkhorn_rounds(epsilon=epsilon, rounds=rounds), torch.from_numpy(made_up_cost())
    made, now = sinkhorn(d, epsilon, iterations=rounds), panel.solve(panel.values)
    np.testing.assert_allclose(now.shares, 64 * made.P, atol=1e-10)
    assert now.errors[rounds] == pytest.approx(made.error.item(), rel=1e-6, abs=1e-12)
    begun, shares = after(d.numpy(), epsilon, 0), constrained(d, epsilon)["total"]
    np.testing.assert_allclose(begun.shares, shares, rtol=1e-9)
    assert begun.errors[0] == pytest.approx(abs(torch.cat([shares.sum(0), shares.sum(1)]) - 1).max().item())


@pytest.mark.parametrize("constraint", ["rows", "both"])
@pytest.mark.parametrize("queue", [0, 2])
def test_a_coupling_is_that_of_the_loss_and_a_queue_its_memory(constraint, queue):
    z = normalize(torch.randn(13, 3, generator=shifted(3), dtype=torch.float64), dim=-1)
    faces = torch.zeros(13, 3, 8, 8, dtype=torch.uint8)
    panel = panels.coupled_patches({"own": (z[:5], z[5:])}, (faces[:5], faces[5:]), constraint=constraint)
    panel.controls["queue"].value = queue
    now = panel.solve(panel.values)
    A = constrained(1 - z[:5] @ z[5:10].T, 0.5)[constraint]
    if queue:
        A = IOT(constraint, 0.5, 100).assignment(z[:10].unflatten(0, (2, 5)), memory=z[10:12])[:5, 5:]
    np.testing.assert_allclose(now, A, atol=1e-9)
    who = "second views and 2 of" if queue else "second views receive"
    assert f"all of them together {now.trace() / 5:.0%} of their mass; {who}" in panel.alt
    received = (5 + queue) / 5 * now.sum(0)
    assert f"between {received.min():.2f} and {received.max():.2f} fair shares" in panel.alt


def test_coupled_patches_say_how_many_find_their_second_view():
    views = torch.zeros(2, 8, 3, 8, 8, dtype=torch.uint8)
    z = torch.eye(8).expand(2, 8, 8).clone()
    z[1, [0, 1]] = z[1, [1, 0]]
    panel = panels.coupled_patches({"swapped": z}, views, epsilon=0.1)
    assert "6 of 8 patches give their largest share to their own second view" in panel.alt
    (crosses,) = marks(panel, "matrix", "dots")
    assert (crosses["x"], crosses["y"]) == ([1, 0], [0, 1])
    listed = marks(panel, "listed", "photographs")  # those first that take another, then the others
    assert [row["frame"] != ["", "", ""] for row in listed] == [True, True, *5 * [False]]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_coupled_patches_that_are_all_equal_find_their_second_view_by_chance(value):
    """Their own second view stands before the queue, and as far away: a tie, and no find."""
    z, faces = torch.full((20, 4), value), torch.zeros(20, 3, 8, 8, dtype=torch.uint8)
    panel = panels.coupled_patches({"flat": (z[:6], z[6:])}, (faces[:6], faces[6:]), constraint="rows")
    for queue, most in ((0, 2), (1, 5), (8, 2)):
        panel.controls["queue"].value = queue
        assert np.isfinite(panel.solve(panel.values)).all()
        right = int(re.search(r"(\d+) of 6 patches give their largest share to their own", panel.alt)[1])
        assert right <= most, queue


@pytest.mark.parametrize("epsilon, presses", [(0.2, 2), (0.05, 6), (1.0, 40)])
def test_presses_in_turn_are_sinkhorns_rounds(epsilon, presses):
    panel, wanted = panels.sand(epsilon=epsilon), constrained(COST, epsilon, presses // 2)
    states = {"both": {"presses": presses}, "rows": {"presses": 1, "first": "rows"}, "total": {}}
    for way, values in states.items():
        np.testing.assert_allclose(panel.solve({**panel.values, **values}).shares, wanted[way], atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_three_constraints_of_the_hub(epsilon):
    panel = panels.hub(epsilon=epsilon)
    for way, share in constrained(COST, epsilon).items():
        np.testing.assert_allclose(panel.solve(panel.values).shares[way], share, atol=1e-9)
        assert f"loss {-share.diagonal().log().mean():.2f}" in panel.alt


# Water


SCORES = [(1.0, 0.6), (0.0, -0.1), (0.5, 0.5), (-1.0, -0.5)]


def probabilities(places) -> np.ndarray:
    """(n, 3) of points (n, 2) of the triangle."""
    corners, with_sum = (np.column_stack([x, np.ones(len(x))]) for x in (nearest.CORNERS, places))
    return np.linalg.solve(corners.T, with_sum.T).T


@pytest.mark.parametrize("scores", SCORES)
def test_the_path_of_the_sparsemax_turns_where_the_leads_are_the_temperature(scores):
    x = torch.tensor([*scores, 0.0], dtype=torch.float64)
    panel = panels.share_triangle(first=scores[0], second=scores[1])
    bent, straight = (probabilities(points(line)) for line in marks(panel, "plane", "line"))
    np.testing.assert_allclose(straight[0], np.full(3, 1 / 3), atol=1e-5)
    rings = probabilities(points(marks(panel, "plane", "dots")[1]))
    np.testing.assert_allclose(rings, straight[1:])
    assert (np.diff((rings > 1e-5).sum(1)) < 0).all()  # each ring takes somebody
    for tau in np.geomspace(0.01, 100, 50):
        way = straight - sparsemax(x / tau).numpy()
        assert min(norm(a) + norm(b) - norm(b - a) for a, b in zip(way, way[1:])) < 1e-5
    assert (bent[:75] > 0).all()


@pytest.mark.parametrize("scores", [*SCORES, (0.0, 0.0)])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10**0.5])
def test_shares_are_those_of_the_scores_over_the_temperature(scores, temperature):
    panel = panels.share_triangle(first=scores[0], second=scores[1], temperature=temperature)
    now = panel.solve(panel.values)
    x = torch.tensor([*scores, 0.0], dtype=torch.float64) / panel.values["temperature"]
    np.testing.assert_allclose(now.sparse, sparsemax(x), atol=1e-9)
    np.testing.assert_allclose(now.soft, x.softmax(-1), atol=1e-9)
    soft, end = (points(dots)[0] for dots in marks(panel, "plane", "dots")[-2:])
    np.testing.assert_allclose([soft, end], [now.soft, now.sparse] @ nearest.CORNERS, atol=1e-5)


@pytest.mark.parametrize("heights", [{}, {"rocket": 0.9, "cat": -1.0}, dict.fromkeys(NAMES, -1.0)])
def test_the_dry_parts_are_the_sparsemax(heights):
    panel = panels.water(total=1.0, **heights)
    x = torch.tensor([panel.values[name] for name in NAMES], dtype=torch.float64)
    np.testing.assert_allclose(panel.solve(panel.values).dry, sparsemax(x), atol=1e-9)


def test_the_level_that_is_dragged_is_where_the_water_stands_and_keeps_the_pillars():
    panel = panels.water()
    drag(panel, "coffee", 0, 0.7)
    for y in (0.45, 0.4):
        drag(panel, "level", 0, y)
        heights = np.array([panel.values[name] for name in NAMES])
        assert heights[1] == 0.7 and panel.solve(panel.values).t == pytest.approx(y, abs=0.02)
        assert panel.values["total"] == pytest.approx((heights - y).clip(0).sum(), abs=0.026)


def test_pushes_are_the_slopes_of_the_losses():
    panel = panels.pushes(temple=40, margin=0.5)
    now = panel.solve(panel.values)
    cosines = np.cos(np.deg2rad([panel.values[name] for name in NAMES]))
    margin = 0.5 * torch.eye(6, dtype=torch.float64)[0]
    for slopes, loss in (
        (now.soft, lambda x: 0.5 * ((x / 0.5).logsumexp(0) - x[0] / 0.5)),
        (now.sparse, lambda x: sparse_maximum(x - margin) - x[0]),
    ):
        np.testing.assert_allclose(slopes, slope(loss, cosines), atol=1e-9)


@pytest.mark.parametrize(("far", "temperature"), [(1, 0.5), (10, 5), (1024, 0.1)])
def test_a_crowd_of_far_negatives_takes_the_push_from_the_near_one(far, temperature):
    panel = panels.crowd(far=far, temperature=temperature)
    far, temperature = round(panel.values["far"]), panel.values["temperature"]
    share = torch.tensor([0.9, 0.8, *far * [0.0]]).div(temperature).softmax(0)  # the positive first
    np.testing.assert_allclose(panel.solve(panel.values)[-1], share[1] / share[1:].sum(), rtol=1e-4)


# The panels of MMCL: the machines they draw are those of the library, scikit-learn and the formulas.


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

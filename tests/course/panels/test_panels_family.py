"""Panels of pages 02, 04, 08 and 09: assignments, linear and quadratic, and all losses side by side, are the
library's; so are shares, pushes and training on a circle."""

import itertools
from functools import cache

import numpy as np
import pytest
import torch
from conftest import shifted
from sweep import drag, marks, slope
from torch.nn import functional as F
from torch.nn.functional import normalize

from setclr import inner as library
from setclr.evaluation import matching_accuracy
from setclr.inner import linear_assignment, quadratic_assignment, spectral_bounds, top_probability
from setclr.losses import GroCo, InfoNCE, QARe
from setclr_course import panels
from setclr_course.kit import inner
from setclr_course.kit.cast import NAMES
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.losses import gradient
from setclr_course.kit.palette import ORANGE, WHITE
from setclr_course.kit.still import pictured
from setclr_course.panels.assignments import matching_game as game
from setclr_course.panels.assignments import matching_pools as pools
from setclr_course.panels.assignments import pair_curves, pairings, things, who_is_it
from setclr_course.panels.family import anchor_list as lists
from setclr_course.panels.family import next_move
from setclr_course.panels.family import one_idea as idea
from setclr_course.panels.family.batch import ANGLES, FAMILY, MATRICES, SIX, draw_batch
from setclr_course.panels.family.plane import CONTROLS, TRAP_ANGLES, N, control
from setclr_course.panels.family.trap_pushes import LONGEST, REST
from setclr_course.panels.sets.descent import BETAS, RATE, path
from setclr_course.panels.sets.two_lists import ORDERS, moved
from setclr_course.panels.sets.two_views import FIRST, wrapped
from setclr_course.panels.trained import matching_rates
from setclr_course.teach.asked import exercise
from setclr_course.teach.computed import greedy

# Every loss in numpy is the library's, and so are shares, pushes and training on a circle.


made = cache(lambda name: getattr(panels, name)())
UNEVEN = tuple(np.ravel(idea.ANGLES) + 0.3 * np.sqrt(np.arange(12)))  # no two distances are the same


def on_the_circle(angles: torch.Tensor) -> torch.Tensor:
    """(2, N, 2): the points at angles (2 N,) in degrees."""
    return torch.stack([angles.deg2rad().cos(), angles.deg2rad().sin()], dim=-1).view(2, -1, 2)


BATCH, IDEA = (on_the_circle(torch.tensor(x.ravel() * 1.0)) for x in (ANGLES, idea.ANGLES))


def shares(loss, z: torch.Tensor) -> torch.Tensor:
    """What each ● gives to each ■ by the library, as shares of the row."""
    part = loss.assignment(z)[:N, N:]
    return part / part.sum(1, keepdim=True).clamp(min=1e-12)


def turned(one, other) -> np.ndarray:
    """By how many degrees angles differ."""
    return np.abs((np.asarray(one) - other + 180) % 360 - 180)


# The inner problems and losses in numpy


@pytest.mark.parametrize("n", [2, 5, 6, 9])
def test_the_kits_inner_problems_are_the_librarys(n):
    numbers = np.random.default_rng(n)
    x, points, cost = numbers.normal(size=(4, n)), numbers.normal(size=(n + 1, 2)), numbers.random((n, n))
    t, K = torch.from_numpy, library.kernel(*[torch.from_numpy(points)] * 2, "rbf", 1.5)
    pairs = [
        (inner.softmax(x, 0.3), (t(x) / 0.3).softmax(-1)),
        (inner.sparsemax(x), library.sparsemax(t(x))),
        ((x - inner.level(x, 0.4)[:, None]).clip(0).sum(1), np.full(4, 0.4)),
        *zip(inner.sort_softly(x, 3.0), library.sorting_network(t(x), 3.0)),
        (inner.top_probability(x, 1, 3.0), library.top_probability(t(x), 1, 3.0)),
        *((inner.scaled(cost, 0.3, 2 * k), n * library.sinkhorn(t(cost), 0.3, k).P) for k in (1, 7)),
        (inner.rbf(points, points, 1.5), K),
        *((inner.dual(K.numpy(), C, 0.01), library.svm_dual(K, C=C, ridge=0.01).alpha[1:])
          for C in (0.3, 100.0, np.inf)),
    ]  # fmt: skip
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, atol=1e-9, rtol=1e-9)
    if n < 8:
        best = library.linear_assignment(t(cost)).matrix.argmax(1)
        np.testing.assert_array_equal(inner.assignment(cost), best)


@pytest.mark.parametrize("smoothing", [0.01, 0.3, 1, 10])
@pytest.mark.parametrize(("name", "loss"), [*FAMILY.items(), *SIX.items()])
def test_the_formulas_are_the_librarys_losses(name, loss, smoothing):
    """Assignments and gradients; what the library holds constant is held constant."""
    theirs = loss.at(smoothing)
    for shape in ((2, 5, 2), (2, 6, 3)):
        z = normalize(torch.randn(*shape, generator=shifted(0), dtype=torch.float64), dim=-1)
        answer = loss.solved(z.numpy(), smoothing)
        if theirs.has_assignment:
            np.testing.assert_allclose(answer.shares, theirs.assignment(z), atol=1e-9)
        ours, downhill = gradient(answer, z.flatten(0, 1).numpy()), slope(theirs, z).reshape(-1, shape[-1])
        np.testing.assert_allclose(ours, downhill, atol=1e-6 * max(1e-3, np.abs(downhill).max()))


def test_all_but_the_regulariser_have_a_matrix():
    assert [name for name in FAMILY if FAMILY[name].at(1).has_assignment] == MATRICES


# One idea


@pytest.mark.parametrize("softness", [0.0316, 10])
def test_tables_are_the_assignments_of_the_losses(softness):
    one, family = made("one_idea"), made("family_matrices")
    for way, name in idea.WAYS.items():
        share = one.solve(one.values | {"way": way, "softness": softness}).share
        np.testing.assert_allclose(share, shares(FAMILY[name].at(softness), IDEA), atol=1e-9)
    matrices = family.solve(family.values | {"smoothing": softness})
    for name in MATRICES:
        np.testing.assert_allclose(matrices[name], FAMILY[name].at(softness).assignment(BATCH), atol=1e-9)
    assert "●1 at 75°" in pictured(draw_batch, "batch", (2.8, 3)).alt


@pytest.mark.parametrize("way", idea.WAYS)
def test_training_is_gradient_descent_on_the_loss(way):
    """Each step is the one that autograd takes from there, what the loss holds constant being held constant.

    The angles are kept to four digits, so a step is off by half of the last one.
    """
    loss = FAMILY[idea.WAYS[way]].at(idea.USUAL)
    for step in range(idea.STEPS):
        before = idea.trained(UNEVEN, way, step).ravel()
        downhill = slope(lambda angles: loss(on_the_circle(angles)), before)
        after = before - idea.STEP * downhill / np.abs(downhill).max()
        assert turned(idea.trained(UNEVEN, way, step + 1).ravel(), after).max() < 0.5e-4 + 1e-6


@pytest.mark.parametrize("softness", [0.05, 2.5, 10])
def test_softness_does_not_change_who_is_preferred(softness):
    """● rocket is as near to another ■ as to its own: no partner found, however shares are rounded."""
    assert ": 1 of 6 photographs find" in panels.one_idea(softness=softness).alt
    for way in ("softmax", "sort", "transport"):  # nor where all are at one place
        same = panels.one_idea(softness=softness, way=way, **dict.fromkeys(CONTROLS, 40))
        assert ": 0 of 6 photographs find" in same.alt


@pytest.mark.parametrize("step", [0, 12])
def test_points_that_are_moved_one_after_the_other_all_stay(step):
    """At any step: the others stay where they are seen, to the degree, and training begins anew."""
    panel = panels.one_idea(step=step)
    seen = panel.solve(panel.values).angles.ravel()
    for name, angle in ((control(0, 0), 271), (control(1, 3), 17)):
        drag(panel, name, *(RADII[int(name[-1]) - 1] * unit(np.array(angle))))
    places = dict(zip(CONTROLS, seen)) | {control(0, 0): 271, control(1, 3): 17}
    now = panel.solve(panel.values).angles.ravel()
    assert panel.values["step"] == 0 and turned(now, list(places.values())).max() <= 0.5
    assert [panel.values[name] for name in CONTROLS] == now.tolist()


# All losses side by side


@pytest.mark.parametrize("smoothing", [0.01, 0.3])
def test_arrows_lead_downhill_and_are_as_long_as_the_gradient_says(smoothing):
    panel = panels.trap_pushes(FAMILY, 5, [(1, 2)], smoothing=smoothing)
    for name, member in FAMILY.items():
        loss = member.at(smoothing)
        push = -np.rad2deg(slope(lambda angles, loss=loss: loss(on_the_circle(angles)), ANGLES.ravel()))
        np.testing.assert_allclose(panel.solve(panel.values).forces[name].ravel(), push, atol=2 * REST)
        share = np.where(np.abs(push) > REST, push, 0) / max(np.abs(push).max(), REST)
        (arrows,) = marks(panel, name.replace(" ", "-"), "arrows")
        x, y, u, v = (np.array(arrows[side]) for side in "xyuv")
        way = x * (v - y) - y * (u - x)  # to the left where positive
        np.testing.assert_allclose(np.sign(way) * np.hypot(u - x, v - y), LONGEST * share, atol=2e-4)
    assert ("LinearAssignment is at rest" in panel.alt) == (smoothing == 0.01)


# The list of an anchor


@pytest.mark.parametrize(("anchor", "value"), [(0, 0.1), (5, 1.0)])
def test_rows_are_what_groco_the_sparsemax_and_the_machine_give_to_the_list(anchor, value):
    """The second view comes last, and the machine gives it nothing."""
    z = normalize(torch.randn(2, 8, 5, generator=shifted(0), dtype=torch.float64), dim=-1)
    bound = 100 * value
    views = torch.zeros(*z.shape[:2], 3, 2, 2, dtype=torch.uint8)
    panel = panels.anchor_list({"some": z}, views, anchor=anchor, beta=10 * value, temperature=value, C=bound)
    column = lists.listed(z.flatten(0, 1).numpy(), anchor)[0]
    shown = panel.solve(panel.values)
    rows = shown.rows[:, [shown.pictures[1:].tolist().index(c) for c in column]]
    assert column[-1] == 8 + anchor and (np.diff(rows[0, :-1]) >= 0).all()
    groco = GroCo(beta=10 * value, negatives=lists.NEGATIVES).assignment(z)[anchor]
    np.testing.assert_allclose(rows[1], groco[column], atol=1e-12)
    cosines = (z.flatten(0, 1) @ z[0, anchor]).index_fill(0, torch.tensor(anchor), -torch.inf)
    np.testing.assert_allclose(rows[2], library.sparsemax(cosines / value)[column], atol=1e-12)
    pool = z.flatten(0, 1)[[anchor, *column[:-1]]]
    K = torch.exp(-torch.cdist(pool, pool).square() / 2)
    np.testing.assert_allclose(rows[3, :-1], library.svm_dual(K, C=bound).alpha[1:], atol=1e-9)
    assert rows[3, -1] == 0 < rows[3].max() and rows.shape[1] == lists.NEGATIVES + 1


# Assignments, linear and quadratic: the panels of pages 02, 04, 09 and of the careful page 01.


def test_the_game_can_be_won_and_neither_truth_nor_greed_wins_it():
    S = torch.cdist(torch.from_numpy(game.CIRCLES), torch.from_numpy(game.SQUARES))
    torch.testing.assert_close(torch.from_numpy(game.DISTANCE), S)
    orders = np.array(list(itertools.permutations(range(6))))
    best, second = np.sort(game.DISTANCE[np.arange(6), orders].sum(1))[:2]
    assert game.length(game.SHORTEST) == pytest.approx(best) and second > best + 0.05
    assert game.length(game.TRUE) > best + 0.2
    assert greedy(S[None])[0].item() == pytest.approx(exercise("02.1").right, abs=1e-4)
    assert exercise("02.1").right > best + 0.1
    assert game.DISTANCE.max(1).sum() < game.DEAREST


def test_a_line_belongs_to_the_nearest_square_and_snaps_to_where_the_sliders_can_put_it():
    panel = panels.matching_game()
    drag(panel, "cat", *(game.SQUARES[4] + (0.08, -0.08)))
    assert "no matching: temple" in panel.alt
    for i, name in enumerate(game.NAMES):
        drag(panel, name, *game.DROPS[i, game.SHORTEST[i]])
    assert "you have found the shortest" in panel.alt


@pytest.mark.parametrize("temperature, margin", [(0.005, 0.0), (0.05, 0.3), (0.5, 0.0)])
def test_pairings_are_the_shares_and_the_losses_of_the_library(temperature, margin):
    panel = panels.pairings(temperature=temperature, margin=margin, **{"flower x": 0.6})
    now = panel.solve(panel.values)
    S = torch.cdist(torch.tensor(pairings.CIRCLES), torch.from_numpy(things.placed(panel.values, NAMES)))
    S += margin * torch.eye(6, dtype=S.dtype)
    for way in ("batch-hard", "one-to-one"):
        found = linear_assignment(S, temperature, way)
        np.testing.assert_allclose(now.shares[way], found.matrix, atol=1e-10)
        loss = float(S.trace() - found.value) / 6
        assert now.loss[way] == pytest.approx(loss, abs=1e-10) and f"{loss:.3f}" in panel.alt


def test_the_pairs_losses_are_the_librarys_and_the_forces_their_slopes():
    panel = panels.pair_curves(temperature=0.4, margin=0.3, beta=2.0)
    losses = [
        lambda gap: F.softplus(-gap / 0.4),  # InfoNCE of a positive and a negative
        lambda gap: F.relu(0.3 - gap),
        lambda gap: -top_probability(torch.stack([-gap / 2, gap / 2], 1), 1, 2.0)[:, 1].log(),
    ]
    for (found, force), loss in zip(panel.solve(panel.values), losses):
        np.testing.assert_allclose(found, loss(torch.tensor(pair_curves.GAP)), atol=1e-12)
        smooth = np.abs(pair_curves.GAP - 0.3) > 0.03  # the triplet's has a kink there
        smooth[[0, -1]] = False
        np.testing.assert_allclose(force[smooth], -slope(loss, pair_curves.GAP)[smooth], atol=1e-3)


def seen_twice(n=256):
    """Features of n things by two noisy encoders, and pictures of them."""
    things, patches = torch.randn(n, 12), torch.randint(0, 256, (2, n, 3, 32, 32), dtype=torch.uint8)
    noise = {"noisy encoder": 0.75, "better encoder": 0.5}
    features = {name: tuple(things + s * torch.randn(2, n, 12)) for name, s in noise.items()}
    return features, patches


def test_pools_are_matched_as_evaluation_matches_them():
    a, b = seen_twice()[0]["noisy encoder"]
    found = pools.solved(a, b, [8, 64])
    for size in (8, 64):
        shares = []
        for page in range(pools.PAGES):
            pool, got = found["one to one", size, page]
            assert len(set(pool)) == size and sorted(got) == sorted(pool)
            shares.append(matching_accuracy(a[pool], b[pool]))
            assert (pool == got).mean() == shares[-1]
            similarity = F.cosine_similarity(a[pool, None], b[pool], dim=-1)
            np.testing.assert_array_equal(found["nearest", size, page][1], pool[similarity.argmax(1)])
        assert pools.accuracy(found, "one to one", size) == pytest.approx(100 * np.mean(shares))
    for page in range(pools.PAGES):  # rivals join, nobody leaves
        np.testing.assert_array_equal(found["nearest", 64, page][0][:8], found["nearest", 8, page][0])


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_pools_of_equal_features_are_matched_by_chance(value):
    a = torch.full((256, 4), value)
    found = pools.solved(a, a, [8, 64, 256])
    for size in (64, 256):
        assert all(pools.accuracy(found, way, size) < 100 * 4 / size for way in pools.WAYS)
    assert pools.accuracy(found, "one to one", 8) < 50
    a[:32] = torch.eye(32, 4)[:, :1] + torch.randn(32, 4)  # what differs is found as before
    found = pools.solved(a, a, [8])
    assert 100 / 8 <= pools.accuracy(found, "one to one", 8) <= 60


def test_pools_say_the_means_and_how_many_of_the_pairs_shown_are_right_and_too_few_are_refused():
    features, patches = seen_twice()
    panel = panels.matching_pools(features, patches, pool=64, page=3, matching="nearest")
    found = pools.solved(*features["better encoder"], [64])
    right = np.equal(*found["nearest", 64, 2])[:16].sum()
    best, other = (pools.accuracy(found, way, 64) for way in ("one to one", "nearest"))
    assert f"{right} of the 16 shown" in panel.alt and 0 < right < 16
    assert f"one to one {best:.1f} %, nearest {other:.1f} %" in panel.alt
    for panel, least, n in (panels.matching_pools, 16, 10), (panels.who_is_it, 32, 20):
        with pytest.raises(ValueError, match=f"patches must show {least} things or more, got {n}"):
            panel(*seen_twice(n))


def test_the_places_of_partners_are_those_of_the_cosines():
    features, patches = seen_twice()
    panel, some = panels.who_is_it(features, patches), torch.linspace(0, 255, who_is_it.POOL).long()
    for (name, (a, b)), query in itertools.product(features.items(), (0, 17, 31)):
        similarity = F.cosine_similarity(a[some, None].double(), b[some], dim=-1).numpy()
        seen = panel.seen({"features": name, "query": query})
        place = 1 + int((similarity[query] > similarity[query, query]).sum())
        assert f"patch {query} stands at place {place} of {who_is_it.POOL}" in seen.sentence
        right = (similarity.argmax(1) == np.arange(who_is_it.POOL)).mean()
        assert f"{right:.0%} have their partner" in seen.sentence


# Quadratic


SIMILARITIES = ("cosine", "euclidean")
both = pytest.mark.parametrize("similarity", SIMILARITIES)


def test_sorted_lists_have_the_largest_sum():
    best, worst = (panels.two_lists(order=order).alt for order in (0, 119))
    assert best.endswith("0 give more, 119 give less.") and worst.endswith("0 give less.")
    assert "= 58." in panels.two_lists().alt


def test_a_bar_that_is_moved_stays_on_its_way_and_keeps_the_others_in_order():
    """A slow pull ends where a fast one does."""
    for bar, way in ((1, (1, 2, 3, 4)), (7, (3, 1, 0)), (4, (3, 0, 4, 2))):
        slow = ORDERS[0]
        for place in way:
            slow = moved(slow, bar, place)
        fast = moved(ORDERS[0], bar, way[-1])
        assert slow == fast and fast.index(bar) == way[-1]
        assert [one for one in fast if one != bar] == [one for one in ORDERS[0] if one != bar]


@both
@pytest.mark.parametrize("start", [{}, {"turn": 90}, {"cat": 150, "rocket": -20}])
def test_the_fits_and_their_bounds_are_the_librarys(start, similarity):
    panel = panels.spectra(similarity, **start)
    now, z = panel.solve(panel.values), torch.from_numpy(panel.ring.vectors(panel.values))
    A, B = 1 + z @ z.mT if similarity == "cosine" else torch.cdist(z, z)
    values = quadratic_assignment(torch.zeros_like(A), A, B).values.numpy() / 36
    np.testing.assert_allclose(now.values, values, atol=1e-6)
    bounds = [float(bound) / 36 for bound in spectral_bounds(A, B)]
    np.testing.assert_allclose([now.lower, now.upper], bounds, atol=1e-6)
    assert float(QARe(similarity)(z)) == pytest.approx(bounds[1] if similarity == "cosine" else -bounds[0])


def test_turning_a_view_changes_the_pairs_and_not_its_table_and_takes_moved_squares_along():
    for turn in (0, 90):
        panel = panels.two_shapes(turn=turn)
        now = panel.solve(panel.values)
        assert (now.pairs, now.mismatch) == pytest.approx((np.cos(np.deg2rad(turn)), 0))
    panel = panels.two_shapes(turn=30)
    for name, degrees in (("cat", 100), ("rocket", -20)):
        drag(panel, name, np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees)))
    assert (panel.values["cat"], panel.values["rocket"], panel.values["turn"]) == (70, -50, 30)
    panel.controls["turn"].value = 50
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.z[1, [0, 3]], [[-0.5, 0.75**0.5], [1, 0]], atol=1e-9)
    A, B = now.z @ now.z.swapaxes(1, 2)
    assert now.mismatch == pytest.approx(np.square(A - B).mean())


def test_the_site_has_what_page_04_asks_for():
    """Both views alike, and every weight to its end. With QARe a view spreads sooner."""
    assert dict(zip(NAMES, wrapped(FIRST).tolist())) in panels.spectra.also
    assert {"weight": 4.0, "step": 80} in panels.spreading.also
    alone, spread = panels.spreading().solve(panels.spreading().values)[1][8]
    assert spread < alone - 0.2


def around(angles: torch.Tensor) -> torch.Tensor:
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


@both
@pytest.mark.parametrize("beta", [0.5, 1.125])
def test_the_batched_descent_is_that_of_the_librarys_loss(beta, similarity):
    k, found = BETAS.tolist().index(beta), path(similarity)
    for step in (0, 7, 30):
        angles = found.angles[step, k]
        downhill = slope(lambda a: InfoNCE(0.5)(around(a)) + beta * QARe(similarity)(around(a)), angles)
        np.testing.assert_allclose(found.angles[step + 1, k], angles - RATE * downhill, rtol=1e-7, atol=1e-9)
        z = around(torch.from_numpy(angles))
        cosines = (z @ z.mT)[:, ~torch.eye(6, dtype=torch.bool)]
        assert found.within[step, k] == pytest.approx(cosines.mean().item())


def test_only_the_gains_whose_interval_leaves_out_0_are_filled():
    rows = matching_rates.made_up()
    alone, both = (rows[f"Triplet{x}, normalised none"]["report"]["0.001"] for x in ("", " + QARe"))
    both["matched_percent"] = alone["matched_percent"] + 9
    colours = marks(panels.matching_rates(rows, rate="0.001"), "gains", "dots")[0]["colour"]
    assert colours == [ORANGE, WHITE, WHITE, WHITE]


# Where each point moves next


@pytest.mark.parametrize("rule", next_move.RULES)
def test_the_arrows_of_page_after_page_are_the_slopes_of_the_librarys_losses(rule):
    """InfoNCE's at the temperature of the slider, the other's at the knob that its title names."""
    _, (info_nce, other) = (panel := panels.next_move(rule, temperature=0.1)).solve(panel.values)
    beside = next_move.RULES[rule].at(1) if rule != "only pull" else lambda z: ((z[0] - z[1]) ** 2).sum() / 12
    for loss, forces in ((InfoNCE(0.1), info_nce), (beside, other)):
        downhill = -slope(lambda angles, loss=loss: loss(on_the_circle(angles)), TRAP_ANGLES.ravel() * 1.0)
        np.testing.assert_allclose(forces.ravel(), np.rad2deg(downhill), atol=1e-5)
    assert panel.alt.endswith("stays; 12 of 12 hardly move.") == (rule == "matching")

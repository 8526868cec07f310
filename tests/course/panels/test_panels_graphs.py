"""The panels of molecules: what they compute is the library's, and what they show is what they say."""

import numpy as np
import pytest
import torch
from sweep import marks
from torch.nn.functional import normalize

from setclr import graphs
from setclr.experiments import pretrain
from setclr.graphs.views import AUGMENTATIONS
from setclr.losses import parse
from setclr.recipes import GraphRecipe
from setclr.seeding import seeded
from setclr_course import panels
from setclr_course.kit.palette import PURPLE
from setclr_course.panels.graphs import drawn, molecule_matching

LOSSES = {  # what the panel of matched molecules computes in numpy, as the library makes it
    "assignment": "LinearAssignment()", "InfoNCE": "InfoNCE(temperature=0.2)", "SparseCLR": "SparseCLR()",
    "GroCo": "GroCo(beta=1.0, negatives=10)", "IOT": "IOT(constraint='rows', epsilon=0.2)",
    "MMCL": "MMCL(solver='exact')",
}  # fmt: skip


@pytest.fixture(scope="module")
def first_weights():
    return pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=0))


@pytest.fixture(scope="module")
def matched(first_weights):
    return panels.molecule_matching({"first weights": first_weights})


@pytest.mark.parametrize("view", ["any", *AUGMENTATIONS])
def test_the_views_of_the_panels_are_the_librarys_and_drawn_as_they_are(view):
    numbers, ratio = range(24, 30), 0.4
    plain = graphs.load_graphs("mutag").batch(numbers)
    wanted = graphs.graph_view(plain, view, ratio, seeded(4, 1))
    found, shown = drawn.random_views(numbers, view, ratio, seeded(4, 1))
    for name in ("x", "edge_index", "batch", "ptr"):
        assert torch.equal(found[name], wanted[name])
    for i, (number, one) in enumerate(zip(numbers, shown)):
        x = wanted.x[wanted.batch == i]
        hidden = ((x != 0) & (x != 1)).any(1).numpy()
        assert one.said.tolist() == ["?" if h else "" for h in hidden]
        kinds = np.where(hidden, one.kinds, x.argmax(1))
        np.testing.assert_array_equal(one.kinds, kinds)
        assert {tuple(place) for place in one.places} <= {tuple(place) for place in drawn.positions()[number]}
        edges = wanted.edge_index[:, wanted.batch[wanted.edge_index[0]] == i] - wanted.ptr[i]
        bonds = {tuple(sorted(pair)) for pair in edges.T.tolist()}
        assert {tuple(sorted(pair)) for pair in one.bonds.T.tolist()} == bonds
        if view == "rewire":
            old = drawn.MOLECULES[number].bonds.T.tolist()
            known = [pair in old or pair[::-1] in old for pair in one.bonds.T.tolist()]
            assert [colour != PURPLE for colour in one.colours] == known


@pytest.mark.parametrize("loss", LOSSES)
def test_the_shares_of_matched_molecules_are_the_librarys(matched, first_weights, loss):
    assert set(LOSSES) == {"assignment", *molecule_matching.LOSSES}
    for six, draw in ((4, 1), (0, 7), (30, 12)):
        batch = graphs.load_graphs("mutag").batch(range(6 * six, 6 * six + 6))
        views = batch, graphs.graph_view(batch, "any", first_weights.recipe.ratio, seeded(six, draw))
        with torch.no_grad():
            z = torch.stack([first_weights.head(first_weights.encoder(view)) for view in views]).double()
        given = parse(LOSSES[loss]).assignment(z)[:6, 6:]
        found = matched.solve(matched.start | {"loss": loss, "six": six, "draw": draw}).shares
        np.testing.assert_allclose(found, given / given.sum(1, keepdim=True).clamp(min=1e-12), atol=1e-9)


def test_a_molecule_without_an_atom_is_compared_with_its_random_view(first_weights):
    panel = panels.molecule_views(first_weights)
    mutag = graphs.load_graphs("mutag")
    x, y = drawn.positions()[2][5] + 0.02
    panel.on_event({"event": "", "handle": "ring", "x": x, "y": y})
    assert panel.values["atom"] == 6 and "without atom 6" in panel.alt
    batch = mutag.batch([2])
    first = graphs.keep_nodes(batch, torch.arange(len(batch.x)) != 5)
    second = graphs.graph_view(batch, "drop", 0.2, seeded(2, 1))
    with torch.no_grad():
        one, two, every = (
            normalize(first_weights.head(first_weights.encoder(graph)).double(), dim=1)
            for graph in (first, second, mutag.batch(range(188)))
        )
    every[2] = one[0]
    far = panel.solve(panel.values).far
    np.testing.assert_allclose(far, (1 - every @ two[0]).clamp(min=1e-4), atol=1e-6)
    assert f"place {(far < far[2]).sum() + 1} of 188" in panel.alt


def test_small_pictures_of_molecules_show_their_atoms():
    pictures = drawn.molecule_pictures(torch.tensor([2, 3]))
    assert pictures.shape == (2, 3, 96, 96) and pictures.dtype == torch.uint8
    drawn_at = (pictures[0] != 255).any(0).nonzero().double()  # row, column
    middle, half = (drawn_at.amax(0) + drawn_at.amin(0)) / 2, (drawn_at.amax(0) - drawn_at.amin(0)) / 2
    wide, high = half[1] - 4, half[0] - 4  # from the middle of the first to that of the last atom
    assert wide < 40 and (middle - 48).abs().max() < 6
    far = np.abs(drawn.positions()[2]).max(0)
    assert high / wide == pytest.approx(far[1] / far[0], abs=0.2)


def test_atoms_stand_where_they_do_on_every_machine(monkeypatch):
    """Other signs and other rounding of eigenvectors are as right, and classical scaling puts atoms in one
    place."""
    real = np.linalg.eigh

    def other(a):
        values, vectors = real(a)
        return values, vectors * (1e-12 * np.sin(np.arange(a.size)).reshape(a.shape) - 1)

    monkeypatch.setattr(np.linalg, "eigh", other)
    for mine, also in zip(drawn.positions(), drawn.positions.__wrapped__()):
        np.testing.assert_allclose(mine, also, atol=1e-6)


def test_the_column_shows_the_seeds_of_an_epoch_and_the_best_so_far():
    curves = {"graphcl": np.array([[80.0, 90, 85], [70, 71, 72]]), "untrained": np.array([[81.0], [83]])}
    panel = panels.graph_column(curves, rule="the best so far")
    for rule, epoch, seen in (("the best so far", 3, [90, 72, 81, 83]), ("this epoch", 2, [90, 71, 81, 83])):
        panel.controls["rule"].value, panel.controls["epoch"].value = rule, epoch
        (dots,) = (mark for mark in marks(panel, "plot", "dots"))
        assert dots["x"] == seen
    assert "from graphcl 80.5 to untrained 82.0 per cent" in panel.alt
    assert "on average 0.0 above this one" in panel.alt

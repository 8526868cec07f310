"""Graphs: sets, views, encoder, SVM, training and records, against outside programs and by their laws."""

import json
import os
import pickle
from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.svm import SVC
from torch_geometric.data import Batch, Data
from torch_geometric.utils import is_undirected, to_dense_adj

import setclr
from setclr import graphs
from setclr.cli import main
from setclr.data.writing import replacing
from setclr.evaluation import svm
from setclr.evaluation.svm import svm_accuracy
from setclr.experiments import pretrain
from setclr.graphs import sets
from setclr.graphs.sets import tu_graphs
from setclr.recipes import PUBLISHED, RECIPES, GraphRecipe
from setclr.recipes.graph import GRAPH_SETS, GRAPH_VIEWS
from setclr.seeding import seeded
from setclr.training import Step
from setclr_course.papers.tables import graph_results

CPU = torch.device("cpu")
SEEDS = st.integers(0, 2**31)
RATIOS = st.floats(0, 1)


def random_graph(nodes: int, density: float, seed: int, features: int = 3) -> Data:
    generator = seeded(seed)
    there = torch.rand(nodes, nodes, generator=generator) < density
    edges = (there.triu(1) | there.triu(1).T).nonzero().T.contiguous()
    return Data(x=torch.randn(nodes, features, generator=generator), edge_index=edges, num_nodes=nodes)


@st.composite
def batches(draw) -> Batch:
    """Some of one node, some without edges."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    density, seed = draw(st.floats(0, 1)), draw(SEEDS)
    made = [random_graph(n, density, seed + i) for i, n in enumerate(sizes)]
    return graphs.GraphSet(made).batch(range(len(made)))


def sizes(batch: Batch) -> torch.Tensor:
    return batch.batch.bincount(minlength=batch.num_graphs)


def edges_of(batch: Batch) -> set[tuple[int, int]]:
    return set(map(tuple, batch.edge_index.T.tolist()))


def is_whole(batch: Batch) -> None:
    """What every view keeps: order of graphs, edges inside a graph and in both directions, once each."""
    assert (batch.batch.diff() >= 0).all() and batch.ptr.tolist() == [0, *sizes(batch).cumsum(0).tolist()]
    a, b = batch.edge_index
    assert (batch.batch[a] == batch.batch[b]).all()
    assert len(edges_of(batch)) == len(a)
    assert is_undirected(batch.edge_index, num_nodes=len(batch.x))


@settings(deadline=None, max_examples=60)
@given(batches(), RATIOS, SEEDS, st.sampled_from(GRAPH_VIEWS))
def test_views_keep_graphs_whole_and_the_batch_as_it_was(batch, ratio, seed, name):
    before = batch.clone()
    view = graphs.graph_view(batch, name, ratio, seeded(seed))
    is_whole(view)
    assert view.num_graphs == batch.num_graphs and (sizes(view) >= 1).all()
    assert torch.equal(batch.x, before.x) and torch.equal(batch.edge_index, before.edge_index)
    again = graphs.graph_view(batch, name, ratio, seeded(seed))
    assert torch.equal(view.x, again.x) and torch.equal(view.edge_index, again.edge_index)


@settings(deadline=None, max_examples=40)
@given(batches(), RATIOS, SEEDS)
def test_dropping_nodes_keeps_the_others_and_all_edges_between_them(batch, ratio, seed):
    batch.x = torch.arange(len(batch.x), dtype=torch.float32)[:, None]
    view = graphs.drop_nodes(batch, ratio, seeded(seed))
    lost = torch.minimum((sizes(batch) * ratio).floor().long(), sizes(batch) - 1)
    assert torch.equal(sizes(view), sizes(batch) - lost)
    kept = view.x[:, 0].long()
    assert (kept.diff() > 0).all()
    renamed = {(int(kept[a]), int(kept[b])) for a, b in edges_of(view)}
    inside = set(kept.tolist())
    assert renamed == {(a, b) for a, b in edges_of(batch) if a in inside and b in inside}


@settings(deadline=None, max_examples=40)
@given(batches(), RATIOS, SEEDS)
def test_masking_changes_the_attributes_of_so_many_nodes_and_nothing_else(batch, ratio, seed):
    view = graphs.mask_nodes(batch, ratio, seeded(seed))
    changed = (view.x != batch.x).any(1)
    counts = torch.zeros_like(sizes(batch)).index_add_(0, batch.batch, changed.long())
    assert torch.equal(counts, (sizes(batch) * ratio).floor().long())
    assert torch.equal(view.edge_index, batch.edge_index)


@settings(deadline=None, max_examples=40)
@given(batches(), RATIOS, SEEDS)
def test_rewiring_removes_so_many_edges_and_adds_at_most_as_many(batch, ratio, seed):
    view = graphs.rewire_edges(batch, ratio, seeded(seed))
    for i in range(batch.num_graphs):
        old, new = ({(a, b) for a, b in edges_of(x) if a < b and int(x.batch[a]) == i} for x in (batch, view))
        moved = int(np.floor(np.float32(len(old)) * np.float32(ratio)))
        assert len(old - new) == moved and len(new - old) <= moved
    assert torch.equal(view.x, batch.x)


@settings(deadline=None, max_examples=40)
@given(batches(), RATIOS, SEEDS)
def test_a_walk_keeps_a_connected_part_of_at_most_so_many_nodes(batch, ratio, seed):
    view = graphs.keep_walk(batch, ratio, seeded(seed))
    wanted = (sizes(batch) * ratio).ceil().long().clamp(min=1)
    assert (sizes(view) <= wanted).all()
    for i in range(view.num_graphs):
        n = int(sizes(view)[i])
        inside = (view.batch == i).nonzero()[:, 0]
        edges = view.edge_index[:, view.batch[view.edge_index[0]] == i] - inside[0]
        reached = torch.matrix_power(to_dense_adj(edges, max_num_nodes=n)[0] + torch.eye(n), n)
        assert (reached > 0).all()


@pytest.mark.parametrize(
    "change", [graphs.drop_nodes, graphs.rewire_edges, graphs.mask_nodes, graphs.keep_walk]
)
def test_only_the_chosen_graphs_change(change):
    batch, chosen = graphs.load_graphs("mutag").batch(range(12)), torch.arange(12) % 3 == 0
    view = change(batch, 0.5, seeded(1), chosen)
    same = [
        torch.equal(batch.x[batch.batch == i], view.x[view.batch == i])
        and torch.equal(local(batch, i), local(view, i))
        for i in range(12)
    ]
    assert same == (~chosen).tolist()


def local(batch: Batch, i: int) -> torch.Tensor:
    """The edges of a graph among its own nodes, in order."""
    edges = batch.edge_index[:, batch.batch[batch.edge_index[0]] == i] - batch.ptr[i]
    return edges[:, (edges[0] * 100 + edges[1]).argsort()]


def test_random_choices_have_their_odds():
    batch = graphs.load_graphs("mutag").batch([0] * 4000)
    batch.x = torch.arange(17, dtype=torch.float32).repeat(4000)[:, None]
    kept = graphs.drop_nodes(batch, 0.2, seeded(0)).x[:, 0].long().bincount()
    # 3 of 17 are dropped: a node stays in 4000 · 14/17 views, with deviation 24.1
    assert (kept - 4000 * 14 / 17).abs().max() < 5 * 24.1
    view = graphs.graph_view(graphs.load_graphs("mutag").batch([0] * 400), "any", 0.2, seeded(0))
    for count in (sizes(view) <= 4, sizes(view) == 14):  # a walk, and dropped nodes: a quarter each
        assert abs(int(count.sum()) - 100) < 5 * 8.7
    # In a complete graph of 10 each of 50 steps finds a new node with probability 5/9 or more while fewer
    # than 5 are seen, and four must.
    complete = [Data(x=torch.ones(10, 1), edge_index=(1 - torch.eye(10)).nonzero().T) for _ in range(20)]
    assert (sizes(graphs.keep_walk(graphs.GraphSet(complete).batch(range(20)), 0.45, seeded(0))) == 5).all()


def test_mutag_is_the_set_of_the_tu_collection():
    found = graphs.molecules()
    assert len(found) == 188 and sum(m.mutagenic for m in found) == 125
    assert sum(len(m.atoms) for m in found) == 3371 and sum(len(m.kinds) for m in found) == 3721
    loaded = graphs.load_graphs("mutag")
    assert repr(loaded) == "GraphSet(mutag: 188 graphs of 10 to 28 nodes, 7 numbers a node, 2 classes)"
    assert int(loaded.labels.sum()) == 125
    assert all(is_undirected(graph.edge_index) for graph in loaded.graphs)


class Runs:
    """Pickled, it makes a folder when it is read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def write_tu(folder, name: str = "PROTEINS", labelled_nodes: bool = True):
    """Two graphs in the TU collection's layout, a triangle and an edge; gives the folder of their files."""
    raw = folder / "tudataset" / name / "raw"
    raw.mkdir(parents=True)
    pairs = [(1, 2), (2, 3), (3, 1), (4, 5)]
    lines = [f"{a}, {b}" for pair in pairs for a, b in (pair, pair[::-1])]
    files = {"A": lines, "graph_indicator": [1, 1, 1, 2, 2], "graph_labels": [1, 2]}
    if labelled_nodes:
        files["node_labels"] = [0, 1, 2, 1, 1]
    for kind, rows in files.items():
        (raw / f"{name}_{kind}.txt").write_text("\n".join(map(str, rows)) + "\n")
    return raw


@pytest.fixture(autouse=True)
def made_up_sets_are_read(monkeypatch):
    """Without it, a set of a known name must have the checksum of the true one."""
    monkeypatch.setattr(sets, "TU_SHA256", {})


def test_files_of_a_known_set_must_be_its_own(tmp_path, monkeypatch):
    write_tu(tmp_path)
    monkeypatch.undo()
    with pytest.raises(ConnectionError, match="proteins .*have the checksum [0-9a-f]{12}, not b3a7"):
        graphs.load_graphs("proteins", tmp_path)


@pytest.mark.parametrize("name, features", [("proteins", 3), ("imdb-binary", 1)])
def test_other_sets_are_read_from_the_collections_files(tmp_path, name, features):
    """Alone: what else is in the folder, such as pickles of other versions, is not opened."""
    write_tu(tmp_path, GRAPH_SETS[name], name == "proteins")
    processed = tmp_path / "tudataset" / GRAPH_SETS[name] / "processed"
    processed.mkdir()
    for file in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        (processed / file).write_bytes(pickle.dumps(Runs(tmp_path / "mark")))
    found = graphs.load_graphs(name, tmp_path)
    assert not (tmp_path / "mark").exists()
    assert (len(found), found.features, found.labels.tolist()) == (2, features, [0, 1])
    assert [graph.num_nodes for graph in found.graphs] == [3, 2]
    assert edges_of(found.batch([0])) == {(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)}
    if features == 1:
        assert (found.graphs[0].x == 1).all()


def test_the_text_files_are_read_as_pytorch_geometric_does(tmp_path):
    """Nodes with labels and attributes, labels of edges, a loop, one edge twice, a last graph without."""
    raw = tmp_path / "raw"
    raw.mkdir()
    files = {"A": ["2, 1", "1, 2", "1, 2", "1, 1", "4, 3", "3, 4"], "graph_indicator": [1, 1, 2, 2, 3],
             "graph_labels": [1, -1, 1], "node_labels": [3, 5, 5, 3, 4], "edge_labels": [0, 0, 0, 1, 1, 1],
             "node_attributes": ["0.5, 1", "2, 2", "1, 1", "0, 1", "3, 3"]}  # fmt: skip
    for kind, rows in files.items():
        (raw / f"OWN_{kind}.txt").write_text("\n".join(map(str, rows)) + "\n")
    found = tu_graphs(raw, "OWN")
    assert [graph.x.argmax(1).tolist() for graph in found] == [[0, 2], [2, 0], [1]]
    assert [graph.edge_index.tolist() for graph in found] == [[[0, 1], [1, 0]], [[0, 1], [1, 0]], [[], []]]
    assert [int(graph.y) for graph in found] == [1, 0, 1]


@pytest.mark.parametrize(
    "kind, text",
    [("graph_labels", None), ("graph_labels", "1\n"), ("graph_indicator", "1\n"), ("A", "1, 9\n9, 1\n"),
     ("A", "1, x\n"), ("node_labels", "0\n")],
)  # fmt: skip
def test_files_that_do_not_fit_together_are_refused(tmp_path, kind, text):
    path = write_tu(tmp_path) / f"PROTEINS_{kind}.txt"
    path.unlink() if text is None else path.write_text(text)
    said = f"^proteins is not under {tmp_path / 'tudataset'}, or damaged.*'mutag' needs no download"
    with pytest.raises(ConnectionError, match=said):
        graphs.load_graphs("proteins", tmp_path)


def test_a_missing_set_is_downloaded_and_only_its_text_files_are_unpacked(tmp_path, monkeypatch):
    raw = write_tu(tmp_path / "packed")

    def fetched(url, path, progress):
        assert url.endswith("/PROTEINS.zip")
        with ZipFile(path, "w") as packed:
            for file in sorted(raw.iterdir()):
                packed.write(file, f"PROTEINS/{file.name}")
            packed.writestr("../evil.txt", "")
            packed.writestr("PROTEINS/PROTEINS_/../../evil.txt", "")

    def full(path):
        if path.name.endswith("_A.txt"):
            raise OSError("no space")
        return replacing(path)

    monkeypatch.setattr(torch.hub, "download_url_to_file", fetched)
    with monkeypatch.context() as patch, pytest.raises(ConnectionError, match="no space"):
        patch.setattr(sets, "replacing", full)
        graphs.load_graphs("proteins", tmp_path / "root")
    assert len(graphs.load_graphs("proteins", tmp_path / "root")) == 2, "what is cut off is begun again"
    assert not list(tmp_path.rglob("evil.txt"))


def test_the_encoder_is_the_formula():
    """h ← BN(ReLU(MLP((A + I) h))), sums over nodes of every layer, side by side; in eval mode a new batch
    norm divides by √(1 + 1e-5)."""
    batch = graphs.load_graphs("mutag").batch(range(5))
    encoder = graphs.GIN(7, 16, 2).double().eval()
    found = encoder(batch.clone().apply(lambda x: x.double() if x.is_floating_point() else x))
    for i in range(5):
        h = batch.x[batch.batch == i].double()
        A = to_dense_adj(local(batch, i), max_num_nodes=len(h))[0].double()
        sums = []
        for layer in encoder.layers:
            first, _, second = layer.nn
            h = (A + torch.eye(len(h))) @ h
            h = ((h @ first.weight.T + first.bias).relu() @ second.weight.T + second.bias).relu()
            h = h / np.sqrt(1 + 1e-5)
            sums.append(h.sum(0))
        torch.testing.assert_close(found[i], torch.cat(sums))


@settings(deadline=None, max_examples=20)
@given(SEEDS)
def test_the_names_of_nodes_do_not_matter(seed):
    graph = random_graph(9, 0.4, seed)
    order = torch.randperm(9, generator=seeded(seed))
    renamed = Data(x=graph.x[order], edge_index=order.argsort()[graph.edge_index])
    encoder = graphs.GIN(3).double().eval()
    for one in (graph, renamed):
        one.x = one.x.double()
    a, b = (encoder(graphs.GraphSet([one]).batch([0])) for one in (graph, renamed))
    torch.testing.assert_close(a, b)


def test_the_svm_is_scikit_learns_nested_search():
    features, labels = torch.randn(60, 4, generator=seeded(0)), torch.arange(60) % 2
    features[:, 0] += labels
    search = GridSearchCV(SVC(), {"C": [10.0**k for k in range(-3, 4)]}, cv=5)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    wanted = cross_val_score(search, features.double().numpy(), labels.numpy(), cv=folds).mean()
    assert svm_accuracy(features, labels, 3, folds=4) == pytest.approx(100 * wanted)


def test_training_lowers_the_loss_and_features_come_in_any_batches():
    run = pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=4))
    assert run.rows[-1]["loss"] < run.rows[0]["loss"] - 0.1
    mutag = graphs.load_graphs("mutag")
    found = [graphs.graph_features(run.encoder, mutag, batch=n) for n in (50, 188)]
    torch.testing.assert_close(*found)


SOME = graphs.GraphSet(graphs.load_graphs("mutag").graphs[:40])


@pytest.mark.parametrize("name", [n for n in RECIPES if RECIPES[n].data == "mutag"])
def test_every_recipe_of_mutag_trains(name):
    run = pretrain(replace(RECIPES[name], epochs=1), data=SOME)
    assert np.isfinite(run.rows[0]["loss"])


def test_table_4_has_the_papers_ten_cells():
    assert len([name for name in PUBLISHED if name.startswith("mmcl-table4-")]) == 10
    assert str(PUBLISHED["mmcl-table4-mutag-mmcl"]) == "svm 88.42 ± 1.33"


def test_a_graph_of_one_node_and_one_without_edges_are_graphs():
    lonely = Data(x=torch.ones(1, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    apart = Data(x=torch.ones(5, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    some = graphs.GraphSet([lonely, apart, random_graph(6, 0.5, 0, 2), random_graph(4, 0.5, 1, 2)])
    run = pretrain(GraphRecipe("InfoNCE()", epochs=3), data=some)
    assert graphs.graph_features(run.encoder, some).isfinite().all()


MUTAG = graphs.load_graphs("mutag").batch(range(3))
GOOD = dict(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))


def tensors(path, graphs_there) -> str:
    torch.save(graphs_there, path / "own.pt")
    return str(path / "own.pt")


ONE_WAY = torch.tensor([[0], [1]])
THREE = [random_graph(4, 0.5, i) for i in range(3)]


@pytest.mark.parametrize(
    "bad, said",
    [
        (dict(x=None), r"graphs\[1\].x must be a floating tensor .* torch.ones\(n, 1\)"),
        (dict(x=torch.ones(0, 3)), r"graphs\[1\].x must be a floating tensor"),
        (dict(x=torch.ones(2, 3).long()), "int64"),
        (dict(x=torch.full((2, 3), torch.nan)), r"graphs\[1\].x must be finite"),
        (dict(x=torch.ones(2, 4)), r"graphs\[1\].x must be \(n, 3\)"),
        (dict(edge_index=torch.tensor([[0], [2]])), r"edge_index must be 0 to 1, .* got 0 to 2"),
        (dict(edge_index=torch.tensor([[0.0], [1.0]])), "int64 tensor"),
        (dict(edge_index=None), r"torch.empty\(2, 0"),
        (dict(y=torch.tensor([1])), r"graphs must all have a label y, or none; graphs\[0\] has none"),
        (dict(num_nodes=99), "num_nodes must be that of x, .*, got 99"),
        *[(dict(**{key: torch.ones(2)}), rf"graphs\[1\] has {key}, which would not be used; delete it")
          for key in ("edge_attr", "edge_weight")],
    ],
)  # fmt: skip
def test_a_graph_that_cannot_be_used_is_named(bad, said):
    with pytest.raises(ValueError, match=said):
        graphs.GraphSet([Data(**GOOD), Data(**GOOD | bad)])


@pytest.mark.parametrize(
    "call, error, said",
    [
        *[(lambda path, y=y: graphs.GraphSet([Data(**GOOD, y=torch.tensor([0])), Data(**GOOD, y=y)]),
           ValueError, "graphs' y must be 2 whole numbers")
          for y in (torch.tensor([0.7]), torch.tensor([torch.nan]), torch.tensor([0, 1]), 0.7, "a", [0, 1])],
        (lambda path: graphs.GraphSet([]), ValueError, "graphs must be at least one"),
        (lambda path: pretrain(GraphRecipe("InfoNCE()"), data=graphs.GraphSet(THREE[:1])), ValueError,
         "graphs must be at least 2, got"),
        (lambda path: pretrain(GraphRecipe("InfoNCE()", batch=2), data=graphs.GraphSet(THREE)), ValueError,
         "last batch has one"),
        (lambda path: graphs.load_graphs(tensors(path, [GOOD | {"edge_attr": torch.ones(2)}])), ValueError,
         r"own.pt: graphs\[0\] has edge_attr, which would not be used"),
        (lambda path: graphs.load_graphs(tensors(path, [Data(**GOOD)])), ValueError,
         "own.pt must hold plain tensors .*not Data objects"),
        (lambda path: graphs.load_graphs(tensors(path, GOOD)), ValueError,
         "own.pt must hold a list of dicts .*got dict"),
        (lambda path: graphs.load_graphs(tensors(path, [GOOD | {"y": 1}])), ValueError,
         r"graphs\[0\].y must be a tensor, got int; torch.tensor makes one"),
        (lambda path: graphs.load_graphs(tensors(path, [GOOD | {"edge_index": ONE_WAY}])), ValueError,
         r"graphs\[0\] has a one-way edge; to_undirected"),
        (lambda path: (write_tu(path) / "PROTEINS_edge_labels.txt").write_text("1\n") and graphs.load_graphs(
            f"tu:{path}/tudataset/PROTEINS/raw"), ValueError,
         "PROTEINS_edge_labels.txt would not be used; move it away"),
        (lambda path: graphs.load_graphs(f"tu:{path}"), FileNotFoundError, "must hold one file NAME_A.txt"),
        (lambda path: graphs.load_graphs(f"{path}/nowhere.pt"), FileNotFoundError, "nowhere.pt is missing"),
        (lambda path: graphs.drop_nodes(MUTAG, -0.1), ValueError, "ratio must be"),
        (lambda path: graphs.drop_nodes(MUTAG, 0.1, None, torch.ones(2, dtype=torch.bool)), ValueError,
         "chosen must be a bool for each of 3 graphs"),
        (lambda path: graphs.graph_view(MUTAG, "crop"), ValueError, "view must be one of"),
        (lambda path: svm_accuracy(torch.randn(4, 2), torch.tensor([0, 0, 0, 1])), ValueError,
         "the smallest class has 1 graphs"),
        (lambda path: svm_accuracy(torch.full((40, 2), torch.nan), torch.arange(40) % 2), ValueError,
         "features must be finite"),
        (lambda path: svm_accuracy(torch.randn(40, 2), torch.zeros(40, dtype=torch.long)), ValueError,
         "at least 2 classes"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(tmp_path, call, error, said):
    with pytest.raises(error, match=said):
        call(tmp_path)


def test_a_record_is_that_of_its_features_and_stands_in_the_table(tmp_path, capsys, monkeypatch):
    words = ["campaign", "graphs-mutag-untrained", "--seeds", "0", "--results", str(tmp_path)]
    monkeypatch.setattr(svm, "PENALTIES", (1.0,))
    main([*words, "--runs", str(tmp_path / "runs")])
    made, run = tmp_path / "graphs-mutag-untrained-seed0.json", pretrain(GraphRecipe("InfoNCE()", epochs=0))
    kept, mutag = json.loads(made.read_text()), graphs.load_graphs("mutag")
    again = svm_accuracy(graphs.graph_features(run.encoder, mutag), mutag.labels, 0)
    assert kept["accuracy_percent"]["trained"]["svm"] == pytest.approx(again, abs=0.006)
    assert kept["evaluated_with"].startswith("python -m setclr campaign graphs-mutag")
    assert kept["graphs"] == {"train": 188} and "pixels" not in kept and kept["version"] == setclr.__version__
    table = graph_results(tmp_path)
    assert list(table.index) == ["graphs-mutag-untrained"] and table["seeds"].item() == 1
    main(["results", str(tmp_path)])
    assert "| mutag, 188 |" in capsys.readouterr().out
    made.write_text(made.read_text()[:100])
    with pytest.raises(ValueError, match="graphs-mutag-untrained-seed0.json is damaged .*; remove it"):
        graph_results(tmp_path)
    with pytest.raises(FileNotFoundError, match="no records of proteins"):
        graph_results(tmp_path, "proteins")


def test_views_of_a_share_are_those_of_the_whole_batch():
    """As two processes make them."""
    source = graphs.GraphViews(SOME, ("walk", "any"))
    batch, key = torch.arange(10, 30), (3, 1, 4)
    whole = next(source.batches([Step(batch, key, 0, batch)], CPU, 0, False))[0]
    second = next(source.batches([Step(batch[12:], key, 12, batch)], CPU, 0, False))[0]
    encoder = graphs.GIN(7).eval()
    both = [group.encode(encoder).unflatten(0, (2, -1)) for group in (whole, second)]
    torch.testing.assert_close(both[0][:, 12:], both[1])
    assert second.n == 8 and whole.part(12, 20).views[1].x.equal(second.views[1].x)

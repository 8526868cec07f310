"""Graphs: sets, views, encoder, SVM, training and records, against outside programs and by their laws."""

import json
import os
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
import torch
from conftest import a_record
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.svm import SVC
from torch_geometric.data import Batch, Data
from torch_geometric.utils import is_undirected, to_dense_adj

from setclr import graphs
from setclr.evaluation import svm
from setclr.experiments import pretrain, watch
from setclr.recipes import GraphRecipe
from setclr.seeding import seeded
from setclr_course.papers.tables import graph_results

MUTAG = graphs.load_graphs("mutag")
SEEDS = st.integers(0, 2**31)
RATIOS = st.floats(0, 1)


@st.composite
def batches(draw) -> Batch:
    """Some of one node, some without edges."""
    made, density, generator = [], draw(st.floats(0, 1)), seeded(draw(SEEDS))
    for n in draw(st.lists(st.integers(1, 12), min_size=1, max_size=5)):
        there = torch.rand(n, n, generator=generator) < density
        edges = (there.triu(1) | there.triu(1).T).nonzero().T.contiguous()
        made.append(Data(x=torch.randn(n, 3, generator=generator), edge_index=edges, num_nodes=n))
    return graphs.GraphSet(made).batch(range(len(made)))


def sizes(batch: Batch) -> torch.Tensor:
    return batch.batch.bincount(minlength=batch.num_graphs)


def edges_of(batch: Batch) -> set[tuple[int, int]]:
    return set(map(tuple, batch.edge_index.T.tolist()))


@given(batches(), RATIOS, SEEDS, st.sampled_from(graphs.views.GRAPH_VIEWS))
def test_views_keep_graphs_whole_and_the_batch_as_it_was(batch, ratio, seed, name):
    """The order of graphs, and edges inside a graph and in both directions, once each."""
    before = batch.clone()
    view = graphs.graph_view(batch, name, ratio, seeded(seed))
    assert (view.batch.diff() >= 0).all() and view.ptr.tolist() == [0, *sizes(view).cumsum(0).tolist()]
    a, b = view.edge_index
    assert (view.batch[a] == view.batch[b]).all() and len(edges_of(view)) == len(a)
    assert is_undirected(view.edge_index, num_nodes=len(view.x))
    assert view.num_graphs == batch.num_graphs and (sizes(view) >= 1).all()
    assert torch.equal(batch.x, before.x) and torch.equal(batch.edge_index, before.edge_index)
    again = graphs.graph_view(batch, name, ratio, seeded(seed))
    assert torch.equal(view.x, again.x) and torch.equal(view.edge_index, again.edge_index)


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


@given(batches(), RATIOS, SEEDS)
def test_masking_changes_the_attributes_of_so_many_nodes_and_nothing_else(batch, ratio, seed):
    view = graphs.mask_nodes(batch, ratio, seeded(seed))
    changed = (view.x != batch.x).any(1)
    counts = torch.zeros_like(sizes(batch)).index_add_(0, batch.batch, changed.long())
    assert torch.equal(counts, (sizes(batch) * ratio).floor().long())
    assert torch.equal(view.edge_index, batch.edge_index)


@given(batches(), RATIOS, SEEDS)
def test_rewiring_removes_so_many_edges_and_adds_at_most_as_many(batch, ratio, seed):
    view = graphs.rewire_edges(batch, ratio, seeded(seed))
    for i in range(batch.num_graphs):
        old, new = ({(a, b) for a, b in edges_of(x) if a < b and int(x.batch[a]) == i} for x in (batch, view))
        moved = int(np.floor(np.float32(len(old)) * np.float32(ratio)))
        assert len(old - new) == moved and len(new - old) <= moved
    assert torch.equal(view.x, batch.x)


@given(batches(), RATIOS, SEEDS)
def test_a_walk_keeps_a_connected_part_of_at_most_so_many_nodes(batch, ratio, seed):
    view = graphs.keep_walk(batch, ratio, seeded(seed))
    wanted = (sizes(batch) * ratio).ceil().long().clamp(min=1)
    assert (sizes(view) <= wanted).all()
    for i in range(view.num_graphs):
        n = int(sizes(view)[i])
        reached = torch.matrix_power(to_dense_adj(local(view, i), max_num_nodes=n)[0] + torch.eye(n), n)
        assert (reached > 0).all()


@pytest.mark.parametrize("name", ["drop_nodes", "rewire_edges", "mask_nodes", "keep_walk"])
def test_only_the_chosen_graphs_change(name):
    batch, chosen = MUTAG.batch(range(12)), torch.arange(12) % 3 == 0
    view = getattr(graphs, name)(batch, 0.5, seeded(1), chosen)
    for i in range(12):
        of_one = [(x.x[x.batch == i], local(x, i)) for x in (batch, view)]
        assert all(map(torch.equal, *of_one)) == (not chosen[i])


def local(batch: Batch, i: int) -> torch.Tensor:
    """The edges of a graph among its own nodes, in order."""
    edges = batch.edge_index[:, batch.batch[batch.edge_index[0]] == i] - batch.ptr[i]
    return edges[:, (edges[0] * 100 + edges[1]).argsort()]


def test_random_choices_have_their_odds():
    batch = MUTAG.batch([0] * 4000)
    batch.x = torch.arange(17, dtype=torch.float32).repeat(4000)[:, None]
    kept = graphs.drop_nodes(batch, 0.2, seeded(0)).x[:, 0].long().bincount()
    # 3 of 17 are dropped: a node stays in 4000 · 14/17 views, with deviation 24.1
    assert (kept - 4000 * 14 / 17).abs().max() < 5 * 24.1
    view = graphs.graph_view(MUTAG.batch([0] * 400), "any", 0.2, seeded(0))
    for count in (sizes(view) <= 4, sizes(view) == 14):  # a walk, and dropped nodes: a quarter each
        assert abs(int(count.sum()) - 100) < 5 * 8.7
    # In a complete graph of 10 each of 50 steps finds a new node with probability 5/9 or more while fewer
    # than 5 are seen, and four must.
    complete = [Data(x=torch.ones(10, 1), edge_index=(1 - torch.eye(10)).nonzero().T) for _ in range(20)]
    assert (sizes(graphs.keep_walk(graphs.GraphSet(complete).batch(range(20)), 0.45, seeded(0))) == 5).all()


def test_mutag_is_the_set_of_the_tu_collection():
    assert sum(len(x.x) for x in MUTAG.graphs) == 3371 and sum(x.num_edges for x in MUTAG.graphs) == 2 * 3721
    assert repr(MUTAG) == "GraphSet(mutag: 188 graphs of 10 to 28 nodes, 7 numbers a node, 2 classes)"
    assert int(MUTAG.labels.sum()) == 125
    for graph in MUTAG.graphs:
        once, again = graph.edge_index.chunk(2, dim=1)
        assert torch.equal(once.flip(0), again) and (once[0] != once[1]).all()


def test_a_batch_is_that_of_pytorch_geometric():
    mine, theirs = MUTAG.batch([7, 0, 7]), Batch.from_data_list([MUTAG.graphs[i] for i in (7, 0, 7)])
    assert all(torch.equal(mine[key], theirs[key]) for key in ("x", "edge_index", "batch", "ptr"))


def write_files(raw, name: str, files: dict) -> None:
    raw.mkdir(parents=True)
    for kind, rows in files.items():
        (raw / f"{name}_{kind}.txt").write_text("\n".join(map(str, rows)) + "\n")


def write_tu(folder, name: str = "PROTEINS", **more):
    """Two graphs in the TU collection's layout, a triangle and an edge; gives the folder of their files."""
    raw = folder / "tudataset" / name / "raw"
    pairs = [(1, 2), (2, 3), (3, 1), (4, 5)]
    lines = [f"{a}, {b}" for pair in pairs for a, b in (pair, pair[::-1])]
    write_files(raw, name, {"A": lines, "graph_indicator": [1, 1, 1, 2, 2], "graph_labels": [1, 2]} | more)
    return raw


def test_other_sets_are_read_from_the_collections_text_files_alone(tmp_path):
    """Pickles of other versions in the same folder are not opened; nodes without labels have a 1."""
    processed = write_tu(tmp_path, "IMDB-BINARY").with_name("processed")
    processed.mkdir()
    for file in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        (processed / file).write_text("no pickle")
    found = graphs.load_graphs("imdb-binary", tmp_path)
    assert [graph.x.tolist() for graph in found.graphs] == [[[1], [1], [1]], [[1], [1]]]
    assert edges_of(found.batch([0])) == {(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)}


def test_the_text_files_say_which_nodes_and_edges_there_are(tmp_path):
    """Nodes with labels and attributes, labels of edges, a loop, one edge twice, a last graph without."""
    write_files(tmp_path / "raw", "OWN", {
        "A": ["2, 1", "1, 2", "1, 2", "1, 1", "4, 3", "3, 4"], "graph_indicator": [1, 1, 2, 2, 3],
        "graph_labels": [1, -1, 1], "node_labels": [3, 5, 5, 3, 4], "edge_labels": [0, 0, 0, 1, 1, 1],
        "node_attributes": ["0.5, 1", "2, 2", "1, 1", "0, 1", "3, 3"],
    })  # fmt: skip
    first, second, last = found = graphs.sets.tu_graphs(tmp_path / "raw", "OWN")
    assert [graph.x.argmax(1).tolist() for graph in found] == [[0, 2], [2, 0], [1]]
    assert first.edge_index.tolist() == [[0, 0, 1], [0, 1, 0]], "a loop stays, as in a file of tensors"
    assert second.edge_index.tolist() == [[0, 1], [1, 0]] and last.edge_index.tolist() == [[], []]
    assert [int(graph.y) for graph in found] == [1, 0, 1]


def test_an_official_folder_its_parent_and_a_list_of_graphs_are_taken_without_the_numbers_of_edges(tmp_path):
    raw = write_tu(tmp_path, edge_labels=[0] * 8)
    with pytest.warns(UserWarning, match="PROTEINS_edge_labels.txt is not used"):
        found = [graphs.load_graphs(f"tu:{place}") for place in (raw, raw.parent, tmp_path)]
    assert [len(one) for one in found] == [2, 2, 2] and found[2].name == "PROTEINS"
    some = [Data(**GOOD, edge_attr=torch.ones(2, 1)) for _ in range(8)]
    with pytest.warns(UserWarning, match="graphs have edge_attr, which is not used"):
        run = pretrain(GraphRecipe("InfoNCE()", batch=4, epochs=1), data=some)
    assert len(run.rows) == 1


def test_a_file_that_is_missing_is_named_and_a_pipe_is_not_waited_for(tmp_path):
    path = write_tu(tmp_path) / "PROTEINS_graph_labels.txt"
    path.unlink()
    said = "^proteins is not under .*, or damaged.*graph_labels.txt is missing, or a .*'mutag' needs no down"
    with pytest.raises(ConnectionError, match=said):
        graphs.load_graphs("proteins", tmp_path)
    os.mkfifo(path)
    with pytest.raises(ValueError, match="graph_labels.txt is missing, or a pipe"):
        graphs.load_graphs(f"tu:{path.parent}")


def test_a_missing_set_is_downloaded_and_unpacked_whole_or_not_at_all(tmp_path, monkeypatch):
    raw = write_tu(tmp_path / "pack[1]*?")

    def fetched(url, path, progress):
        assert url.endswith("/PROTEINS.zip")
        with ZipFile(path, "w") as packed:
            for file in sorted(raw.iterdir()):
                packed.write(file, f"PROTEINS/{file.name}")
            packed.writestr("../evil.txt", "")
            packed.writestr("PROTEINS/PROTEINS_/../../evil.txt", "")

    def full(archive, place):
        raise OSError("no space")

    monkeypatch.setattr(torch.hub, "download_url_to_file", fetched)
    with monkeypatch.context() as patch, pytest.raises(ConnectionError, match="no space"):
        patch.setattr("shutil.unpack_archive", full)
        graphs.load_graphs("proteins", tmp_path / "root")
    assert len(graphs.load_graphs("proteins", tmp_path / "root")) == 2, "what is cut off is begun again"
    assert not list(tmp_path.rglob("evil.txt"))


def test_the_encoder_is_the_formula():
    """h ← BN(ReLU(MLP((A + I) h))), summed over nodes, by layer; a new batch norm divides by √(1 + ε)."""
    batch = MUTAG.batch(range(5))
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


def test_the_svm_is_scikit_learns_nested_search():
    features, labels = torch.randn(30, 4, generator=seeded(0)), torch.arange(30) % 2
    features[:, 0] += labels
    search = GridSearchCV(SVC(), {"C": [10.0**k for k in range(-3, 4)]}, cv=5)
    folds = StratifiedKFold(3, shuffle=True, random_state=3)
    wanted = cross_val_score(search, features.double().numpy(), labels.numpy(), cv=folds).mean()
    assert svm.svm_accuracy(features, labels, 3, folds=3) == pytest.approx(100 * wanted)


def test_training_lowers_the_loss_and_features_come_in_any_batches():
    run = pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=4))
    assert run.rows[-1]["loss"] < run.rows[0]["loss"] - 0.1
    torch.testing.assert_close(*(graphs.graph_features(run.encoder, MUTAG, batch=n) for n in (50, 188)))


def test_tensors_that_were_trained_or_are_small_are_read_as_numbers(tmp_path):
    one = torch.ones(2, 3)
    for x in (torch.nn.Parameter(one), one.bfloat16(), one[:1].expand(2, 3)):
        own = graphs.load_graphs(tensors(tmp_path, [GOOD | {"x": x}] * 9))
        assert not own.graphs[0].x.requires_grad and torch.equal(own.graphs[0].x.float(), one)
    plain = graphs.GraphViews(graphs.load_graphs(tensors(tmp_path, [GOOD] * 9)))
    assert plain.digest() == "9 graphs with checksum e94584b20301", "as before: records hold it"


def test_a_small_file_does_not_unpack_to_a_large_one(tmp_path):
    """torch.save does not compress; what does can hold a thousand times the file."""
    with ZipFile(tmp_path / "own.pt", "w", ZIP_DEFLATED) as packed:
        packed.writestr("own/data.pkl", bytes(10**6))
    with pytest.raises(ValueError, match=r"own.pt must hold plain tensors \(it is compressed\); save a list"):
        graphs.load_graphs(str(tmp_path / "own.pt"))


def tensors(path, graphs_there) -> str:
    torch.save(graphs_there, path / "own.pt")
    return str(path / "own.pt")


HUGE = 10**10
NOT_STORED = {  # tensors of a small file that ask for gigabytes, or hold no numbers
    "x": [torch.ones(1, 1).expand(HUGE, 1), torch.ones(2, 1, device="meta"), torch.eye(2).to_sparse(),
          torch.sparse_coo_tensor([[0], [0]], [1.0], (HUGE, 1), check_invariants=True)],
    "edge_index": [torch.zeros(2, 1).long().expand(2, HUGE)], "y": [torch.zeros(1).long().expand(HUGE)],
}  # fmt: skip
GOOD = dict(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
ONE_WAY = GOOD | {"edge_index": torch.tensor([[0], [1]])}
BAD = [
    (dict(x=None), r"graphs\[1\].x must be a floating tensor .* torch.ones\(n, 1\)"),
    (dict(x=torch.full((2, 3), torch.nan)), r"graphs\[1\].x must be finite"),
    (dict(edge_index=torch.tensor([[0], [2]])), r"graphs\[1\].edge_index must join nodes 0 to 1, .* got 2"),
    (dict(edge_index=torch.zeros(2, 1)), r"edge_index must be an int64 tensor .*got \(2, 1\) torch.float32"),
    (dict(y=torch.tensor([1])), r"graphs must all have a label y, or none; graphs\[0\] has none"),
]


@pytest.mark.parametrize("call, said", [
    *[(lambda path, bad=bad: graphs.GraphSet([Data(**GOOD), Data(**GOOD | bad)]), said)
      for bad, said in BAD],
    *[(lambda path, y=y: graphs.GraphSet([Data(**GOOD, y=torch.tensor([0])), Data(**GOOD, y=y)]),
       "graphs' y must be 2 whole numbers")
      for y in (*map(torch.tensor, ([0.7], [torch.nan], [0, 1])), 0.7, "a", [0, 1])],
    (lambda path: graphs.GraphSet([]), "graphs must be at least one"),
    (lambda path: pretrain(GraphRecipe("InfoNCE()", batch=11)), "last batch would hold 1 graph"),
    (lambda path: watch(GraphRecipe("InfoNCE()", data=tensors(path, [GOOD] * 9)), "data", 1),
     "must have labels to be measured, got none"),
    (lambda path: graphs.load_graphs(tensors(path, [GOOD | {"edge_attr": torch.ones(2)}])),
     r"own.pt: graphs\[0\] has edge_attr, which would not be used"),
    *[(lambda path, key=key, x=x: graphs.load_graphs(tensors(path, [GOOD, GOOD | {key: x}])),
       rf"own.pt: graphs\[1\].{key} must be a tensor with all its numbers in the file, got \(\d+")
      for key, of in NOT_STORED.items() for x in of],
    (lambda path: graphs.load_graphs(tensors(path, [Data(**GOOD)])), "own.pt must hold .*not Data objects"),
    (lambda path: graphs.load_graphs(tensors(path, [ONE_WAY])), "has a one-way edge; to_undirected"),
    *[(lambda path, more=more: graphs.load_graphs(f"tu:{write_tu(path, **more)}"), said) for more, said in (
        (dict(A=["1, -2", "-2, 1"]), "has the edge 1, -2; it must join two of the nodes 1 to 5 of a graph"),
        (dict(node_labels=[1 - 2**63, 2**63 - 1, 0, 1, 0]), "has 18446744073709551615 kinds, 5 nodes"),
        (dict(A=["1, 2", "3, 4"]), "has the edge 3, 4; it must join"), (dict(A=["1, 2, 7"]), "have 2 num"),
        (dict(graph_indicator=[2, 2, 2, 1, 1]), "must number graphs from 1 to 2, one after the other"),
        (dict(node_labels=[0]), "must have 5 lines, one a node, got 1"), (dict(A=["1, x"]), "cannot be read"),
    )],
    (lambda path: graphs.load_graphs(f"tu:{path}"), "must hold one file NAME_A.txt"),
    (lambda path: graphs.load_graphs(f"{path}/nowhere.pt"), "nowhere.pt is missing"),
    (lambda path: graphs.mask_nodes(MUTAG.batch([0]), -0.1), "ratio must be"),
    (lambda path: graphs.drop_nodes(MUTAG.batch([0]), 0.1, None, torch.ones(2).bool()), "for each of 1 "),
    (lambda path: graphs.graph_view(MUTAG.batch([0]), "crop"), "view must be one of"),
    (lambda path: svm.svm_accuracy(torch.eye(4), torch.tensor([0, 0, 0, 1])), "smallest class has 1 graphs"),
])  # fmt: skip
def test_what_cannot_be_used_is_named(tmp_path, call, said):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        call(tmp_path)


def test_the_table_of_graphs_is_of_whole_records(tmp_path):
    path, recipe = tmp_path / "graphs-mutag-untrained-seed0.json", GraphRecipe("InfoNCE()", epochs=0)
    measured = {"untrained": {"svm": 80.0}, "trained": {"svm": 85.0}}
    path.write_text(json.dumps(a_record(recipe.to_dict(), accuracy_percent=measured, graphs={"train": 188})))
    table = graph_results(tmp_path)
    assert list(table.index) == ["graphs-mutag-untrained"] and table["seeds"].item() == 1
    with pytest.raises(FileNotFoundError, match="no records of proteins"):
        graph_results(tmp_path, "proteins")

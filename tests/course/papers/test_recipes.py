"""The rows of the papers' tables: their TOML files, the recipes, and their list on the command line."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
import torch
from conftest import a_record, shifted

from setclr import losses
from setclr.cli import main
from setclr.experiments.records import OLDER, Record
from setclr.experiments.run import new_run
from setclr.recipes import COMPARED, PUBLISHED, RECIPES, Published, Recipe
from setclr.views import PRESETS, multi_crop
from setclr_course.papers.rows import read, rows
from setclr_course.search.recorded import ours

OF_IMAGES = {name: RECIPES[name] for name in RECIPES if RECIPES.kind(name) == "image"}
NUMBERS = {  # for each table, how many numbers the paper prints for the runs that we have
    "qare": {"1": 4 * 2, "2": 7 * 6, "3": 3 * 6},
    "groco": {"1": 2 * 2 * 3, "2": 4, "3": 12, "4": 2 * 3, "5": 8 * 5, "6": 2 * 5, "7": 4 * 5, "8a": 15 * 2,
              "8b": 2 * 5, "8c": 3 * 5, "8d": 2 * 5, "9a": 4 * 5,  # six runs, of which two did not train
              "9b": 2 * 5, "9c": 8 * 5, "9d": 3 * 5, "9e": 2 * 5, "9f": 4 * 3},
    "iot": {"1": 6 * 6, "2": 7 * 6, "3": 6 * 6, "4": 4 * 2, "5": 3 * 4},
    "mmcl": {"1": 8, "2": 1, "3": 3, "6": 3 * 2, "7": 4 * 3, "8": 3 * 2, "text": 2},
    "simclr": {"text": 2},
}  # fmt: skip


def test_grocos_rows_have_the_programs_colours_first_scales_and_crops():
    """Its own views, DINO's, are bicubic; those of its SimCLR and of MoCo v3 are not."""
    rows = {name: RECIPES[name] for name in PUBLISHED if name.startswith("groco-")}
    assert {recipe.normalised for recipe in rows.values()} == {"imagenet"}
    assert {row.initial for name, row in rows.items() if "table6" not in name} == {"zero-residual"}
    for views in {recipe.views for recipe in rows.values()}:
        filters = {view.interpolation for view in multi_crop(views, 1, 1, 224)}
        assert filters == {"bicubic" if views == "groco" else "bilinear"}


def test_names_are_well_formed_losses_fit_the_head_and_the_crops_and_json_keeps_all():
    for name in RECIPES:
        recipe = RECIPES[name]
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9.+]+)+", name)
        assert recipe.last_norm or "GroCo" not in recipe.loss, f"{name} collapses without"
        local = getattr(recipe, "local_views", 0)
        assert not local or "positive_views=2" in recipe.loss, f"{name}: crops are no positives"
        assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_each_table_has_the_numbers_that_its_paper_prints():
    assert set(PUBLISHED) <= set(RECIPES)
    found = {paper: Counter() for paper in NUMBERS}
    for name in PUBLISHED.keys() & OF_IMAGES.keys():
        row = PUBLISHED[name]
        assert (row.table == "text" or f"-table{row.table}-" in name) and row.note
        found[name.split("-")[0]][row.table] += len(row.numbers)
        assert all(0 < number < 100 for number in row.numbers.values())
        assert set(row.spread) <= set(row.numbers) and all(0 < x < 2 for x in row.spread.values())
        assert row.numbers or "no number printed" in row.note
    assert found == NUMBERS


def test_compared_recipes_differ_in_the_loss_alone():
    searched = [name for name in COMPARED if not name.startswith("iot-total") and name != "iot-both-uniform"]
    assert len(searched) == 10 and len(set(COMPARED.values())) == len(COMPARED) == 13
    for encoder in ("conv4", "resnet32", "resnet18", "photo"):
        found = {name: RECIPES[name] for name in RECIPES if name.startswith(f"compare-{encoder}-")}
        names = searched if encoder == "photo" else COMPARED
        wanted = {f"compare-{encoder}-{name}": COMPARED[name] for name in names}
        assert {name: recipe.loss for name, recipe in found.items()} == wanted
        assert len({replace(recipe, loss="InfoNCE()") for recipe in found.values()}) == 1


PRINTED = """
qare-table1-infonce+qare: matching 61.96±1.38
qare-table3-resnet32-tiny-imagenet-sparseclr+qare: linear 27.03
groco-table1-groco-4x224-400ep: knn20 64.8, linear 71.3
groco-table5-groco-2x224: knn1 55.3, linear 69.2
groco-table5-groco-2x224+6x96: knn1 57.2, linear 71.8
groco-table8a-n20-beta8: knn20 59.0, linear 68.0
groco-table9a-infonce+top10+stop-gradient: knn20 55.0, linear 66.0
groco-table9e-random-negatives: knn1 39.5, linear-top5 82.7
iot-table1-svhn-uab-k2: linear 91.19, linear200 91.26
iot-table2-cifar100-align+uniform: linear 66.28, knn5 55.10
iot-table4-imagenet100-infonce: linear200 67.35, knn5 53.50
mmcl-table3-imagenet-mmcl: linear 63.8
mmcl-table5-flow-mmcl: ten crops 68.01, retrieval@1 50.94
mmcl-table6-cifar100-tanh: knn200 54.53
mmcl-table7-stl10-hcl-batch64: linear 80.39
mmcl-text-imagenet-400ep: linear 69.9
"""


@pytest.mark.parametrize("row", PRINTED.strip().splitlines())
def test_numbers_stand_where_the_papers_print_them(row):
    name, _, printed = row.partition(": ")
    for cell in printed.split(", "):
        column, _, number = cell.rpartition(" ")
        mean, _, deviation = number.partition("±")
        assert PUBLISHED[name].numbers[column] == float(mean)
        assert not deviation or PUBLISHED[name].spread[column] == float(deviation)


SETTINGS = """
qare-table3-resnet32-cifar100-sparseclr+qare: encoder="resnet32", data="cifar100", lr=1e-3,
 loss="SparseCLR(margin=1.0, clamped=True) + 0.875 * QARe(similarity='clamped cosine')"
groco-table4-groco-2x224+6x96-400ep: lr=3.0, lr_batch=256, warmup=10, local_views=6, view_size=224,
 local_size=96, epochs=400, batch=1024, loss="GroCo(beta=1.0, negatives=10, pool='view', positive_views=2)"
groco-table5-simclr-4x224: full_views=4, optimiser="lars", lr=2.4, views="simclr"
groco-table8d-false-negatives: images_per_class=4, lr=6.0, warmup=1
groco-table9c-groco-simclr-views-200ep: views="simclr", lr=3.0, epochs=200
groco-table9d-dimension512: embedding=512, hidden=2048
iot-table2-svhn-iot+uniformity: loss="IOT(constraint='rows', epsilon=0.5, uniformity=1.0)"
iot-table2-cifar10-triplet: epochs=200
iot-table4-imagenet100-infonce: epochs=100, encoder="resnet50-imagenet", view_size=224
iot-table4-imagenet100-iot+uniformity: loss="IOT(constraint='rows', epsilon=0.5, uniformity=0.5)"
mmcl-table7-stl10-dcl-batch64: batch=64, loss_schedule="", data="stl10"
mmcl-table8-cifar100-inv: loss_schedule="bandwidth: 25.0, 2.5 from 74, 0.25 from 124", epochs=400, batch=256
qare-table2-resnet32-cifar100-deepcluster: loss="DeepCluster()", embedding=1000, full_views=1
qare-table2-conv4-tiny-imagenet-supervised: embedding=200, layers=1, full_views=1
iot-table5-cifar100-infonce: key_momentum=0.999, queue=4096, lr=0.03, embedding=128
groco-table6-groco: key_momentum=0.99, key_schedule="cosine", predictor=2, queue=0, warmup=40, layers=3,
 encoder="vit-small16-moco", hidden=4096, loss="GroCo(beta=1.0, negatives=10, pool='view')"
groco-table6-moco-v3: loss="InfoNCE(temperature=0.2, candidates='other view')", lr=1.5e-4, weight_decay=0.1
groco-table9a-infonce+stop-gradient: loss="InfoNCE(temperature=0.1, stop_gradient=True)"
groco-table7-triplet-margin-infinite:
 loss="Triplet(margin=None, positives='all', negatives=10, distance='cosine', stop_gradient=True)"
mmcl-table2-imagenet100-mmcl: batch=128, epochs=200, warmup=20, optimiser="lars", lr=1.2,
 loss="MMCL(bandwidth=5.0, C=float('inf'), solver='steps', pool='view')"
mmcl-text-imagenet-200ep: epochs=200, warmup=20, batch=256, data="imagenet"
"""


@pytest.mark.parametrize("row", SETTINGS.replace("\n ", " ").strip().splitlines())
def test_settings_are_the_papers(row):
    name, _, settings = row.partition(": ")
    recipe, wanted = RECIPES[name].to_dict(), eval(f"dict({settings})")
    assert {field: recipe[field] for field in wanted} == wanted


SEEN_BY = {
    (r.loss, (r.full_views or len(PRESETS[r.views])) + r.local_views)
    for r in OF_IMAGES.values()
    if isinstance(r.parsed_loss, losses.SetLoss)  # the others: test_baselines.py
}


@pytest.mark.parametrize("loss, views", sorted(SEEN_BY))
def test_every_loss_takes_the_views_of_its_recipe(loss, views):
    z = torch.randn(views, 24, 8, generator=shifted(0), requires_grad=True)
    queue = {"memory": torch.randn(9, 8, generator=shifted(1))} if "candidates='memory'" in loss else {}
    value = losses.parse(loss)(z, **queue)
    value.backward()
    assert value.isfinite() and z.grad.isfinite().all() and z.grad.any()


@pytest.mark.parametrize("data", ["cifar10", "cifar100"])
def test_table_5_of_iot_cl_cannot_learn_as_printed_and_its_variant_can(data):
    """Value and gradient of the printed loss are the same whichever key is whose, perfect ones included."""
    z = torch.randn(2, 6, 5, dtype=torch.float64, generator=shifted(0), requires_grad=True)
    orders = [*range(6)], [3, 5, 0, 2, 1, 4]
    memory = torch.randn(9, 5, dtype=torch.float64, generator=shifted(1))
    own = z.detach().flip(0)  # under each view's index the other's embedding is the key that counts
    printed, variant = f"iot-table5-{data}-iot+uniformity", f"variant-iot-moco-{data}-rows"
    for name, learns in ((printed, False), (variant, True)):
        loss = RECIPES[name].parsed_loss
        values = torch.stack([loss(z, keys=own[:, order], memory=memory) for order in orders])
        slopes = torch.stack([torch.autograd.grad(value, z, retain_graph=True)[0] for value in values])
        value, slope = values.detach().diff().abs().max(), slopes.diff(dim=0).abs().max()
        assert (value > 0.1 and slope > 1e-3) if learns else (value < 1e-12 and slope < 1e-12)


def test_every_recipe_is_listed_on_one_line_with_the_published_number(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where there are no records of ours
    main(["recipes"])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert list(lines) == list(RECIPES) and max(map(len, lines.values())) <= 165
    line = lines["qare-table2-resnet32-cifar100-simclr+qare"]
    assert re.search(r"linear 41\.20 ± 0\.34 +Moskalev 2022, table 2 +ours: -$", line)
    assert len({line.index("ours:") for line in lines.values()}) == 1, "columns are aligned"
    with pytest.raises(ValueError, match="recipe must be one of .*got 'grco tabel7'.*groco-table7-"):
        main(["recipes", "grco", "tabel7"])


def test_an_exact_name_shows_how_it_differs_from_the_defaults_and_which_rows_it_is_in_small(capsys):
    main(["recipes", "mmcl-table8-cifar100-inv"])
    line, *shown = capsys.readouterr().out.splitlines()
    assert "linear 68.81" in line
    assert "  --activation relu" in shown and "  --loss \"MMCL(bandwidth=25.0, pool='view')\"" in shown
    published = f"  note: {PUBLISHED['mmcl-table8-cifar100-inv'].note}"
    assert shown[-2:] == ["  published: linear 68.81", published]
    main(["recipes", "small-groco-table7-groco"])
    told = capsys.readouterr().out
    assert "groco-table8d, in small: every image with three others of its class" in told
    assert told.count("in small: ") == 7


def test_ours_are_the_records_of_the_same_training():
    """Not those of another setting, data set or length; nor parts of a set or other pixels in one mean."""
    name, kept = "qare-table3-conv4-cifar10-sparseclr", []
    right = replace(RECIPES[name], data="folder:somewhere/cifar10")

    def shown(recipe, linear, images=50000, pixels="JPEG q75", epochs=200, **more):
        measured = {"trained": {"knn": 40.0, "linear": linear}}
        made = a_record(recipe.to_dict() | more, epochs=epochs, pixels=pixels, protocol="qare",
                        images={"train": images, "test": 10000}, accuracy_percent=measured)  # fmt: skip
        kept.append(Record(**OLDER | made))
        return ours(RECIPES[name], kept, "qare", PUBLISHED[name].numbers)

    for other in (dict(batch=64), dict(data="folder:somewhere/cifar100")):
        assert shown(replace(right, **other), 1.0) == "-"
    for other in (dict(epochs=100), dict(colour=1)):
        assert shown(right, 1.0, **other) == "-"
    whole = replace(right, data="cifar10")
    assert shown(whole, 58.0, 10000, "original") == "linear 58.0 (10000 images)"
    assert shown(right, 59.0) == "linear 59.0 (50000 images, JPEG q75)"
    assert shown(replace(right, seed=1), 61.0) == "linear 60.0 ± 1.4 (50000 images, JPEG q75)"
    assert shown(whole, 62.0, pixels="original") == "linear 62.0 (50000 images)"


# QARe's and SparseCLR's tables mean what their authors' program does; variants are the text's.

ROWS = {name: recipe for name, recipe in RECIPES.items() if name.startswith(("qare-table2", "qare-table3"))}
COLUMN = "qare-table2-conv4-cifar10-"
SIMCLR = RECIPES[COLUMN + "simclr"]


def differences(one, other):
    there = other.to_dict()
    return {key: value for key, value in one.to_dict().items() if value != there[key]}


def test_all_rows_of_the_program_share_first_weights_colours_batches_and_budget():
    """Cosines are clamped in the rows with QARe alone. The supervised row has its own classifier's number."""
    for name, recipe in ROWS.items():
        row, pairwise = PUBLISHED[name], recipe.loss.split(" + ")[0]
        assert recipe.initial == "he" and recipe.normalised == recipe.data and recipe.precision == "float32"
        assert recipe.batch == 128 and recipe.epochs == (0 if "random" in name else 200)
        assert recipe.drop_last == ("deepinfomax" in name)
        assert "Xavier" in row.note and ("64 → 64" in row.note) == (recipe.encoder == "resnet32")
        assert ("clamped" in pairwise) == ("+qare" in name) == ("'clamped cosine'" in recipe.loss)
        assert [*row.numbers] == [*row.spread] == ["classifier" if "supervised" in name else "linear"]


OF_BASELINES = {
    "supervised": dict(loss="Supervised()", views="padded", full_views=1, layers=1, embedding=10,
                       optimiser="sgd", lr=0.1, schedule="steps"),
    "random": dict(epochs=0),
    "deepcluster": dict(loss="DeepCluster()", views="padded", full_views=1, embedding=100),
    "rotationnet": dict(loss="Rotation()", views="padded", full_views=1, layers=1, embedding=4),
    "deepinfomax": dict(loss="DeepInfoMax(features=64, channels=8, locations=16)", views="flip",
                        full_views=1, lr=1e-4, drop_last=True),
}  # fmt: skip


@pytest.mark.parametrize("method, fields", OF_BASELINES.items(), ids=OF_BASELINES)
def test_a_baseline_differs_from_simclr_as_in_the_program(method, fields):
    recipe = RECIPES[COLUMN + method]
    assert differences(recipe, SIMCLR) == fields
    assert recipe.momentum == 0.9 and recipe.weight_decay == 0


@pytest.mark.parametrize("method, shapes", [
    ("supervised", [64, 10]), ("rotationnet", [64, 4]), ("deepcluster", [64, 256, 100]),
    ("simclr", [64, 256, 64]),
])  # fmt: skip
def test_heads_and_first_weights_are_those_of_the_program(method, shapes):
    """One layer for labels and turns, 64 → 256 → outputs for clusters, 64 → 256 → 64 for pairs. The encoder
    begins with He's normal weights: some lie beyond the end of torch's uniform ones, 1 / √27 = 0.19."""
    run = new_run(RECIPES[COLUMN + method], 3)
    encoder, head = run.encoder, run.head
    assert encoder[0].weight.abs().max() > 0.25
    layers = [layer for layer in head.modules() if isinstance(layer, torch.nn.Linear)]
    assert [layers[0].in_features, *(layer.out_features for layer in layers)] == shapes
    assert sum(isinstance(layer, torch.nn.BatchNorm1d) for layer in head.modules()) == len(layers) - 1


def test_variants_have_the_texts_temperature_and_candidates():
    """The row's 2N points at tau 0.05; and all as the text: N candidates, N², no clamps, Xavier's weights."""
    for method in ("simclr", "simclr+qare"):
        row = RECIPES[COLUMN + method]
        cold, text = (RECIPES[f"variant-qare-{kind}-conv4-cifar10-{method}"] for kind in ("tau", "text"))
        assert differences(cold, row) == {"loss": row.loss.replace("0.5,", "0.05,", 1)}
        pairwise, *_ = text.loss.split(" + ")
        assert pairwise == "InfoNCE(temperature=0.05, candidates='other view')"
        assert differences(text, row) == {"loss": text.loss, "initial": "xavier"}
        assert text.loss.endswith("0.5 * QARe()") == (method == "simclr+qare")


def test_table_1_has_its_deviations_and_the_settings_of_section_5():
    """Euclidean QARe in a convex combination, 50 epochs of Adam at 0.01 under a cosine, batch 128."""
    rows = {name: row for name, row in PUBLISHED.items() if name.startswith("qare-table1-")}
    deviations = [0.77, 1.67, 0.43, 1.40, 1.19, 1.38, 0.42, 1.41]
    assert [row.spread["matching"] for row in rows.values()] == deviations
    for name, row in rows.items():
        recipe = RECIPES[name]
        assert (recipe.lr, recipe.schedule, recipe.epochs, recipe.batch) == (0.01, "cosine", 50, 128)
        assert ("QARe(similarity='euclidean')" in recipe.loss) == name.endswith("+qare")
        assert "Euclidean distance" in row.note and "best on the validation split" in row.note
        if name.endswith("+qare"):
            first, second = (float(term.split(" * ")[0]) for term in recipe.loss.split(" + "))
            assert first + second == pytest.approx(1)


def test_beside_the_column_stand_the_other_three_papers_losses_at_its_budget():
    beside = {name: recipe for name, recipe in RECIPES.items() if name.startswith("column-")}
    assert len(beside) == 4
    for name, recipe in beside.items():
        changed = differences(recipe, SIMCLR)
        assert changed.pop("loss").split("(")[0].lower() in name
        assert changed == ({"last_norm": True} if "groco" in name else {})


# The files

SOUND = """
paper = "Ada 1843"
[notes]
first = "a guess"
second = "; so is this"
[base.all]
weight_decay = 1e-6
notes = ["first"]
[base.svhn]
like = ["all"]
data = "svhn"
[row.ada-table1-svhn]
like = ["svhn"]
weight_decay = 0.5
printed = { knn20 = 1.5 }
spread = { knn20 = 0.5 }
notes = ["first", "second"]
[row.ada-other]
like = ["all"]
"""


def read_texts(folder, *texts):
    for i, text in enumerate(texts):
        (folder / f"ada{i}.toml").write_text(text, encoding="utf-8")
    return read(sorted(folder.glob("*.toml")))


def test_a_row_has_the_keys_of_its_bases_and_its_own_replace_theirs(tmp_path):
    found = read_texts(tmp_path, SOUND)
    assert found.recipes == {
        "ada-table1-svhn": {"data": "svhn", "weight_decay": 0.5, "protocol": "setclr"},
        "ada-other": {"weight_decay": 1e-6, "protocol": "setclr"},
    }
    wanted = Published("Ada 1843", "1", {"knn20": 1.5}, {"knn20": 0.5}, "a guess; so is this")
    assert found.published == {"ada-table1-svhn": wanted}


@pytest.mark.parametrize("sound, damaged, words", [
    ('like = ["svhn"]', 'like = ["svnh"]', "row 'ada-table1-svhn': 'svnh' is named and is not there"),
    ('["first", "second"]', '["first", "zweite"]', "row 'ada-table1-svhn': 'zweite' is named"),
    ("[base.all]", "[base.all", ".*line 6"),
    ("[base.all]", '[base.it]\nlike = ["all"]\n[base.all]', "base 'it': 'all' is named"),
    ("[base.all]", '[figure.one]\nnotes = "."\n[base.all]', "figure 'one': .*'notes'"),
])  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path, sound, damaged, words):
    assert sound in SOUND
    with pytest.raises(ValueError, match=rf"^ada0\.toml.*{words}"):
        read_texts(tmp_path, SOUND.replace(sound, damaged))


def test_a_name_that_two_files_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="^ada1.toml, row 'ada-table1-svhn': another file has a row"):
        read_texts(tmp_path, SOUND, SOUND)


def test_no_row_is_lost_and_graphs_and_videos_say_so():
    found = Counter(name.split("-")[0] for name in rows().recipes)
    papers = {"qare": 68, "groco": 72, "iot": 67, "mmcl": 45, "simclr": 2, "claim": 4}
    assert found == papers | {"variant": 27, "column": 4, "tree": 2, "small": 82, "moving": 14, "graphs": 23}
    assert len(rows().published) == 253 and len({row.paper for row in rows().published.values()}) == 5
    kinds = {(name.split("-")[1], rows().recipes[name].get("kind", "image")) for name in rows().published}
    assert {pair for pair in kinds if pair[1] != "image"} == {("table4", "graph"), ("table5", "video")}

"""A campaign does what is left to do."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import a_record
from small_runs import FEW, Killed, kill

import setclr
from setclr import data, pretrain
from setclr.experiments import records
from setclr.recipes import RECIPES
from setclr_course.run_page import commands
from setclr_course.search import campaigns

TWO = {x: replace(RECIPES[f"compare-conv4-{x}"], epochs=1, batch=32) for x in ("infonce", "iot-rows")}
ONE = TWO["infonce"]
LONGER = {"a": replace(ONE, epochs=2, precision="float32")}


def few(*_, **__):
    return replace(FEW)  # two splits are two sets


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    monkeypatch.setattr(data, "load", few)


def campaign(folder: Path, recipes=LONGER, seeds=(0,), **more):
    return campaigns.campaign(recipes, seeds, folder / "runs", folder, **more)


def noting(trained: list[str], errors=()):
    """`pretrain`, which notes each run's name; the first runs raise what `errors` holds for them."""
    errors = iter(errors)

    def train(recipe, out, **where):
        trained.append(out.name)
        if error := next(errors, None):
            raise error
        return pretrain(recipe, out, **where)

    return train


def test_every_recipe_and_seed_is_trained_evaluated_and_recorded(tmp_path):
    said = list(campaign(tmp_path, TWO, (0, 1), pixels="noise", command="said so"))
    assert [line.split(":")[0] for line in said] == [f"{name}-seed{seed}" for seed in (0, 1) for name in TWO]
    kept = json.loads((tmp_path / "iot-rows-seed1.json").read_text())
    assert kept["recipe"]["seed"] == 1 and kept["recipe"]["loss"].startswith("IOT")
    assert kept["pixels"] == "noise" and kept["evaluated_with"] == "said so"
    assert set(kept["accuracy_percent"]) == {"raw pixels", "untrained", "trained"}


def test_a_record_names_the_commit_of_a_clone_and_whether_files_differ_from_it(tmp_path, monkeypatch):
    def git(line: str) -> str:
        words = f"git -c user.name=a -c user.email=b -c commit.gpgsign=false {line}".split()
        return subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    for name in ("__init__.py", "checks.py"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(setclr, "__file__", str(tmp_path / "__init__.py"))
    told = records.library.__wrapped__
    assert told() == {"version": setclr.__version__}
    git("init -q"), git("add ."), git("commit -q -m first")
    head = git("rev-parse HEAD").strip()
    assert told() == {"version": setclr.__version__, "commit": head}
    (tmp_path / "checks.py").write_text("1")
    assert told()["commit"] == f"{head}, changed"


def test_after_an_interruption_only_the_rest_is_done_and_what_diverges_does_not_stop_the_others(tmp_path):
    trained, three = [], TWO | {"third": ONE}
    train = noting(trained, [FloatingPointError("the loss became nan"), None, KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        list(campaign(tmp_path, three, train=train))
    assert [path.name for path in tmp_path.glob("*.json")] == ["iot-rows-seed0.json"]
    first, second, third = campaign(tmp_path, three, train=train)
    assert trained == [*(f"{name}-seed0" for name in three), "infonce-seed0", "third-seed0"]
    assert "knn" in first and second == "iot-rows-seed0: recorded before" and "knn" in third


def test_what_differs_from_today_or_is_damaged_is_reported_and_the_next_run_begun(tmp_path):
    """A record of another recipe, protocol and version, a damaged one, and a run of another recipe."""
    one = replace(ONE, seed=0)
    for name, change in {
        "a": {"recipe": replace(one, epochs=2).to_dict()}, "b": {"protocol": "groco"},
        "c": {"recipe": {"loss": "InfoNCE()", "colour": 1}}, "d": {"epochs": "many"},
    }.items():  # fmt: skip
        (tmp_path / f"{name}-seed0.json").write_text(json.dumps(a_record(one.to_dict()) | change))
    pretrain(replace(one, lr=0.5), tmp_path / "runs" / "e-seed0")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    for line, pattern in zip(campaign(tmp_path, dict.fromkeys("abcdef", one)), (
        r"a-seed0: \S+a-seed0.json: .*\(epochs 2 there, 1 now\); remove it, or take another folder",
        r"b-seed0: \S+b-seed0.json: .*'groco' there, 'setclr' now\); remove it, or take another folder",
        r"c-seed0: recipe holds the unknown fields \['colour'\]",
        r"d-seed0: \S+d-seed0.json is damaged",
        r"e-seed0: \S+e-seed0: holds a run of another recipe \(lr 0.5 there, 0.001 now\)",
        r"f-seed0: knn .*, linear ",
    ), strict=True):  # fmt: skip
        assert re.match(pattern, line), line
    now = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    assert now.items() > before.items() and now.keys() - before.keys() == {"f-seed0.json"}


def test_each_recipe_is_measured_by_its_papers_protocol_unless_told(tmp_path):
    row = "qare-table2-conv4-cifar10-simclr"
    list(campaign(tmp_path, {row: ONE, "x": ONE}))
    list(campaign(tmp_path, {"x": ONE}, (1,), protocol="iot"))
    kept = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    measured = {name: one["protocol"] for name, one in kept.items()}
    assert measured == {f"{row}-seed0": "qare", "x-seed0": "setclr", "x-seed1": "iot"}
    assert "knn5" in kept["x-seed1"]["accuracy_percent"]["trained"]


def without_times(path: Path) -> dict:
    kept = json.loads(path.read_text())
    kept["history"] = [{key: row[key] for key in ("epoch", "loss", "lr")} for row in kept["history"]]
    return {key: x for key, x in kept.items() if key != "training_seconds"}


def test_a_campaign_that_is_killed_while_it_records_ends_with_the_same_record(tmp_path, monkeypatch):
    """One that is killed while it trains: test_resuming.py."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(campaigns, "record", lambda *given: kill(given))
        list(campaign(tmp_path))
    assert not list(tmp_path.glob("*.json")) and (tmp_path / "runs" / "a-seed0" / "checkpoint.pt").exists()
    (said,) = campaign(tmp_path)
    list(campaign(tmp_path / "other"))
    assert "knn" in said
    assert without_times(tmp_path / "a-seed0.json") == without_times(tmp_path / "other" / "a-seed0.json")


def test_a_run_that_another_trains_is_left_to_it_and_done_when_that_one_died(tmp_path):
    trained, more, holding = [], LONGER | {"b": TWO["iot-rows"]}, ExitStack()
    with ThreadPoolExecutor(1) as other:
        other.submit(holding.enter_context, campaigns.locked(tmp_path / "runs" / "a-seed0")).result()
        first, second = campaign(tmp_path, more, train=noting(trained))
        other.submit(holding.close).result()
    said = r"a-seed0: left to another \(.*a-seed0: process \d+ since \S+ \S+ trains there; .*\)"
    assert re.fullmatch(said, first) and "knn" in second
    first, second = campaign(tmp_path, more, train=noting(trained))
    assert "knn" in first and second == "b-seed0: recorded before" and trained == ["b-seed0", "a-seed0"]


def test_a_campaign_does_not_trust_what_was_so_before_it_had_the_lock(tmp_path, monkeypatch):
    """The other one records between the look at the record and the lock."""

    def after_the_other(out, locked=campaigns.locked):
        monkeypatch.setattr(campaigns, "locked", locked)
        list(campaign(tmp_path))
        return locked(out)

    monkeypatch.setattr(campaigns, "locked", after_the_other)
    assert list(campaign(tmp_path)) == ["a-seed0: recorded before"]


def test_runs_on_other_data_have_its_name_and_without_test_data_a_fifth_is_measured_on(tmp_path, monkeypatch):
    name, load = "photo-infonce", data.load
    small = replace(RECIPES[name], epochs=1, batch=8)
    assert campaigns.titled(name, small) == name
    assert campaigns.titled(name, replace(small, data="folder:else/where/photo-patches/")) == name

    def without_test(_, root, split="train", *more, **named):
        if split == "test":
            raise FileNotFoundError("there is no val")
        return load()

    monkeypatch.setattr(data, "load", without_test)
    for place in ("one", "two"):
        (line,) = campaign(tmp_path, {name: replace(small, data=f"folder:x/{place}")})
        assert line.startswith(f"{name}-{place}-seed0: knn ") and not isinstance(line, campaigns.Failure)
        assert set(records.read_record(tmp_path / f"{name}-{place}-seed0.json").images) == {
            "train",
            "held out",
        }
    (tmp_path / f"{name}-two-seed0.json").write_text("{}")
    (line,) = campaign(tmp_path, {name: replace(small, data="folder:x/two")})
    assert isinstance(line, campaigns.Failure) and line.startswith(f"{name}-two-seed0: ")


def test_a_whole_name_is_that_recipe_alone_and_a_filter_may_end_with_its_seeds():
    simclr, mmcl = "qare-table2-conv4-cifar10-simclr", "column-conv4-cifar10-mmcl"
    for text, names, seeds in (
        (simclr, [simclr], (7,)), (f"{mmcl}-inv@0,2", [f"{mmcl}-inv"], (0, 2)),
        (f"{mmcl}@1", [f"{mmcl}-inv", f"{mmcl}-exact"], (1,)),
    ):  # fmt: skip
        assert commands.filtered(text, (7,)) == ({name: RECIPES[name] for name in names}, seeds)
    for wrong in ("photo@", "photo@one", "photo@0,-1"):
        with pytest.raises(ValueError, match=f"must end with its seeds, NAME@0,1,2, got '{wrong}'"):
            commands.filtered(wrong, (0,))


def test_the_list_of_runs_names_each_once():
    text = (Path(__file__).resolve().parents[3] / "data" / "campaign.txt").read_text()
    chosen = [commands.filtered(line, ()) for line in re.findall(r"(?m)^[^#\n].*$", text)]
    runs = [(*names, seed) for names, seeds in chosen for seed in seeds]
    assert len(set(runs)) == len(runs) > 60

"""A checkpoint that is damaged anywhere is refused in words, or the run is the one it would have been."""

import os
import struct
import zlib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from small_runs import FEW, SMALL, killed_at, same, train

from setclr.experiments import Run, load_run
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr.training import checkpoint
from setclr.training.checkpoint import CHECKPOINT, CHECKSUM, LEARNT, checksum

TINY = {"hidden": 32, "embedding": 6}
RECIPES = {
    "keys": replace(SMALL, loss="IOT(constraint='rows')", key_momentum=0.9, queue=40, predictor=2, **TINY),
    "clusters": replace(SMALL, loss="DeepCluster()", full_views=1, optimiser="sgd", **TINY),
}


@pytest.fixture(scope="module", params=RECIPES)
def stopped(request, tmp_path_factory) -> tuple[ImageRecipe, dict, Run]:
    """A recipe, what is kept of its run within the second epoch, and the run that nothing stopped."""
    recipe, out = RECIPES[request.param], tmp_path_factory.mktemp("run")
    killed_at(6, lambda: train(recipe, out))
    kept, whole = torch.load(out / CHECKPOINT, weights_only=True), train(recipe)
    assert kept["step"] == 6 and not same(load_run(out), whole)
    return recipe, kept, whole


def others_than(kept: dict) -> Iterator[dict]:
    """States that lack a field, that hold another number of the right kind, or another checksum."""
    for name in kept.keys() - {CHECKSUM}:
        yield {key: x for key, x in kept.items() if key != name}
    for name in ("encoder", "head"):
        other = kept[name]["0.weight"].contiguous().clone()
        other.view(-1)[3] += 1e-3
        yield kept | {name: kept[name] | {"0.weight": other}}
    yield kept | {"history": [*kept["history"], {}]}
    yield from ({**kept, CHECKSUM: stated} for stated in (torch.ones(3), "x", 0.5, True))


def test_the_checksum_misses_no_field_and_what_is_whole_goes_on(stopped, tmp_path):
    """A number that is another one, of the right kind, is found by nothing else."""
    recipe, kept, whole = stopped
    for state in others_than(kept):
        torch.save(state, tmp_path / CHECKPOINT)
        of_a_run = set(state) >= LEARNT
        words = "is damaged, its checksum is another; put" if of_a_run else "not a setclr checkpoint; choose"
        with pytest.raises(ValueError, match=f"{tmp_path}.*{words}"):
            load_run(tmp_path)
    torch.save({key: x for key, x in kept.items() if key != CHECKSUM}, tmp_path / CHECKPOINT)
    with pytest.raises(ValueError, match="by one of the first versions; take a whole one, or remove it"):
        train(recipe, tmp_path)
    first = load_run(tmp_path)
    torch.save(kept, tmp_path / CHECKPOINT)
    assert same(first, load_run(tmp_path)) and same(train(recipe, tmp_path), whole)


@pytest.mark.parametrize("part, change", [
    ("encoder", {"encoder": "resnet32"}), ("head", {"hidden": 16}), ("predictor", {"predictor": 1}),
    ("loss", {"loss": "IOT(constraint='rows') + learnable(0.5) * QARe()"}),
    ("optimiser", {"optimiser": "lars"}), ("keys", {"queue": 30}), ("keys", {"queue": 0}),
])  # fmt: skip
def test_the_state_of_another_trainer_is_refused_and_changes_nothing(part, change):
    recipe = RECIPES["keys"]
    both = recipe, replace(recipe, **change)
    mine, other = (new_run(one, 3).trainer(FEW, torch.device("cpu")) for one in both)
    before, state = deepcopy(mine.state_dict()), other.state_dict()
    if other.settings != mine.settings:
        with pytest.raises(ValueError, match="^here: has other settings"):
            mine.load_state_dict(state, "here")
        state.pop("settings")  # as of version 0.2
    with pytest.raises(ValueError, match=f"^here: the state of its {part} does not fit .*; take the check"):
        mine.load_state_dict(state, "here")
    assert checksum(mine.state_dict()) == checksum(before)


class Code:
    """What an unsafe reader would run."""

    def __reduce__(self) -> tuple:
        return os.mkdir, ("ran",)


def test_what_is_no_checkpoint_is_refused_and_nothing_of_it_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, found = tmp_path / CHECKPOINT, []
    with pytest.raises(FileNotFoundError, match=f"{path}: no checkpoint there"):
        load_run(tmp_path)
    new_run(SMALL, 3).save(tmp_path)
    found.append(path.read_bytes()[: path.stat().st_size // 2])
    torch.save({"encoder": Code(), "head": {}, "history": []}, path)
    found.append(path.read_bytes())
    torch.save(Code(), path, _use_new_zipfile_serialization=False)
    found += [path.read_bytes(), b"", b"PK\x03\x04", b"\x80\x04" + bytes(99), bytes(5000)]
    for content in found:
        path.write_bytes(content)
        for begin in (load_run, lambda out: train(SMALL, out)):
            with pytest.raises(ValueError, match=f"{path}: not a readable checkpoint"):
                begin(tmp_path)
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match="not a setclr checkpoint"):
        load_run(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_the_checksum_is_that_of_the_numbers_however_they_lie():
    x = torch.arange(120.0).view(2, 3, 4, 5)
    state = {"a": x, "n": [1, 2.5, None, "ü"], "b": torch.tensor(True)}
    numbers = struct.pack("<120f", *range(120))
    parts = [b"6 parts", b"'a';", b"torch.float32 (2, 3, 4, 5);", numbers, b"'n';", b"4 parts", b"1;",
             b"2.5;", b"None;", "'ü';".encode(), b"'b';", b"torch.bool ();", b"\x01"]  # fmt: skip
    assert checksum(state) == zlib.crc32(b"".join(parts))
    assert checksum({**state, "a": x.contiguous(memory_format=torch.channels_last)}) == checksum(state)
    for other in (x.double(), x.view(6, 20), x + 1, x.bfloat16(), x.to(torch.int32)):
        assert checksum({**state, "a": other}) != checksum(state)
    assert checksum({**state, "n": [1, 2.5, None, "u"]}) != checksum(state)
    assert checksum({"a": 1, "b": [2]}) != checksum({"a": 1, "b": 2}) != checksum({"b": 1, "a": 2})


def test_weights_that_are_no_numbers_or_of_another_model_are_refused(tmp_path):
    run = new_run(SMALL, 3)
    run.save(tmp_path)
    state = checkpoint.read(tmp_path)
    torch.save({**state, "recipe": {**state["recipe"], "hidden": 32}}, tmp_path / CHECKPOINT)
    with pytest.raises(ValueError, match=f"{tmp_path}: the state of its head .*in another folder"):
        load_run(tmp_path)
    run.keep()
    for name, spoilt in (("best", run.best["encoder"]), ("head", run.head.state_dict())):
        next(iter(spoilt.values())).view(-1)[0] = torch.inf
        run.save(tmp_path)
        with pytest.raises(ValueError, match=f"{CHECKPOINT}: {name}: .*weight holds NaN or inf; put"):
            load_run(tmp_path)

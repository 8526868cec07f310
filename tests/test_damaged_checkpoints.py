"""A checkpoint that is damaged anywhere is refused in words, or the run is the one it would have been."""

import copy
import shutil
import struct
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from conftest import numpy_shifted, shifted

from setclr import pretrain
from setclr.data import ImageSet
from setclr.experiments import Run, load_run
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr.training import Trainer, checkpoint
from setclr.training.checkpoint import CHECKPOINT, CHECKSUM, FIELDS, checksum

RECIPES = {
    "keys": ImageRecipe("IOT(constraint='rows')", views="photo", epochs=2, batch=16, key_momentum=0.9,
                   queue=40, predictor=2, hidden=32, embedding=8),
    "clusters": ImageRecipe("DeepCluster()", views="photo", full_views=1, epochs=2, batch=16, hidden=32,
                       embedding=6, optimiser="sgd"),
}  # fmt: skip
PIXELS = torch.randint(0, 256, (70, 3, 16, 16), dtype=torch.uint8, generator=shifted(0))
FEW = ImageSet(PIXELS, torch.arange(70) % 5, tuple("abcde"))  # 4 steps of 16 an epoch
train = partial(pretrain, data=FEW, device="cpu")


class Stopped(BaseException):
    """Not an Exception, so that nothing catches it."""


@pytest.fixture(scope="module", params=RECIPES)
def stopped(request, tmp_path_factory) -> tuple[ImageRecipe, dict, Run]:
    """A recipe, what is kept of its run within the second epoch, and the run that nothing stopped."""
    recipe, out = RECIPES[request.param], tmp_path_factory.mktemp("run")
    update = Trainer.update

    def until(trainer, x):
        if trainer.step == 6:
            about = {"recipe": recipe.to_dict(), "channels": 3, "best": None}
            checkpoint.write(out, about | trainer.state_dict())
            raise Stopped
        return update(trainer, x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", until)
        with pytest.raises(Stopped):
            train(recipe, out)
    kept = torch.load(out / CHECKPOINT, weights_only=True)
    assert kept["step"] == 6 and set(kept) - {CHECKSUM} <= {*FIELDS, "channels"}
    return recipe, kept, train(recipe)


def same(a: Run, b: Run) -> bool:
    pairs = zip([*a.encoder.state_dict().values(), *a.head.state_dict().values()],
                [*b.encoder.state_dict().values(), *b.head.state_dict().values()], strict=True)  # fmt: skip
    return all(torch.equal(x, y) for x, y in pairs) and a.history.loss.tolist() == b.history.loss.tolist()


def places(x: object, depth: int = 3) -> list[tuple]:
    """The paths to all that is nested in x, of a list the first and of a dict the first two and the last."""
    if depth == 0 or not isinstance(x, dict | list):
        return []
    keys = list(range(len(x)))[:1] if isinstance(x, list) else [*list(x)[:2], *list(x)[2:][-1:]]
    keys = list(x) if depth == 3 else keys
    return [path for key in keys for path in [(key,), *((key, *rest) for rest in places(x[key], depth - 1))]]


def damaged(x: object) -> list:
    """What may stand in x's place."""
    if isinstance(x, torch.Tensor):
        other = [torch.full_like(x, torch.nan)] if x.is_floating_point() else []
        wrong = torch.zeros(1).expand(10**9)  # more numbers than there are in memory
        return [None, 3, {}, torch.zeros(3, 5), wrong, *other]
    return [None, "x", -1, float("nan"), [x], {1: 2}, torch.zeros(2, 2)]


def replaced(state: dict, path: tuple, value: object) -> dict:
    state = inside = copy.deepcopy(state)
    for key in path[:-1]:
        inside = inside[key]
    if value is Stopped:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return state


def refused(recipe: ImageRecipe, out: Path, whole: Run) -> bool:
    """Whether going on is refused in words, naming the folder; otherwise the run is `whole` or diverges."""
    try:
        load_run(out)
        run = train(recipe, out)
    except ValueError as error:
        assert str(out) in str(error) and len(str(error)) < 2000, error
        return True
    assert same(run, whole), "it is another run"
    return False


def test_every_field_in_every_way_without_a_checksum(stopped, tmp_path, monkeypatch):
    """As in a file of an earlier version, which has none. What is of its kind and shape passes."""
    recipe, kept, _ = stopped
    monkeypatch.setattr(Trainer, "update", lambda *_: (_ for _ in ()).throw(Stopped))
    kept = {key: x for key, x in kept.items() if key != CHECKSUM}
    passed, raw = [], []
    for path in places(kept):
        inside = kept
        for key in path:
            inside = inside[key]
        for value in (Stopped, *damaged(inside)):
            torch.save(replaced(kept, path, value), tmp_path / CHECKPOINT)
            try:
                train(recipe, tmp_path)
            except Stopped:
                passed.append(path[0])
            except Exception as error:
                if not isinstance(error, ValueError) or str(tmp_path) not in str(error) or "\n" in str(error):
                    raw.append((path, type(value).__name__, repr(error)[:200]))
    not_needed = {"history", "seconds", "recipe", "precision", "compiled", "scaler", "best", "optimiser"}
    not_needed |= {"targets", "keys", "predictor", "data", "not_finite"}
    assert not raw
    assert set(passed) <= not_needed, "what is of its kind and shape may pass"


def test_the_checksum_misses_no_field(stopped, tmp_path):
    """A number that is another one, of the right kind, is found by nothing else."""
    recipe, kept, whole = stopped
    for path in places(kept, 3):
        if path == (CHECKSUM,):
            continue
        torch.save(replaced(kept, path, Stopped), tmp_path / CHECKPOINT)
        assert refused(recipe, tmp_path, whole), path
    for name, part in (("encoder", "0.weight"), ("head", "0.weight")):
        other = kept[name][part].contiguous().clone()
        other.view(-1)[3] += 1e-3
        torch.save(replaced(kept, (name, part), other), tmp_path / CHECKPOINT)
        with pytest.raises(ValueError, match="is damaged, its checksum is another; put back"):
            load_run(tmp_path)
    torch.save(kept, tmp_path / CHECKPOINT)
    assert not refused(recipe, tmp_path, whole)


def test_a_byte_flipped_anywhere(stopped, tmp_path, monkeypatch):
    recipe, kept, _ = stopped
    torch.save(kept, tmp_path / "whole")
    whole, drawn = (tmp_path / "whole").read_bytes(), numpy_shifted(0)
    found = 0
    for place in drawn.integers(0, len(whole), 200):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << int(drawn.integers(8))
        (tmp_path / CHECKPOINT).write_bytes(spoilt)
        try:
            state = checkpoint.read(tmp_path)
        except ValueError as error:
            assert str(tmp_path) in str(error)
            found += 1
        else:  # in what fills the file up, or in a name that nobody reads
            assert checksum(state) == kept[CHECKSUM]
    assert found > 100


@pytest.mark.parametrize("name", ["encoder", "head", "best"])
def test_weights_that_are_no_numbers_are_refused(tmp_path, name):
    run = new_run(ImageRecipe("InfoNCE()"), 3)
    run.keep()
    spoilt = run.best["encoder"] if name == "best" else run.parts[name].state_dict()
    next(iter(spoilt.values())).view(-1)[0] = torch.inf
    run.save(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path / CHECKPOINT}: {name}: .*weight holds NaN or inf; put"):
        load_run(tmp_path)


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


def test_a_trainers_checkpoint_is_no_recipes(tmp_path):
    run = new_run(RECIPES["keys"], 3)
    run.save(tmp_path)
    state = checkpoint.read(tmp_path)
    del state["recipe"]
    checkpoint.write(tmp_path, state)
    for begin in (lambda: load_run(tmp_path), lambda: train(RECIPES["keys"], tmp_path)):
        with pytest.raises(ValueError, match=f"{tmp_path}: holds no recipe"):
            begin()


@pytest.mark.parametrize("stated", [torch.ones(3), "x", [1], 0.5, True])
def test_a_checksum_that_is_none_is_damage(tmp_path, stated):
    new_run(ImageRecipe("InfoNCE()"), 3).save(tmp_path)
    state = torch.load(tmp_path / CHECKPOINT, weights_only=True)
    torch.save({**state, CHECKSUM: stated}, tmp_path / CHECKPOINT)
    with pytest.raises(ValueError, match="is damaged, its checksum is another"):
        load_run(tmp_path)


def test_a_checkpoint_without_a_checksum_loads(stopped, tmp_path):
    recipe, kept, whole = stopped
    torch.save({key: x for key, x in kept.items() if key != CHECKSUM}, tmp_path / CHECKPOINT)
    assert not refused(recipe, tmp_path, whole)
    shutil.rmtree(tmp_path)
    assert not same(train(replace(recipe, seed=1)), whole)

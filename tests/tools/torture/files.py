"""Damaged and hostile files: checkpoints, records, folders of photographs. They are refused or read whole.

A trial damages a few; nothing hangs, nothing of a file is run, and what is refused is said in one line.
"""

import json
import os
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from setclr.data import load
from setclr.experiments import campaigns, embed_folder, load_run
from setclr.experiments import records as recorded
from setclr.experiments.records import read_record
from setclr.experiments.run import new_run
from setclr.recipes import RECIPES, ImageRecipe
from setclr.training import checkpoint
from setclr_course.papers.figures import FIGURES, frame
from setclr_course.search import searches
from setclr_course.search.comparing import read

Outcome = tuple[dict[str, int], list[str]]
RAN = "a file's code ran"
RUNS = [ImageRecipe("InfoNCE()", hidden=16, embedding=8),
        ImageRecipe("IOT()", key_momentum=0.9, queue=8, predictor=2, hidden=16)]  # fmt: skip


class Code:
    """What an unsafe reader would run."""

    def __reduce__(self) -> tuple:
        return os.mkdir, (RAN,)


def cut(by: random.Random, whole: bytes) -> bytes:
    """The bytes with bits turned, pieces lost, doubled, zeroed, moved, or other bytes put in."""
    spoilt = bytearray(whole)
    for _ in range(by.choice([1, 1, 2, 8])):
        a, b = sorted(by.randint(0, len(spoilt)) for _ in range(2))
        b = by.choice([b, min(b, a + 16)])
        match by.randrange(7):
            case 0 if spoilt:
                spoilt[a % len(spoilt)] ^= 1 << by.randrange(8)
            case 1:
                del spoilt[a:]
            case 2:
                del spoilt[a:b]
            case 3:
                spoilt[a:b] = bytes(b - a)
            case 4:
                spoilt[a:a] = by.randbytes(by.choice([1, 16, 4000]))
            case 5:
                spoilt[a:a] = spoilt[a:b]
            case _:
                spoilt[a:b] = spoilt[a:b][::-1]
    return bytes(spoilt)


def other_value(by: random.Random, x: Any) -> Any:
    """What may stand in x's place in a nested value."""
    if isinstance(x, torch.Tensor) and by.random() < 0.6:
        odd = [
            x.flatten(),
            x.double(),
            x[:0] if x.dim() else x.view(1),
            x.to(torch.complex64),
            x.unsqueeze(0),
        ]
        full = [torch.full_like(x, torch.nan), torch.full_like(x, torch.inf)] if x.is_floating_point() else []
        return by.choice([*odd, *full])
    odd = [None, True, -1, 0, 2**70, 0.5, float("nan"), "", "x", [], [x], {}, {1: x}, {"a": {"b": []}}]
    return by.choice([*odd, torch.zeros(3), torch.zeros(1).expand(10**9)])


def nested(by: random.Random, state: Any, value: Callable[[random.Random, Any], Any]) -> Any:
    """The nested value with one place changed, left out, or renamed."""
    if not isinstance(state, dict | list) or not state or by.random() < 0.15:
        return value(by, state)
    keys = list(state) if isinstance(state, dict) else list(range(len(state)))
    key, changed = by.choice(keys), state.copy()
    if by.random() < 0.1:
        del changed[key]
    elif by.random() < 0.05 and isinstance(state, dict):
        changed[by.choice([1, "x", "", str(key)[::-1]])] = changed.pop(key)
    else:
        changed[key] = nested(by, state[key], value)
    return changed


def checkpoints(seed: int, folder: Path) -> Outcome:
    """A checkpoint of which bytes or values are other ones; it is refused, or is what it was."""
    by, count = random.Random(seed), Counter({"files": 0, "refused": 0, "read": 0})
    recipe = RUNS[seed % len(RUNS)]
    kept, out, findings = folder / f"run{seed % len(RUNS)}", folder / "damaged", []
    if not kept.exists():
        torch.manual_seed(0)
        new_run(recipe, 3).save(kept)
    good = checkpoint.read(kept)
    whole = (kept / checkpoint.CHECKPOINT).read_bytes()
    os.chdir(emptied(folder))
    for _ in range(12):
        out.mkdir(exist_ok=True)
        path = out / checkpoint.CHECKPOINT
        kind = by.randrange(5)
        if kind < 2:
            path.write_bytes(cut(by, whole))
        elif kind < 4:
            torch.save(nested(by, torch.load(kept / checkpoint.CHECKPOINT), other_value), path)
        else:
            hostile(by, path)

        def load_it(kind: int = kind) -> None:
            run, state = load_run(out), checkpoint.read(out)
            assert run.recipe.loss and (kind > 1 or checkpoint.checksum(state) == checkpoint.checksum(good))

        findings += done(load_it, count, str(out), folder)
    return dict(count), findings


def hostile(by: random.Random, path: Path) -> None:
    """A file that is no checkpoint and wants to be read as one."""
    match by.randrange(4):
        case 0:
            torch.save({"encoder": Code(), "head": {}, "history": []}, path)
        case 1:
            torch.save(Code(), path, _use_new_zipfile_serialization=False)
        case 2:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("archive/data.pkl", by.choice([b"", b"\x80\x02.", bytes(10**7)]))
        case _:
            path.write_bytes(by.choice([b"", b"PK\x03\x04", b"\x80\x04" + by.randbytes(99), bytes(5000)]))


def records(seed: int, folder: Path) -> Outcome:
    """A folder of records, some damaged: each reader says which, and reads the others."""
    by, count = random.Random(seed), Counter({"files": 0, "refused": 0, "read": 0})
    figure = next(iter(FIGURES))
    name = next(iter(FIGURES[figure].rows.values()))
    measured = {"raw pixels": {"knn": 20.0, "linear": 21.0}, "untrained": {"knn": 30.0, "linear": 31.0},
                "trained": {"knn": 40.0, "linear": 41.0}}  # fmt: skip
    good = {"accuracy_percent": measured, "epochs": 1, "training_seconds": 1.0, "pixels": "original",
            "images": {"train": 50, "test": 10}, "recipe": RECIPES[name].to_dict(),
            "machine": {"device": "CPU"}, "precision": "float32", "protocol": "setclr",
            "history": [{"epoch": 1, "loss": 2.0, "lr": 0.1, "seconds": 1.0}]}  # fmt: skip
    os.chdir(emptied(folder))
    findings: list[str] = []
    for _ in range(12):
        out = emptied(folder, "records")
        path = out / f"{name}-seed0.json"
        (out / f"{name}-seed1.json").write_text(json.dumps(good))
        if by.random() < 0.5:
            text = cut(by, json.dumps(good, indent=1).encode())
        else:
            text = json.dumps(nested(by, good, json_value)).encode()
        path.write_bytes(by.choice([text, text, text, b"", b"[" * 100_000, b"null", b"{}", b"[]", b"1e999"]))

        def refuse(*_: Any, **__: Any) -> None:
            raise FloatingPointError("nothing is trained here")

        readers = [
            lambda path=path: read_record(path),
            lambda out=out: recorded.summary(out),
            lambda out=out: read(out),
            lambda out=out: frame(figure, out),
            lambda out=out: searches.chosen({f"{name}-seed0": RECIPES[name]}, out, "setclr"),
            lambda out=out: searches.so_far({name: RECIPES[name]}, (0, 1), out),
            lambda out=out: list(
                campaigns.campaign({name: RECIPES[name]}, (0,), out / "r", out, train=refuse)
            ),
        ]
        findings += done(by.choice(readers), count, "", folder)
    return dict(count), findings


def json_value(by: random.Random, x: Any) -> Any:
    odd = [None, True, -1, 0, 2**70, 1e308, float("nan"), float("inf"), -0.0, "", "x", "1", "\ud800"]
    return by.choice([*odd, [], [x], {}, {"a": {}}, [[[]]], x])


def images(seed: int, folder: Path) -> Outcome:
    """A folder of photographs, some damaged, or no photographs: `load` and `embed_folder` say which."""
    by, count = random.Random(seed), Counter({"files": 0, "refused": 0, "read": 0})
    findings: list[str] = []
    run = new_run(RUNS[0], 3)
    os.chdir(emptied(folder))
    for _ in range(6):
        tree = emptied(folder, "tree")
        for split in ("train", "val"):
            for kind in ("ant", "bee"):
                (tree / split / kind).mkdir(parents=True)
                for i in range(2):
                    photograph(by, tree / split / kind / f"{i}.png", "png")
        for _ in range(by.choice([1, 1, 3])):
            strange(by, tree)
        how = {"stream": by.choice([True, False, None]), "size": by.choice([None, 16])}
        how["verify"] = by.random() < 0.7

        def read_all(tree: Path = tree, how: dict = how) -> None:
            found = load(f"folder:{tree}", **how)
            assert len(found) == len(found.labels) and len(found.classes) > 1
            if how["verify"] and isinstance(found.images, torch.Tensor):
                assert found.images.dtype == torch.uint8

        def embed(tree: Path = tree) -> None:
            features, paths = embed_folder(run, tree)
            assert len(features) == len(paths)

        findings += done(by.choice([read_all, read_all, embed]), count, "", folder)
    return dict(count), findings


def photograph(by: random.Random, path: Path, kind: str, side: int = 16) -> None:
    mode, depth = by.choice(
        [("RGB", 3), ("RGB", 3), ("L", 1), ("RGBA", 4)] if kind == "png" else [("RGB", 3)]
    )
    Image.frombytes(mode, (side, side), by.randbytes(depth * side * side)).save(path, kind)


def strange(by: random.Random, tree: Path) -> None:
    """Put something into the tree that is no photograph, or a photograph that is damaged or odd."""
    place = by.choice([tree / "train" / "ant", tree / "val" / "bee", tree / "train", tree])
    name = by.choice(["9.png", "0.png", "new\nline.png", "\udce9.png", "-x.jpg", "9.jpeg", ".hidden.png",
                      "a" * 200 + ".png", "cat", "\u202egnp.exe", "9.gif", "9.webp", "9.tiff"])  # fmt: skip
    path = place / name
    if path.is_symlink() or path.is_file() or path.is_fifo():
        path.unlink()
    elif path.exists():
        return
    match by.randrange(8):
        case 0 | 1 | 2:
            kind = by.choice(["png", "jpeg", "gif", "webp", "tiff", "bmp"])
            photograph(by, path, kind, by.choice([1, 16, 16, 16, 300]))
            path.write_bytes(cut(by, path.read_bytes()))
        case 3:
            os.mkfifo(path)
        case 4:
            path.symlink_to(by.choice(["/dev/zero", "/dev/random", name, "..", "nowhere", "/", "0.png"]))
        case 5:
            path.mkdir()
        case 6:
            heads = [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"P6 99999 99999 255\n"]
            path.write_bytes(by.choice(heads) + by.randbytes(by.choice([0, 500])))
        case _:
            photograph(by, path, "png", by.choice([1, 2, 17, 2000]))


def emptied(folder: Path, name: str = "here") -> Path:
    """An empty folder of that name in the part's own."""
    inside = folder / name
    shutil.rmtree(inside, ignore_errors=True)
    inside.mkdir()
    return inside


def done(read: Callable[[], object], count: Counter, named: str, folder: Path) -> list[str]:
    """What did not hold when something was read; a refusal must be a line, and have `named` in it."""
    count["files"] += 1
    try:
        read()
        count["read"] += 1
    except (ValueError, OSError) as error:
        count["refused"] += 1
        said = str(error)
        if "\n" in said or named not in said or not 10 < len(said) < 4000:
            return [f"it says {said[:600]!r}"]
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:600]}, raised in {_where(error)}"]
    return [f"{RAN}"] if list(folder.rglob(RAN)) else []


def _where(error: Exception) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "?"

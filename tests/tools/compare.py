"""Compare the working tree with an older one on this machine, in one run: what must not change in a rebuild.

    git worktree add --detach ../before 006d1a7
    python tests/tools/compare.py ../before              # all parts
    python tests/tools/compare.py ../before steps help   # some of them

Each tree answers in a process of its own: weights and losses after a few training steps, to the bit; the
accuracies of a run; all recipes with their printed numbers and protocols; the sentence of every panel in
every state of its atlas; the help of every command. The differences are printed, and the exit status is their
number. It serves the issues on two packages, on the engine and on panels, and goes with the last of them.
"""

import difflib
import hashlib
import importlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

RENAMED = {"same_class": "images_per_class"}  # fields of recipes, old and new


def new_or_old(*places: str) -> Any:
    """The first of these "module:name" that there is; each tree has its own."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {places} is there")


def digest(module: Any) -> str:
    """Of all weights and statistics, to the bit."""
    found = hashlib.sha256()
    for name, x in module.state_dict().items():
        found.update(f"{name} {x.dtype} {tuple(x.shape)}".encode())
        found.update(x.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def given(images: Any) -> dict[str, Any]:
    """The images as an argument of pretrain."""
    return {"data" if importlib.util.find_spec("setclr.training.source") else "images": images}


IMAGES = {
    "InfoNCE": dict(loss="InfoNCE(temperature=0.2)"),
    "GroCo, momentum encoder": dict(loss="GroCo(negatives=5)", last_norm=True, key_momentum=0.99),
    "InfoNCE, momentum encoder, queue": dict(loss="InfoNCE()", key_momentum=0.99, queue=64, predictor=2),
    "chunks": dict(loss="InfoNCE() + 0.5 * QARe()", chunk=10, optimiser="lars", lr=0.1, warmup=1),
    "small crops": dict(loss="IOT()", local_views=2, views="simclr", schedule="steps"),
    "learnt temperature": dict(loss="InfoNCE(temperature=learnable(0.2))", optimiser="sgd"),
    "schedule": dict(loss="MMCL(bandwidth=1.0)", loss_schedule="bandwidth: 1.0, 0.5 from 1"),
    "groups of a class": dict(loss="SparseCLR()", same_class=4, batch=32),
    "DeepCluster": dict(loss="DeepCluster()", views="padded", full_views=1, embedding=20, layers=1),
    "Rotation": dict(loss="Rotation()", views="padded", full_views=1, embedding=4, layers=1),
    "DeepInfoMax": dict(loss="DeepInfoMax(features=64, channels=8, locations=4)", views="flip", full_views=1),
}


def steps() -> dict[str, Any]:
    """Two epochs of two steps of each recipe; InfoNCE also stopped after the first and gone on with."""
    Recipe = new_or_old("setclr.recipes:ImageRecipe", "setclr.recipes:Recipe")
    pretrain = new_or_old("setclr:pretrain", "setclr.training:pretrain")
    evaluate = new_or_old("setclr.experiments:evaluate", "setclr.reports:evaluate")
    fields = Recipe.__dataclass_fields__
    data = importlib.import_module("setclr.data")
    images, test = data.load("photo-patches").sample(64), data.load("photo-patches", split="test").sample(64)
    found: dict[str, Any] = {}
    for name, chosen in IMAGES.items():
        how = {"views": "photo", "epochs": 2, "batch": 32, "precision": "float32", **chosen}
        how = {key if key in fields else RENAMED[key]: value for key, value in how.items()}
        run = pretrain(Recipe(**how), compiled=False, **given(images))
        losses = [row["loss"].hex() for row in run.rows]
        found[name] = {"encoder": digest(run.encoder), "head": digest(run.head), "losses": losses}
        if name == "InfoNCE":
            found["accuracies"] = evaluate(run, images, test).round(6).to_dict()
    found["stopped and gone on with"] = stopped(Recipe, pretrain, images)
    return found | graphs() | videos()


def stopped(Recipe: Any, pretrain: Any, images: Any) -> dict[str, str]:
    """A run with all there is to restore, interrupted after its first epoch."""

    class Stop(Exception):
        pass

    def stop(run: Any) -> None:
        if run.rows:
            raise Stop

    recipe = Recipe("InfoNCE()", views="photo", epochs=2, batch=32, key_momentum=0.9, queue=64,
                    precision="float32")  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        for on_epoch in (stop, None):
            try:
                run = pretrain(recipe, out, compiled=False, on_epoch=on_epoch, **given(images))
            except Stop:
                continue
    return {"encoder": digest(run.encoder), "head": digest(run.head)}


def graphs() -> dict[str, Any]:
    GraphRecipe = new_or_old("setclr.recipes:GraphRecipe", "setclr.graphs:GraphRecipe")
    pretrain = new_or_old("setclr.graphs:pretrain_graphs", "setclr:pretrain")
    run = pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=2))
    losses = [row["loss"].hex() for row in run.rows]
    return {"graphs": {"encoder": digest(run.encoder), "head": digest(run.head), "losses": losses}}


def videos() -> dict[str, Any]:
    VideoRecipe = new_or_old("setclr.recipes:VideoRecipe", "setclr.video:VideoRecipe")
    pretrain = new_or_old("setclr.video:pretrain_videos", "setclr:pretrain")
    found = {}
    for queue in (0, 128):
        keys = {"key_momentum": 0.999} if queue and "key_momentum" in VideoRecipe.__dataclass_fields__ else {}
        run = pretrain(VideoRecipe("InfoNCE(temperature=0.2)", epochs=1, queue=queue, batch=256, **keys))
        losses = [row["loss"].hex() for row in run.rows]
        found[f"videos, queue {queue}"] = {
            "encoder": digest(run.encoder),
            "head": digest(run.head),
            "losses": losses,
        }
    return found


def recipes() -> dict[str, Any]:
    """Every recipe's fields, what was printed of it, and how it is measured."""
    named = importlib.import_module("setclr.recipes")
    if importlib.util.find_spec("setclr.recipes.registry"):
        others = [getattr(named, name, {}) for name in ("GRAPH_RECIPES", "VIDEO_RECIPES")]
        kinds: Any = [named.RECIPES, *others]
        printed: Any = [named.PUBLISHED]
        protocol_of = importlib.import_module("setclr.recipes.registry").protocol_of
    else:
        graph, video = importlib.import_module("setclr.graphs"), importlib.import_module("setclr.video")
        kinds = [named.RECIPES, graph.GRAPH_RECIPES, video.VIDEO_RECIPES]
        rows = [row for found in (graph.PRINTED, video.VIDEO_PRINTED) for row in found.items()]
        printed = [named.PUBLISHED, {name: published for name, (_, published) in rows}]
        protocol_of = importlib.import_module("setclr.evaluation.protocols").protocol_of
    found: dict[str, Any] = {}
    for recipe_of in kinds:
        for name, recipe in recipe_of.items():
            fields = {RENAMED.get(key, key): value for key, value in recipe.to_dict().items()}
            found[name] = {"fields": fields, "protocol": protocol_of(name)}
    for published in printed:
        for name, row in published.items():
            found[name] |= {"paper": row.paper, "table": row.table, "numbers": row.numbers,
                            "spread": row.spread, "note": row.note, "said": str(row)}  # fmt: skip
    return found


def panels() -> dict[str, Any]:
    """The sentence and the handles' places of every panel in every state of its atlas; nothing is drawn."""
    course = Path("lib/setclr_course").is_dir()
    package = importlib.import_module("setclr_course.panels" if course else "setclr.explore")
    kit = "setclr_course.kit" if course else "setclr.explore.kit"
    atlas, panel = importlib.import_module(f"{kit}.atlas"), importlib.import_module(f"{kit}.panel")
    atlas.webp = lambda pixels: b""
    panel.Panel._draw = lambda self: None
    found: dict[str, Any] = {}
    for name in package.__all__:
        states = getattr(package, name)().atlas().told["states"]
        found[name] = {key: [state["sentence"], state["places"]] for key, state in states.items()}
        print(name, len(states), file=sys.stderr)
    return found


COMMANDS = ["recipes", "data", "pretrain", "campaign", "search", "evaluate", "embed", "export", "results"]


def help() -> dict[str, str]:
    """Of every command, a line each of what it says."""
    from setclr.cli import main

    os.environ["COLUMNS"] = "100"
    found = {}
    for words in ([], *([name, "--help"] for name in COMMANDS)):
        told = io.StringIO()
        try:
            with redirect_stdout(told):
                main(list(words))
        except (SystemExit, ValueError) as error:
            told.write(f"{error}")
        found[" ".join(words)] = told.getvalue()
    return found


PARTS = {"steps": steps, "recipes": recipes, "panels": panels, "help": help}


def answer(tree: Path, parts: list[str]) -> dict[str, Any]:
    """What a tree's own code says, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(tree / "lib"), "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--answer", *parts]
    with tempfile.TemporaryFile("w+") as told:
        subprocess.run(command, cwd=tree, env=environment, stdout=told, check=True)
        told.seek(0)
        return json.loads(told.readlines()[-1])


def differences(before: Any, now: Any, where: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        return [line for key in before | now for line in
                differences(before.get(key), now.get(key), f"{where} > {key}" if where else key)]  # fmt: skip
    same = before == now or (before != before and now != now)  # NaN
    if not same and isinstance(before, str) and isinstance(now, str) and "\n" in before:
        lines = difflib.unified_diff(
            before.split("\n"), now.split("\n"), "before", "now", where, where, 0, ""
        )
        return ["\n".join(lines)]
    return [] if same else [f"{where}\n  before: {before}\n  now:    {now}"]


def main() -> None:
    before, *parts = sys.argv[1:]
    parts = parts or list(PARTS)
    if before == "--answer":
        print(json.dumps({part: PARTS[part]() for part in parts}))
        return
    here = Path(__file__).resolve().parents[2]
    found = differences(answer(Path(before).resolve(), parts), answer(here, parts))
    print("\n".join(found) or f"no difference in {', '.join(parts)}")
    sys.exit(min(len(found), 100))


if __name__ == "__main__":
    main()

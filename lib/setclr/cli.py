"""python -m setclr COMMAND …: the experiments from a terminal.

recipes [FILTER ...]          the recipes whose names have these words: what a paper got, and what we did
data [NAME]                   list the data sets, or load one and describe it
pretrain RECIPE --out FOLDER  train (or go on); every field of the recipe is an option, --help lists them
campaign FILTER               pretrain, evaluate and record all of these recipes, with three seeds
evaluate FOLDER               kNN and linear probe beside raw pixels and an untrained encoder; --all makes a
                              page with more numbers and pictures, FOLDER/report.html
embed FOLDER IMAGES           features of one's own images, any tree of files, to an .npz file
export FOLDER                 the encoder's weights for torchvision or timm
results [FOLDER]              the recorded results as a table (data/results by default)
"""

import json
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from setclr import data, training
from setclr.checks import choice, nearest
from setclr.evaluation.embed import embed_folder
from setclr.recipes import PUBLISHED, RECIPES, Recipe
from setclr.reports.campaigns import campaign
from setclr.reports.exports import export, replacing
from setclr.reports.pages import page, require_matplotlib
from setclr.reports.records import counted, describe_machine, ours, record, summary
from setclr.reports.tables import evaluate, evaluate_all, labelled
from setclr.training.distributed import joined, rank
from setclr.training.pretraining import choose_device


@dataclass(frozen=True)
class ShowData:
    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Data sets, or folder:PATH; without one all are listed."""
    root: Path = Path("data")
    """Where data sets are, or are downloaded to."""
    size: int | None = None
    """Side in pixels to which a folder's images are resized and cropped."""


@dataclass(frozen=True)
class Pretrain:
    recipe: Annotated[Recipe, tyro.conf.arg(name="")]
    out: Path
    """Folder of the run. A run that is there already goes on."""
    root: Path = Path("data")
    """Where data sets are."""
    device: str | None = None
    """cpu, cuda, …; a GPU if there is one."""
    resume: bool = True
    """With --no-resume a run that is there is replaced."""
    workers: int | None = None
    """Processes that read photographs of sets too large for memory."""
    compiled: bool = False
    """Let torch.compile work on the encoder."""


@dataclass(frozen=True)
class Evaluate:
    run: tyro.conf.Positional[Path]
    """Folder that `pretrain` wrote."""
    root: Path = Path("data")
    """Where data sets are."""
    device: str | None = None
    """Of the trained encoder: cpu, cuda, …; a GPU if there is one."""
    record: Path | None = None
    """Also write the table, with recipe, machine and commands, to this JSON file."""
    all: bool = False
    """Also k = 1 and 20, projections, retrieval, matching, and a page with pictures, RUN/report.html."""
    pixels: str = "original"
    """Where the pixels come from, for record and page: "original", or for example "JPEG q75"."""


@dataclass(frozen=True)
class Embed:
    run: tyro.conf.Positional[Path]
    """Folder that `pretrain` wrote."""
    folder: tyro.conf.Positional[Path]
    """Any tree of image files."""
    out: Path | None = None
    """The .npz file: `features` (N, D) float32, `paths` (N,). RUN/features-FOLDER.npz if left out."""
    size: int | None = None
    """Side in pixels to which images are resized and cropped; that of the training if left out."""
    device: str | None = None
    """cpu, cuda, …; a GPU if there is one."""
    batch: int = 256
    """Images held at a time."""


@dataclass(frozen=True)
class Export:
    run: tyro.conf.Positional[Path]
    """Folder that `pretrain` wrote."""
    out: Path | None = None
    """The file; RUN/encoder.pt if left out."""
    timm: bool = False
    """Name a vision transformer's weights as timm does; those of ResNets are the same in both."""


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return
    command, *rest = arguments
    if rest in (["-h"], ["--help"]) and command in ("recipes", "pretrain", "results"):
        print(__doc__.strip())
        return
    commands = {
        "recipes": list_recipes,
        "data": show_data,
        "pretrain": pretrain,
        "evaluate": evaluate_run,
        "campaign": run_campaign,
        "embed": embed_images,
        "export": export_run,
        "results": show_results,
    }
    commands[choice("command", command, commands)](rest)


def list_recipes(rest: list[str]) -> None:
    exact = len(rest) == 1 and rest[0] in RECIPES
    names = rest if exact else named(rest)
    kept = [json.loads(path.read_text()) for path in sorted(Path("data/results").glob("*.json"))]
    cells = []
    for name in names:
        row = PUBLISHED.get(name)
        cells.append((name, str(row) if row else "", f"{row.paper}, table {row.table}" if row else "",
                      f"ours: {ours(RECIPES[name], kept)}"))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*cells)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    if exact:
        show_recipe(rest[0])


def named(words: list[str]) -> list[str]:
    """The recipes whose names have all of these words. Raises ValueError if there is none."""
    names = [name for name in RECIPES if all(word in name for word in words)]
    if not names:
        near = ", ".join(nearest(" ".join(words), RECIPES, 3))
        raise ValueError(
            f"no recipe's name has all of {' '.join(words)!r}; the nearest are {near}; "
            "python -m setclr recipes lists them all"
        )
    return names


def show_recipe(name: str) -> None:
    """All fields that are not the defaults, all published numbers and the note."""
    recipe = RECIPES[name]
    for field in fields(recipe):
        value = getattr(recipe, field.name)
        if value != field.default:
            text = f'"{value}"' if "'" in str(value) else shlex.quote(str(value))
            print(f"  --{field.name.replace('_', '-')}" + ("" if value is True else f" {text}"))
    if name in PUBLISHED:
        print("  published:", ", ".join(f"{key} {x}" for key, x in PUBLISHED[name].numbers.items()) or "-")
        print("  note:", PUBLISHED[name].note)


def show_data(rest: list[str]) -> None:
    asked = tyro.cli(ShowData, prog="python -m setclr data", args=rest)
    if not asked.names:
        print("\n".join([*data.NAMES, "folder:PATH"]))
    for name in asked.names:
        for split in ("train", "test"):
            print(f"{name} {split}: {data.load(name, asked.root, split, asked.size)!r}")


def pretrain(rest: list[str]) -> None:
    name = rest[0] if rest and not rest[0].startswith("-") else ""
    choice("recipe", name, RECIPES, hint="python -m setclr recipes lists them")
    asked = tyro.cli(Pretrain, prog=f"python -m setclr pretrain {name}", args=rest[1:],
                     default=Pretrain(RECIPES[name], tyro.MISSING))  # fmt: skip
    with joined(asked.device) as device:
        run = training.pretrain(
            asked.recipe, asked.out, asked.resume, asked.root, device, None, asked.workers, asked.compiled
        )
        if rank() == 0:
            print(run.history.tail(1).to_string(index=False) if run.rows else "no epochs: random weights")


def evaluate_run(rest: list[str]) -> None:
    asked = tyro.cli(Evaluate, prog="python -m setclr evaluate", args=rest)
    run, out = training.load_run(asked.run), asked.run / "report.html"
    with ExitStack() as stack:
        device = choose_device(stack.enter_context(joined(asked.device)))
        file = None
        if asked.all and rank() == 0:
            require_matplotlib()
            file = stack.enter_context(replacing(out))
        train, test = labelled(run.recipe, asked.root)
        run.encoder.to(device)
        run.head.to(device)
        measured = evaluate_all(run, train, test) if asked.all else None
        table = measured.table if measured else evaluate(run, train, test)
        if rank():
            return
        print(table.round(1).to_string())
        how = (asked.pixels, shlex.join(["python", "-m", "setclr", "evaluate", *rest]))
        machine = describe_machine(run.encoder)
        if asked.record:
            record(asked.record, run, table, counted(train, test), *how, machine)
        if file:
            file.write(page(asked.run.resolve().name, run, train, test, measured, *how, machine).encode())
            print(out)


@dataclass(frozen=True)
class Campaign:
    filter: tyro.conf.Positional[str]
    """Recipes whose names have this in them."""
    seeds: tuple[int, ...] = (0, 1, 2)
    runs: Path = Path("data/runs")
    results: Path = Path("data/results")
    root: Path = Path("data")
    device: str | None = None
    pixels: str = "original"
    """Where the pixels come from, for the records."""
    data: str | None = None
    """Another data set for all of them, for example folder:PATH."""
    epochs: int | None = None
    batch: int | None = None
    lr: float | None = None


def run_campaign(rest: list[str]) -> None:
    asked = tyro.cli(Campaign, prog="python -m setclr campaign", args=rest)
    changes = {name: getattr(asked, name) for name in ("data", "epochs", "batch", "lr")}
    changes = {name: value for name, value in changes.items() if value is not None}
    chosen = {name: replace(RECIPES[name], **changes) for name in named([asked.filter])}
    command = shlex.join(["python", "-m", "setclr", "campaign", *rest])
    for line in campaign(chosen, asked.seeds, asked.runs, asked.results, asked.root, asked.device,
                         asked.pixels, command):  # fmt: skip
        print(line, flush=True)


def embed_images(rest: list[str]) -> None:
    asked = tyro.cli(Embed, prog="python -m setclr embed", args=rest)
    run = training.load_run(asked.run)
    run.encoder.to(choose_device(asked.device))
    out = asked.out or asked.run / f"features-{asked.folder.resolve().name}.npz"
    with replacing(out) as file:
        found, paths = embed_folder(run, asked.folder, asked.size, asked.batch)
        np.savez(file, features=found, paths=paths)
    print(f"{out}: features of {len(paths)} images, {found.shape[1]} each")


def export_run(rest: list[str]) -> None:
    asked = tyro.cli(Export, prog="python -m setclr export", args=rest)
    run, out = training.load_run(asked.run), asked.out or asked.run / "encoder.pt"
    export(run, out, "timm" if asked.timm else "torchvision")
    print(f"{out}: {run.recipe.encoder}, {run.channels} channels")


def show_results(rest: list[str]) -> None:
    print(summary(Path(rest[0] if rest else "data/results")))


def run() -> None:
    """The command `setclr`: errors and interruptions end in one line and an exit status."""
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, ArithmeticError, MemoryError) as error:
        sys.exit(f"setclr: {error}")
    except training.Interrupted as stopped:
        print(f"setclr: {stopped}", file=sys.stderr)
        sys.exit(128 + stopped.signal)

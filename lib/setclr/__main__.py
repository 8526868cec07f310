"""python -m setclr {recipes,data,pretrain,evaluate,results}: the experiments from a terminal.

recipes [FILTER]              list the recipes
data [NAME]                   list the data sets, or load one and describe it
pretrain RECIPE --out FOLDER  train (or go on); every field of the recipe is an option, --help lists them
evaluate FOLDER               kNN and linear probe beside raw pixels and an untrained encoder
results [FOLDER]              the recorded results as a table (data/results by default)
"""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from setclr import data, training
from setclr.checks import choice
from setclr.evaluation.report import describe_machine, evaluate, record, summary
from setclr.recipes import RECIPES, Recipe


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


@dataclass(frozen=True)
class Evaluate:
    run: tyro.conf.Positional[Path]
    """Folder that `pretrain` wrote."""
    root: Path = Path("data")
    """Where data sets are."""
    record: Path | None = None
    """Also write the table, with recipe, machine and commands, to this JSON file."""
    pixels: str = "original"
    """Where the pixels come from, for the record: "original", or for example "JPEG q75"."""


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return
    command, *rest = arguments
    if rest in (["-h"], ["--help"]) and command != "evaluate":
        print(__doc__.strip())
        return
    commands = {
        "recipes": list_recipes,
        "data": show_data,
        "pretrain": pretrain,
        "evaluate": evaluate_run,
        "results": show_results,
    }
    commands[choice("command", command, commands)](rest)


def list_recipes(rest: list[str]) -> None:
    for name, recipe in RECIPES.items():
        if all(word in name for word in rest):
            print(f"{name:20} {recipe.loss} on {recipe.data}, {recipe.encoder}, {recipe.epochs} epochs")


def show_data(rest: list[str]) -> None:
    if not rest:
        print("\n".join([*data.MADE, *data.DOWNLOADED, "folder:PATH"]))
    for name in rest:
        for split in ("train", "test"):
            print(f"{name} {split}: {data.load(name, split=split)!r}")


def pretrain(rest: list[str]) -> None:
    name = rest[0] if rest and not rest[0].startswith("-") else ""
    choice("recipe", name, RECIPES)
    asked = tyro.cli(Pretrain, prog=f"python -m setclr pretrain {name}", args=rest[1:],
                     default=Pretrain(RECIPES[name], tyro.MISSING))  # fmt: skip
    run = training.pretrain(asked.recipe, asked.out, asked.resume, asked.root, asked.device)
    print(run.history.tail(1).to_string(index=False))


def evaluate_run(rest: list[str]) -> None:
    asked = tyro.cli(Evaluate, prog="python -m setclr evaluate", args=rest)
    run = training.load_run(asked.run)
    train, test = (
        data.load(run.recipe.data, asked.root, split, run.recipe.size) for split in ("train", "test")
    )
    table = evaluate(run, train, test)
    print(table.round(1).to_string())
    if asked.record:
        command = shlex.join(["python", "-m", "setclr", "evaluate", *rest])
        record(asked.record, run, table, asked.pixels, command, describe_machine(run.encoder))


def show_results(rest: list[str]) -> None:
    print(summary(Path(rest[0] if rest else "data/results")))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, ArithmeticError) as error:
        sys.exit(f"setclr: {error}")

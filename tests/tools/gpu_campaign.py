"""gpu.py campaign: train as many recipes as a few minutes of a GPU allow, the worthiest first.

Each run's second epoch is measured, since the first one compiles. A run that cannot end within the budget is
left there, and one that is known to be too long from a run of the same encoder and batch is not begun. What
fails is said in a line, and the next recipe follows. After each run, records, histories and the lines are in
one archive, OUT/campaign.tar.gz.
"""

import argparse
import os
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import torch

from setclr import pretrain
from setclr.recipes import RECIPES
from setclr.training.devices import is_oom
from setclr_course.search.campaigns import campaign

ORDER = ("simclr-cifar10-infonce", "simclr-cifar10-groco")
PACKAGES = ("torchvision", "sklearn", "pandas", "PIL", "filelock", "tqdm")  # that training and records import
MEASURED = 2  # epochs after which a run's length is known
ARCHIVED = 14 * 2**20  # bytes up to which a checkpoint goes into the archive


class TooLong(Exception):
    """A run cannot end within the budget."""


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu.py campaign", description=__doc__)
    parser.add_argument("recipes", nargs="*", default=ORDER, help="names of recipes, the worthiest first")
    parser.add_argument("--data", help="train on this set instead of the recipe's, as folder:PATH")
    parser.add_argument("--images", type=int, help="train on this many images")
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of data sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=480, help="seconds for all")
    parser.add_argument("--reserve", type=float, default=45, help="seconds of these to evaluate a run")
    parser.add_argument("--device", help="cuda, cpu; the default is a GPU where there is one")
    parser.add_argument("--pixels", default="original", help="where the pixels come from, for the records")
    parser.add_argument("--commit", default="", help="of this code, where there is no clone to ask")
    parser.add_argument("--runs", type=Path, default=Path("data/runs/gpu"), help="folder of checkpoints")
    parser.add_argument("--out", type=Path, default=Path("data/results/gpu"), help="folder of the archive")
    given = parser.parse_args(argv)
    if unknown := [name for name in given.recipes if name not in RECIPES]:
        parser.error(f"there is no recipe {unknown[0]!r}; `setclr recipes` lists them")
    return given


class Campaign:
    def __init__(self, given: argparse.Namespace):
        self.given, self.begun = given, time.monotonic()
        self.records, self.log = given.runs / "records", given.runs / "log.txt"
        self.seconds: dict[tuple, float] = {}  # of an epoch, by encoder, batch and data
        for folder in (self.records, given.out):
            folder.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        """Seconds of the budget that are left for training."""
        return self.given.budget - self.given.reserve - (time.monotonic() - self.begun)

    def say(self, text: str) -> None:
        line = f"{time.monotonic() - self.begun:5.0f} s  {text}"
        print(line, flush=True)
        with self.log.open("a") as file:
            print(line, file=file)

    def pack(self) -> None:
        """Write the archive anew, in one step."""
        archive, runs = self.given.out / "campaign.tar.gz", self.given.runs
        unfinished = archive.with_suffix(".unfinished")
        with tarfile.open(unfinished, "w:gz") as tar:
            for path in sorted({self.log, *self.records.glob("*.json"), *runs.glob("*/history.csv"),
                                *runs.glob("*/checkpoint.pt")}):  # fmt: skip
                if path.is_file() and (path.suffix != ".pt" or path.stat().st_size <= ARCHIVED):
                    tar.add(path, path.relative_to(runs))
        os.replace(unfinished, archive)

    def begin(self) -> None:
        missing = [name for name in PACKAGES if find_spec(name) is None]
        where = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
        versions = f"Python {sys.version.split()[0]}, torch {torch.__version__}"
        self.say(f"{where}, {versions}; packages missing: {', '.join(missing) or 'none'}")

    def run(self, name: str) -> str:
        """What came of a recipe, in a line."""
        given = self.given
        try:
            recipe = RECIPES[name]
            more = {"data": given.data, "images": given.images}
            recipe = replace(recipe, **{key: x for key, x in more.items() if x is not None})
            known = self.seconds.get((recipe.encoder, recipe.batch, recipe.data), 0.0)
            if known * recipe.epochs >= self.left():
                time_left = f"{self.left():.0f} s are left"
                return f"{name}: not begun: {recipe.epochs} epochs of {known:.1f} s, and {time_left}"
            command = " ".join(["python tests/tools/gpu.py", *sys.argv[1:]])
            (line,) = campaign(
                {name: recipe}, [given.seed], given.runs, self.records, given.root, given.device,
                given.pixels, command, train=self.measured,
            )  # fmt: skip
            return line
        except TooLong as error:
            return f"{name}: {error}"
        except Exception as error:
            first = str(error).split("\n")[0]
            hint = "; --chunk of `setclr pretrain` needs less memory" if is_oom(error) else ""
            return f"{name}: {type(error).__name__}: {first}{hint}"

    def measured(self, recipe, out: Path, on_epoch: Callable | None = None, **where):
        """`pretrain`, given up where it cannot end in time."""
        packed = time.monotonic()

        def after(run):
            nonlocal packed
            numbers = on_epoch(run) if on_epoch else None
            done = len(run.rows)
            if done == MEASURED:
                seconds = run.rows[-1]["seconds"]
                self.seconds[recipe.encoder, recipe.batch, recipe.data] = seconds
                rate = run.rows[-1]["images_per_s"]
                self.say(f"{out.name}: an epoch takes {seconds:.1f} s, {rate:,} images a second")
                if (needed := seconds * (recipe.epochs - done)) > self.left():
                    raise TooLong(f"left after {done} epochs: needs {needed:.0f} s of {self.left():.0f}")
            if time.monotonic() - packed > 30:
                self.pack()
                packed = time.monotonic()
            return numbers

        return pretrain(recipe, out, on_epoch=after, **where)


def main(argv: list[str]) -> None:
    given = arguments(argv)
    this = Campaign(given)
    try:
        this.begin()
        if given.commit:
            this.say(f"the code is that of commit {given.commit}")
        for name in given.recipes:
            this.say(this.run(name))
            this.pack()
    except KeyboardInterrupt as stop:
        this.say(f"stopped: {stop}")
        sys.exit(1)
    finally:
        this.pack()

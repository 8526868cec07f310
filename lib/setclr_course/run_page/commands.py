"""Commands that come with the course, made as `setclr.cli.commands` are: many runs, tables, neighbours."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from setclr.cli import as_typed
from setclr.cli.commands import (
    COMPILED,
    PROTOCOLS,
    Compiled,
    Device,
    Pixels,
    Root,
    Run,
    Skip,
    folder_of,
    named,
    skipped,
)

TAKEN = "Recipes whose names have this text in them; a whole name is that recipe alone. TEXT@0,2 takes these "
TAKEN += "seeds and not --seeds."
Filter = Annotated[str, arg(metavar="FILTER", help=TAKEN)]
All = Annotated[bool, arg(help="Needed where FILTER takes all recipes there are.")]
Runs = Annotated[Path, arg(help="Folder of the runs.")]
OfPaper = Annotated[str | None, arg(help=f"{PROTOCOLS}; None: that of the recipe's paper, or setclr.")]
Records = Annotated[Path, arg(metavar="FOLDER", help="Folder of the records.")]


def campaign(
    filter: Filter = "", /, all: All = False, seeds: tuple[int, ...] = (0, 1, 2),
    runs: Runs = Path("data/runs"), results: Path = Path("data/results"), root: Root = Path("data"),
    device: Device = None, pixels: Pixels = "original", protocol: OfPaper = None, compiled: Compiled = "auto",
    split: Literal["test", "validation"] = "test", skip_damaged: Skip = False, *, fields: Any, typed: str,
) -> None:  # fmt: skip
    """Pretrain, evaluate and record all these recipes. Every field of a recipe is an option that changes it.

    Repeat the command to do what is left; several at once share the work.

    Args:
        seeds: Every recipe is trained with each of these.
        results: Folder of the records.
        split: Measure on test images, or on validation images, which are held out of the training ones.
    """
    from setclr_course.search import campaigns

    recipes, seeds = filtered(filter, seeds, all, fields)
    how: dict[str, Any] = {"protocol": protocol, "compiled": COMPILED[compiled], "split": split}
    where = runs, results, root, device, pixels, typed
    failed = 0
    with skipped(skip_damaged):
        for line in campaigns.campaign(recipes, seeds, *where, **how):
            failed += tell(line)
    if failed:
        raise ValueError(f"{failed} of {len(recipes) * len(seeds)} runs failed; the lines above say why")


def search(
    filter: Filter = "", /, all: All = False, seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    runs: Runs = Path("data/runs/search"), results: Path = Path("data/results/search"),
    root: Root = Path("data"), device: Device = None, compiled: Compiled = "auto",
    skip_damaged: Skip = False, *, fields: Any, typed: str,
) -> None:  # fmt: skip
    """Find the best learning rate and hyperparameter of each recipe on validation images.

    These are held out of the training images. Then train with the best settings on all training images,
    with every seed, and measure on the test images. Last, train all values of the hyperparameter with
    three seeds. Repeat the command to do what is left; several at once share the work. Every field of a
    recipe is an option that changes it.

    Args:
        seeds: Seeds of the runs with the best settings.
        results: Folder of the records; those of the trials are in its folder trials.
    """
    from setclr_course.search import searches

    recipes, seeds = filtered(filter, seeds, all, fields)
    with skipped(skip_damaged):
        for line in searches.search(recipes, seeds, runs, results, root, device, typed, COMPILED[compiled]):
            tell(line)


def tell(line: str) -> bool:
    """Print a line of a campaign, as a shell has its words if it is a failure; returns whether it is."""
    from setclr_course.search.campaigns import Failure

    failed = isinstance(line, Failure)
    print(as_typed(line) if failed else line, flush=True)
    return failed


def results(folder: Records = Path("data/results"), /, csv: Path | None = None) -> None:
    """Print the recorded results as a Markdown table.

    Args:
        csv: Instead write a file with a row for each record in the folder and below, searches' trials too.
    """
    from setclr.data.writing import replacing
    from setclr_course.search import recorded

    if csv is None:
        print(recorded.summary(folder))
        return
    table, damaged = recorded.everything(folder)
    with replacing(csv) as file:
        table.to_csv(file, index=False, lineterminator="\n")
    print("\n".join([f"{csv}: {len(table)} records", *(f"Left out: {line}" for line in damaged)]))


def neighbours(
    run: Run, place: Annotated[Path, arg(metavar="PHOTOGRAPH|FOLDER")], /, k: int = 6,
    size: int | None = None, out: Path | None = None, root: Root = Path("data"), device: Device = None,
    skip_damaged: Skip = False,
) -> None:  # fmt: skip
    """Name and draw the training images that are most alike to your photographs, by the run's features.

    Args:
        k: How many of each.
        size: Side in pixels to which they are resized and cropped; None: the side used in training.
        out: The picture; None: RUN/neighbours-NAME.png.
    """
    from PIL import Image

    from setclr import data
    from setclr.checks import choice
    from setclr.data.writing import replacing
    from setclr.experiments import load_run
    from setclr.experiments.kinds.image import load
    from setclr.training.devices import choose_device
    from setclr_course.run_page.alike import neighbours_of

    loaded, out = load_run(run), out or folder_of(run) / f"neighbours-{place.resolve().stem}.png"
    choice("run", loaded.recipe.kind, ("image",), "neighbours are of photographs")
    loaded.encoder.to(choose_device(device))
    name = loaded.recipe.data
    with skipped(skip_damaged):
        in_files = data.known(name).in_files  # which have names
        images = data.load(name, root, stream=True) if in_files else load(loaded.recipe, root)
        found = neighbours_of(loaded, images, place, k, size)
        print("\n".join(found.lines()))
    with replacing(out) as file:
        Image.fromarray(found.picture().pixels).save(file, format="png")
    print(out)


def filtered(
    filter: str, seeds: tuple[int, ...], all_of_them: bool = False, fields: Any = None
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The recipes, with the `fields` that are not None instead of their own, and seeds that a campaign's
    filter selects.

    Raises ValueError if there are none, if it selects all recipes without `all_of_them`, or for a field that
    one of them lacks.
    """
    from setclr.recipes import RECIPES

    text, at, own = filter.partition("@")
    if at:
        if not all(seed.isdecimal() for seed in own.split(",")):
            raise ValueError(f"filter must end with its seeds, NAME@0,1,2, got {filter!r}")
        seeds = tuple(map(int, own.split(",")))
    names = [text] if text in RECIPES else named((text,))
    if len(names) == len(RECIPES) and not all_of_them:
        took = f"got {filter!r}, which takes all {len(names)}: {len(names) * len(seeds)} runs"
        raise ValueError(f"filter must take some of the recipes, {took}; name some, or add --all")
    changes = {name: value for name, value in vars(fields).items() if value is not None} if fields else {}
    for name in names:
        if lacking := [field for field in changes if not hasattr(RECIPES[name], field)]:
            raise ValueError(f"{lacking[0]} must be left out for {name}, which is of {RECIPES[name].things}")
    return {name: replace(RECIPES[name], **changes) for name in names}, seeds

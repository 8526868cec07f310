"""The commands. tyro makes options from their arguments, and help from their docstrings.

Each command imports the packages that it computes with inside its function, so that its help appears at
once.
"""

import shlex
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from setclr.checks import choice, printable
from setclr.data_sets import NAMES

if TYPE_CHECKING:
    from setclr.recipes import Recipe


Run = Annotated[Path, arg(metavar="RUN", help="Folder that `pretrain` wrote, or a checkpoint in it.")]
Root = Annotated[Path, arg(help="Folder of the data sets; what can be downloaded is downloaded to it.")]
COMPILED: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
WORK = "Let torch.compile work on views, encoder, head and loss; auto: where the run is long enough. For "
WORK += "many short runs yes pays too: what the first has compiled, the others take over."
Compiled = Annotated[Literal["auto", "yes", "no"], arg(help=WORK)]
Device = Annotated[str | None, arg(help="cpu, cuda, cuda:1, …; None takes a GPU if there is one.")]
Pixels = Annotated[str, arg(help='Where the pixels come from, for the record: original, or e.g. "JPEG q75".')]
SETS = ", ".join(NAMES)
PROTOCOLS = "setclr (the project's own), or a paper's, such as groco; another name lists them"
TAKEN = "Recipes whose names have this text in them; a whole name is that recipe alone. TEXT@0,2 takes these "
TAKEN += "seeds and not --seeds."
Filter = Annotated[str, arg(metavar="FILTER", help=TAKEN)]
All = Annotated[bool, arg(help="Needed where FILTER takes all recipes there are.")]
Runs = Annotated[Path, arg(help="Folder of the runs.")]
OfPaper = Annotated[str | None, arg(help=f"{PROTOCOLS}; None: that of the recipe's paper, or setclr.")]
SKIP = "Leave out image and video files that cannot be read; the last lines name them. A run goes on without "
SKIP += "files that were removed since it began."
Skip = Annotated[bool, arg(help=SKIP)]
Records = Annotated[Path, arg(metavar="FOLDER", help="Folder of the records.")]
Names = Annotated[tuple[str, ...], arg(metavar="[NAME ...]", help=f"{SETS}; none lists them.")]


def recipes(words: Annotated[tuple[str, ...], arg(metavar="[WORD ...]")] = (), /) -> None:
    """List recipes, with the published numbers and ours by the same protocol.

    A whole name shows that recipe in full.

    Args:
        words: A recipe is listed if its name has all of them.
    """
    from setclr.experiments.records import read_records
    from setclr.recipes import PUBLISHED, RECIPES, registry

    exact = len(words) == 1 and words[0] in RECIPES
    records, damaged = read_records(Path("data/results"))
    cells, ours = [], next((one.ours for one in registry.collections() if hasattr(one, "ours")), None)
    for name in words if exact else named(words):
        row = PUBLISHED.get(name)
        numbers, printed = (row.numbers, (str(row), f"{row.paper}, {row.where}")) if row else ((), ("", ""))
        how = RECIPES[name], records.values(), registry.protocol_of(name), numbers
        cells.append((name, *printed, f"ours: {ours(*how)}" if ours else ""))
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row_of_cells in cells:
        print("  ".join(map(str.ljust, row_of_cells, widths)).rstrip())
    if exact:
        describe(words[0])
    for line in filter(None, [*(f"left out: {problem}" for problem in damaged), registry.missing()]):
        print(line)


def describe(name: str) -> None:
    """Print a recipe's fields that differ from the defaults, its protocol, published numbers and note."""
    from setclr.recipes import PUBLISHED, RECIPES, registry

    for part in fields(RECIPES[name]):
        value = getattr(RECIPES[name], part.name)
        if value != part.default:
            text = f'"{value}"' if "'" in str(value) else shlex.quote(str(value))
            print(f"  --{part.name.replace('_', '-')}" + ("" if value is True else f" {text}"))
    print("  protocol:", registry.protocol_of(name))
    if name in PUBLISHED:
        print("  published:", ", ".join(f"{key} {x}" for key, x in PUBLISHED[name].numbers.items()) or "-")
    if note := registry.note_of(name):
        print("  note:", note)


def data(
    names: Names = (), /, root: Root = Path("data"), size: int | None = None, verify: bool = False,
    skip_damaged: Skip = False,
) -> None:  # fmt: skip
    """List the data sets, or load some and describe them.

    Args:
        size: Side in pixels to which image files are resized and cropped; None keeps their
            size, or means 224 for sets that a package registers.
        verify: Decode every image file once and name those that are damaged, before training reads them.
    """
    from setclr import data
    from setclr.recipes import registry

    others = {name: load for one in registry.collections() for name, load in one.data.items()}
    if not names:
        more = (name for one in registry.collections() for name in getattr(one, "sets", ()))
        print("\n".join([*data.NAMES, *more, *others]))
    for name in names:
        if name in others:
            sets = others[name](root, size or 224)
        else:
            streamed = verify and data.known(name).in_files
            with skipped(skip_damaged):
                sets = {"train": data.load(name, root, "train", size, streamed or None, verify)}
                with suppress(FileNotFoundError):  # a folder without test images
                    sets["test"] = data.load(name, root, "test", size, streamed or None, verify)
        for split, images in sets.items():
            print(f"{name} {split}: {images!r}")


def pretrain(
    recipe: Annotated[str, arg(metavar="RECIPE")], /, out: Path, root: Root = Path("data"),
    device: Device = None, resume: bool = True, workers: int | None = None,
    compiled: Compiled = "auto", deterministic: bool = False, keep_every: int | None = None,
    knn_every: int | None = None, skip_damaged: Skip = False, *, fields: "Recipe",
) -> None:  # fmt: skip
    """Train a recipe, or resume a run. Every field of the recipe is an option; its value is the default.

    Args:
        recipe: Name of the recipe; `setclr recipes` lists them.
        out: Folder of the run. A run that is already there is resumed.
        resume: With --no-resume a run that is already there is replaced.
        workers: Processes that read photographs of sets too large for RAM; None: up to 8.
        deterministic: The same bits in every run on a GPU, too; slower there.
        keep_every: Also keep the checkpoint of every so many epochs, OUT/epoch-10.pt and so on.
        knn_every: Measure on the test data after every so many epochs, by kNN, a linear probe and the like.
    """
    from setclr import experiments
    from setclr.recipes.recipe import recipe_class
    from setclr.training.distributed import joined, rank
    from setclr.training.progress import COLLAPSED

    with joined(device) as own, skipped(skip_damaged):
        wanted = recipe_class(fields.kind)(**asdict(fields))
        run = experiments.pretrain(
            wanted, out, resume, root, own, experiments.watch(wanted, root, knn_every), workers,
            COMPILED[compiled], deterministic, keep_every=keep_every,
        )  # fmt: skip
        if rank() == 0:
            print(run.history.tail(1).to_string(index=False) if run.rows else "no epochs: random weights")
            if run.rows and run.rows[-1].get("std", 1) < COLLAPSED:
                print("collapsed: all embeddings are nearly one point; lower lr, or add --last-norm")


def campaign(
    filter: Filter = "", /, all: All = False, seeds: tuple[int, ...] = (0, 1, 2),
    runs: Runs = Path("data/runs"), results: Path = Path("data/results"), root: Root = Path("data"),
    device: Device = None, pixels: Pixels = "original", protocol: OfPaper = None, compiled: Compiled = "auto",
    skip_damaged: Skip = False, *, fields: Any, typed: str,
) -> None:  # fmt: skip
    """Pretrain, evaluate and record all these recipes. Every field of a recipe is an option that changes it.

    Repeat the command to do what is left; several at once share the work.

    Args:
        seeds: Every recipe is trained with each of these.
        results: Folder of the records.
    """
    from setclr.recipes.registry import of_course

    recipes, seeds = filtered(filter, seeds, all, fields)
    how: dict[str, Any] = {"protocol": protocol, "compiled": COMPILED[compiled]}
    where = runs, results, root, device, pixels, typed
    failed = 0
    with skipped(skip_damaged):
        for line in of_course("campaign").campaign(recipes, seeds, *where, **how):
            print(line, flush=True)
            failed += getattr(line, "failed", False)
    if failed:
        raise ValueError(f"{failed} of {len(recipes) * len(seeds)} runs failed; the lines above say why")


def search(
    filter: Filter = "", /, all: All = False, seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
    runs: Runs = Path("data/runs/search"), results: Path = Path("data/results/search"),
    root: Root = Path("data"), device: Device = None, compiled: Compiled = "auto", *, fields: Any, typed: str,
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
    from setclr.recipes import registry

    recipes, seeds = filtered(filter, seeds, all, fields)
    search = registry.of_course("search").search
    for line in search(recipes, seeds, runs, results, root, device, typed, COMPILED[compiled]):
        print(line, flush=True)


def evaluate(
    run: Run, /, root: Root = Path("data"), device: Device = None,
    record: Path | None = None, all: bool = False, pixels: Pixels = "original",
    protocol: Annotated[str, arg(help=f"How it is measured: {PROTOCOLS}.")] = "setclr",
    data: Annotated[str | None, arg(help="Other data than the recipe's, as where these moved to.")] = None,
    skip_damaged: Skip = False, *, typed: str,
) -> None:  # fmt: skip
    """Measure a run beside an untrained encoder: images by kNN and a linear probe, graphs by an SVM, videos
    by retrieval and a linear probe.

    Where there are no test data, a fifth of each class of the training data stands for them, and a line says
    so.

    Args:
        record: Also write the table, with recipe, machine and command, to this JSON file.
        all: Also k = 1 and 20, projections, retrieval, matching, and a page with pictures,
            RUN/report.html; only by the project's own protocol.
    """
    from setclr.data.writing import replacing
    from setclr.evaluation.protocols import protocol_named
    from setclr.experiments import load_run, records
    from setclr.experiments.kinds import kind_of, measured_on
    from setclr.recipes import registry
    from setclr.training.devices import choose_device
    from setclr.training.distributed import joined, rank

    if all:
        choice("protocol", protocol, [registry.OWN], "--all is measured by the project's own")
    protocol_named(protocol)
    loaded, out, page = load_run(run), folder_of(run) / "report.html", None
    if all:
        choice("all", loaded.recipe.kind, ("image",), "the page of a run is for images")
        page = registry.of_course("evaluate --all")
    with ExitStack() as stack:
        own = choose_device(stack.enter_context(joined(device)))
        file = stack.enter_context(replacing(out)) if page and rank() == 0 else None
        stack.enter_context(skipped(skip_damaged))
        loaded.recipe = replace(loaded.recipe, data=data or loaded.recipe.data)
        train, test, split, note = measured_on(loaded.recipe, root, protocol)
        loaded.encoder.to(own), loaded.head.to(own)
        measured = page.evaluate_all(loaded, train, test) if page else None
        evaluate = kind_of(loaded.recipe).evaluate
        table = measured.table if measured else evaluate(loaded, train, test, protocol=protocol)
        if rank():
            return
        if record:
            counts = records.counted(train, test, split)
            records.record(record, loaded, table, counts, pixels, typed, protocol)
        print(note + table.round(1).to_string())
        if page and file:
            how = pixels, typed, records.describe_machine(loaded.encoder)
            file.write(page.page(run.resolve().name, loaded, train, test, measured, *how).encode())
            print(out)


def embed(
    run: Run, folder: Annotated[Path, arg(metavar="FOLDER")], /, out: Path | None = None,
    size: int | None = None, device: Device = None, batch: int = 256, skip_damaged: bool = False,
) -> None:  # fmt: skip
    """Write the features of your own images to an .npz file: `features` (N, D) float32, `paths` (N,).

    Args:
        folder: Any tree of image files; of video files for a run on videos; for one on graphs a .pt file, or
            the folder of a set's text files.
        out: The file; None: RUN/features-FOLDER.npz.
        size: Side in pixels to which images are resized and cropped; None: the side used in training.
        batch: Images that are held at once.
        skip_damaged: Leave out files that cannot be read; the last lines name them.
    """
    import numpy as np

    from setclr.data.writing import replacing
    from setclr.experiments import load_run
    from setclr.experiments.kinds import kind_of
    from setclr.training.devices import choose_device

    loaded, out = load_run(run), out or folder_of(run) / f"features-{folder.resolve().name}.npz"
    loaded.encoder.to(choose_device(device))
    with replacing(out) as file, warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always", UserWarning)
        features, paths = kind_of(loaded.recipe).embed(loaded, folder, size, batch, skip_damaged)
        np.savez(file, features=features, paths=paths)
    for warning in left_out:
        print(printable(warning.message))
    print(f"{out}: features of {len(paths)} {loaded.recipe.things}, {features.shape[1]} each")


def export(run: Run, /, out: Path | None = None) -> None:
    """Write the encoder's weights for torchvision, timm or torch, and print the lines that load them.

    Args:
        out: The file; None: RUN/encoder.pt.
    """
    from setclr.experiments import export, load_run

    loaded, out = load_run(run), out or folder_of(run) / "encoder.pt"
    print(export(loaded, out))


def results(folder: Records = Path("data/results"), /, csv: Path | None = None) -> None:
    """Print the recorded results as a Markdown table.

    Args:
        csv: Instead write a file with a row for each record in the folder and below, searches' trials too.
    """
    from setclr.data.writing import replacing
    from setclr.recipes.registry import of_course

    course = of_course("results")
    if csv is None:
        print(course.summary(folder))
        return
    table, damaged = course.everything(folder)
    with replacing(csv) as file:
        table.to_csv(file, index=False, lineterminator="\n")
    print("\n".join([f"{csv}: {len(table)} records", *(f"Left out: {line}" for line in damaged)]))


@contextmanager
def skipped(skip: bool) -> Iterator[None]:
    """`data.skip_damaged`; afterwards a line says what is wrong with each file that was left out."""
    from setclr.data import skip_damaged

    with skip_damaged(skip) as left:
        yield
    for problem in left:
        print(f"left out: {problem}")


def folder_of(run: Path) -> Path:
    """The folder of a run, of which a checkpoint may be given instead."""
    return run.parent if run.is_file() else run


def named(words: tuple[str, ...]) -> list[str]:
    """The recipes whose names have all of these words. Raises ValueError, with the nearest names, if there
    are none."""
    from setclr.recipes import RECIPES, registry

    names = [name for name in RECIPES if all(word in name for word in words)]
    if not names:
        choice("recipe", " ".join(words), RECIPES, registry.missing() or "setclr recipes lists them all")
    return names


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

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
from typing import TYPE_CHECKING, Annotated, Literal

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
SKIP = "Leave out files that cannot be read, and go on without those removed since; the last lines name them."
Skip = Annotated[bool, arg(help=SKIP)]
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
    so. Where nothing has a label, the page of --all is made without accuracies.

    Args:
        record: Also write the table, with recipe, machine and command, to this JSON file.
        all: Also a page with pictures, RUN/report.html, and more columns, of images k = 1 and 20,
            projections, retrieval and matching; only by the project's own protocol.
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
    loaded, out = load_run(run), folder_of(run) / "report.html"
    page = registry.of_course("evaluate --all") if all else None
    with ExitStack() as stack:
        own = choose_device(stack.enter_context(joined(device)))
        stack.enter_context(skipped(skip_damaged))
        loaded.recipe = replace(loaded.recipe, data=data or loaded.recipe.data)
        train, test, split, note = measured_on(loaded.recipe, root, protocol, bare=not record)
        if not (train.classes or test.classes):
            page, note = registry.of_course("the page of a run without labels"), ""
        file = stack.enter_context(replacing(out)) if page and rank() == 0 else None
        loaded.encoder.to(own), loaded.head.to(own)
        measured = page.evaluate_all(loaded, train, test, root) if page else None
        evaluate = kind_of(loaded.recipe).evaluate
        table = measured.table if measured else evaluate(loaded, train, test, protocol=protocol)
        if rank():
            return
        if record:
            counts = records.counted(train, test, split)
            records.record(record, loaded, table, counts, pixels, typed, protocol)
        print(note + table.round(getattr(measured, "digits", 1)).to_string())
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

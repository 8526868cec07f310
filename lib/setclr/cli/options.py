"""Options that several commands share, with their help, and the filter of recipe names."""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from setclr.data_sets import NAMES

Run = Annotated[Path, arg(metavar="RUN", help="Folder that `pretrain` wrote, or a checkpoint in it.")]
Root = Annotated[Path, arg(help="Folder of the data sets; what can be downloaded is downloaded to it.")]
COMPILED: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
WORK = "Let torch.compile work on views, encoder, head and loss; auto: where the run is long enough. For "
WORK += "many short runs yes pays too: what the first has compiled, the others take over."
Compiled = Annotated[Literal["auto", "yes", "no"], arg(help=WORK)]
Device = Annotated[str | None, arg(help="cpu, cuda, cuda:1, …; None takes a GPU if there is one.")]
Pixels = Annotated[str, arg(help='Where the pixels come from, for the record: original, or e.g. "JPEG q75".')]
SETS = ", ".join(NAMES)
PROTOCOLS = "setclr (the project's own), setclr-projection, qare, groco, groco-projection, iot, iot-moco, "
PROTOCOLS += "mmcl, mmcl-imagenet, mmcl-imagenet100"
TAKEN = "Recipes whose names have this text in them; a whole name is that recipe alone. TEXT@0,2 takes these "
TAKEN += "seeds and not --seeds."
Filter = Annotated[str, arg(metavar="FILTER", help=TAKEN)]
All = Annotated[bool, arg(help="Needed where FILTER takes all recipes there are.")]
Runs = Annotated[Path, arg(help="Folder of the runs.")]
INSTEAD = arg(help="Instead of the recipes' own.")
OfPaper = Annotated[str | None, arg(help=f"{PROTOCOLS}; None: that of the recipe's paper, or setclr.")]
Records = Annotated[Path, arg(metavar="FOLDER", help="Folder of the records.")]
Names = Annotated[tuple[str, ...], arg(metavar="[NAME ...]", help=f"{SETS}; none lists them.")]


def folder_of(run: Path) -> Path:
    """The folder of a run, of which a checkpoint may be given instead."""
    return run.parent if run.is_file() else run


def named(words: tuple[str, ...]) -> list[str]:
    """The recipes whose names have all of these words. Raises ValueError if there are none."""
    from setclr.recipes import RECIPES, registry

    names = [name for name in RECIPES if all(word in name for word in words)]
    if not names:
        text = " ".join(words)
        near = f"the nearest are {', '.join(get_close_matches(text, RECIPES, 3, 0))}"
        near += f"; {registry.missing() or 'setclr recipes lists them all'}"
        raise ValueError(f"no recipe's name has all of {text!r}; {near}")
    return names


def filtered(
    filter: str, seeds: tuple[int, ...], all_of_them: bool = False
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The recipes and seeds that a campaign's filter selects.

    Raises ValueError if there are none, or if it selects all recipes without `all_of_them`.
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
    return {name: RECIPES[name] for name in names}, seeds

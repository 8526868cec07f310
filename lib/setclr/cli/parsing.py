"""Parse a command line with tyro; options and their help come from a function's arguments."""

import inspect
import os
import shlex
import warnings
from collections.abc import Callable
from dataclasses import field, make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from setclr.checks import choice
from setclr.extras import extra

with extra("train"):
    import tyro

    from setclr.cli import commands

NAMES = ("recipes", "data", "pretrain", "campaign", "search", "evaluate", "embed", "export", "results")


def command(words: list[str]) -> Callable[[], None]:
    """The command that `words` name, with its arguments, ready to be called.

    An argument named `typed` gets the command line itself. Raises ValueError if there is no such command or
    recipe; SystemExit where tyro has printed the help, or which option is wrong and the nearest (status 2).
    """
    name, *rest = words
    function = getattr(commands, choice("command", name, NAMES, "setclr --help lists them"))
    parameters = dict(inspect.signature(function).parameters)
    given = {}
    if parameters.pop("typed", None):
        given["typed"] = shlex.join(["python", "-m", "setclr", *words])
    if "fields" in parameters:
        kind = recipe_fields(rest) if name == "pretrain" else changed_fields()
        option = Annotated[kind, tyro.conf.arg(name="")]  # type: ignore[valid-type]
        parameters["fields"] = parameters["fields"].replace(annotation=option, default=kind())

    def later(*arguments: Any, **options: Any) -> Callable[[], None]:
        named = {name: at_home(value) for name, value in options.items()}
        return partial(function, *map(at_home, arguments), **named, **given)

    later.__doc__ = function.__doc__
    later.__annotations__ = {key: one.annotation for key, one in parameters.items()}
    later.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    # `data` raises an error of one line for such images; Pillow's warning would add two more lines.
    warnings.filterwarnings("ignore", "Image size .* could be decompression bomb")
    return tyro.cli(later, args=rest, prog=f"setclr {name}")


def at_home(value: Any) -> Any:
    """A path with the user's home folder for a `~` at its beginning; any other value as it is."""
    return Path(os.path.expanduser(value)) if isinstance(value, Path) else value


def recipe_fields(words: list[str]) -> type:
    """The class of a recipe for tyro: allowed values in the help, defaults from the recipe named first.

    If help is asked for without a recipe, the defaults are those of photo-infonce.
    """
    from setclr.data import NAMES as SETS
    from setclr.models import ENCODERS
    from setclr.recipes import RECIPES, registry
    from setclr.recipes.recipe import recipe_class
    from setclr.settings import settings_of

    name = "".join(words[:1])
    if name.startswith("-"):
        name = "photo-infonce" if name in ("-h", "--help") else ""
    hint = registry.missing() or "it comes first; setclr recipes lists them"
    given = RECIPES.fields(choice("recipe", name, RECIPES, hint))
    of_kind = recipe_class(RECIPES.kind(name))
    open_ended = {"data": SETS, "encoder": [*ENCODERS, "timm:NAME"]} if of_kind.kind == "image" else {}
    options: list[tuple[str, Any, Any]] = []
    for key, setting in settings_of(of_kind).items():
        names, kind = setting.options or open_ended.get(key), of_kind.__dataclass_fields__[key].type
        if names:
            kind = Annotated[str, tyro.conf.arg(metavar="{" + ",".join(names) + "}")]
        options.append((key, kind, field(default=given.get(key, setting.default))))
    unchecked = {"__post_init__": lambda self: None}  # the command makes the Recipe, which checks them
    return make_dataclass("Fields", options, bases=(of_kind,), namespace=unchecked, frozen=True)


def changed_fields() -> type:
    """A class for tyro with every field of all kinds of recipes but the seed, each None."""
    from setclr.recipes.recipe import recipe_class
    from setclr.settings import settings_of

    types: dict[str, Any] = {}
    for kind in map(recipe_class, ("video", "graph", "image")):
        types |= {key: kind.__dataclass_fields__[key].type for key in settings_of(kind)}
    del types["seed"]
    return make_dataclass("Changes", [(key, kind | None, field(default=None)) for key, kind in types.items()])

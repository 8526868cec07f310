"""Write and read the records of recipes that are measured with several seeds, a record for each."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from setclr.data.writing import replacing, writable
from setclr.experiments.records import library


def seeded_campaign(
    recipes: Mapping[str, Any], seeds: Sequence[int], results: Path, command: str,
    measured: Callable[[Any], dict], read: Callable[[Path], dict], told: Callable[[dict], str],
) -> Iterator[str]:  # fmt: skip
    """Measure and record these recipes; yields a line for each.

    A recipe is skipped if its record is there with the same recipe and seeds. `measured` gives the
    results of a recipe, which its record holds beside the recipe, the seeds and the `command`. `read`
    reads a record. `told` gives the line's text about the results. A recipe is also skipped if its record
    is damaged, or if a run of it diverges; the line says so. Raises ValueError if there are no seeds;
    OSError, before anything is trained, if `results` cannot be written; and other errors of `measured`.
    """
    if not seeds:
        raise ValueError("seeds must be at least one, got none; --seeds 0 1 2 takes three")
    writable(results)
    of_library = library()
    for name, recipe in recipes.items():
        path, wanted = results / f"{name}.json", {"recipe": recipe.to_dict(), "seeds": list(seeds)}
        if path.is_file():
            try:
                kept = read(path)
            except ValueError as error:
                yield f"{name}: {error}"
                continue
            if {key: kept[key] for key in wanted} == wanted:
                yield f"{name}: is there"
                continue
        try:
            found = measured(recipe)
        except FloatingPointError as error:
            yield f"{name}: {error}"
            continue
        with replacing(path) as file:
            said = wanted | found | of_library | {"evaluated_with": command}
            file.write((json.dumps(said, indent=1) + "\n").encode())
        yield f"{name}: {told(found)}"


def read_seeded(
    path: Path, kind: str, recipe: Callable[..., Any], results: Callable[[dict], Iterable[list]]
) -> dict:
    """The record in a file.

    `recipe` makes the recipe from the record's fields. `results` gives the record's lists of one result
    for each seed. Raises ValueError if it is not a record of that kind, as `seeded_campaign` writes
    them.
    """
    try:
        found = json.loads(path.read_text())
        recipe(**found["recipe"])
        if {len(of) for of in results(found)} != {len(found["seeds"])}:
            raise ValueError("it must have one result for each seed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "remove it, and the command that made it makes it again"
        raise ValueError(f"{path.name} is damaged or no record of {kind} ({error}); {remedy}") from error
    return found

"""Video recipes measured with several seeds: a record for each, and the table of all records."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from setclr.checks import choice
from setclr.data.writing import replacing
from setclr.reports.records import describe_machine, spread
from setclr.video.evaluation import known
from setclr.video.pretraining import pretrain_videos
from setclr.video.recipe import VIDEO_PRINTED, VIDEO_RECIPES, VideoRecipe
from setclr.video.sets import MOVING, VideoSet, load_videos

MEASURES = ("retrieval@1", "linear", "ten crops")
Kept = dict[str, dict[str, list[float]]]  # per cent of each seed, by thing and measure


def video_campaign(
    names: Sequence[str], seeds: Sequence[int], results: Path, root: str | Path, device: str, command: str
) -> Iterator[str]:
    """Train, measure and record these recipes with every seed; a line for each. A record that is there with
    these seeds stays. Raises ValueError where there is no seed, or a record is damaged; what
    `pretrain_videos` does."""
    if not seeds:
        raise ValueError("seeds must be at least one, got none; --seeds 0 1 2 takes three")
    for name in names:
        path, recipe = results / f"{name}.json", VIDEO_RECIPES[name]
        wanted = {"recipe": recipe.to_dict(), "seeds": list(seeds)}
        if path.is_file():
            kept = read_video_record(path)
            if {key: kept[key] for key in wanted} == wanted:
                yield f"{name}: is there"
                continue
        train, test = (
            load_videos(recipe.data, split, recipe.modality, root, recipe.size) for split in ("train", "test")
        )
        found = measured(recipe, seeds, train, test, device)
        with replacing(path) as file:
            said = wanted | found | {"evaluated_with": command}
            file.write((json.dumps(said, indent=1) + "\n").encode())
        nearest = {thing: spread(of["retrieval@1"]) for thing, of in found["accuracy_percent"].items()}
        yield f"{name}: retrieval@1 " + ", ".join(f"of {thing} {said} %" for thing, said in nearest.items())


def measured(recipe: VideoRecipe, seeds: Sequence[int], train: VideoSet, test: VideoSet, device: str) -> dict:
    """Accuracies in per cent after the last epoch, of each seed, which is that of weights, clips, views and
    probe. Videos from files are seen at ten moments, as by CoCLR's program; those of moving-patches once."""
    found: Kept = {thing: {name: [] for name in MEASURES} for thing in train.labels}
    seconds, machine, moments = 0.0, {}, 1 if recipe.data == MOVING else 10
    for seed in seeds:
        run = pretrain_videos(replace(recipe, seed=seed), train, device=device)
        seconds += sum(row["seconds"] for row in run.rows)
        machine = describe_machine(run.encoder)
        scores = known(run.encoder, train, test, recipe.frames, recipe.stride, recipe.size, moments, seed)
        for thing, of in scores.items():
            for name, score in of.items():
                found[thing][name].append(score)
    return {
        "accuracy_percent": found, "epochs": recipe.epochs,
        "videos": {"train": len(train), "test": len(test)},
        "classes": {thing: len(names) for thing, names in train.classes.items()},
        "training_seconds": round(seconds, 1), "machine": machine,
    }  # fmt: skip


def read_video_record(path: Path) -> dict:
    """The record in a file. Raises ValueError where it is none that `video_campaign` wrote."""
    try:
        found = json.loads(path.read_text())
        VideoRecipe(**found["recipe"])
        counts = {len(of[name]) for of in found["accuracy_percent"].values() for name in MEASURES}
        if counts != {len(found["seeds"])}:
            raise ValueError("it has not one result for each seed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "remove it, and the command that made it makes it again"
        raise ValueError(f"{path.name} is damaged or no record of videos ({error}); {remedy}") from error
    return found


def video_results(folder: str | Path, measure: str = "retrieval@1") -> pd.DataFrame:
    """A row for each recipe with a record: modality, loss, what was printed, seeds, and for each thing that
    videos are labelled with the mean ± spread of the measure in per cent. Raises ValueError for a measure
    that is none of MEASURES; FileNotFoundError where there are no records."""
    choice("measure", measure, MEASURES)
    rows = {}
    for name, recipe in VIDEO_RECIPES.items():
        path = Path(folder) / f"{name}.json"
        if path.is_file():
            found = read_video_record(path)
            said = {thing: spread(of[measure]) for thing, of in found["accuracy_percent"].items()}
            loss = recipe.loss if recipe.epochs else "none: first weights"
            what = {"modality": recipe.modality, "loss": loss, "seeds": len(found["seeds"])}
            rows[name] = what | said
            if name in VIDEO_PRINTED:
                rows[name]["printed"] = str(VIDEO_PRINTED[name][1])
    if not rows:
        raise FileNotFoundError(f"{folder}: no records of videos there; setclr video moving makes them")
    return pd.DataFrame.from_dict(rows, orient="index")

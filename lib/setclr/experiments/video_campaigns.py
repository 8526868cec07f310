"""Train and measure video recipes with several seeds, a record for each recipe."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from setclr.evaluation.videos import video_accuracies
from setclr.experiments.records import describe_machine, spread
from setclr.experiments.seeded import read_seeded, seeded_campaign
from setclr.recipes.video import MOVING, VideoRecipe
from setclr.video.pretraining import pretrain_videos
from setclr.video.sets import VideoSet, load_videos

MEASURES = ("retrieval@1", "linear", "ten crops")
Kept = dict[str, dict[str, list[float]]]  # per cent of each seed, by label and measure


def video_campaign(
    recipes: Mapping[str, VideoRecipe], seeds: Sequence[int], results: Path, root: str | Path, device: str,
    command: str,
) -> Iterator[str]:  # fmt: skip
    """Train, measure and record these recipes with every seed; yields a line for each (`seeded_campaign`).

    Raises the errors of `seeded_campaign` and of `pretrain_videos`.
    """

    def found(recipe: VideoRecipe) -> dict:
        train, test = (
            load_videos(recipe.data, split, recipe.modality, root, recipe.size) for split in ("train", "test")
        )
        return measured(recipe, seeds, train, test, device)

    def told(found: dict) -> str:
        nearest = {thing: spread(of["retrieval@1"]) for thing, of in found["accuracy_percent"].items()}
        return "retrieval@1 " + ", ".join(f"of {thing} {said} %" for thing, said in nearest.items())

    return seeded_campaign(recipes, seeds, results, command, found, read_video_record, told)


def measured(recipe: VideoRecipe, seeds: Sequence[int], train: VideoSet, test: VideoSet, device: str) -> dict:
    """The results of a recipe for its record: accuracies in per cent, a number for each seed.

    They are measured after the last epoch. The seed is that of weights, clips, views and probe. The
    encoder sees a video from files at ten moments, one of moving-patches at one moment.
    """
    found: Kept = {thing: {name: [] for name in MEASURES} for thing in train.labels}
    seconds, machine, moments = 0.0, {}, 1 if recipe.data == MOVING else 10
    for seed in seeds:
        run = pretrain_videos(replace(recipe, seed=seed), train, device=device)
        seconds += sum(row["seconds"] for row in run.rows)
        machine = describe_machine(run.encoder)
        scores = video_accuracies(
            run.encoder, train, test, recipe.frames, recipe.stride, recipe.size, moments, seed
        )
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
    """The record in a file. Raises ValueError if it is not one that `video_campaign` wrote."""

    def of_seeds(found: dict) -> list[list]:
        return [of[name] for of in found["accuracy_percent"].values() for name in MEASURES]

    return read_seeded(path, "videos", VideoRecipe, of_seeds)

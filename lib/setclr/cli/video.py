"""The command `setclr video`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from setclr.cli import options
from setclr.cli.seeded import listed_or_measured


def video(
    words: Annotated[tuple[str, ...], arg(metavar="[WORD ...]")] = (),
    /,
    seeds: tuple[int, ...] = (0, 1, 2),
    results: Path = Path("data/results/video"),
    root: options.Root = Path("data"),
    device: Annotated[str, arg(help="cpu, cuda, cuda:1, …")] = "cpu",
    *,
    typed: str,
) -> None:
    """Pretrain on videos, measure by retrieval and a linear probe, and record each of these recipes.

    Without words, list the recipes. Repeat the command to do what is left.

    Args:
        words: A recipe is taken if its name has all of them, as in "moving rgb".
        seeds: Every recipe is trained with each of these.
        results: Folder of the records.
    """
    from setclr.experiments.video_campaigns import video_campaign
    from setclr.recipes import VIDEO_RECIPES

    listed_or_measured(
        words, VIDEO_RECIPES, "video",
        lambda recipes: video_campaign(recipes, seeds, results, root, device, typed),
    )  # fmt: skip

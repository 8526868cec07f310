"""What can be seen of a run without labels: how its views lie, what is near what, and its things on a map."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.evaluation import features, matching_accuracy, nearest
from setclr.evaluation.frozen import evaluating
from setclr.experiments.kinds import first_alone, kind_of
from setclr.experiments.run import Run, with_untrained
from setclr.training.grad_cache import EncodeGroups
from setclr.training.progress import spread
from setclr.training.source import Step
from setclr_course.run_page.things import pictures_of_views

SHOWN, NEAR = 12, 6  # things, and those nearest to each
MAPPED, ON_MAP = 2000, 60  # things on the map, and those with a picture there
MEASURED, VIEWED = 256, 6  # things whose views are compared, and shown
SIDE = 96  # pixels across of a picture
COLUMNS = ("matching", "alignment", "uniformity", "rank", "rank of features")


class Seen(NamedTuple):
    """The measurements of one run that need no labels, and the data of its pictures."""

    table: pd.DataFrame  # rows untrained, trained; columns the accuracies, if there are labels, then COLUMNS
    shown: Tensor  # (n,) numbers of test things
    nearest: Tensor  # (n, k) numbers of the training things nearest to them, the nearest first
    similar: Tensor  # (n, k) their cosines
    drawn: Tensor  # (m,) numbers of test things
    points: Tensor  # (m, D) their features
    views: np.ndarray  # (V, w, side, side, 3) uint8: pictures of the views of w things
    compared: int  # things whose views were compared
    digits: int = 2  # of the table, after the point


def look(run: Run, train: Any, test: Any, root: str | Path) -> Seen:
    """What the page of a run shows where its things are no labelled images. `train` may be `test`; then a
    thing is not its own neighbour. Cost: two passes over all things and two over MEASURED of them."""
    kind, generator = kind_of(run.recipe), torch.Generator().manual_seed(0)
    bank = features_of(run, train)
    queries = bank if train is test else features_of(run, test)
    drawn = torch.randperm(len(test), generator=generator)[:MAPPED]
    shown = drawn[:SHOWN]
    own = int(train is test)  # the nearest is the thing itself
    similar, near = nearest(bank, queries[shown], min(NEAR + own, len(train)))
    if own:
        others = near != shown[:, None]
        others[others.all(1), -1] = False  # a twin with the same features took its place
        near, similar = (x[others].view(len(x), -1) for x in (near, similar))

    source = kind.source(run.recipe, first_alone(lambda: kind.load(run.recipe, root)))
    things = torch.randperm(len(source), generator=generator)[:MEASURED]
    (groups,) = source.batches([Step(things, (0, 0, 0), 0, things)], run.device, workers=0, compiled=False)
    rows = {name: unlabelled(one, groups, len(things)) for name, one in with_untrained(run).items()}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS)
    if train.classes:
        table = kind.evaluate(run, train, test).join(table)
    few = [x[:, :VIEWED] if isinstance(x, Tensor) else x.part(0, VIEWED) for x in groups]
    views = pictures_of_views(few, SIDE)
    return Seen(table, shown, near, similar, drawn, queries[drawn], views, len(things))


def features_of(run: Run, things: Any) -> Tensor:
    """The features (N, D) of a set of images, graphs or videos, on the CPU."""
    kind = run.recipe.kind
    if kind == "image":
        return features(run.encoder, things.images)
    if kind == "graph":
        from setclr.graphs import graph_features

        return graph_features(run.encoder, things).cpu()
    from setclr.evaluation.videos import video_features
    from setclr.experiments.kinds.video import clips_of

    return video_features(run.encoder, things, *clips_of(run, run.recipe.size))


@torch.no_grad()
def unlabelled(run: Run, groups: list[Any], n: int) -> dict[str, float]:
    """How the embeddings of views lie, by COLUMNS.

    "matching": per cent of n things whose first two views the best assignment by cosine brings together.
    "alignment": their mean squared distance, of unit vectors. "uniformity": the logarithm of the mean of
    exp(−2 d²) over pairs of first views (Wang and Isola 2020). "rank": the effective rank of embeddings,
    and of features.
    """
    with evaluating(run.encoder), evaluating(run.head):
        x = EncodeGroups(run.encoder)(groups).float()
        z = run.head(x)
    views = F.normalize(z.unflatten(0, (-1, n)).double().cpu(), dim=2)
    one, two = views[0], views[1] if len(views) > 1 else torch.full_like(views[0], torch.nan)
    numbers = (
        100 * matching_accuracy(one, two) if len(views) > 1 else torch.nan,
        float((one - two).square().sum(1).mean()),
        float(torch.pdist(one).square().mul(-2).exp().mean().log()),
        *(spread(y[None])["rank"] for y in (z, x)),
    )
    return dict(zip(COLUMNS, numbers))

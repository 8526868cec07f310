"""The papers' rows, and what these need, for the library (entry point group "setclr.recipes")."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setclr.data_sets import FILES, DataSet
from setclr.recipes.registry import Published
from setclr_course.papers.rows import rows

if TYPE_CHECKING:
    from setclr.evaluation.protocols import Protocol
    from setclr.losses import Objective
    from setclr.video import VideoSet


class Papers:
    """The papers' recipes, printed numbers, protocols, videos and baselines
    (`setclr.recipes.registry.Collection`). Modules that are slow to import are imported on first use."""

    data: Mapping[str, Callable[..., Any]] = {}

    @cached_property
    def recipes(self) -> dict[str, dict[str, Any]]:
        notes: dict[str, list[str]] = {}
        for title, figure in rows().figures.items():
            for name in figure.rows.values():
                notes.setdefault(name, []).append(f"{title}, in small: {figure.note}")
        return rows().recipes | {
            name: rows().recipes[name] | {"note": "\n  ".join(said)} for name, said in notes.items()
        }

    @property
    def published(self) -> dict[str, Published]:
        return rows().published

    @cached_property
    def protocols(self) -> "dict[str, Protocol]":
        from setclr_course.papers.protocols import PROTOCOLS

        return PROTOCOLS

    # stereo-patches: 1,141 + 1,343 pairs of colour patches, (3, 32, 32), of what two cameras see. All left
    # views come first: `images.view(2, -1, 3, 32, 32)`. The label is the pair. Made and saved like
    # photo-patches. tiny-imagenet, (3, 64, 64): root/tiny-imagenet-200; downloaded if it is missing.
    sets: Mapping[str, DataSet] = {
        "stereo-patches": DataSet("setclr_course.papers.stereo:stereo_set", side=32, mirror="together"),
        "tiny-imagenet": DataSet("setclr_course.papers.tiny:tiny_imagenet", takes=FILES, side=64),
    }

    @cached_property
    def videos(self) -> "dict[str, Callable[[str, str, str | Path], VideoSet]]":
        from setclr_course.papers.moving import MOVING, video_set

        return {MOVING: video_set}

    @cached_property
    def losses(self) -> "dict[str, type[Objective]]":
        from setclr_course.papers.baselines import DeepInfoMax, Rotation
        from setclr_course.papers.clusters import DeepCluster
        from setclr_course.papers.supervised import Supervised

        return {kind.__name__: kind for kind in (Supervised, DeepCluster, Rotation, DeepInfoMax)}

    @property
    def ours(self) -> "Callable[..., str]":
        from setclr_course.search.recorded import ours

        return ours


PAPERS = Papers()

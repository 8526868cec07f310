"""Sets of videos by name, as colours or as optical flow, from which clips are cut."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from setclr.checks import choice, printable
from setclr.data.folders import class_folders, files_of_classes, readable, same_names
from setclr.data.sets import checked_labels
from setclr.data_sets import FOLDER, SPLITS
from setclr.recipes.registry import collections, missing
from setclr.recipes.video import MODALITIES
from setclr.video.files import VideoFiles, decoded, frames_of, videos_below


@dataclass(frozen=True, eq=False, repr=False)
class VideoSet:
    """Videos with one or more kinds of labels.

    Args:
        videos: (N, C, F, H, W) uint8, or `VideoFiles`. C = 3 are colours, C = 2 is flow as `to_bytes`
            gives it.
        labels: for each kind of label (N,) int64, indices into its classes; {} if there are none.
        classes: for each kind of label the names of its classes.

    Raises ValueError where these are not as above or do not fit together.
    """

    videos: Tensor | VideoFiles
    labels: Mapping[str, Tensor]
    classes: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        x = self.videos
        if isinstance(x, Tensor):
            fits = x.ndim == 5 and x.dtype == torch.uint8 and x.numel() and x.shape[1] in (2, 3)
            if not fits or x.shape[3] != x.shape[4]:
                wanted = "(N, C, F, H, H) uint8, not empty, C = 3, or 2 for flow"
                raise ValueError(f"videos must be {wanted}, got {tuple(x.shape)} {x.dtype}")
        labels = {name: checked_labels(f"labels[{name!r}]", y, len(x)) for name, y in self.labels.items()}
        object.__setattr__(self, "labels", labels)
        for name, y in labels.items():
            classes = len(self.classes.get(name, ()))
            if not 0 <= int(y.min()) <= int(y.max()) < classes:
                got = f"{int(y.min())} to {int(y.max())}"
                raise ValueError(f"labels[{name!r}] must be indices of {classes} classes, got {got}")

    def __len__(self) -> int:
        return len(self.videos)

    def subset(self, chosen: Tensor) -> "VideoSet":
        """The videos where `chosen` (N,) bool is True, in their order."""
        return VideoSet(
            self.videos[chosen], {name: y[chosen] for name, y in self.labels.items()}, self.classes
        )

    @property
    def first_labels(self) -> Tensor:
        """(N,) of the first kind of label; -1 if there are none."""
        return next(iter(self.labels.values()), torch.full((len(self),), -1))

    @property
    def channels(self) -> int:
        """3 for colours, 2 for flow."""
        return self.videos.shape[1]

    @property
    def tensor(self) -> Tensor:
        """All videos, (N, C, F, H, W) uint8. Raises ValueError where the videos are files."""
        if not isinstance(self.videos, Tensor):
            raise ValueError(f"videos must be a tensor for this, got {len(self)} files; cut clips of them")
        return self.videos

    @property
    def side(self) -> int:
        """The side of a frame, in pixels."""
        return self.videos.shape[-1]

    def check_clips(self, frames: int, stride: int = 1) -> None:
        """Raises ValueError, naming the shortest video, where it is too short for a clip of `cut`."""
        if isinstance(self.videos, Tensor):
            name, there = "a video", self.videos.shape[2]
        else:
            path = min(self.videos.paths, key=self.videos.lengths.__getitem__)
            name, there = printable(path), self.videos.lengths[path]
        frames_of(torch.empty(0), there, frames, stride, name)

    def cut(self, index: Tensor, places: Tensor, frames: int, stride: int = 1) -> Tensor:
        """V clips of each video of `index` (n,), every `stride`-th frame: (V, n, C, frames, H, W) uint8.
        The `places` (n, V), 0 to 1, say where each clip begins, from the first frame at which it can to
        the last. Raises ValueError where a video is too short."""
        if not isinstance(self.videos, Tensor):
            return self.videos.cut(index, places, frames, stride)
        time = frames_of(places.T, self.videos.shape[2], frames, stride, "a video")  # (V, n, T)
        return self.videos[torch.as_tensor(index)[:, None], :, time].transpose(2, 3)

    def __repr__(self) -> str:
        things = ", ".join(f"{len(names)} of {name}" for name, names in self.classes.items())
        kind = "flow" if self.channels == 2 else "colours"
        return f"<VideoSet: {len(self)} videos of {self.side} px, {kind}; classes: {things}>"


def load_videos(
    name: str, split: str = "train", modality: str = "rgb", root: str | Path = "data", size: int | None = None
) -> VideoSet:
    """The video set of that name.

    "folder:PATH": PATH/train/CLASS/VIDEO and PATH/test/CLASS/VIDEO, or PATH/CLASS/VIDEO alone; or videos
    without classes, PATH/train/VIDEO, PATH/VIDEO or deeper in PATH. Other names are those that packages
    register (`recipes.registry.Collection`), "moving-patches" with the course.

    `modality`: "rgb"; "flow", by TV-L1, computed once and kept under `root`/flow; or "camera flow", the
    true one, where the camera is known. `size`: side in pixels to which files are decoded; None is 128.

    Raises ValueError for another name, split or modality, and, naming all, for files that are no videos;
    FileNotFoundError where files are missing; ModuleNotFoundError where PyAV is missing: pip install
    'setclr[video]'. Each file is read once to see this, and decoded later.
    """
    choice("split", split, SPLITS)
    if not str(name).startswith(FOLDER):
        registered = {key: load for one in collections() for key, load in getattr(one, "videos", {}).items()}
        choice("name", name, [*registered, f"{FOLDER}PATH"], missing())
        return registered[name](split, modality, root)
    choice("modality", modality, MODALITIES[:2], hint="the camera of a folder's videos is not known")
    folder = Path(os.path.expanduser(name.removeprefix(FOLDER)))
    needed = "PATH needs PATH/train/CLASS/VIDEO and PATH/test"
    cache, check = Path(root) / "flow" if modality == "flow" else None, partial(decoded, size=size or 128)
    top = folder / "train" if any((folder / one).is_dir() for one in SPLITS) else folder
    if split == "train" and without_classes(folder, top):
        return VideoSet(VideoFiles(readable(videos_below(top), check), size or 128, cache), {}, {})
    classes = class_folders(top if split == "train" else folder / split, needed)
    if split == "test":
        same_names(top, folder / split, class_folders(top, needed), classes)
    files = files_of_classes(classes, "videos", check=check)
    videos = VideoFiles([path for inside in files.values() for path in inside], size or 128, cache)
    labels = torch.tensor([label for label, inside in enumerate(files.values()) for _ in inside])
    return VideoSet(videos, {"class": labels}, {"class": tuple(map(printable, files))})


def without_classes(folder: Path, top: Path) -> bool:
    """Whether all videos in `top` lie side by side or, if `folder` has no splits, deeper than in classes."""
    inside = {Path(path).parent for path in videos_below(top)}
    deep = folder == top and top not in inside and any(place.parent != top for place in inside)
    return deep or inside == {top}

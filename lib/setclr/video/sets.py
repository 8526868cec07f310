"""Sets of videos by name, as colours or as optical flow, from which clips are cut."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from setclr.checks import choice, printable
from setclr.data.folders import class_folders, files_of_classes, same_names
from setclr.data.sets import checked_labels
from setclr.data_sets import FOLDER, SPLITS
from setclr.recipes.registry import collections, missing
from setclr.recipes.video import MODALITIES
from setclr.video.files import VideoFiles, decoded, frames_of


@dataclass(frozen=True, eq=False, repr=False)
class VideoSet:
    """Videos with one or more kinds of labels.

    Args:
        videos: (N, C, F, H, W) uint8, or `VideoFiles`. C = 3 are colours, C = 2 is flow as `to_bytes`
            gives it.
        labels: for each kind of label (N,) int64, indices into its classes.
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

    "folder:PATH": PATH/train/CLASS/VIDEO and PATH/test/CLASS/VIDEO. Other names are those that packages
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
    train = classes = class_folders(folder / "train", needed)
    if split == "test":
        classes = class_folders(folder / split, needed)
        same_names(folder / "train", folder / split, train, classes)
    files = files_of_classes(classes, "videos", check=lambda path: decoded(Path(path), size or 128))
    cache = Path(root) / "flow" if modality == "flow" else None
    videos = VideoFiles([path for inside in files.values() for path in inside], size or 128, cache)
    labels = torch.tensor([label for label, inside in enumerate(files.values()) for _ in inside])
    return VideoSet(videos, {"class": labels}, {"class": tuple(map(printable, files))})

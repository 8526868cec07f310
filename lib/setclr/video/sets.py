"""Sets of videos by name, as colours or as optical flow, from which clips are cut."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from setclr.checks import choice, integer
from setclr.data.labels import checked_labels
from setclr.data.patches import PHOTOGRAPHS
from setclr.data_sets import SPLITS
from setclr.recipes.video import MODALITIES, MOVING
from setclr.video.files import VideoFiles, first_frame, folder_files, span, ucf101_files
from setclr.video.flow import flow_of_clips, to_bytes
from setclr.video.moving import MOTIONS, moving_patches

UCF101, FOLDER = "ucf101:", "folder:"


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
        kept = {name: checked_labels(f"labels[{name!r}]", y, len(x)) for name, y in self.labels.items()}
        object.__setattr__(self, "labels", kept)
        for name, y in kept.items():
            classes = len(self.classes.get(name, ()))
            if not 0 <= int(y.min()) <= int(y.max()) < classes:
                got = f"{int(y.min())} to {int(y.max())}"
                raise ValueError(f"labels[{name!r}] must be indices of {classes} classes, got {got}")

    def __len__(self) -> int:
        return len(self.videos)

    def subset(self, chosen: Tensor) -> "VideoSet":
        """The videos where `chosen` (N,) bool is True, in their order."""
        videos = self.videos[chosen] if isinstance(self.videos, Tensor) else self.videos.subset(chosen)
        return VideoSet(videos, {name: y[chosen] for name, y in self.labels.items()}, self.classes)

    @property
    def channels(self) -> int:
        """3 for colours, 2 for flow."""
        return self.videos.shape[1] if isinstance(self.videos, Tensor) else self.videos.channels

    @property
    def in_memory(self) -> bool:
        """Whether the videos are held in RAM, not read from files."""
        return isinstance(self.videos, Tensor)

    @property
    def in_ram(self) -> Tensor:
        """All videos, (N, C, F, H, W) uint8. Raises ValueError where the videos are files."""
        if not isinstance(self.videos, Tensor):
            raise ValueError(f"videos must be a tensor for this, got {len(self)} files; cut clips of them")
        return self.videos

    def fingerprint(self) -> bytes:
        """The first and the last video, or the names of all files with their folders'."""
        if isinstance(self.videos, Tensor):
            return self.videos[[0, -1]].cpu().numpy().tobytes()
        return "\n".join("/".join(path.parts[-2:]) for path in self.videos.paths).encode(errors="replace")

    @property
    def side(self) -> int:
        """The side of a frame, in pixels."""
        return self.videos.shape[-1] if isinstance(self.videos, Tensor) else self.videos.size

    def cut(self, index: Tensor, places: Tensor, frames: int, stride: int = 1) -> Tensor:
        """V clips of each video of `index` (n,), every `stride`-th frame: (V, n, C, frames, H, W) uint8.
        The `places` (n, V), 0 to 1, say where each clip begins, from the first frame at which it can to
        the last. Raises ValueError where a video is too short."""
        integer("frames", frames, least=1)
        integer("stride", stride, least=1)
        if not isinstance(self.videos, Tensor):
            return self.videos.cut(index, places, frames, stride)
        x, there = self.videos, self.videos.shape[2]
        starts = [first_frame(p, there, frames, stride, "a video") for p in places.flatten().tolist()]
        steps = torch.arange(0, span(frames, stride), stride)
        time = torch.tensor(starts).view(places.shape).T[..., None] + steps  # (V, n, T)
        return x[torch.as_tensor(index)[None, :, None], :, time].transpose(2, 3)

    def __repr__(self) -> str:
        things = ", ".join(f"{len(names)} of {name}" for name, names in self.classes.items())
        kind = "flow" if self.channels == 2 else "colours"
        return f"<VideoSet: {len(self)} videos of {self.side} px, {kind}; classes: {things}>"


def load_videos(
    name: str, split: str = "train", modality: str = "rgb", root: str | Path = "data", size: int | None = None
) -> VideoSet:
    """The video set of that name.

    "moving-patches": made here, labelled by photograph and by motion. "folder:PATH":
    PATH/train/CLASS/VIDEO and PATH/test/CLASS/VIDEO. "ucf101:PATH": UCF-101, split 1, downloaded by hand
    from crcv.ucf.edu.

    `modality`: "rgb", or "flow", by TV-L1, computed once and kept under `root`/flow. For moving-patches
    also "camera flow", the true one. `size`: side in pixels to which files are decoded; None is 128.

    Raises ValueError for another name, split or modality; FileNotFoundError where files are missing.
    Decoding raises ModuleNotFoundError where PyAV is missing: pip install 'setclr[video]'.
    """
    choice("split", split, SPLITS)
    choice("modality", modality, MODALITIES)
    cache = Path(root) / "flow"
    if name == MOVING:
        return of_patches(split, modality, cache)
    kind = next((kind for kind in (UCF101, FOLDER) if str(name).startswith(kind)), "")
    if not kind:
        choice("name", name, [MOVING, f"{UCF101}PATH", f"{FOLDER}PATH"])
    choice("modality", modality, MODALITIES[:2], hint="only moving-patches has a camera that is known")
    path = Path(os.path.expanduser(name.removeprefix(kind)))
    paths, labels, classes = (ucf101_files if kind == UCF101 else folder_files)(path, split)
    files = VideoFiles(paths, size or 128, cache if modality == "flow" else None)
    return VideoSet(files, {"class": torch.tensor(labels)}, {"class": classes})


def of_patches(split: str, modality: str, cache: Path) -> VideoSet:
    made = moving_patches(split)
    videos = torch.from_numpy(made.clips)
    if modality == "flow":
        videos = flow_of_clips(videos, cache)
    if modality == "camera flow":
        videos = to_bytes(torch.from_numpy(made.flow))
    labels = {"photograph": torch.from_numpy(made.photographs), "motion": torch.from_numpy(made.motions)}
    return VideoSet(videos, labels, {"photograph": tuple(PHOTOGRAPHS), "motion": MOTIONS})

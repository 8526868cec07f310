"""Video files, decoded on demand: folders of classes, and UCF-101."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setclr.checks import integer
from setclr.data.folders import class_folders, files_of_classes, same_names
from setclr.data.photographs import THREADS, shown
from setclr.data.writing import writable
from setclr.extras import extra
from setclr.video import flow

UCF = {"train": 9537, "test": 3783}  # videos of split 1


class VideoFiles:
    """N video files, decoded by PyAV in threads: the `videos` of a `VideoSet` that RAM could not hold.

    Args:
        paths: the files, in order. ValueError where there are none.
        size: side in pixels; the shorter side of a frame is resized to it, and the central square cut
            out.
        cache: a folder. With it clips are optical flow instead of colours; the flow is computed once and
            kept there. OSError where it cannot be written.
    """

    def __init__(self, paths: Iterable[str | Path], size: int, cache: str | Path | None = None):
        self.paths = tuple(map(Path, paths))
        self.size, self.cache = integer("size", size, least=8), None if cache is None else Path(cache)
        if not self.paths:
            raise ValueError("paths must hold at least one video file, got none")
        if self.cache:
            writable(self.cache)

    def __len__(self) -> int:
        return len(self.paths)

    def subset(self, chosen: Tensor) -> "VideoFiles":
        """The files where `chosen` (N,) bool is True, in their order."""
        return VideoFiles([self.paths[i] for i in chosen.nonzero().flatten().tolist()], self.size, self.cache)

    @property
    def channels(self) -> int:
        return 3 if self.cache is None else 2

    def cut(self, index: Sequence[int] | Tensor, places: Tensor, frames: int, stride: int = 1) -> Tensor:
        """V clips of each video of `index` (n,), every `stride`-th frame: (V, n, C, frames, size, size)
        uint8.

        `places` (n, V), 0 to 1, say where in its video each clip begins: 0 is the first frame, 1 the last
        frame at which a clip can begin. Of each file only these clips are decoded, from the key frame before
        them, in as many threads as there are cores; flow is of whole videos. Raises ValueError, naming the
        file, where a video is too short, broken, cut off, or has no picture.
        """
        indices, starts = torch.as_tensor(index).tolist(), places.tolist()
        with ThreadPoolExecutor(THREADS) as pool:
            clips = pool.map(lambda i, p: self._cut(i, p, frames, stride), indices, starts)
            return torch.stack(list(clips), dim=1)

    def _cut(self, i: int, places: list[float], frames: int, stride: int) -> Tensor:
        video = Whole(self.video(i)) if self.cache else Opened(self.paths[i], self.size)
        starts = [first_frame(place, len(video), frames, stride, shown(self.paths[i])) for place in places]
        wanted = [range(start, start + span(frames, stride), stride) for start in starts]
        there = video.frames({k for clip in wanted for k in clip})
        return torch.stack([torch.stack([there[k] for k in clip]) for clip in wanted]).transpose(1, 2)

    def video(self, i: int) -> Tensor:
        """All frames of video i, (F, C, size, size) uint8; flow has one frame less."""
        if self.cache is None:
            return decoded(self.paths[i], self.size)
        stat = self.paths[i].stat()
        name = flow.name_of([str(self.paths[i].resolve()), stat.st_size, stat.st_mtime_ns, self.size])
        path = self.cache / f"{name}.npy"
        if path.is_file():
            return flow.read(path, (-1, 2, self.size, self.size))
        frames = decoded(self.paths[i], self.size)
        found = flow.to_bytes(flow.tv_l1(frames.transpose(0, 1))).transpose(0, 1).contiguous()
        flow.keep(path, found)
        return found


class Whole:
    """A video that is decoded already, (F, C, size, size)."""

    def __init__(self, video: Tensor):
        self.video = video

    def __len__(self) -> int:
        return len(self.video)

    def frames(self, wanted: Collection[int]) -> dict[int, Tensor]:
        return {k: self.video[k] for k in wanted}


class Opened:
    """A file of which only the frames that are asked for are decoded, and those from a key frame up to them.

    Its frames are counted without decoding any. Where the file does not say when each is shown, or says it
    wrongly, all are decoded.
    """

    def __init__(self, path: Path, size: int):
        self.path, self.size = path, size
        with opened(path) as container:
            packets = [packet for packet in container.demux(video=0) if packet.size]
            refuse_cut_off(container, len(packets))
        known = all(packet.pts is not None for packet in packets)
        self.times = sorted({packet.pts for packet in packets}) if known else []
        self.keys = [packet.pts for packet in packets if packet.is_keyframe and known]
        if len(self.times) < len(packets) or not self.keys:
            self.times, self.whole = [], decoded(path, size)

    def __len__(self) -> int:
        return len(self.times) or len(self.whole)

    def frames(self, wanted: Collection[int]) -> dict[int, Tensor]:
        """By number the frames (3, size, size) uint8."""
        if not self.times:
            return Whole(self.whole).frames(wanted)
        asked = {self.times[k]: k for k in wanted}
        first, last = min(asked), max(asked)
        found: dict[int, Tensor] = {}
        with opened(self.path) as container:
            before = [key for key in self.keys if key <= first]
            if before:
                container.seek(max(before), stream=container.streams.video[0])
            for frame in container.decode(video=0):
                if frame.pts in asked:
                    found[asked[frame.pts]] = torch.from_numpy(squared(frame, self.size)).permute(2, 0, 1)
                if frame.pts is None or frame.pts >= last:
                    break
        return found if len(found) == len(asked) else Whole(decoded(self.path, self.size)).frames(wanted)


def span(frames: int, stride: int) -> int:
    """The number of frames of a video that a clip of `frames` frames, every `stride`-th, covers."""
    return (frames - 1) * stride + 1


def first_frame(place: float, there: int, frames: int, stride: int, name: str) -> int:
    """The index of a clip's first frame at `place`, 0 to 1, in a video of `there` frames. Raises
    ValueError, with the video's `name`, where it is too short."""
    needed = span(frames, stride)
    if there < needed:
        said = f"{name} has {there} frames, and {frames} of them, every {stride}. one, need {needed}"
        raise ValueError(f"{said}; take fewer frames or a smaller stride, or remove the video")
    return min(int(place * (there - needed + 1)), there - needed)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The container of a video file. Raises ValueError, naming the file, where it has no picture, is cut off,
    or cannot be decoded inside."""
    with extra("video"):
        import av
    remedy = "remove it, or convert it with a video program"
    try:
        if not path.is_file():  # reading from a pipe would wait for its writer
            raise ValueError("it is missing, or a folder, a pipe or a device")
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise ValueError("it has no picture, only sound or text")
            yield container
    except (av.FFmpegError, OSError, ValueError, IndexError) as error:
        said = f"{shown(path)} cannot be read as a video ({error}); {remedy}"
        raise ValueError(said) from error


def decoded(path: Path, size: int) -> Tensor:
    """All frames of a video file, (F, 3, size, size) uint8. Raises ValueError, naming the file, where it has
    no picture, cannot be decoded, or ends before its header says."""
    with opened(path) as container:
        frames = [squared(frame, size) for frame in container.decode(video=0)]
        if not frames:
            raise ValueError("it has no frame")
        refuse_cut_off(container, len(frames))
    return torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2).contiguous()


def refuse_cut_off(container: Any, count: int) -> None:
    """Raises ValueError if there are fewer frames than the file's header says, if it does."""
    promised = container.streams.video[0].frames
    if count < promised:
        raise ValueError(f"it is cut off: {count} of {promised} frames are there")


def squared(frame: Any, size: int) -> np.ndarray:
    """The central square of a decoded frame, upright as its file says, resized to (size, size, 3) uint8."""
    shrink = size / min(frame.width, frame.height)
    width, height = max(size, round(frame.width * shrink)), max(size, round(frame.height * shrink))
    pixels = frame.reformat(width=width, height=height, format="rgb24").to_ndarray()
    top, left = (height - size) // 2, (width - size) // 2
    square = pixels[top : top + size, left : left + size]
    return np.ascontiguousarray(np.rot90(square, round(frame.rotation / 90)))


Found = tuple[list[Path], list[int], tuple[str, ...]]  # files, labels, classes


def folder_files(root: Path, split: str) -> Found:
    """The videos of ROOT/train/CLASS or ROOT/test/CLASS, sorted by class and name.

    Raises ValueError, naming the folder, if test has other classes than train.
    """
    needed = "PATH needs PATH/train/CLASS/VIDEO and PATH/test"
    train = folders = class_folders(root / "train", needed)
    if split == "test":
        folders = class_folders(root / split, needed)
        same_names(root / "train", root / split, train, folders)
    found = files_of_classes(folders, "videos")
    paths = [Path(path) for of_class in found.values() for path in of_class]
    labels = [label for label, of_class in enumerate(found.values()) for _ in of_class]
    return paths, labels, tuple(map(shown, found))


def ucf101_files(root: Path, split: str, complete: bool = True) -> Found:
    """The videos of UCF-101's split 1: ROOT/UCF-101/CLASS/v_CLASS_g01_c01.avi and the lists
    ROOT/ucfTrainTestlist/classInd.txt, trainlist01.txt, testlist01.txt, as its two archives unpack.
    `complete` requires the full number of videos. Raises FileNotFoundError or ValueError, with the
    remedy, where files are missing or a list is wrong."""
    lists = root / "ucfTrainTestlist"
    names = {line.split()[1]: int(line.split()[0]) - 1 for line in lines(lists / "classInd.txt")}
    entries = [line.split()[0] for line in lines(lists / f"{split}list01.txt")]
    if unknown := [entry for entry in entries if entry.split("/")[0] not in names]:
        raise ValueError(f"{lists} lists {unknown[0]}, of no class of classInd.txt; unpack it again")
    paths = [root / "UCF-101" / entry for entry in entries]
    if missing := [path for path in paths if not path.is_file()]:
        said = f"{shown(missing[0])} is missing, and {len(missing) - 1} more"
        raise FileNotFoundError(f"{said}; unpack UCF101.rar into {root}")
    if complete and len(paths) != UCF[split]:
        said = f"{lists} must list {UCF[split]} videos for {split}, got {len(paths)}"
        raise ValueError(f"{said}; fetch it again")
    return paths, [names[entry.split("/")[0]] for entry in entries], tuple(names)


def lines(path: Path) -> list[str]:
    """The non-empty lines of a list. Raises FileNotFoundError, with the remedy, where the file is
    missing."""
    if not path.is_file():
        said = f"{path} is missing; unpack UCF101TrainTestSplits-RecognitionTask.zip of crcv.ucf.edu"
        raise FileNotFoundError(said)
    return [line for line in path.read_text().splitlines() if line.strip()]

"""Video files, decoded on demand."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setclr.checks import integer, printable
from setclr.data.photographs import THREADS
from setclr.data.writing import writable
from setclr.extras import extra
from setclr.video import flow


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

    def __getitem__(self, chosen: Tensor) -> "VideoFiles":
        """The files where `chosen` (N,) bool is True, in their order."""
        return VideoFiles([self.paths[i] for i in chosen.nonzero().flatten().tolist()], self.size, self.cache)

    @property
    def shape(self) -> tuple[int, int, None, int, int]:
        """That of all videos, (N, C, F, size, size), whose numbers of frames differ."""
        return len(self), 3 if self.cache is None else 2, None, self.size, self.size

    def cut(self, index: Sequence[int] | Tensor, places: Tensor, frames: int, stride: int = 1) -> Tensor:
        """V clips of each video of `index` (n,), every `stride`-th frame: (V, n, C, frames, size, size)
        uint8.

        `places` (n, V), 0 to 1, say where in its video each clip begins: 0 is the first frame, 1 the last
        frame at which a clip can begin. Of each file only these clips are decoded, from the key frame before
        them, in as many threads as there are cores; flow is of whole videos. Raises ValueError, naming the
        file, where a video is too short, broken, cut off, or has no picture.
        """
        with ThreadPoolExecutor(THREADS) as pool:
            indices = torch.as_tensor(index).tolist()
            clips = pool.map(lambda i, own: self._cut(i, own, frames, stride), indices, places)
            return torch.stack(list(clips), dim=1)

    def _cut(self, i: int, places: Tensor, frames: int, stride: int) -> Tensor:
        path = self.paths[i]
        times, keys = ([], []) if self.cache else shown_when(path)
        whole = torch.empty(0) if times else self.video(i)
        wanted = frames_of(places, len(times) or len(whole), frames, stride, printable(path))
        numbers, which = wanted.unique(return_inverse=True)
        seen = frames_at(path, self.size, [times[k] for k in numbers], keys) if times else whole[numbers]
        if len(seen) != len(numbers):
            seen = self.video(i)[numbers]
        return seen[which].transpose(1, 2)

    def video(self, i: int) -> Tensor:
        """All frames of video i, (F, C, size, size) uint8; flow has one frame less."""
        path, size = self.paths[i], self.size
        if self.cache is None:
            return decoded(path, size)

        def compute() -> Tensor:
            return flow.to_bytes(flow.tv_l1(decoded(path, size).transpose(0, 1))).transpose(0, 1).contiguous()

        stat = path.stat()
        key = repr((str(path.resolve()), stat.st_size, stat.st_mtime_ns, size)).encode()
        return flow.computed_once(self.cache, key, compute)


def shown_when(path: Path) -> tuple[list[int], list[int]]:
    """When each frame of a video file is shown, in order, and when its key frames are; none is decoded.
    Nothing where the file does not say it, or says it wrongly."""
    with opened(path) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        refuse_cut_off(container, len(packets))
    times = sorted({packet.pts for packet in packets if packet.pts is not None})
    keys = [packet.pts for packet in packets if packet.is_keyframe]
    return (times, keys) if keys and len(times) == len(packets) else ([], [])


def frames_at(path: Path, size: int, times: list[int], keys: list[int]) -> Tensor:
    """The frames (n, 3, size, size) uint8 that are shown at these times, decoded from the key frame before
    them on; another number of them where the file shows none, or two, at one of them."""
    seen = []
    with opened(path) as container:
        if before := [key for key in keys if key <= times[0]]:
            container.seek(max(before), stream=container.streams.video[0])
        for frame in container.decode(video=0):
            if frame.pts in times:
                seen.append(squared(frame, size))
            if frame.pts is None or frame.pts >= times[-1]:
                break
    return stacked(seen) if seen else torch.empty(0)


def frames_of(places: Tensor, there: int, frames: int, stride: int, name: str) -> Tensor:
    """The numbers (..., T) of the frames of clips that begin at these places, 0 to 1, in a video of `there`
    frames. Raises ValueError, with the video's `name`, where it is too short."""
    needed = (frames - 1) * stride + 1
    if there < needed:
        short = f"{name} has {there} frames, and {frames} of them, every {stride}. one, need {needed}"
        raise ValueError(f"{short}; take fewer frames or a smaller stride, or remove the video")
    starts = (places.double() * (there - needed + 1)).long().clamp(max=there - needed)
    return starts[..., None] + torch.arange(0, needed, stride)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The container of a video file. Raises ValueError, naming the file, where it has no picture, is cut off,
    or cannot be decoded inside."""
    with extra("video"):
        import av
    try:
        if not path.is_file():  # reading from a pipe would wait for its writer
            raise ValueError("it is missing, or a folder, a pipe or a device")
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise ValueError("it has no picture, only sound or text")
            yield container
    except (av.FFmpegError, OSError, ValueError, IndexError) as error:
        failed = f"{printable(path)} cannot be read as a video ({error})"
        raise ValueError(f"{failed}; remove it, or convert it with a video program") from error


def decoded(path: Path, size: int) -> Tensor:
    """All frames of a video file, (F, 3, size, size) uint8. Raises ValueError, naming the file, where it has
    no picture, cannot be decoded, or ends before its header says."""
    with opened(path) as container:
        frames = [squared(frame, size) for frame in container.decode(video=0)]
        if not frames:
            raise ValueError("it has no frame")
        refuse_cut_off(container, len(frames))
    return stacked(frames)


def stacked(frames: list[np.ndarray]) -> Tensor:
    """Frames (size, size, 3) as one tensor (F, 3, size, size)."""
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

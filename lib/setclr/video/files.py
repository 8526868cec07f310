"""Video files, decoded on demand."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setclr.checks import integer, printable
from setclr.data.folders import files_below
from setclr.data.photographs import THREADS, complaints
from setclr.data.writing import writable
from setclr.extras import extra
from setclr.video import flow

# What is opened: ffmpeg's names of containers that hold their frames themselves. A playlist or a script names
# other files, and can wait for ever.
CONTAINERS = "asf, avi, dv, flv, gif, matroska, mov, mpeg, mpegts, mpegvideo, mxf, nut, ogg"
LOCAL = {"format_whitelist": CONTAINERS.replace(" ", ""), "protocol_whitelist": "file"}


class VideoFiles:
    """N video files, decoded by PyAV in threads: the `videos` of a `VideoSet` that RAM could not hold.

    Args:
        paths: the files, in order. Each is read once now, and one frame of it decoded. ValueError where
            there are none, or, naming all such files, where some are no videos, broken, cut off or have no
            picture.
        size: side in pixels; the shorter side of a frame is resized to it, and the central square cut
            out.
        cache: a folder. With it clips are optical flow instead of colours; the flow is computed once and
            kept there. OSError where it cannot be written.
    """

    def __init__(self, paths: Iterable[str | Path], size: int, cache: str | Path | None = None):
        self.paths = some(map(Path, paths))
        self.size, self.cache = integer("size", size, least=8), None if cache is None else Path(cache)
        if self.cache:
            writable(self.cache)
        self.lengths: dict[Path, int] = {}
        if bad := "; ".join(filter(None, complaints(self.paths, self._measure))):
            raise ValueError(bad)

    def _measure(self, path: Path) -> None:
        """Note how many frames, or flows between them, a file has; one is decoded to see that it can
        be, or all where the file does not say when they are shown."""
        times, keys = shown_when(path)
        easy = times and len(frames_at(path, 8, times[:1], keys)) == 1
        self.lengths[path] = (len(times) if easy else len(decoded(path, 8))) - (self.cache is not None)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, chosen: Tensor) -> "VideoFiles":
        """The files where `chosen` (N,) bool is True, in their order."""
        part = copy(self)
        part.paths = some(self.paths[i] for i in chosen.nonzero().flatten().tolist())
        return part

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
        if times:
            wanted = frames_of(places, len(times), frames, stride, printable(path))
            numbers, which = wanted.unique(return_inverse=True)
            seen = frames_at(path, self.size, [times[k] for k in numbers], keys)
            if len(seen) == len(numbers):
                return seen[which].transpose(1, 2)
        whole = self.video(i)
        return whole[frames_of(places, len(whole), frames, stride, printable(path))].transpose(1, 2)

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


def some(paths: Iterable[Path]) -> tuple[Path, ...]:
    """These paths. Raises ValueError where there are none."""
    if not (found := tuple(paths)):
        raise ValueError("paths must hold at least one video file, got none")
    return found


def shown_when(path: Path) -> tuple[list[int], list[int]]:
    """When each frame of a video file is shown, in order, and when its key frames are; none is decoded.
    Nothing where the file does not say it, or says it wrongly."""
    with opened(path) as container:
        packets = [(x.pts, x.is_keyframe, x.is_discard) for x in all_packets(container) if x.size]
    keys = [pts for pts, key, _ in packets if key]
    times = {pts for pts, _, hidden in packets if not hidden}
    if not keys or None in times.union(keys) or len(times) + sum(x[2] for x in packets) < len(packets):
        return [], []
    return sorted(pts for pts in times if pts >= keys[0]), keys


def frames_at(path: Path, size: int, times: list[int], keys: list[int]) -> Tensor:
    """The frames (n, 3, size, size) uint8 that are shown at these times, decoded from the key frame before
    them on; another number of them where the file shows none, or two, at one of them."""
    seen = []
    with opened(path) as container:
        if before := [key for key in keys if key <= times[0]]:
            container.seek(max(before), stream=container.streams.video[0])
        for frame in shown(container.demux(video=0)):
            if frame.pts in times:
                seen.append(squared(frame, size))
            if frame.pts is None or frame.pts >= times[-1]:
                break
    return stacked(seen) if seen else torch.empty(0)


def frames_of(places: Tensor, there: int, frames: int, stride: int, name: str) -> Tensor:
    """The numbers (..., T) of the frames of clips that begin at these places, 0 to 1, in a video of `there`
    frames. Raises ValueError, with the video's `name`, where it is too short, or where frames or
    stride is no integer ≥ 1."""
    integer("frames", frames, least=1)
    integer("stride", stride, least=1)
    needed = (frames - 1) * stride + 1
    if there < needed:
        short = f"{name} has {there} frames, and {frames} of them, every {stride}. one, need {needed}"
        raise ValueError(f"{short}; take fewer frames or a smaller stride, or remove the video")
    starts = (places.double() * (there - needed + 1)).long().clamp(max=there - needed)
    return starts[..., None] + torch.arange(0, needed, stride)


def videos_below(folder: Path, warn: bool = False) -> list[str]:
    """The video files in a folder and below, by their names' endings, as `files_below` finds them."""
    is_video = lambda name: (guess_type(name)[0] or "").startswith("video/")  # noqa: E731
    return files_below(folder, is_video, "video files (.mp4, .avi, …)", warn)


@contextmanager
def opened(path: str | Path) -> Iterator[Any]:
    """The container of a video file. Raises ValueError, naming the file, where it has no picture, is cut off,
    or cannot be decoded inside."""
    with extra("video"):
        import av
    try:
        if not Path(path).is_file():  # reading from a pipe would wait for its writer
            raise ValueError("it is missing, or a folder, a pipe or a device")
        try:
            file = av.open(f"file:{path}", container_options=LOCAL)
        except av.ArgumentError:
            raise ValueError(f"it is a playlist, only sound, or none of {CONTAINERS}") from None
        with file as container:
            if not container.streams.video:
                raise ValueError("it has no picture, only sound or text")
            yield container
    except (av.FFmpegError, OSError, ValueError, IndexError) as error:
        failed = f"{printable(path)} cannot be read as a video ({error})"
        raise ValueError(f"{failed}; remove it, or convert it to .mp4 with a video program") from error


def decoded(path: str | Path, size: int) -> Tensor:
    """All frames of a video file, (F, 3, size, size) uint8. Raises ValueError, naming the file, where it has
    no picture, cannot be decoded, or ends before its header says."""
    with opened(path) as container:
        frames = [squared(frame, size) for frame in shown(all_packets(container))]
        if not frames:
            raise ValueError("it has no frame that can be decoded")
    return stacked(frames)


def stacked(frames: list[np.ndarray]) -> Tensor:
    """Frames (size, size, 3) as one tensor (F, 3, size, size)."""
    return torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2).contiguous()


def all_packets(container: Any) -> Iterator[Any]:
    """The packets of a video's picture. Raises ValueError after the last one if the file is cut off: if they
    end before its header says, or in the middle of one. Fewer packets that end in time are whole: a camera
    drops frames, and an edit list leaves some out.
    """
    stream, count, end, part = container.streams.video[0], 0, 0, False
    for packet in container.demux(stream):
        if packet.size:
            count, part = count + 1, packet.is_corrupt
            end = max(end, (packet.pts or packet.dts or 0) + (packet.duration or 0))
        yield packet
    if stream.frames and (part or (count < stream.frames and end < (stream.duration or end + 1))):
        raise ValueError(f"it is cut off: {count} of {stream.frames} frames are there")


def shown(packets: Iterable[Any]) -> Iterator[Any]:
    """The frames of these packets from the first key frame on; earlier ones need frames that are missing."""
    first: Any = None
    for packet in packets:
        if first is None and packet.is_keyframe:
            first = packet
        for frame in packet.decode() if first else ():
            if None in (first.pts, frame.pts) or frame.pts >= first.pts:
                yield frame


def squared(frame: Any, size: int) -> np.ndarray:
    """The central square of a decoded frame, upright as its file says, resized to (size, size, 3) uint8."""
    shrink = size / min(frame.width, frame.height)
    width, height = max(size, round(frame.width * shrink)), max(size, round(frame.height * shrink))
    pixels = frame.reformat(width=width, height=height, format="rgb24").to_ndarray()
    top, left = (height - size) // 2, (width - size) // 2
    square = pixels[top : top + size, left : left + size]
    return np.ascontiguousarray(np.rot90(square, round(frame.rotation / 90)))

"""Optical flow by TV-L1: how far each pixel moves from a frame to the next, stored as bytes."""

import hashlib
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setclr.data.writing import replacing
from setclr.extras import extra
from setclr.views.pixels import grey

REACH = 1 / 8  # of the frame's side: the largest motion that a byte can store
ZERO, STEPS = 128, 127  # the byte of no motion, and steps from it to the largest motion


def tv_l1(frames: Tensor) -> Tensor:
    """The flow (2, F − 1, H, W) float32 of a clip (C, F, H, W) uint8, in pixels to the right and down.
    The method is that of Zach, Pock and Bischof 2007, in scikit-image's implementation. Cost: 23 ms a
    pair of 32 × 32 on one core."""
    with extra("train"):
        from skimage.registration import optical_flow_tvl1
    gray = (grey(frames.transpose(0, 1).float()) / 255)[:, 0].numpy()
    pairs = [optical_flow_tvl1(a, b)[::-1] for a, b in zip(gray[:-1], gray[1:])]
    found = np.stack(pairs, axis=1) if pairs else np.zeros((2, 0, *gray.shape[1:]))
    return torch.from_numpy(found.astype(np.float32))


def to_bytes(flow: Tensor) -> Tensor:
    """Flow (2, …, H, W) or (N, 2, …, H, W) in pixels as uint8. 128 is no motion; 127 more or less is an
    eighth of the height. Faster motion is clipped."""
    return (flow / (REACH * flow.shape[-2]) * STEPS + ZERO).round().clamp(1, 255).byte()


def to_pixels(stored: Tensor) -> Tensor:
    """The flow in pixels of the bytes of `to_bytes`, up to rounding."""
    return (stored.float() - ZERO) / STEPS * (REACH * stored.shape[-2])


def flow_of_clips(clips: Tensor, cache: str | Path) -> Tensor:
    """The flow of clips (N, 3, F, H, W) uint8 as bytes (N, 2, F − 1, H, W), by `tv_l1`.

    It is computed once and kept in a file of the folder `cache`, named by a hash of the clips. Cost: that
    of `tv_l1` for each clip.
    """
    path = Path(cache) / f"{name_of([clips.numpy().tobytes(), clips.shape])}.npy"
    if path.is_file():
        return read(path, (len(clips), 2, clips.shape[2] - 1, *clips.shape[3:]))
    found = torch.stack([to_bytes(tv_l1(clip)) for clip in clips])  # threads made it slower
    keep(path, found)
    return found


def name_of(parts: Sequence[object]) -> str:
    """A file name for these parts: 20 hexadecimal digits of their hash."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else repr(part).encode())
    return digest.hexdigest()[:20]


def keep(path: Path, flow: Tensor) -> None:
    """Write the flow to a file, followed by a checksum."""
    whole = io.BytesIO()
    np.save(whole, flow.numpy())
    with replacing(path) as file:
        file.write(whole.getvalue() + checksum(whole.getvalue()))


def checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def read(path: Path, shape: Sequence[int]) -> Tensor:
    """The flow in a file, of that shape; −1 stands for any length. Raises ValueError where the file is
    damaged or holds another shape. Files of earlier versions have no checksum."""
    try:
        data = path.read_bytes()
        stream = io.BytesIO(data)
        found = np.load(stream)
        end = stream.tell()
        if data[end:] not in (b"", checksum(data[:end])):
            raise ValueError("its checksum is another")
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it, and the flow is computed again") from error
    fits = found.ndim == len(shape) and all(n in (-1, got) for n, got in zip(shape, found.shape))
    if not fits or found.dtype != np.uint8:
        got = f"{found.shape} {found.dtype}"
        raise ValueError(f"{path} must hold {tuple(shape)} uint8, got {got}; remove it and load again")
    return torch.from_numpy(found)

"""Optical flow by TV-L1: how far each pixel moves from a frame to the next, stored as bytes."""

import hashlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

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
    flow = np.stack(pairs, axis=1) if pairs else np.zeros((2, 0, *gray.shape[1:]))
    return torch.from_numpy(flow.astype(np.float32))


def to_bytes(flow: Tensor) -> Tensor:
    """Flow (2, …, H, W) or (N, 2, …, H, W) in pixels as uint8. 128 is no motion; 127 more or less is an
    eighth of the height. Faster motion is clipped."""
    return (flow / (REACH * flow.shape[-2]) * STEPS + ZERO).round().clamp(1, 255).byte()


def to_pixels(stored: Tensor) -> Tensor:
    """The flow in pixels of the bytes of `to_bytes`, up to rounding."""
    return (stored.float() - ZERO) / STEPS * (REACH * stored.shape[-2])


def computed_once(cache: Path, key: bytes, compute: Callable[[], Tensor]) -> Tensor:
    """The flow, bytes, in the folder's file for this key. If there is none, it is computed, and kept there
    with a checksum. Raises ValueError where the file is damaged."""
    path = cache / f"{hashlib.sha256(key).hexdigest()[:20]}.npz"
    if not path.is_file():
        flow = compute()
        with replacing(path) as file:
            np.savez(file, flow=flow.numpy())
        return flow
    try:
        with ZipFile(path) as stored:  # np.load reads as far as the array's header says, without a checksum
            return torch.from_numpy(np.load(BytesIO(stored.read("flow.npy"))))
    except Exception as error:  # damaged bytes lead anywhere
        raise ValueError(f"{path} is damaged ({error}); remove it, and the flow is computed again") from error

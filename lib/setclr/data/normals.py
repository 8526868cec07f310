"""Images with the direction that each pixel's surface faces: from a disparity map, or from files."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from setclr.checks import choice, integer
from setclr.data.photographs import shown
from setclr.extras import extra

NYU = "nyuv2:"
SPLITS = ("train", "test")
GAP = 16  # columns in the middle of the motorcycle pair that neither half has


class NormalMaps(NamedTuple):
    """Images of one size and their normals, where those are known."""

    images: Tensor  # (N, 3, H, W) uint8
    normals: Tensor  # (N, 3, H, W) float32: unit vectors to the right, downwards and away from the camera
    valid: Tensor  # (N, H, W) bool


class Camera(NamedTuple):
    """What turns a disparity into depth, in pixels: Z is in proportion to focal / (disparity + offset)."""

    focal: float
    x: float  # of the principal point
    y: float
    offset: float  # how much further to the right the second camera has its principal point


MOTORCYCLE = Camera(994.978, 311.193, 254.877, 31.086)  # from the documentation of scikit-image


def load_normals(name: str, split: str = "train") -> NormalMaps:
    """Normals by name.

    "motorcycle": the left picture of scikit-image's stereo pair, its left half to train on and its right half
    to test on, each one image. "nyuv2:PATH": NYUv2 as arrays, by hand, in the layout of Liu et al. 2019:
    PATH/train/image/0.npy (H, W, 3) in [0, 1], PATH/train/normal/0.npy (H, W, 3), zero where it is not known,
    and PATH/val/… to test on.

    Raises ValueError for another name or split, or where a file is damaged or of another size than the first
    or than its image; FileNotFoundError where files are missing.
    """
    choice("split", split, SPLITS)
    if name == "motorcycle":
        return motorcycle(split)
    if not str(name).startswith(NYU):
        choice("name", name, ["motorcycle", f"{NYU}PATH"])
    return of_folder(Path(name[len(NYU) :]).expanduser() / ("train" if split == "train" else "val"))


def motorcycle(split: str) -> NormalMaps:
    with extra("train"):
        from skimage import data
    image, _, disparity = data.stereo_motorcycle()
    normals, valid = normals_of(torch.from_numpy(disparity), MOTORCYCLE)
    middle = image.shape[1] // 2
    half = slice(0, middle - GAP // 2) if split == "train" else slice(middle + GAP // 2, None)
    pixels = torch.from_numpy(image).permute(2, 0, 1)[None, :, :, half].contiguous()
    return NormalMaps(pixels, normals[None, :, :, half].contiguous(), valid[None, :, half].contiguous())


def normals_of(
    disparity: Tensor, camera: Camera, reach: int = 4, rough: float = 0.01
) -> tuple[Tensor, Tensor]:
    """The normals (3, H, W) float32 of the surfaces that a disparity map (H, W) shows, and where they hold.

    Of a plane, disparity + offset changes linearly over the picture. So around each pixel a linear function
    is fitted, by least squares, to the known pixels of a square of 2 · reach + 1: its slopes and its value
    are the normal. It holds where the pixel and half of the square are known, and the root mean square error
    is at most `rough` of the value, which leaves out most edges. Exact for planes. Cost: O(H W reach²).
    """
    integer("reach", reach, least=1)
    w = torch.isfinite(disparity).double()
    d = torch.where(w > 0, disparity.double() + camera.offset, 0.0)
    at = torch.arange(-reach, reach + 1, dtype=torch.float64)
    v, u = torch.meshgrid(at, at, indexing="ij")
    one = torch.ones_like(u)

    def sums(x: Tensor, weights: list[Tensor]) -> list[Tensor]:
        kernels = torch.stack(weights)[:, None]
        return list(conv2d(x[None, None], kernels, padding=reach)[0])

    n, nu, nv, nuu, nuv, nvv = sums(w, [one, u, v, u * u, u * v, v * v])
    s, su, sv = sums(d, [one, u, v])
    (ss,) = sums(d * d, [one])
    normal_matrix = torch.stack([n, nu, nv, nu, nuu, nuv, nv, nuv, nvv], -1).unflatten(-1, (3, 3))
    enough = (n >= one.numel() / 2) & (w > 0)
    eye = torch.eye(3, dtype=torch.float64)
    right = torch.stack([s, su, sv], -1)
    fitted = torch.linalg.solve(torch.where(enough[..., None, None], normal_matrix, eye), right)
    value, by_x, by_y = fitted.unbind(-1)
    error = (ss - (fitted * right).sum(-1)).clamp(min=0) / n.clamp(min=1)
    H, W = disparity.shape
    x = (torch.arange(W, dtype=torch.float64) - camera.x) / camera.focal
    y = (torch.arange(H, dtype=torch.float64) - camera.y)[:, None] / camera.focal
    a, b = camera.focal * by_x, camera.focal * by_y
    towards = -torch.stack([a, b, value - a * x - b * y])  # of the plane a X + b Y + c Z = const > 0
    valid = enough & (error.sqrt() <= rough * value.abs())
    normals = torch.where(valid, towards / towards.norm(dim=0).clamp(min=1e-12), 0.0)
    return normals.float(), valid


def of_folder(folder: Path) -> NormalMaps:
    """The arrays of image/ and normal/ of a folder, by their numbers."""
    files = sorted((folder / "image").glob("*.npy"), key=lambda path: (len(path.stem), path.stem))
    if not files:
        where = shown(folder / "image")
        raise FileNotFoundError(f"{where} has no .npy files; put NYUv2's arrays there (data/README.md)")
    images: list[np.ndarray] = []
    normals: list[np.ndarray] = []
    for path in files:
        image, normal = read(path), read(folder / "normal" / path.name)
        if image.shape != normal.shape or (images and image.shape != images[0].shape):
            got = f"{shown(path)} is {image.shape}, its normals {normal.shape}"
            first = f", the first image {images[0].shape}" if images else ""
            raise ValueError(f"images and normals must be of one size, but {got}{first}; resize or remove it")
        images.append(image)
        normals.append(normal)
    found = torch.from_numpy(np.stack(normals)).float().permute(0, 3, 1, 2)
    length = found.norm(dim=1)
    valid = length > 0.5
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
    unit = torch.where(valid[:, None], found / length.clamp(min=1e-6)[:, None], 0.0)
    return NormalMaps((255 * pixels).round().byte().contiguous(), unit.contiguous(), valid)


def read(path: Path) -> np.ndarray:
    """The array (H, W, 3) in a file. Raises ValueError, or FileNotFoundError, naming it."""
    if not path.is_file():
        raise FileNotFoundError(f"{shown(path)} is missing, and each image needs its normals; put it there")
    try:
        found = np.load(path, allow_pickle=False)
        if found.ndim != 3 or found.shape[2] != 3 or not np.isfinite(found).all():
            raise ValueError(f"its shape is {found.shape}, or it holds NaN")
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{shown(path)} is no array (H, W, 3) of numbers ({error}); take it out") from error
    return found.astype(np.float32)

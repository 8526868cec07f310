"""Surface normals predicted from an encoder's feature maps by a linear read-out (MMCL, table 1).

Ericsson et al. 2021 train a PSPNet on NYUv2, fine-tune its ResNet-50, and report angular errors; MMCL's
table 1 has the median. Here one linear map at each pixel reads all feature maps of the frozen encoder,
enlarged to the image's size, so that it can be trained in seconds. The normals come from a disparity map.
"""

import copy
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate, normalize

from setclr.checks import choice, integer
from setclr.evaluation.frozen import evaluating
from setclr.extras import extra
from setclr.models.encoders import normalise
from setclr.seeding import drawing, seeded

WITHIN = (11.25, 22.5, 30.0)  # degrees
SPLITS = ("train", "test")
WINDOW = 128  # side of what is shown in a step, in pixels
GAP = 16  # columns in the middle of the motorcycle picture, in neither half


class NormalMaps(NamedTuple):
    """Images of one size, their surface normals, and where those are known."""

    images: Tensor  # (N, 3, H, W) uint8
    normals: Tensor  # (N, 3, H, W) float32: unit vectors to the right, downwards and away from the camera
    valid: Tensor  # (N, H, W) bool


class Camera(NamedTuple):
    """Constants that turn disparity into depth, in pixels: Z is in proportion to focal / (disparity +
    offset)."""

    focal: float
    x: float  # of the principal point
    y: float
    offset: float  # how much further to the right the second camera has its principal point


MOTORCYCLE = Camera(994.978, 311.193, 254.877, 31.086)  # from the documentation of scikit-image


def motorcycle(split: str = "train") -> NormalMaps:
    """The left picture of scikit-image's stereo pair: its left half to train on, its right half to test on.

    Raises ValueError for another split.
    """
    choice("split", split, SPLITS)
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
    """The surface normals (3, H, W) float32 of a disparity map (H, W), and where they are valid, (H, W)
    bool.

    On a plane, disparity + offset changes linearly over the picture. So a linear function is fitted
    around each pixel, by least squares, to the known pixels of a square of 2 · reach + 1. Its slopes and
    its value give the normal. The normal is valid where the pixel and half of the square are known, and
    the root mean square error is at most `rough` of the value, which leaves out most edges. Exact for
    planes. Cost: O(H W reach²).
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
    towards = -torch.stack([a, b, value - a * x - b * y])  # normal of a X + b Y + c Z = const > 0
    valid = enough & (error.sqrt() <= rough * value.abs())
    normals = torch.where(valid, towards / towards.norm(dim=0).clamp(min=1e-12), 0.0)
    return normals.float(), valid


class DenseReadOut(nn.Module):
    """Images (N, 3, H, W) in [0, 1] → unit normals (N, 3, H, W), by a linear map of feature maps.

    Of the encoder's maps of one size the last is taken. For conv4 and ResNets; raises ValueError for an
    encoder that is not made of layers with maps.
    """

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder
        with torch.no_grad(), evaluating(encoder):
            device = next(encoder.parameters()).device
            widths = [x.shape[1] for x in self.maps(torch.zeros(1, 3, 64, 64, device=device))]
        norms = [nn.BatchNorm2d(width, affine=False) for width in widths]
        reads = [nn.Conv2d(width, 3, 1, bias=i == 0) for i, width in enumerate(widths)]
        for read in reads:  # the initial prediction: everything faces the camera
            nn.init.normal_(read.weight, std=0.01)
        reads[0].bias = nn.Parameter(torch.tensor([0.0, 0.0, -1.0]))
        self.norms, self.reads = nn.ModuleList(norms).to(device), nn.ModuleList(reads).to(device)

    def maps(self, x: Tensor) -> list[Tensor]:
        """The last feature map of each size, the finest first."""
        (x,) = normalise(self.encoder, (x,))
        found: dict[int, Tensor] = {}
        for layer in self.encoder.children():
            x = layer(x)
            if x.ndim != 4 or x.shape[-1] == 1:
                break
            found[x.shape[-1]] = x
        if not found:
            name = type(self.encoder).__name__
            raise ValueError(f"encoder must be made of layers that give maps (conv4, ResNets), got {name}")
        return list(found.values())

    def forward(self, x: Tensor) -> Tensor:
        """Each map is read at its own size, then enlarged: the two linear operations commute."""
        parts = zip(self.maps(x), self.norms, self.reads)
        read = (interpolate(r(n(y)), x.shape[-2:], mode="bilinear") for y, n, r in parts)
        found = torch.stack(list(read)).sum(0)
        # as `normalize`, which takes a quarter of a step for three channels
        return found * found.square().sum(1, keepdim=True).clamp(min=1e-24).rsqrt()


def fit_normals(
    encoder: nn.Module, train: NormalMaps, steps: int = 300, lr: float = 3e-3, seed: int = 0
) -> DenseReadOut:
    """A read-out trained on these normals, by Adam with a learning rate that falls to 0 as a cosine.

    The loss is 1 − cosine of the angle, at the valid pixels of one random window a step, mirrored half of
    the time. The encoder is copied, and the copy does not learn; its batch norms keep their statistics.
    Raises ValueError where no pixel is valid, or `steps` is not positive. Cost: a pass of the encoder over
    WINDOW² pixels a step.
    """
    integer("steps", steps, least=1)
    if not train.valid.any():
        raise ValueError("train must have valid pixels, and has none; look at how its normals were made")
    with drawing(seed):
        model = DenseReadOut(copy.deepcopy(encoder))
    model.encoder.requires_grad_(False)
    optimiser = torch.optim.Adam(model.reads.parameters(), lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    model.train()
    model.encoder.eval()
    for images, normals, valid in windows(train, steps, WINDOW, seed):
        device = next(model.parameters()).device
        cosine = (model(images.to(device)) * normals.to(device)).sum(1)
        loss = (1 - cosine)[valid.to(device)].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval()


def windows(maps: NormalMaps, steps: int, side: int, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """`steps` random windows with valid pixels, half of them mirrored: images in [0, 1], normals, valid."""
    N, _, H, W = maps.images.shape
    high, wide = min(side, H), min(side, W)
    generator, given = seeded(seed), 0
    while given < steps:
        i, top, left, flip = (
            int(torch.randint(n, (), generator=generator)) for n in (N, H - high + 1, W - wide + 1, 2)
        )
        rows, columns = slice(top, top + high), slice(left, left + wide)
        valid = maps.valid[i : i + 1, rows, columns]
        if not valid.any():
            continue
        images = maps.images[i : i + 1, :, rows, columns].float() / 255
        normals = maps.normals[i : i + 1, :, rows, columns]
        if flip:
            images, valid = images.flip(-1), valid.flip(-1)
            normals = normals.flip(-1) * torch.tensor([-1.0, 1, 1])[:, None, None]
        yield images, normals, valid
        given += 1


@torch.no_grad()
def predicted_normals(model: nn.Module, images: Tensor) -> Tensor:
    """Unit normals (N, 3, H, W) on the CPU, of images (N, 3, H, W) uint8, one image at a time."""
    device = next(model.parameters()).device
    return torch.cat([model(image[None].to(device).float() / 255).cpu() for image in images])


def angular_errors(predicted: Tensor, maps: NormalMaps) -> Tensor:
    """The angles in degrees between normals (N, 3, H, W) and the true ones, at the valid pixels, (n,).

    They are computed by the arc tangent, which is exact for small angles too. Raises ValueError where
    `predicted` has another size.
    """
    if predicted.shape != maps.normals.shape:
        got, wanted = tuple(predicted.shape), tuple(maps.normals.shape)
        raise ValueError(f"predicted must have the true normals' shape, {wanted}, got {got}; resize it")
    a, b = (x.double().movedim(1, -1)[maps.valid] for x in (predicted, maps.normals))
    return torch.atan2(torch.linalg.cross(a, b).norm(dim=1), (a * b).sum(1)).rad2deg()


def normal_errors(predicted: Tensor, maps: NormalMaps) -> dict[str, float]:
    """Over all valid pixels: "median" and "mean" angle in degrees, and per cent "within" 11.25, 22.5, 30°."""
    errors = angular_errors(predicted, maps)
    found = {"median": float(errors.median()), "mean": float(errors.mean())}
    return found | {f"within {t:g}°": 100 * float((errors <= t).double().mean()) for t in WITHIN}


def one_direction(train: NormalMaps, maps: NormalMaps) -> Tensor:
    """The constant baseline: the mean normal of the training pixels everywhere, (N, 3, H, W)."""
    mean = normalize(train.normals.movedim(1, -1)[train.valid].mean(0), dim=0)
    return mean[:, None, None].expand_as(maps.normals)

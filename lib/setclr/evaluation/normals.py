"""Surface normals read from an encoder's maps: what features know of how a surface lies (MMCL, table 1).

Ericsson et al. 2021 train a PSPNet on NYUv2, its ResNet-50 fine-tuned, and report angular errors; MMCL's
table 1 has the median. Here the read-out is one linear map at each pixel of all the encoder's maps, put on
one another at the image's size, so that it can be trained in seconds; the encoder is frozen, or tuned.
"""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from setclr.checks import boolean, integer, number
from setclr.data.normals import NormalMaps
from setclr.evaluation.frozen import evaluating
from setclr.models.encoders import normalise
from setclr.training.seeding import drawing, seeded

WITHIN = (11.25, 22.5, 30.0)  # degrees


class DenseReadOut(nn.Module):
    """Images (N, 3, H, W) in [0, 1] → unit normals (N, 3, H, W), by a linear map of the encoder's maps.

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
        for read in reads:  # it begins with: everything faces the camera
            nn.init.normal_(read.weight, std=0.01)
        reads[0].bias = nn.Parameter(torch.tensor([0.0, 0.0, -1.0]))
        self.norms, self.reads = nn.ModuleList(norms).to(device), nn.ModuleList(reads).to(device)

    def maps(self, x: Tensor) -> list[Tensor]:
        """The last map of each size, the finest first."""
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
        """Each map is read at its own size: a linear map and what enlarges it can change places."""
        parts = zip(self.maps(x), self.norms, self.reads)
        read = (interpolate(r(n(y)), x.shape[-2:], mode="bilinear") for y, n, r in parts)
        return normalize(torch.stack(list(read)).sum(0), dim=1)


def fit_normals(
    encoder: nn.Module, train: NormalMaps, steps: int = 300, lr: float = 3e-3, tuned: bool = False,
    window: int = 128, seed: int = 0,
) -> DenseReadOut:  # fmt: skip
    """A read-out trained on these normals: Adam, its rate falling as a cosine to 0, on 1 − cosine of the
    angle at the valid pixels of one random window a step, mirrored half of the time.

    The encoder is copied, and stays as it is unless `tuned`, when it learns at a tenth of the rate; its
    batch norms keep their statistics either way. Raises ValueError where no pixel is valid, or an argument
    is not in its range. Cost: a pass of the encoder over window² pixels a step.
    """
    integer("steps", steps, least=1)
    integer("window", window, least=32)
    number("lr", lr, above=0)
    if not train.valid.any():
        raise ValueError("train must have valid pixels, and has none; look at how its normals were made")
    with drawing(seed):
        model = DenseReadOut(copy.deepcopy(encoder))
    model.encoder.requires_grad_(boolean("tuned", tuned))
    groups = [{"params": model.reads.parameters(), "lr": lr}]
    groups += [{"params": model.encoder.parameters(), "lr": lr / 10}] if tuned else []
    optimiser = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    model.train()
    model.encoder.eval()
    for images, normals, valid in windows(train, steps, window, seed):
        device = next(model.parameters()).device
        cosine = (model(images.to(device)) * normals.to(device)).sum(1)
        loss = (1 - cosine)[valid.to(device)].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval()


def windows(maps: NormalMaps, steps: int, side: int, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """So many random windows with valid pixels: images in [0, 1], normals, valid; some of them mirrored."""
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

    By the arc tangent, exact for small angles too. Raises ValueError where the map has another size.
    """
    if predicted.shape != maps.normals.shape:
        got, wanted = tuple(predicted.shape), tuple(maps.normals.shape)
        raise ValueError(
            f"predicted must be of the shape of the true normals, {wanted}, got {got}; resize it"
        )
    a, b = (x.double().movedim(1, -1)[maps.valid] for x in (predicted, maps.normals))
    return torch.atan2(torch.linalg.cross(a, b).norm(dim=1), (a * b).sum(1)).rad2deg()


def normal_errors(predicted: Tensor, maps: NormalMaps) -> dict[str, float]:
    """Over all valid pixels: "median" and "mean" angle in degrees, and per cent "within" 11.25, 22.5, 30°."""
    errors = angular_errors(predicted, maps)
    found = {"median": float(errors.median()), "mean": float(errors.mean())}
    return found | {f"within {t:g}°": 100 * float((errors <= t).double().mean()) for t in WITHIN}


def one_direction(train: NormalMaps, maps: NormalMaps) -> Tensor:
    """The opponent that knows nothing: everywhere the mean normal of the training pixels."""
    mean = normalize(train.normals.movedim(1, -1)[train.valid].mean(0), dim=0)
    return mean[:, None, None].expand_as(maps.normals)

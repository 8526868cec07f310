"""Image files as a sequence that decodes on demand, for folders too large for RAM."""

import math
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps
from torch import Tensor
from torch.utils.data import get_worker_info

from setclr.checks import integer, printable
from setclr.views import View, boxes, by_size, check_draws

with suppress(ImportError):  # .heic is read where pillow-heif is installed
    from pillow_heif import register_heif_opener

    register_heif_opener()

THREADS = min(16, os.cpu_count() or 1)  # Pillow decodes and resizes without Python's lock
WORTH_THREADS = 128 * 128  # pixels; below, most work is in Python, where threads take turns
# Of photographs. A file that Pillow cannot read, such as .heic, is refused by name and not passed over.
ENDINGS = (".apng", ".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".j2k", ".jfif", ".jp2", ".jpe",
           ".jpeg", ".jpf", ".jpg", ".jpx", ".jxl", ".pbm", ".pcx", ".pgm", ".png", ".pnm", ".ppm", ".psd",
           ".qoi", ".rgb", ".sgi", ".tga", ".tif", ".tiff", ".webp")  # fmt: skip
REDUCTIONS = (8, 4, 2)  # factors by which a JPEG can be decoded smaller, at a fraction of the cost


def is_image(name: str) -> bool:
    """Whether a file is a photograph by the ending of its name, in small letters or large ones."""
    return name.lower().endswith(ENDINGS)


def in_rgb(image: Image.Image) -> Image.Image:
    """The image in RGB; what is transparent shows white, and not the colours hidden there."""
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def orientation(image: Image.Image) -> int:
    """How EXIF data say that a camera was held, 1 (upright) to 8, of an opened file that is not yet decoded.

    It is 1 for a TIFF, which Pillow itself turns, and for a PNG with such data at its end: Pillow would
    decode it to look for them.
    """
    if image.format != "TIFF" and (image.format != "PNG" or "exif" in image.info):
        with suppress(Exception):  # damaged EXIF data
            return image.getexif().get(ExifTags.Base.Orientation, 1)
    return 1


def upright(image: Image.Image) -> Image.Image:
    """The image of an opened file, decoded, turned upright, and in RGB."""
    turned = orientation(image) != 1
    image.load()
    if turned:
        with suppress(Exception):  # it is turned before damaged EXIF data are written again
            ImageOps.exif_transpose(image, in_place=True)
    return in_rgb(image)


def decode(path: str) -> None:
    """Decode an image file. Raises ValueError, naming the file, if it is damaged."""
    with opened(path) as image:
        upright(image)


@contextmanager
def opened(path: str) -> Iterator[Image.Image]:
    """An image, not yet decoded. Any error inside the block becomes a ValueError that names the file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # reading from a pipe would wait for its writer
            raise ValueError("it is a folder, a pipe or a device")
        Image.init()  # tells the formats of ENDINGS; in others, such as EPS, a file can start a program
        formats = [*dict.fromkeys(filter(None, map(Image.EXTENSION.get, ENDINGS)))]
        with Image.open(path, formats=formats) as image:
            limit, count = Image.MAX_IMAGE_PIXELS, math.prod(image.size)
            if limit and count > limit:  # Pillow only warns; a small file can unpack to as many
                raise ValueError(f"it has {count:,} pixels, the limit is {limit:,}; shrink the image")
            if image.mode.startswith(("I", "F")) or of_many_bits(image):
                raise ValueError(f"its pixels, of Pillow's mode {image.mode}, are not of 8 bits")
            yield image
    except Exception as error:  # a damaged file can raise any error in Pillow
        problem = f"{printable(path)} is no image that can be read ({error})"
        raise ValueError(f"{problem}; remove or replace it") from error


def of_many_bits(image: Any) -> bool:
    """Whether values in an opened file have more than 8 bits, of which Pillow would drop the lower ones."""
    if image.format == "JPEG2000":
        place = image.fp.tell()
        image.fp.seek(0)
        _, found, sizes = image.fp.read(2**20).partition(b"\xff\x4f\xff\x51")
        image.fp.seek(place)
        return bool(found) and max(sizes[38::3][: sizes[37]]) & 127 > 7  # each colour's bits less one
    codec, _, _, how = image.tile[0] if image.tile else ("",) * 4
    most = how[1] if image.format == "PPM" and isinstance(how, tuple) else 255
    bits = getattr(image, "tag_v2", {}).get(258, (8,))  # BitsPerSample of a TIFF
    # of Pillow's raw modes, BGR;16 has 5 and 6 bits
    return most > 255 or max(bits) > 8 or bool(re.search("(?<!BGR);16|SGI16", f"{codec} {how}"))


class Photographs:
    """N image files that can replace a tensor (N, 3, H, W) uint8: len, shape, indexing, split.

    Indices are those that a tensor takes. Indexing gives decoded RGB pixels, a new tensor each time. For
    training, `crops` cuts the views out of photographs of any size and decodes each photograph once.
    Photographs are turned upright by their EXIF orientation, and transparent pixels show white. Errors name
    the file.

    Args:
        paths: the files, in order, in a format of ENDINGS, of 8 bits. Of several pages or frames the first
            is taken. Raises ValueError if there are none, or if the first is no image.
        size: pixels; the shorter side is resized to it and the centre cropped square. None keeps the sizes
            of the files, and indexing then needs files of one size.
    """

    dtype, device, ndim = torch.uint8, torch.device("cpu"), 4

    def __init__(self, paths: Iterable[str | os.PathLike], size: int | None = None):
        self.size = None if size is None else integer("size", size, least=1)
        self.paged: dict[str, int] = {}  # the first file met that has several pages
        # One array of bytes: reference counts would make every worker copy a list of strings.
        self._paths = np.array([os.fsencode(path) for path in paths])
        if not len(self._paths):
            raise ValueError("paths must hold at least one file, got none")
        width, height = self.sides(0)
        self.threads = THREADS if width * height >= WORTH_THREADS else 1
        self.shape = torch.Size((len(self), 3, size or height, size or width))

    def __len__(self) -> int:
        return len(self._paths)

    def path(self, i: int) -> str:
        return os.fsdecode(self._paths[i])

    def subset(self, index: Any) -> "Photographs":
        """The files at these indices, still not decoded."""
        part = Photographs(self._paths[self._chosen(index).numpy()], self.size)
        part.paged = self.paged
        return part

    def __getitem__(self, index: Any) -> Tensor:
        """Pixels uint8: (3, H, W) for an int, (n, 3, H, W) for a slice, a list, a mask or a tensor.

        Raises ValueError for a damaged file or, with `size` None, for one of another size than the first.
        """
        chosen = self._chosen(index)
        images = torch.empty(chosen.numel(), *self.shape[1:], dtype=torch.uint8)
        pixels = images.numpy()

        def fill(place: tuple[int, int]) -> None:
            pixels[place[0]] = self._picture(place[1])

        _each(fill, enumerate(chosen.flatten().tolist()), self.threads)
        return images.reshape(*chosen.shape, *self.shape[1:])

    def split(self, batch: int) -> Iterator[Tensor]:
        """The images in order, in batches; the next batch is decoded ahead."""
        parts = list(torch.arange(len(self)).split(integer("batch", batch, least=1)))
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self.__getitem__, parts[0])
            for part in parts[1:]:
                ready, coming = coming.result(), ahead.submit(self.__getitem__, part)
                yield ready
            yield coming.result()

    def crops(self, index: Any, views: Sequence[View], draws: Tensor) -> list[Tensor]:
        """The crops of the views, without mirroring and colours, which `views.finish` adds on any device.

        Each photograph is decoded once, and its crops are cut at full resolution, whatever `size` is. If
        all crops of a JPEG shrink at least by 2, 4 or 8, it is decoded smaller by that factor; grey levels
        then change a little.

        Takes n indices, V views, and draws (n, V, 36) of `views.draw`. A view without a size takes the side
        of the images, which must be square.
        Returns (V_g, n, 3, S_g, S_g) uint8 for each group of `views.by_size`.
        Raises ValueError if a file is damaged, if the draws are for other views or images, or if a view has
        a border or no known side.
        """
        chosen = self._chosen(index).tolist()
        groups, side, worker = by_size(views), self.shape[2], get_worker_info()
        share = (os.cpu_count() or 1) // (worker.num_workers if worker else 1)
        threads = max(1, min(self.threads, share))
        check_draws(draws, len(chosen), len(views))
        if padded := [view.padding for view in views if view.padding]:
            raise ValueError(f"padding must be 0 for crops read from files, got {padded[0]}; set size")
        if side != self.shape[3] and not all(view.size for view in views):
            got = f"None for images {tuple(self.shape[1:])}; give View(size=...)"
            raise ValueError(f"views must have a size for photographs that are not square, got {got}")
        sides = [view.size or side for view in views]
        filters = [Image.Resampling[view.interpolation.upper()] for view in views]
        width, height = torch.tensor(_each(self.sides, chosen, threads)).reshape(-1, 2).T
        cuts = boxes(views, draws, height, width)
        out = [torch.empty(len(g), len(chosen), 3, *[sides[g[0]]] * 2, dtype=torch.uint8) for g in groups]
        pixels = {v: x[k].numpy() for x, group in zip(out, groups) for k, v in enumerate(group)}

        def fill(i: int) -> None:
            with opened(self.path(chosen[i])) as image:
                for v, crop in enumerate(_cuts(image, cuts[:, i].tolist(), sides, filters)):
                    pixels[v][i] = crop
                self._tell_pages(image, chosen[i])

        _each(fill, range(len(chosen)), threads)
        return out

    def verify(self) -> None:
        """Decode every file, which takes as long as reading an epoch.

        Raises ValueError that names all files that are no images or truncated.
        """
        bad: list[str] = []
        for part in torch.arange(len(self)).split(10_000):
            bad += filter(None, complaints(part.tolist(), self.upright))
        if bad:
            raise ValueError("; ".join(bad))

    def _chosen(self, index: Any) -> Tensor:
        return torch.arange(len(self))[index]

    def sides(self, i: int) -> tuple[int, int]:
        """Width and height in pixels of the upright image."""
        with opened(self.path(i)) as image:
            return image.size[::-1] if orientation(image) in (5, 6, 7, 8) else image.size

    def upright(self, i: int) -> Image.Image:
        """Image i, decoded and turned upright, in RGB."""
        with opened(self.path(i)) as image:
            picture = upright(image)
            self._tell_pages(image, i)
        return picture

    def _tell_pages(self, image: Any, i: int) -> None:
        """Warn, once for the set, if the decoded file i has more pages or frames than the first."""
        if self.paged or image.format in ("MPO", "PSD") or ((one := get_worker_info()) and one.id):
            return  # the first frame of these formats is the whole picture; one worker tells
        with suppress(Exception):  # it can have no pages, or damaged ones, which are not read
            if image.is_animated and self.paged.setdefault("first", i) == i:  # of threads, one is the first
                got = f"{printable(self.path(i))} has {image.n_frames} pages or frames"
                warnings.warn(f"{got}; the first is taken, also of other such files in the set", stacklevel=2)

    def _picture(self, i: int) -> np.ndarray:
        """Image i as RGB pixels (3, H, W), resized and cropped to `size` if given."""
        picture = self.upright(i)
        width, height = picture.size
        if self.size is not None:
            picture = ImageOps.fit(picture, (self.size, self.size), Image.Resampling.BILINEAR)
        elif (height, width) != self.shape[2:]:
            first = f"{printable(self.path(0))} of {self.shape[3]}x{self.shape[2]}"
            got = f"{first} and {printable(self.path(i))} of {width}x{height}"
            remedy = "load them with size=, or pretrain with view_size (--view-size)"
            raise ValueError(f"images must be of one size, got {got}; {remedy}")
        return np.asarray(picture).transpose(2, 0, 1)


def _each(do: Callable[[Any], Any], over: Iterable, threads: int) -> list:
    """The results of `do` for each item, computed in that many threads; the first error is raised."""
    if threads == 1:
        return list(map(do, over))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(do, over))


def complaints(items: Sequence[Any], check: Callable[[Any], object]) -> list[str]:
    """For each item what is wrong with it: the message of the ValueError that `check` raises, or nothing."""

    def complaint(item: Any) -> str:
        try:
            check(item)
        except ValueError as error:
            return str(error)
        return ""

    return _each(complaint, items, THREADS)


def _cuts(
    image: Image.Image, cuts: list[list[float]], sides: list[int], filters: list[Image.Resampling]
) -> Iterator[np.ndarray]:
    """Boxes (top, left, height, width) of an upright image, each resized to its side S: (3, S, S)."""
    width, height = image.size
    spare = min(min(cut[2:]) / side for cut, side in zip(cuts, sides))
    reduction, drafted = next((r for r in REDUCTIONS if r <= spare), 1), None
    if reduction > 1:
        drafted = image.draft(None, (width // reduction, height // reduction))
    scale = drafted[1][2] / width if drafted else 1
    picture = upright(image)
    for cut, side, by in zip(cuts, sides, filters):
        top, left, tall, wide = (x * scale for x in cut)
        x, y = math.floor(left), math.floor(top)
        # cropped before it is resized: the filter must not reach across the crop's edge
        part = picture.crop((x, y, math.ceil(left + wide), math.ceil(top + tall)))
        box = (left - x, top - y, left + wide - x, top + tall - y)
        yield np.asarray(part.resize((side, side), by, box)).transpose(2, 0, 1)

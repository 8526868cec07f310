"""Landmark retrieval on revisited Oxford and Paris, after Radenović et al. 2018 (GroCo, table 2)."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

from setclr.checks import choice, integer
from setclr.evaluation.frozen import features as features_of

# The images to find and the images to ignore.
PROTOCOLS = {"medium": (("easy", "hard"), ("junk",)), "hard": (("hard",), ("easy", "junk"))}
CUTS = (1, 5, 10)  # the k of mP@k
VGG = "https://www.robots.ox.ac.uk/~vgg/data"
PAGES = {"roxford5k": f"{VGG}/oxbuildings/", "rparis6k": f"{VGG}/parisbuildings/"}
GROUND_TRUTH = "http://cmp.felk.cvut.cz/cnnimageretrieval/data/test"
PICKLED: tuple[Any, ...] = (np.empty(0).__reduce__()[0], np.empty(1).__reduce_ex__(5)[0],
                            np.float64(0).__reduce__()[0], np.ndarray, np.dtype)  # fmt: skip
REBUILDERS = {one.__name__: one for one in PICKLED}  # numpy pickles arrays and numbers with these


def average_precision(ranks: np.ndarray) -> float:
    """Area under the precision-recall curve, by trapezoids, as the protocol's authors compute it.

    A positive of rank r with j positives before it adds the mean of two precisions: just before it, j / r
    (1 for r = 0), and with it, (j + 1) / (r + 1). scikit-learn's average_precision_score adds the second
    alone and is larger or equal; the auc of its precision_recall_curve equals this area. `ranks` (n,) are
    those of all positives, from 0, ascending.
    """
    found = np.arange(len(ranks))
    before = np.where(ranks == 0, 1.0, found / np.maximum(ranks, 1))
    return float((before + (found + 1) / (ranks + 1)).mean() / 2)


def landmarks(
    similarity: Tensor, easy: Sequence, hard: Sequence, junk: Sequence, cuts: Sequence[int] = CUTS
) -> pd.DataFrame:
    """Mean average precision and mean precision at k by the revisited Oxford and Paris protocol.

    Medium: easy and hard images are to be found, junk is ignored. Hard: hard images are to be found, easy
    ones and junk are ignored. Ignored images are removed before ranks are counted. Queries with nothing
    to find are left out. Where the last positive's rank is smaller than k, precision at k is the
    precision at that rank.

    Args:
        similarity: (Q, N) of queries and images, the larger the better; ties go to the first image.
        easy, hard, junk: for each of Q queries a sequence of indices of images.

    Returns rows medium and hard. Columns are mAP, mP@k for each k of `cuts`, in per cent (NaN where no
    query is left), and queries, the number of queries that count. Raises ValueError where an argument is
    not as above. Cost: O(Q N log N).
    """
    cuts = [integer("cuts", k, least=1) for k in cuts]
    if similarity.ndim != 2 or not similarity.numel() or not similarity.isfinite().all():
        raise ValueError(f"similarity must be finite and (Q, N), got shape {tuple(similarity.shape)}")
    of = {"easy": easy, "hard": hard, "junk": junk}
    of = {name: _indices(name, lists, *similarity.shape) for name, lists in of.items()}
    order = similarity.argsort(dim=1, descending=True, stable=True).numpy(force=True)
    rows = {}
    for row, (wanted, ignored) in PROTOCOLS.items():
        precisions = []
        for q in range(len(order)):
            positive, aside = (np.concatenate([of[name][q] for name in names]) for names in (wanted, ignored))
            if len(positive):
                ranks = _ranks(order[q], positive, aside)
                some = np.minimum(cuts, ranks.max() + 1)
                precisions.append([average_precision(ranks), *((ranks[:, None] < some).sum(0) / some)])
        means = 100 * np.mean(precisions, axis=0) if precisions else [np.nan] * (1 + len(cuts))
        rows[row] = [*means, len(precisions)]
    table = pd.DataFrame.from_dict(rows, "index", columns=["mAP", *(f"mP@{k}" for k in cuts), "queries"])
    return table.astype({"queries": int})


def _indices(name: str, lists: Sequence, Q: int, N: int) -> list[np.ndarray]:
    """The lists as arrays, each image once. Raises ValueError unless they are Q lists of indices below N."""
    if len(lists) != Q:
        raise ValueError(f"{name} must hold a list of images for each of {Q} queries, got {len(lists)}")
    arrays = [np.asarray(one).reshape(-1) for one in lists]
    for q, one in enumerate(arrays):
        if len(one) and (one.dtype.kind not in "iu" or one.min() < 0 or one.max() >= N):
            raise ValueError(f"{name}[{q}] must be indices of images, from 0 to {N - 1}, got {one.tolist()}")
    return [np.unique(one).astype(int) for one in arrays]


def _ranks(order: np.ndarray, positive: np.ndarray, aside: np.ndarray) -> np.ndarray:
    """The positives' ranks, from 0, ascending, in the ranking without the images `aside`."""
    found, junk = (np.flatnonzero(np.isin(order, some)) for some in (positive, aside))
    return found - np.searchsorted(junk, found)


@dataclass(frozen=True)
class Landmarks:
    """A landmark set: its images, its queries, and for each query the images to find or to ignore."""

    images: list[Path]  # N files
    queries: list[Path]  # Q files
    boxes: np.ndarray  # (Q, 4) left, top, right, bottom of the landmark in the query, pixels
    easy: list[np.ndarray]
    hard: list[np.ndarray]
    junk: list[np.ndarray]


def load_landmarks(name: str, root: str | Path = "data") -> Landmarks:
    """A landmark set, "roxford5k" or "rparis6k", as distributed: root/NAME/gnd_NAME.pkl and
    root/NAME/jpg.

    Raises FileNotFoundError, with the address to get them from, where the ground truth or images are
    missing; ValueError where the ground truth is damaged, or would run code when it is read.
    """
    choice("name", name, PAGES)
    folder = Path(root, name)
    path = folder / f"gnd_{name}.pkl"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; fetch {GROUND_TRUTH}/{name}/{path.name}")
    try:
        with path.open("rb") as file:
            found = _Plain(file, encoding="latin1").load()
        images, queries = ([folder / "jpg" / f"{i}.jpg" for i in found[key]] for key in ("imlist", "qimlist"))
        boxes = np.array([np.asarray(one["bbx"], dtype=float).reshape(4) for one in found["gnd"]])
        lists = {key: [one[key] for one in found["gnd"]] for key in ("easy", "hard", "junk")}
        lists = {key: _indices(key, some, len(queries), len(images)) for key, some in lists.items()}
    except Exception as error:  # a damaged pickle can raise any exception
        raise ValueError(f"{path} is not the ground truth of {name} ({error}); fetch it again") from error
    missing = [file for file in dict.fromkeys(images + queries) if not file.is_file()]
    if missing:
        remedy = f"put the pictures of {PAGES[name]} into {folder / 'jpg'}, all in that one folder"
        raise FileNotFoundError(f"{missing[0]} is missing, and {len(missing) - 1} more; {remedy}")
    return Landmarks(images, queries, boxes, **lists)


class _Plain(pickle.Unpickler):
    """An unpickler for plain containers, numbers, strings and numpy's arrays. It refuses code."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in REBUILDERS:
            return REBUILDERS[name]
        if (module, name) == ("_codecs", "encode"):  # bytes as pickled for old versions of Python
            return lambda text, _: text.encode("latin1")
        if (module, name) == ("__builtin__", "bytes"):  # empty bytes, likewise
            return lambda: b""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}; only numpy's arrays are allowed")


def landmark_features(
    encoder: nn.Module, found: Landmarks, size: int = 224, multiple: int = 1
) -> tuple[Tensor, Tensor]:
    """Features (Q, D) of the queries, cropped to their boxes, and (N, D) of the images, of unit length.

    Images go through the encoder whole and one by one; a longer side above `size` is shrunk to it. The
    GroCo paper follows DINO's program (Caron et al. 2021), which does so at 224 but does not crop the
    queries.

    The encoder needs images whose sides are multiples of `multiple` pixels, and sides are rounded to
    these: 16 for "vit-small16-moco". The encoder is not changed. Raises ValueError, naming the file,
    where a file cannot be read. Cost: a forward pass for each image; one image is held at once.
    """
    integer("multiple", multiple, least=1)
    integer("size", size, least=multiple)
    boxes = [*map(tuple, found.boxes), *[None] * len(found.images)]
    files = tqdm([*found.queries, *found.images], desc="landmarks", unit="image")
    rows = [features_of(encoder, _picture(path, box, size, multiple)) for path, box in zip(files, boxes)]
    both = F.normalize(torch.cat(rows), dim=1)
    return both[: len(found.queries)], both[len(found.queries) :]


def _picture(path: Path, box: tuple | None, size: int, multiple: int) -> Tensor:
    """An image, or the part of it inside the box, resized: (1, 3, H, W) uint8."""
    try:
        with Image.open(path) as image:
            picture = image.convert("RGB").crop(box) if box else image.convert("RGB")
        shrink = min(1.0, size / max(picture.size))
        sides = [max(1, round(side * shrink / multiple)) * multiple for side in picture.size]
        pixels = np.array(picture.resize(sides, Image.Resampling.BILINEAR))
    except Exception as error:  # Pillow's decoders can raise any exception
        raise ValueError(f"{path} is no image that can be read ({error}); replace it") from error
    return torch.from_numpy(pixels).permute(2, 0, 1)[None]

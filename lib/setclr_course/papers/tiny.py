"""tiny-imagenet (for table 2): 200 classes of 500 images, fetched if they are missing."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from setclr.data import ImageSet
from setclr.data.downloads import downloading
from setclr.data.folders import Files, by_class, labelled

TINY = "tiny-imagenet-200"
TINY_URL = "https://cs231n.stanford.edu/tiny-imagenet-200.zip"
# The archive has 248,100,043 bytes. Its makers publish no digest; others all publish this one.
TINY_MD5 = "90528d7ca1a48142e341f4ef8d21d0de"


def tiny_imagenet(folder: Path, split: str, size: int | None, stream: bool | None) -> ImageSet:
    """The images in tiny-imagenet-200 beside `folder`, as the archive unpacks; it is fetched if missing.

    wnids.txt lists the classes; val_annotations.txt gives the class of each test image.
    """
    folder = folder.with_name(TINY)
    if not folder.is_dir():
        fetch(folder)
    wnids = sorted((folder / "wnids.txt").read_text().split())
    if split == "train":
        return by_class({wnid: folder / "train" / wnid / "images" for wnid in wnids}, size, stream)
    paths: Files = {wnid: [] for wnid in wnids}
    for line in (folder / "val" / "val_annotations.txt").read_text().splitlines():
        name, wnid, *_ = line.split("\t")
        paths[wnid].append(os.path.join(folder, "val", "images", name))
    return labelled(paths, size, stream)


def fetch(folder: Path) -> None:
    from torchvision.datasets.utils import download_and_extract_archive

    root = folder.parent
    root.mkdir(parents=True, exist_ok=True)
    missing = f"tiny-imagenet is not under {folder}, nor whole in {folder}.zip,"
    with TemporaryDirectory(dir=root) as unfinished:
        with downloading(missing, f"fetch {TINY_URL} and put it into {root}"):
            download_and_extract_archive(TINY_URL, root, unfinished, md5=TINY_MD5)  # or takes what is there
        os.replace(Path(unfinished, TINY), folder)

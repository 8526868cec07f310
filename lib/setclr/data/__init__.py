"""Data sets by name as an `ImageSet`: images that lie in memory, or photographs that are read when needed."""

from setclr.extras import extra

with extra("train"):
    from setclr.data.folders import FOLDER, TREES
    from setclr.data.photographs import Photographs
    from setclr.data.sets import NAMES, ImageSet, load, pretraining_split

__all__ = ["FOLDER", "NAMES", "TREES", "ImageSet", "Photographs", "load", "pretraining_split"]

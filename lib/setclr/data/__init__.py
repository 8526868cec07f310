"""Data sets by name as an `ImageSet`: images that lie in memory, or photographs that are read when needed."""

from setclr.extras import extra

with extra("train"):
    from setclr.data.folders import FOLDER, TREES
    from setclr.data.photographs import Photographs
    from setclr.data.sets import NAMES, ImageSet, load, pretraining_split
    from setclr.data.wrapped import image_set

__all__ = ["FOLDER", "NAMES", "TREES", "ImageSet", "Photographs", "image_set", "load", "pretraining_split"]

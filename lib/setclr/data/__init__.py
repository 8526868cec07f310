"""Data sets by name as an `ImageSet`: images in RAM, or photographs that are read from files on demand."""

from setclr.extras import extra

with extra("train"):
    from setclr.data.folders import FOLDER, TREES
    from setclr.data.pairs import STEREO, Pairs, is_paired, paired, split_pairs, two_views
    from setclr.data.photographs import Photographs
    from setclr.data.sets import NAMES, ImageSet, load, pretraining_split
    from setclr.data.wrapped import image_set

__all__ = ["FOLDER", "NAMES", "STEREO", "TREES", "ImageSet", "Pairs", "Photographs", "image_set", "is_paired",
           "load", "paired", "pretraining_split", "split_pairs", "two_views"]  # fmt: skip

"""Sets of images by name (`setclr.data_sets`), in RAM, or as photographs that are read from files."""

from setclr.extras import extra

with extra("train"):
    from setclr.data.folders import skip_damaged
    from setclr.data.pairs import Pairs, paired, split_pairs, two_views
    from setclr.data.photographs import Photographs
    from setclr.data.sets import ImageSet, load
    from setclr.data_sets import NAMES, known

__all__ = ["NAMES", "ImageSet", "Pairs", "Photographs", "known", "load", "paired", "skip_damaged",
           "split_pairs", "two_views"]  # fmt: skip

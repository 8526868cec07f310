"""Questions that answer back: `predict`, then `check`; a `card` a loss, and one `sheet` for all."""

from setclr_course.teach.answers import check
from setclr_course.teach.cards import card
from setclr_course.teach.predictions import predict
from setclr_course.teach.sheets import sheet

__all__ = ["card", "check", "predict", "sheet"]

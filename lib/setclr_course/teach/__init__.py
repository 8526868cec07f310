"""Questions that answer back: `predict` before a picture, `check` after an exercise; a `card` a loss."""

from setclr_course.teach.answers import check
from setclr_course.teach.cards import card
from setclr_course.teach.predictions import predict

__all__ = ["card", "check", "predict"]

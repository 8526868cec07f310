"""Questions that answer back: `predict` before a picture, `check` after an exercise; a `card` a loss."""

from setclr.teach.answers import check
from setclr.teach.cards import card
from setclr.teach.predictions import predict

__all__ = ["card", "check", "predict"]

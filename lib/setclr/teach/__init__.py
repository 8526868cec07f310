"""Questions that answer back: `predict` before a picture, `check` after an exercise."""

from setclr.teach.answers import check
from setclr.teach.predictions import predict

__all__ = ["check", "predict"]

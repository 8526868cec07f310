"""Encoders by name, and the projection heads that stand on them while they train."""

from setclr.models.encoders import ENCODERS, encoder
from setclr.models.heads import ACTIVATIONS, head
from setclr.models.local import LocalFeatures, LocalHead

__all__ = ["ACTIVATIONS", "ENCODERS", "LocalFeatures", "LocalHead", "encoder", "head"]

"""Encoders by name, and the projection heads that are trained with them."""

from setclr.models.encoders import ENCODERS, check_encoder, encoder
from setclr.models.heads import ACTIVATIONS, head
from setclr.models.local import LocalFeatures, LocalHead

__all__ = ["ACTIVATIONS", "ENCODERS", "LocalFeatures", "LocalHead", "check_encoder", "encoder", "head"]

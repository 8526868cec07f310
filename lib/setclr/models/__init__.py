"""Encoders by name, and the projection heads that are trained with them."""

from setclr.models.encoders import ENCODERS, INITIAL, NORMALISED, check_encoder, encoder
from setclr.models.heads import ACTIVATIONS, head

__all__ = ["ACTIVATIONS", "ENCODERS", "INITIAL", "NORMALISED", "check_encoder", "encoder", "head"]

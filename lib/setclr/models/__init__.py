"""Encoders by name, and the projection heads that are trained with them."""

from setclr.models.encoders import ACTIVATIONS, ENCODERS, INITIAL, NORMALISED, check_encoder, encoder, head

__all__ = ["ACTIVATIONS", "ENCODERS", "INITIAL", "NORMALISED", "check_encoder", "encoder", "head"]

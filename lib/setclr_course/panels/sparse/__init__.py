"""Sparsemax and its support: which negatives get nothing."""

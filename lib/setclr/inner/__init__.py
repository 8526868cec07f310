"""The inner problems: small matching problems as pure functions of tensors."""

from setclr.inner.sorting import sorting_network, top_probability

__all__ = ["sorting_network", "top_probability"]

"""The inner problems: small matching problems as pure functions of tensors."""

from setclr.inner.assignment import linear_assignment, quadratic_assignment, spectral_bounds
from setclr.inner.margin import kernel, svm_dual
from setclr.inner.simplex import sparsemax
from setclr.inner.sorting import sorting_network, top_probability
from setclr.inner.transport import sinkhorn

__all__ = [
    "kernel",
    "linear_assignment",
    "quadratic_assignment",
    "sinkhorn",
    "sorting_network",
    "sparsemax",
    "spectral_bounds",
    "svm_dual",
    "top_probability",
]

"""Quadratic assignment: what pairs do not see of a set, and its bound by eigenvalues."""

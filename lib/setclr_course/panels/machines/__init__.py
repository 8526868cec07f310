"""Support-vector machines: the plane, the solvers, and images as support vectors."""

"""Numbers as the panels on sparsemax write them."""


def brief(p: float) -> str:
    """A probability in a few letters; only 0 is written 0, and only 1 is written 1."""
    if p in (0, 1):
        return f"{p:.0f}"
    return f"{p:.2f}".lstrip("0")[:3] if p >= 0.005 else f"{p:.0e}".replace("e-0", "e-")

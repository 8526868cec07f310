"""Numbers as the panels on sparsemax write them."""


def signed(number: str) -> str:
    """With a true minus sign."""
    return number.replace("-", "−")


def brief(p: float) -> str:
    """A probability in a few letters; only 0 is written 0."""
    if p == 0:
        return "0"
    return f"{p:.2f}".lstrip("0") if p >= 0.005 else f"{p:.0e}".replace("e-0", "e-")

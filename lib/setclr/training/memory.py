"""Too little memory, said in a line that names what to make smaller."""

from collections.abc import Iterator
from contextlib import contextmanager

SIGNS = ("can't allocate memory", "not enough memory", "out of memory")  # of torch's allocators


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a CPU or a GPU."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(sign in said for sign in SIGNS)
    )


@contextmanager
def enough(what: str, remedy: str) -> Iterator[None]:
    """Raises MemoryError, in one line, where the block runs out of memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not ran_out(error):
            raise
        reason = str(error).strip().splitlines() or ["no memory"]
        raise MemoryError(f"{what} does not fit ({reason[0]}); {remedy}") from error

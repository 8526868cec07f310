"""One item of a user's Dataset. An error in the user's code keeps its type and cause, and names the item."""

from typing import Any


def item_of(dataset: Any, index: int) -> Any:
    """`dataset[index]`.

    Raises what the Dataset raises, of the same type if that takes a message, else RuntimeError. The message
    names the item and the error, and the error itself is the cause.
    """
    try:
        return dataset[index]
    except Exception as error:
        raise named(error, f"item {index} of {type(dataset).__name__}") from error


def named(error: Exception, what: str) -> Exception:
    """An error of the same type whose message says where it came from; RuntimeError if that takes none."""
    said = f"{what} raised {type(error).__name__}: {error}"
    try:
        made = type(error)(said)
    except Exception:
        return RuntimeError(said)
    return made if said in map(str, made.args) else RuntimeError(said)

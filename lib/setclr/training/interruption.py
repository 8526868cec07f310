"""Ctrl-C and SIGTERM stop training between two steps, with a checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal, after a whole step.

    `signal` is the signal's number; SIGTERM if another process received it.

    >>> from setclr.training import Interrupted
    >>> try:
    ...     raise Interrupted("stopped after epoch 3", 15)  # as Trainer.fit does
    ... except Interrupted as stop:
    ...     print(stop, stop.signal)
    stopped after epoch 3 15
    """

    def __init__(self, message: str, number: int = signal.SIGTERM):
        super().__init__(message)
        self.signal = number


@contextmanager
def asked_to_stop() -> Iterator[list[int]]:
    """The list gets the number of the first SIGINT or SIGTERM, which does no more; a second acts as before.

    Python gives signals to the main thread alone: in another thread the context changes nothing.
    """
    signals: list[int] = []
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: object) -> None:
        signals.append(number)
        restore()

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        restore()

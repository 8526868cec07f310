"""Ctrl-C and SIGTERM stop training between two steps, with a checkpoint."""

import signal
import threading
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

    def __init__(self, message: str, number: int | None):
        super().__init__(message)
        self.signal = number or signal.SIGTERM


class Interruption:
    """A context in which the first SIGINT or SIGTERM only sets `asked`; a second one acts as before.

    Python gives signals to the main thread alone: in another thread the context changes nothing.
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            self._before = {n: signal.signal(n, self._ask) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _ask(self, number: int, frame: object) -> None:
        self.asked = number
        self.__exit__()

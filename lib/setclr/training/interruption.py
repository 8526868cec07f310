"""Ctrl-C and SIGTERM as a request that the loop answers between two steps, with a checkpoint."""

import signal
import threading
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Training stopped after a whole step. `signal` is its number, SIGTERM where another process got it."""

    def __init__(self, message: str, number: int | None):
        super().__init__(message)
        self.signal = number or signal.SIGTERM


class Interruption:
    """Inside this context the first SIGINT or SIGTERM only sets `asked`; a second one acts as before.
    Python gives signals to the main thread alone: in another thread nothing changes."""

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

"""What the parts share: each try ends well or is refused in words; all else is a finding."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Outcome = tuple[dict[str, int], list[str]]
RAN = "a stranger's code ran"  # the name of what hostile code makes


class Tries:
    """Counts what was tried and what was refused, and keeps what did not hold.

    A refusal is one of these errors and says something; where `line`, no more than a line.
    """

    def __init__(self, *refusals: type[BaseException], line: bool = True):
        self.refusals, self.line = refusals or (ValueError,), line
        self.counts, self.findings = Counter({"tried": 0, "refused": 0, "good": 0}), list[str]()

    def one(self, text: str, do: Callable[[], Any], judged: Callable[[Any], str] = lambda value: "") -> None:
        """Try it; `judged` says what is wrong with what it gives, or ""."""
        self.counts["tried"] += 1
        try:
            wrong = judged(do())
            self.counts["good"] += not wrong
        except self.refusals as error:
            self.counts["refused"] += 1
            said = str(error)
            good = 10 < len(said) < 4000 + 2 * len(text) and not (self.line and "\n" in said)
            wrong = "" if good else f"it says {said[:600]!r}"
        except BaseException as error:
            wrong = f"{type(error).__name__}: {str(error)[:500]}, raised in {_where(error)}"
        self.findings += [f"{text[:600]}: {wrong}"] * bool(wrong)

    def outcome(self) -> Outcome:
        return dict(self.counts), self.findings


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "?"

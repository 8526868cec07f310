"""The command line: experiments from a terminal.

setclr COMMAND …, or python -m setclr COMMAND …; setclr COMMAND --help lists a command's options.

recipes [WORD ...]            the recipes whose names have these words, with the papers' results and ours
data [NAME ...]               list the data sets, or load some and describe them
pretrain RECIPE --out FOLDER  train, or resume a run; every field of the recipe is an option
campaign FILTER               pretrain, evaluate and record recipes by a part of their names, three seeds
search FILTER                 the best learning rate and hyperparameter of each, then five seeds with these
evaluate RUN                  kNN and linear probe beside raw pixels and an untrained encoder
embed RUN FOLDER              features of your own images, any tree of files, as an .npz file
export RUN                    the encoder's weights for torchvision or timm
results [FOLDER]              the recorded results as a table

setclr --version prints the version.
"""

import errno
import os
import re
import signal
import sys
import threading
from typing import Any

import setclr


def main(words: list[str]) -> None:
    """Run the command that the words after `setclr` name, and import heavy packages only for it.

    Raises the errors of the command; ValueError if a word is unknown, with the nearest word.
    """
    if not words or words[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
    elif words[0] == "--version":
        print(f"setclr {setclr.__version__}")
    else:
        from setclr.cli.parsing import command

        command(words)()


def run() -> None:
    """Run the command `setclr` from a terminal.

    An error prints one line and exits with status 1. A signal prints one line and exits with 128 + its
    number. A second signal exits at once.
    """
    received: list[int] = []
    own = os.getpid()
    resend_timers: list[threading.Timer] = []

    def lost(what: Any) -> None:  # re-send an interrupt that `__del__` swallowed
        if not (received and isinstance(what.exc_value, KeyboardInterrupt)):
            return sys.__unraisablehook__(what)
        resend_timers.append(threading.Timer(0.05, os.kill, (own, received.pop())))
        resend_timers[-1].start()

    def stop(number: int, _: object) -> None:
        if os.getpid() != own:  # in a child process
            os._exit(128 + number)
        if received:  # a second signal, during the clean-up after the first
            ended(KeyboardInterrupt(), received)
            os._exit(128 + number)
        received.append(number)
        raise KeyboardInterrupt

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream := getattr(sys, name), "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal of ASCII has no ±
    ends = (n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN)
    before = {number: signal.signal(number, stop) for number in ends}
    sys.unraisablehook = lost
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        for number in before:  # from here on more signals print no second line
            signal.signal(number, signal.SIG_IGN)
        sys.exit(ended(error, received))
    finally:
        sys.unraisablehook = sys.__unraisablehook__
        for timer in resend_timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def silence() -> None:
    """Send what is still to be printed nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def ended(error: BaseException, received: list[int]) -> str | int:
    """The argument of sys.exit after an error: a line, or the status if the line has been printed already.

    Raises the error again if the user did not cause it. `received` are the signals that came; some packages
    turn the KeyboardInterrupt of a signal into errors of their own.
    """
    if received or isinstance(error, KeyboardInterrupt):
        number = getattr(error, "signal", None) or (received or [signal.SIGINT])[-1]
        told = isinstance(error, KeyboardInterrupt) and str(error)
        told = told or ("terminated" if number == signal.SIGTERM else "interrupted")
        print(f"setclr: {told}", file=sys.stderr)
        return 128 + number
    if isinstance(error, BrokenPipeError):  # the reader of the pipe, for example `head`, has closed it
        silence()
        return 1
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and not error.filename:
        silence()
        return shown(f"what is printed could not be written: {error.strerror}")
    users = ValueError | OSError | ArithmeticError | ModuleNotFoundError
    if isinstance(error, users) or (isinstance(error, MemoryError) and str(error)):
        return shown(as_typed(str(error)))
    from setclr.training.devices import is_oom

    if is_oom(error):
        reason = (str(error).strip().splitlines() or ["no memory is left"])[0]
        return shown(f"out of memory ({reason}); take a smaller batch, size, view_size or chunk")
    raise error


def as_typed(message: str) -> str:
    """A message whose arguments are spelt as a shell has them: resume=False is --no-resume, lr=1 is --lr 1.

    What stands in parentheses or quotes, such as a loss, stays.
    """

    def option(match: re.Match) -> str:
        name, value = match.groups()
        if name is None:
            return match[0]
        name = name.replace("_", "-")
        if value in ("True", "False"):
            return f"--{'no-' * (value == 'False')}{name}"
        return f"--{name} {value}".strip()

    return re.sub(r"\([^()]*\)|'[^']*'|(?<![\w/.-])([a-z_]+)=([^\s,;]*)", option, message)


def shown(line: str) -> str:
    """A line of the command as any terminal shows it: unprintable characters are escaped.

    Of more than 3,000 characters, which only text that the user typed has, the middle is left out.
    """
    from setclr.checks import printable

    line = printable(line)
    return f"setclr: {line if len(line) <= 3000 else f'{line[:2000]} … {line[-900:]}'}"

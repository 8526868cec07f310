"""The experiments from a terminal.

setclr COMMAND …, or python -m setclr COMMAND …; setclr COMMAND --help lists a command's options.

recipes [WORD ...]            the recipes whose names have these words: what a paper got, and what we did
data [NAME ...]               list the data sets, or load some and describe them
pretrain RECIPE --out FOLDER  train, or go on with a run; every field of the recipe is an option
campaign FILTER               pretrain, evaluate and record all recipes of that name, with three seeds
search FILTER                 the best rate and loss parameter of each, then five seeds with these
graphs WORD ...               pretrain on graphs, measure and record: MMCL's table 4
video WORD ...                the same on videos: MMCL's table 5, and moving-patches
evaluate RUN                  kNN and linear probe beside raw pixels and an untrained encoder
embed RUN FOLDER              features of your own images, any tree of files, as an .npz file
export RUN                    the encoder's weights for torchvision or timm
results [FOLDER]              the recorded results as a table

setclr --version names the version.
"""

import os
import signal
import sys
import threading
from typing import Any

import setclr


def main(words: list[str]) -> None:
    """Do what the words after `setclr` say. Nothing heavy is imported before a command needs it.

    Raises what the command does; ValueError where a word is unknown, naming the nearest.
    """
    if not words or words[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
    elif words[0] == "--version":
        print(f"setclr {setclr.__version__}")
    else:
        from setclr.cli.parsing import command

        command(words)()


def run() -> None:
    """The command `setclr`: an error ends in one line and status 1, a signal in one and 128 + its number. A
    second signal ends it at once."""
    asked: list[int] = []
    own = os.getpid()
    retold: list[threading.Timer] = []

    def lost(what: Any) -> None:  # an interrupt in a destructor, which no exception leaves, is sent once more
        if not (asked and isinstance(what.exc_value, KeyboardInterrupt)):
            return sys.__unraisablehook__(what)
        retold.append(threading.Timer(0.05, os.kill, (own, asked.pop())))
        retold[-1].start()

    def stop(number: int, _: object) -> None:
        if os.getpid() != own:  # a process that this one started
            os._exit(128 + number)
        if asked:  # a second one, while what the first one stopped is put in order
            ended(KeyboardInterrupt(), asked)
            os._exit(128 + number)
        asked.append(number)
        raise KeyboardInterrupt

    heard = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    sys.unraisablehook = lost
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, for example `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (Exception, KeyboardInterrupt) as error:
        for number in heard:  # the line is said once
            signal.signal(number, signal.SIG_IGN)
        sys.exit(ended(error, asked))
    finally:
        sys.unraisablehook = sys.__unraisablehook__
        for timer in retold:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def ended(error: BaseException, asked: list[int]) -> str | int:
    """What to exit with: a line, or a status after saying a line. Raises an error that is none of the user's.
    `asked` are the signals that came; some packages turn what they raise into errors of their own."""
    if asked or isinstance(error, KeyboardInterrupt):
        number = getattr(error, "signal", None) or (asked or [signal.SIGINT])[-1]
        interrupted = isinstance(error, KeyboardInterrupt) and str(error)
        said = interrupted or ("terminated" if number == signal.SIGTERM else "interrupted")
        print(f"setclr: {said}", file=sys.stderr)
        return 128 + number
    users = ValueError | OSError | ArithmeticError | ModuleNotFoundError
    if isinstance(error, users) or (isinstance(error, MemoryError) and str(error)):
        return shown(str(error))
    from setclr.training.devices import is_oom

    if is_oom(error):
        reason = (str(error).strip().splitlines() or ["no memory is left"])[0]
        return shown(f"out of memory ({reason}); take a smaller batch, size, view_size or chunk")
    raise error


def shown(said: str) -> str:
    """What the command says, as any terminal shows it: what is no character to print is written as its code,
    and of more than 3,000 characters, which only a text that was typed has, the middle is left out."""
    said = said if said.isprintable() else "".join(x if x.isprintable() else repr(x)[1:-1] for x in said)
    return f"setclr: {said if len(said) <= 3000 else f'{said[:2000]} … {said[-900:]}'}"

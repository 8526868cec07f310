"""The command line: experiments from a terminal.

setclr COMMAND …, or python -m setclr COMMAND …; setclr COMMAND --help lists a command's options.

recipes [WORD ...]            the recipes whose names have these words, with the papers' results and ours
data [NAME ...]               list the data sets, or load some and describe them
pretrain RECIPE --out FOLDER  train, or resume a run; every field of the recipe is an option
campaign FILTER               pretrain, evaluate and record recipes by a part of their names, three seeds
search FILTER                 the best learning rate and hyperparameter of each, then five seeds with these
evaluate RUN                  kNN and linear probe beside raw pixels and an untrained encoder
embed RUN FOLDER              features of your own images, any tree of files, as an .npz file
export RUN                    the encoder's weights, and the lines that load them
results [FOLDER]              the recorded results as a table

setclr --version prints the version.
"""

import os
import re
import signal
import sys

import setclr


def main(words: list[str]) -> None:
    """Run the command that the words after `setclr` name, and import heavy packages only for it.

    Raises the errors of the command; ValueError if a word is unknown, with the nearest word, or empty.
    """
    for before, word in zip(["setclr", *words], words):
        filtered = before in ("campaign", "search")  # an empty filter is all recipes, which --all confirms
        if (not word and not filtered) or word.endswith(("=", ":")):  # it would be the present folder
            place = f"after {before}" if not word else f"in {word}"
            raise ValueError(
                f"a value must be given {place}, got nothing; is a variable of the shell not set?"
            )
    if not words or words[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
    elif words[0] == "--version":
        print(f"setclr {setclr.__version__}")
    else:
        from setclr.cli.parsing import command

        command(words)()


def run() -> None:
    """Run the command `setclr` from a terminal.

    An error prints one line and exits with status 1. SIGINT and SIGTERM print one line and exit with 128 +
    their number. A second signal exits at once.
    """
    received: list[int] = []
    own = os.getpid()

    def stop(number: int, _: object) -> None:
        if received or os.getpid() != own:  # a second signal, or a child process
            os._exit(128 + number)
        received.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    if sys.stdout:  # None where the caller has closed it
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # ASCII has no ±
    try:
        main(sys.argv[1:])
        print(end="", flush=True)
    except (Exception, KeyboardInterrupt) as error:
        sys.exit(ended(error, received))


def ended(error: BaseException, received: list[int]) -> str | int:
    """The argument of sys.exit after an error: a line, or the status if the line has been printed already.

    Raises the error again if the user did not cause it. `received` are the signals that came; some packages
    turn the KeyboardInterrupt of a signal into errors of their own.
    """
    from setclr.checks import printable

    if received or isinstance(error, KeyboardInterrupt):
        number = getattr(error, "signal", None) or (received or [signal.SIGINT])[-1]
        stopped = isinstance(error, KeyboardInterrupt) and str(error)  # a Trainer says where it stopped
        stopped = stopped or ("terminated" if number == signal.SIGTERM else "interrupted")
        print(f"setclr: {stopped}", file=sys.stderr)
        return 128 + number
    if isinstance(error, BrokenPipeError):  # the reader of the pipe, for example `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    users = ValueError | OSError | ArithmeticError | ModuleNotFoundError
    if isinstance(error, users) or (isinstance(error, MemoryError) and str(error)):
        return f"setclr: {printable(as_typed(str(error)))}"
    from setclr.training.devices import is_oom

    if is_oom(error):
        reason = (str(error).strip().splitlines() or ["no memory is left"])[0]
        return f"setclr: out of memory ({reason}); take a smaller batch, size, view_size or chunk"
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

"""The experiments from a terminal.

setclr COMMAND …, or python -m setclr COMMAND …; setclr COMMAND --help lists a command's options.

recipes [WORD ...]            the recipes whose names have these words: what a paper got, and what we did
data [NAME ...]               list the data sets, or load some and describe them
pretrain RECIPE --out FOLDER  train, or go on with a run; every field of the recipe is an option
campaign FILTER               pretrain, evaluate and record all recipes of that name, with three seeds
search FILTER                 the best rate and loss parameter of each, then five seeds with these
evaluate RUN                  kNN and linear probe beside raw pixels and an untrained encoder
embed RUN FOLDER              features of your own images, any tree of files, as an .npz file
export RUN                    the encoder's weights for torchvision or timm
results [FOLDER]              the recorded results as a table

setclr --version names the version.
"""

import os
import sys

import setclr
from setclr.training.interruption import Interrupted


def main(words: list[str]) -> None:
    """Do what the words after `setclr` say. Nothing heavy is imported before a command needs it.

    Raises what the command does; ValueError where a word is unknown, naming the nearest.
    """
    if not words or words[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
    elif words[0] == "--version":
        print(f"setclr {setclr.__version__}")
    else:
        from setclr.cli.reading import command

        command(words)()


def run() -> None:
    """The command `setclr`: errors and interruptions end in one line and an exit status."""
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, for example `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError, ArithmeticError, MemoryError, ModuleNotFoundError) as error:
        sys.exit(f"setclr: {error}")
    except Interrupted as stopped:
        print(f"setclr: {stopped}", file=sys.stderr)
        sys.exit(128 + stopped.signal)
    except KeyboardInterrupt:
        print("setclr: interrupted", file=sys.stderr)
        sys.exit(130)

"""python -m setclr: the same as the command `setclr`."""

from setclr.cli import run

if __name__ == "__main__":
    run()

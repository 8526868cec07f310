"""SetCLR: contrastive losses as small matching problems, with a trainer and panels that make them movable."""

from importlib.metadata import version

__version__ = version("setclr")

"""SetCLR: contrastive losses as small matching problems, with a trainer and panels that make them movable."""

__version__ = "0.1.0"

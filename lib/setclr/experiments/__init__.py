"""Experiments: pretraining from recipes, and what a run is measured by."""

from setclr.extras import extra

with extra("train"):
    from setclr.experiments.kinds.image import embed_folder, evaluate
    from setclr.experiments.run import Run, load_run, new_run, pretrain, watch
    from setclr.experiments.weights import export

__all__ = ["Run", "embed_folder", "evaluate", "export", "load_run", "new_run", "pretrain",
           "watch"]  # fmt: skip

"""Experiments: pretraining from recipes, campaigns, records and tables."""

from setclr.extras import extra

with extra("train"):
    from setclr.experiments.campaigns import campaign
    from setclr.experiments.kinds.image import embed_folder, evaluate
    from setclr.experiments.records import summary
    from setclr.experiments.run import Run, export, load_run, new_run, pretrain, watch

__all__ = ["Run", "campaign", "embed_folder", "evaluate", "export", "load_run", "new_run", "pretrain",
           "summary", "watch"]  # fmt: skip

"""What a person reads of runs: tables, records of results, campaigns of many runs, searches,
comparisons, pages, exports, costs."""

from setclr.extras import extra

with extra("train"):
    from setclr.reports.campaigns import campaign
    from setclr.reports.exports import export
    from setclr.reports.records import summary
    from setclr.reports.searches import search
    from setclr.reports.tables import evaluate, evaluate_all

__all__ = ["campaign", "evaluate", "evaluate_all", "export", "search", "summary"]

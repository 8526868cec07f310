"""The search of a fair setting for each loss (`setclr search`), and tables and tests that compare losses."""

from setclr.extras import extra

with extra("train"):
    from setclr_course.search.searches import search

__all__ = ["search"]

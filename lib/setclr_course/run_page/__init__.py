"""The HTML page of a run, written by `setclr evaluate RUN --all` (entry point group "setclr.pages")."""

from setclr.extras import extra

with extra("lab"):
    import matplotlib as _matplotlib  # noqa: F401  # fail here, not after hours of measuring

    from setclr_course.run_page.html_page import page
    from setclr_course.run_page.measured import evaluate_all

__all__ = ["evaluate_all", "page"]

"""The page of a run, what `setclr evaluate RUN --all` writes (entry point group "setclr.pages")."""

from setclr.extras import extra

with extra("lab"):
    import matplotlib as _matplotlib  # noqa: F401  # missing, it is said before hours of measuring

    from setclr_course.run_page.measured import evaluate_all
    from setclr_course.run_page.html_page import page

__all__ = ["evaluate_all", "page"]

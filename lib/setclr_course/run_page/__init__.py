"""What the course adds to the commands (entry point group "setclr.pages").

`evaluate_all` and `page` make the HTML page of `setclr evaluate RUN --all`, `campaign` and
`search` are the commands of these names, `summary` and `everything` the tables of
`setclr results`.
"""

from setclr.extras import extra

with extra("lab"):
    import matplotlib as _matplotlib  # noqa: F401  # fail here, not after hours of measuring

    from setclr_course.run_page.html_page import page
    from setclr_course.run_page.measured import evaluate_all
    from setclr_course.search import search
    from setclr_course.search.campaigns import campaign
    from setclr_course.search.recorded import everything, summary

__all__ = ["campaign", "evaluate_all", "everything", "page", "search", "summary"]

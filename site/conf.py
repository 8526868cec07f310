"""How Sphinx makes the pages: theme, formulas, what the browser loads. `builder.py` calls it."""

import os
from pathlib import Path

import setclr
import setclr_course
from setclr import evaluation, training

for package in (evaluation, training):  # autodoc sees what is imported, not what would be at first use
    for member in package.__all__:
        setattr(package, member, getattr(package, member))

KIT = Path(setclr_course.__file__).parent / "kit"

LONG = [
    "api/*",
    "library",
    "training",
    "results",
    "teaching",
    "glossary",
]  # pages with a list of what is on them

project = "SetCLR"
author = "The SetCLR developers"
version = release = setclr.__version__
html_title = "SetCLR"
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.katex",
]
default_role = "py:obj"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
toc_object_entries_show_parents = "hide"

nb_execution_mode = "off"
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_heading_slug_func = "sources.as_in_jupyter"

katex_css_path = "katex/katex.min.css"
SIGNS = r"macros: {'★': '\\bigstar', '✚': '{\\boldsymbol{+}}', '✕': '\\times'}"  # KaTeX's letters lack ours
katex_options = f"throwOnError: false, strict: 'ignore', {SIGNS}"

html_theme = "pydata_sphinx_theme"
FRONT = [str(path) for path in (*KIT.glob("*.js"), KIT / "panel.css", *KIT.parent.glob("panels/*/*.js"))]
html_static_path = ["static", *FRONT, os.environ["SETCLR_STATIC"]]
templates_path = ["templates"]
html_css_files = ["panel.css", "site.css"]
html_js_files = [
    ("panels.js", {"type": "module"}),
    ("questions.js", {"type": "module"}),
    ("names.js", {"type": "module"}),
    ("opened.js", {"type": "module"}),
]
html_show_sourcelink = False
html_copy_source = False
html_permalinks_icon = "#"
html_favicon = "static/favicon.svg"
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "play": []}
html_theme_options = {
    "logo": {"text": "SetCLR"},
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "back_to_top_button": False,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": dict.fromkeys(LONG, ["page-toc"]),
    "article_footer_items": ["keys"],
    "footer_start": ["licence"],
    "footer_end": [],
}

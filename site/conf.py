"""How Sphinx makes the pages: theme, formulas, what the browser loads. `builder.py` calls it."""

import html
import os
import re
import textwrap
from pathlib import Path

import lighter
from sphinxcontrib import katex

import setclr
import setclr_course
from setclr import evaluation, training

for package in (evaluation, training):  # autodoc sees what is imported, not what would be at first use
    for member in package.__all__:
        setattr(package, member, getattr(package, member))

KIT = Path(setclr_course.__file__).parent / "kit"

ALONE = ("index", "play", "results", "teaching", "training", "search")  # no pages beside them

ADDRESS = os.environ.get("SETCLR_ADDRESS", "")  # of the site, with a stroke at its end, where it is known
html_baseurl = ADDRESS

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

katex_prerender = True  # so that no page loads KaTeX's script; lighter.py typesets them all at once
katex_css_path = "katex/katex.min.css"
katex.render_latex = lighter.delimited

html_theme = "pydata_sphinx_theme"
FRONT = [*KIT.glob("*.js"), *KIT.glob("*.woff2"), KIT / "panel.css", *KIT.parent.glob("panels/*/*.js")]
PICTURE = lighter.HERE.parent / "notebooks" / "pictures" / "one_idea.png"  # of a page that has none
html_static_path = ["static", *map(str, [*FRONT, PICTURE]), os.environ["SETCLR_STATIC"]]
templates_path = ["templates"]
html_css_files = ["panel.css", "site.css"]
html_js_files = [
    ("panels.js", {"type": "module"}),
    ("questions.js", {"type": "module"}),
    ("names.js", {"type": "module"}),
    ("symbols.js", {"type": "module"}),
    ("opened.js", {"type": "module"}),
]
html_use_index = html_domain_indices = False  # nothing leads there; the search finds every name
html_show_sourcelink = False
html_copy_source = False
html_permalinks_icon = "#"
html_favicon = "static/favicon.svg"
html_context = {"default_mode": "auto"}
html_sidebars = {"**": ["sidebar-nav-bs"], **dict.fromkeys(ALONE, [])}
html_theme_options = {
    "logo": {"text": "SetCLR"},
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "back_to_top_button": False,
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "search_bar_text": "Search the course",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "play": []},
    "article_footer_items": ["keys"],
    "footer_start": ["licence"],
    "footer_end": [],
}


def shared(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """What is said and shown of a page where its link is shared: its first lines and its first picture."""
    body = context.get("body") or ""
    lines = " ".join(re.sub(r"<[^>]*>", "", one) for one in re.findall(r"<p>(.*?)</p>", body, re.DOTALL)[:2])
    picture = re.search(r'<img[^>]*src="(?:\.\./)*([^"]+\.(?:png|webp))"', body)
    context["told"] = textwrap.shorten(html.unescape(lines), 200, placeholder=" …")
    root = ADDRESS or "../" * pagename.count("/")
    context["pictured"] = root + (picture[1] if picture else f"_static/{PICTURE.name}")


def setup(app) -> None:
    app.connect("html-page-context", shared)

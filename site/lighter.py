"""What a page loads, made light once Sphinx has written it: formulas are typeset here and not by the reader's
browser, and the style sheets become one, without the rules that no page uses. So the first paint waits for
two files, the page and its look. Here the losses get the colour in the text, too, that they have in pictures.
"""

import html
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from setclr_course.kit.palette import OF_LOSS

HERE = Path(__file__).resolve().parent
FORMULA = re.compile(r'(<(span|div) class="math[^>]*>)\s*\\([(\[])(.*?)\\[)\]]\s*(</\2>)', re.DOTALL)
SIGNS = {"★": r"\bigstar", "✚": r"{\boldsymbol{+}}", "✕": r"\times"}  # KaTeX's letters lack ours
OPTIONS = {"throwOnError": False, "strict": "ignore", "macros": SIGNS}
THEIRS = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "mystnb.*.css",
    "katex/katex.min.css",
)
OURS = ("panel.css", "site.css")
VARIABLE = re.compile(r"(?<=[{;])\s*(--(?!setclr)[\w-]+):(?:\"[^\"]*\"|\([^()]*\)|[^;{}()\"])*;?")
GROUPS = ("@media", "@supports", "@layer", "@container")
LOSS = re.compile(rf"\b({'|'.join(OF_LOSS)})\b")
PLAIN = ("a", "button", "h1", "h2", "h3", "math", "pre", "script", "summary", "svg")  # not coloured
LETTER = re.compile("[α-ω]")  # also in the text a symbol of the formulas, for symbols.js
OWN = '<span class="setclr-loss" style="--own:var(--setclr-{0},#{0})">{1}</span>'
ICON = re.compile(r'<(i|span) class="[^"]*fa-solid fa-([\w-]+)[^"]*"></\1>')
ICONS = {
    "bars": "☰",
    "magnifying-glass": "⌕",
    "angle-left": "‹",
    "angle-right": "›",
    "chevron-down": "⌄",
    "outdent": "≡",
}
COURSE_FIRST = "(found) => found[4] - (found[0].includes('/') ? 1000 : 0)"  # folders: careful, api
UNSEEN = '[".headerlink", "script", "style"'
SEARCH = {
    "var Scorer = {": f"var Scorer = {{ score: {COURSE_FIRST},",
    "      htmlString,\n": "      htmlString.replace(/<\\/t[dh]>/g, ' $&'),\n",
    f"{UNSEEN}]": f'{UNSEEN}, ".katex-html", ".above-input > summary"]',
}


def delimited(tex: str, options: dict | None = None) -> str:
    """A formula as Sphinx is to leave it on the page."""
    start, end = (r"\[", r"\]") if options else (r"\(", r"\)")
    return start + html.escape(tex) + end


def told(found: re.Match) -> tuple[str, bool]:
    """A formula's TeX, and whether it stands alone."""
    return html.unescape(found[4]), found[3] == "["


def typeset(pages: dict[Path, str], katex: Path) -> None:
    """Set the formulas of these pages; one process of Node.js does all of them."""
    asked = sorted({told(found) for text in pages.values() for found in FORMULA.finditer(text)})
    command = ["node", HERE / "formulas.js", katex]
    given = json.dumps([asked, OPTIONS])
    done = subprocess.run(command, input=given, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    made = dict(zip(asked, json.loads(done.stdout)))
    for path, text in pages.items():
        pages[path] = FORMULA.sub(lambda found: found[1] + made[told(found)] + found[5], text)


def statements(css: str) -> Iterator[tuple[str, str]]:
    """What stands before the braces, and what in them; of a statement without braces, itself."""
    depth = start = opened = 0
    for found in re.finditer(r'"[^"]*"|\'[^\']*\'|[{};]', css):
        sign = found.group()
        if sign == "{":
            opened = opened if depth else found.start()
            depth += 1
        elif sign == "}":
            depth -= 1
            if not depth:
                yield css[start:opened].strip(), css[opened + 1 : found.start()]
                start = found.end()
        elif sign == ";" and not depth:
            yield css[start : found.end()].strip(), ""
            start = found.end()


def names(selector: str) -> set[str]:
    """The classes and the places without which it selects nothing; those in brackets may be missing."""
    plain = selector
    while (shorter := re.sub(r"\([^()]*\)", "", plain)) != plain:
        plain = shorter
    return {name.replace("\\", "") for name in re.findall(r"[.#]((?:[\w-]|\\.)+)", plain)}


def used(css: str, words: set[str]) -> str:
    """The rules whose names are all among these words."""
    kept = []
    for head, body in statements(css):
        if head.startswith(GROUPS):
            body = used(body, words)
        elif "Font Awesome" in body or head.startswith(("@charset", "@keyframes fa-")):
            continue
        elif not head.startswith("@"):
            head = ",".join(one for one in re.split(r",(?![^(]*\))", head) if names(one) <= words)
        if head and body:
            kept.append(f"{head}{{{body}}}")
    return "\n".join(kept)


def asked_for(css: str, words: set[str]) -> str:
    """The style sheet without the theme's variables that nothing reads."""
    read = words.union(re.findall(r"var\(\s*(--[\w-]+)", css))
    return VARIABLE.sub(lambda found: found[0] if found[1] in read else "", css)


def look(static: Path, words: set[str]) -> str:
    """The one style sheet: the theme's, without what no page uses, then ours."""
    sheets = []
    for path in [next(static.glob(name)) for name in (*THEIRS, *OURS)]:
        css = re.sub(r"/\*.*?\*/|\s+", " ", path.read_text(), flags=re.DOTALL)
        css = re.sub(r"url\((?=fonts)", f"url({path.relative_to(static).parent}/", css)
        sheets.append(css if path.name in OURS else used(css, words))
    whole = asked_for("\n".join(sheets), words)
    return asked_for(whole, words)  # without those that only such a variable has read


def named(page: str) -> str:
    """The page with letters for icons, whose font is large, and with names that say what is seen."""
    page = re.sub(
        ICON, lambda icon: f'<{icon[1]} aria-hidden="true">{ICONS.get(icon[2], "")}</{icon[1]}>', page
    )
    page = page.replace(' aria-label="Toggle hidden content"', "")  # it says what it opens
    page = page.replace('title="Search" aria-label="Search"', 'title="Search"')  # it has its keys in it
    return re.sub(r"(>([^<>]+)</a><details[^>]*><summary)(?=><)", r'\1 aria-label="pages of \2"', page)


def coloured(page: str) -> str:
    """The page with each name of a loss in its colour, as pictures and menus have it (palette.py), and the
    cards' edges in that of the theme."""
    before, start, rest = page.partition('<article class="bd-article">')
    article, end, after = rest.partition("</article>")
    inside, made = 0, [""]
    for piece in re.split(r"(<[^>]*>)", re.sub(r"solid #(\w{6})", r"solid var(--setclr-\1,#\1)", article)):
        tag = re.match(r"<(/?)(\w+)", piece)
        if tag and tag[2] in PLAIN:
            inside += -1 if tag[1] else 1
        elif not tag and not inside and "setclr-loss" not in made[-1]:
            piece = LOSS.sub(lambda found: OWN.format(OF_LOSS[found[0]][1:], found[0]), piece)
            if "mathnormal" not in made[-1]:
                piece = LETTER.sub(r'<span class="mathnormal">\g<0></span>', piece)
        made.append(piece)
    return "".join([before, start, *made, end, after])


def searching(script: str) -> str:
    """Sphinx's search, in which the course comes first, and cells of a table stand apart."""
    for theirs, ours in SEARCH.items():
        if ours not in script:
            assert theirs in script, f"Sphinx's search has changed: {theirs}"
            script = script.replace(theirs, ours, 1)
    return script


def lighten(out: Path, katex: Path) -> None:
    """The whole site, in place; a page that is light stays as it is."""
    static = out / "_static"
    pages = {path: path.read_text() for path in sorted(out.rglob("*.html")) if static not in path.parents}
    before = dict(pages)
    typeset(pages, katex)
    for path in pages:
        course = not {"api", "_modules"} & set(path.relative_to(out).parts)
        pages[path] = coloured(named(pages[path])) if course else named(pages[path])
        if pages[path] != before[path]:
            path.write_text(pages[path])
    search = static / "searchtools.js"
    search.write_text(searching(search.read_text()))
    marked = [mark for text in pages.values() for mark in re.findall(r'\b(?:class|id)="([^"]*)"', text)]
    scripts = [path.read_text() for path in static.glob("*.js") if path.name != "plotly.min.js"]
    words = {word for text in [*marked, *scripts] for word in re.findall(r"[\w-]+", text)}
    (static / "look.css").write_text(look(static, words))

"""For those who come from elsewhere: a list of the pages for programs that read (llms.txt), and links by
which a page opens in Colab or Binder. Both take it from GitHub, so there are no links before `[project.urls]`
of pyproject.toml has an address there.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import nbformat
from course import ROOT
from nbformat.v4 import new_markdown_cell

LISTED = {
    "The course": "[0-9]*.ipynb",
    "Beside it": "[!i]*.md",
    "Careful pages": "careful/[0-9]*.ipynb",
    "The functions": "api/*.md",
}
ON_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w-]+)(?:\.git)?/?")
OPEN = """Open this page
in [Colab](https://colab.research.google.com/github/{0}/blob/HEAD/notebooks/{1}.ipynb) or
[Binder](https://mybinder.org/v2/gh/{0}/HEAD?labpath=notebooks/{1}.ipynb). In Colab, run this first:

```text
!git clone https://github.com/{0} setclr && pip install -q "./setclr[lab]"
%cd /content/setclr/notebooks/{2}
import sys; sys.path.insert(0, "/content/setclr/lib")
```
"""


def told(path: Path) -> tuple[str, str]:
    """The title of a page, and the first sentence below it, in plain words."""
    text = path.read_text() if path.suffix == ".md" else nbformat.read(path, as_version=4).cells[0].source
    title, _, rest = re.sub("(?s)```.*?```", "", text).partition("# ")[2].partition("\n")
    first = next((" ".join(part.split()) for part in rest.split("\n\n") if re.match(r"\s*[\w*\[]", part)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first).replace("*", "").replace("`", "")
    return title, re.split(r"(?<=[.?!:]) (?=[A-Z0-9])", plain)[0]


def llms(pages: Path) -> str:
    """The text of llms.txt: each page of that folder, which Sphinx reads, by its title and first sentence."""
    title, sentence = told(pages / "index.md")
    lines = [f"# {title}", "", f"> {sentence}"]
    for heading, pattern in LISTED.items():
        lines += ["", f"## {heading}", ""]
        for path in sorted(pages.glob(pattern)):
            title, sentence = told(path)
            address = path.relative_to(pages).with_suffix(".html")
            lines.append(f"- [{title}]({address}){sentence and f': {sentence}'}")
    return "\n".join([*lines, ""])


def links(name: str, urls: Mapping[str, str]) -> str:
    """What leads to a notebook in Colab and Binder; "" where no address is GitHub's."""
    found = filter(None, map(ON_GITHUB.fullmatch, urls.values()))
    folder = name.rpartition("/")[0]
    return next((OPEN.format(one[1], name, folder) for one in found), "")


def abroad(pages: Path, out: Path) -> None:
    """Write llms.txt of these pages into `out`, and the links below each of the notebooks."""
    (out / "llms.txt").write_text(llms(pages))
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    for path in pages.rglob("[0-9]*.ipynb"):
        if said := links(str(path.relative_to(pages).with_suffix("")), urls):
            page = nbformat.read(path, as_version=4)
            page.cells.append(new_markdown_cell(said))
            nbformat.write(page, path)

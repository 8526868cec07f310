"""The course as static pages: `python site/builder.py [PAGE …]` writes build/site.

A page is named by the beginning of its path in notebooks/, such as 01 or careful/07. Those named are run in
full and their panels pictured; so are all, without a name. Pages that were not run are shown as they are
stored: readable, with still pictures. What has been run lies in build/site.work/run, beside the hash of what
made it, and is run again only when that is another.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

import nbformat
import plotly
from abroad import abroad
from course import FOLDER, HERE, ROOT, chosen, every_notebook, name_of
from lighter import lighten
from rendering import PICTURES, unpacked
from sources import readable, run, texts
from sphinxcontrib.katex import katex_version

WORK, SITE = ROOT / "build" / "site.work", ROOT / "build" / "site"
ALONE = "14_"  # measures how long losses take, so nothing else may run beside it
NO_NOTEBOOK = shutil.ignore_patterns("*.md", "pictures", ".*")
UNSEEN = (".pyc", ".css", ".woff2", "OFL.txt")  # what no page that runs is made of


def made_of(source: Path) -> str:
    """The hash of what a page that runs is made of: its text, code, versions, the data that it names."""
    data = [ROOT / "data" / name for name in ("results", "checkpoints") if name in source.read_text()]
    files = [source, HERE / "rendering.py", HERE / "sources.py"]
    for folder in (ROOT / "lib" / "setclr", ROOT / "lib" / "setclr_course", *data):
        found = sorted(path for path in folder.rglob("*") if not path.name.endswith(UNSEEN))
        files += [path for path in found if path.is_file()]
    whole = hashlib.sha256(f"Python {platform.python_version()}, torch {version('torch')}".encode())
    for path in files:
        whole.update(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return whole.hexdigest()


def place(source: Path, work: Path) -> Path:
    """Where a notebook lies after it has run; beside it, with the ending .hash, what it was made of."""
    return work / "run" / source.relative_to(FOLDER)


def latest(source: Path, work: Path, out: Path) -> Path:
    """The notebook as it ran for this site; as it is stored, where that would give another today."""
    ran = place(source, work)
    kept = ran.with_suffix(".hash")
    if not kept.exists() or not (out / "atlas" / name_of(source)).exists():
        return source
    return ran if kept.read_text() == made_of(source) else source


def made(source: Path, work: Path, out: Path) -> str:
    """Run a notebook for the site, unless it has been; returns what was done."""
    began, ran = time.time(), place(source, work)
    if latest(source, work, out) == ran:
        return f"{name_of(source)}: as it was"
    kept, of = ran.with_suffix(".hash"), made_of(source)
    kept.unlink(missing_ok=True)  # if this does not come to its end, nothing is kept
    page = run(source, out, out / "atlas")
    ran.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(page, ran)
    kept.write_text(of)
    return f"{name_of(source)}: {time.time() - began:.0f} s"


def from_npm(package: str, target: Path) -> Path:
    """The files of an npm package, NAME@VERSION, in a folder of `target`; fetched if they are not there."""
    folder = target / package
    if not folder.exists():
        if shutil.which("npm") is None:
            sys.exit(f"npm is missing, which brings {package}: install Node.js")
        target.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(
            ["npm", "pack", "--silent", package], cwd=target, check=True, capture_output=True, text=True
        )
        archive = target / packed.stdout.split()[-1]
        shutil.unpack_archive(archive, folder, filter="data")
        archive.unlink()
    return folder / "package"


def letters(npm: Path, target: Path) -> Path:
    """KaTeX's style and fonts, so that no page asks another host; returns the script that typesets."""
    dist = from_npm(f"katex@{katex_version}", npm) / "dist"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    shutil.copy(dist / "katex.min.css", target)
    for font in dist.glob("fonts/*.woff2"):
        shutil.copy(font, target / "fonts")
    return dist / "katex.js"


def pictures_that_turn(target: Path) -> None:
    """plotly, so that no page asks another host for it (opened.js)."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(plotly.__file__).parent / "package_data" / "plotly.min.js", target)


def sweep(run: Path, atlas: Path) -> None:
    """Remove the pictures that no page shows any more."""

    def named(texts: Iterable[str]) -> set[str]:
        return {name for text in texts for name in re.findall(r"\b[0-9a-f]{16}\b", text)}

    by_pages, pictures = named(path.read_text() for path in run.rglob("*.ipynb")), atlas / PICTURES
    scenes = [path for path in pictures.glob("*.packed") if path.stem in by_pages]
    shown = by_pages | named(map(unpacked, [*scenes, *atlas.rglob("atlas.packed")]))
    for path in pictures.glob("*.*"):
        if path.stem not in shown:
            path.unlink()


def build(prefixes: list[str], jobs: int, work: Path, out: Path) -> None:
    pages = every_notebook()
    wanted = chosen(prefixes, [page for page in pages if page.parent.name != "solutions"])
    katex = letters(work / "npm", work / "static" / "katex")
    pictures_that_turn(work / "static")
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))
    alone = [p for p in wanted if p.name.startswith(ALONE)]
    one = partial(made, work=work, out=out)
    with ProcessPoolExecutor(jobs) as pool:
        for said in pool.map(one, [p for p in wanted if p not in alone]):
            print(said, flush=True)
    for page in alone:
        print(one(page), flush=True)
    sweep(work / "run", out / "atlas")

    source = work / "source"
    shutil.rmtree(source, ignore_errors=True)
    texts(source, latest(pages[0], work, out), out / "atlas")
    for page in pages:
        target = source / page.relative_to(FOLDER)
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(readable(nbformat.read(latest(page, work, out), as_version=4)), target)
    abroad(source, out)
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", str(jobs), "-c", HERE]
    imported = os.pathsep.join(map(str, (HERE, ROOT / "lib")))
    found = {"SETCLR_STATIC": str(work / "static"), "PYTHONPATH": imported}
    subprocess.run([*sphinx, "-d", work / "doctrees", source, out], check=True, env=os.environ | found)
    shutil.copytree(FOLDER, out / "notebooks", ignore=NO_NOTEBOOK, dirs_exist_ok=True)
    lighten(out, katex)
    print(f"{out}: {sum(p.stat().st_size for p in out.rglob('*') if p.is_file()) / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="notebooks at once")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--out", type=Path, default=SITE)
    given = parser.parse_args()
    build(given.pages, given.jobs, given.work.resolve(), given.out.resolve())


if __name__ == "__main__":
    main()

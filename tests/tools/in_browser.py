"""A panel in Chromium without JupyterLab: the front end on an empty page, answered by the panel itself.

`python tests/tools/in_browser.py NAME [WIDTH] [dark]` writes build/panels/NAME-WIDTH.png.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setclr_course import panels
from setclr_course.kit.front import FOLDER, joined
from setclr_course.kit.panel import Panel

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
PAGE = """<!doctype html><html data-theme="{theme}">
<style>body {{ margin: 8px; font: 15px system-ui, sans-serif }}
html[data-theme="dark"] {{ background: #14181e; color: #e8e8e8 }} {css}</style><body></body></html>"""
OPEN = """
async ([code, told]) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const { default: panel } = await import(url);
  const [state, heard] = [told, new Set()];
  const model = {
    get: (name) => state[name],
    set: (name, value) => (state[name] = value),
    save_changes: async () => {
      Object.assign(state, await window.kernel(state.moved));
      heard.forEach((listener) => listener());
    },
    on: (_, listener) => heard.add(listener),
    off: (_, listener) => heard.delete(listener),
  };
  const el = document.body.appendChild(document.createElement("div"));
  panel.render({ model, el });
}
"""

IMPORT = """async (code) => {
  window.module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise RuntimeError("Chromium is needed: install it (on Debian: apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def opened(browser: Any, panel: Panel, width: int = 1000, theme: str = "light", height: int = 1000) -> Any:
    """A page with the panel, alive; `page.errors` holds what went wrong in the browser."""
    page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)

    def kernel(event: dict[str, Any]) -> dict[str, Any]:
        panel.on_event(event)
        return state(panel)

    page.expose_function("kernel", kernel)
    page.set_content(PAGE.format(css=(FOLDER / "panel.css").read_text(), theme=theme))
    page.evaluate(OPEN, [joined(), {"told": panel.widget.told, **state(panel)}])
    return page


CROWDED = """
() => {
  const [stage, found] = [document.querySelector(".setclr-stage"), []];
  const wall = document.documentElement.clientWidth;
  const words = [...stage.querySelectorAll("text")].filter((text) => text.textContent.trim());
  const boxes = words.map((text) => ({ said: text.textContent, ...text.getBoundingClientRect().toJSON() }));
  words.forEach((text, i) => {
    const size = parseFloat(getComputedStyle(text).fontSize);
    if (size < 11) found.push(`${text.textContent}: ${size} px`);
    const one = boxes[i];
    if (one.left < -1 || one.right > wall + 1) found.push(`${one.said}: beyond the page`);
    for (const other of boxes.slice(i + 1)) {
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      const far = `${wide.toFixed(0)} x ${high.toFixed(0)} px`;
      if (wide > 1 && high > 4) found.push(`${one.said} / ${other.said}: ${far}`);
    }
  });
  return found;
}
"""


def crowded(page: Any) -> list[str]:
    """Letters that are too small, lie on others, or leave the page."""
    return page.evaluate(CROWDED)


def differences(one, other, place="") -> list[str]:
    """Where two scenes differ: numbers by more than 1e-6, anything else at all."""
    if isinstance(one, int | float) and isinstance(other, int | float) and not isinstance(one, bool):
        near = abs(one - other) <= 1e-6 * max(1, abs(one)) + 1e-5 * abs(one)
        return [] if near else [f"{place}: {one} {other}"]
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [said for key in one for said in differences(one[key], other[key], f"{place}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [s for i, (a, b) in enumerate(zip(one, other)) for s in differences(a, b, f"{place}[{i}]")]
    return [] if one == other else [f"{place}: {one!r} {other!r}"]


def state(panel: Panel) -> dict[str, Any]:
    return panel.widget.get_state(["shown", "pictures"])


def main(name: str, width: str = "1000", theme: str = "light") -> None:
    """Save a picture of the panel, and say what cannot be read there or at the ends of a control."""
    target = Path("build/panels")
    target.mkdir(parents=True, exist_ok=True)
    make = getattr(panels, name)
    states = [{}, *({knob: end} for knob, control in make().controls.items() for end in control.ends())]
    with chromium() as browser:
        for state in states:
            page = opened(browser, make(**state), int(width), theme)
            if not state:
                picture = target / f"{name}-{width}{'-dark' * (theme == 'dark')}.png"
                page.screenshot(path=picture, full_page=True)
                print(picture)
            for fault in [*page.errors, *crowded(page)]:
                print(f"at {state or 'the start'}: {fault}")
            page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

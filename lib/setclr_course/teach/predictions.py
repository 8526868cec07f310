"""A question with choices beside a picture: the reader picks, sees why, and then the picture comes alive, or
opens where it would give the answer away."""

import html
from base64 import b64encode
from typing import Any

import ipywidgets as widgets

from setclr_course.kit.panel import Panel
from setclr_course.kit.still import Picture
from setclr_course.teach.asked import Question, question

Shown = Panel | Picture | None
RIGHT, WRONG = "✔", "✘"
PICKED: dict[tuple[str, str], str] = {}  # choices by name and text of their question, while the kernel lives


class Prediction:
    """What `predict` returns; it displays itself, live or as a page that folds."""

    def __init__(self, name: str, asked: Question, picture: Shown, beside: Shown):
        self.name, self.asked, self.picture, self.beside = name, asked, picture, beside
        self.buttons = {text: self._button(text) for text in asked.choices}
        self.said, self.opened = widgets.HTML(), widgets.VBox()
        text = widgets.HTML(f'<div style="line-height:1.4"><b>{html.escape(asked.text)}</b></div>')
        buttons = widgets.Box(list(self.buttons.values()), layout=widgets.Layout(flex_flow="row wrap"))
        self.first = widgets.VBox([] if beside is None else [without_controls(beside).widget])
        self.widget = widgets.VBox([text, self.first, buttons, self.said, self.opened])
        self.widget.add_class("setclr-prediction")
        if (before := PICKED.get((name, asked.text))) in self.buttons:
            self.pick(before)

    def _button(self, text: str) -> widgets.Button:
        button = widgets.Button(description=text, layout=widgets.Layout(width="auto"))
        button.on_click(lambda _: self.pick(text))
        return button

    def sign(self, text: str) -> str:
        return RIGHT if text == self.asked.right else WRONG

    def pick(self, text: str) -> None:
        """What a click on a choice does: it is marked, the reason is shown, and the picture opens. When the
        cell runs again, the choice is still there."""
        PICKED[self.name, self.asked.text] = text
        self.buttons[text].icon = "check" if text == self.asked.right else "times"
        shown = f"{self.sign(text)} {html.escape(self.asked.choices[text])}"
        self.said.value = f'<div aria-live="polite" style="line-height:1.4">{shown}</div>'
        if self.picture is not None and not self.opened.children:
            self.opened.children = [self.picture.widget]
        if self.beside is self.picture:
            self.first.children = []

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return {**self.widget._repr_mimebundle_(), "text/html": self.page(), "text/plain": self.text()}, {}

    def page(self) -> str:
        """The question for a page without a kernel: the answer is folded, and the picture with it, unless it
        stands beside the question."""
        choices = "".join(f"<li>{html.escape(text)}</li>" for text in self.asked.choices)
        reasons = "".join(
            f"<p>{self.sign(text)} <b>{html.escape(text)}</b>: {html.escape(why)}</p>"
            for text, why in self.asked.choices.items()
        )
        stands, opened = ("first", "") if self.picture is self.beside else ("beside", still(self.picture))
        folded = f"<summary>Choose first, then open</summary>{reasons}{opened}"
        return (
            f'<div class="setclr-prediction"><p><b>{html.escape(self.asked.text)}</b></p>'
            f'<section class="setclr-{stands}">{still(self.beside)}</section>'
            f"<ul>{choices}</ul><details>{folded}</details></div>"
        )

    def text(self) -> str:
        return f"{self.asked.text} " + " / ".join(self.asked.choices)


def predict(name: str, picture: Shown = None, beside: Shown = None) -> Prediction:
    """Ask before showing: the reader picks, is told why, and only then the picture opens.

    `name` is that of a question, such as "07.1"; they stand in teach/pages, so that no cell gives an answer
    away. `beside` is what stands beside the question from the start, as it opens; it may be the
    picture, which then comes alive with the answer. Raises ValueError if there is no question of that name.
    """
    return Prediction(name, question(name), picture, beside)


def still(picture: Shown) -> str:
    """The picture as an element of a page."""
    if picture is None:
        return ""
    kept = without_controls(picture)
    return embedded(kept) + below(kept)


def without_controls(picture: Panel | Picture) -> Picture:
    return picture.still if isinstance(picture, Panel) else picture


def embedded(picture: Picture) -> str:
    alt, data = html.escape(picture.alt), b64encode(picture.png).decode()
    return f'<img width="{picture.extent[0]}" alt="{alt}" src="data:image/png;base64,{data}">'


def below(picture: Picture) -> str:
    """The sentences of a picture, each under its column."""
    grid = "display:grid; grid-auto-flow:column; grid-auto-columns:1fr; gap:1em"
    words = "".join(f"<p>{html.escape(column.sentence)}</p>" for column in picture.columns)
    return f'<div style="{grid}; max-width:{picture.extent[0]}px">{words}</div>'

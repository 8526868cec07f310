"""A loss on one card: picture, inner problem, knob, who weighs nothing, when to use it, what it costs."""

import html
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr import losses
from setclr.checks import choice
from setclr_course.kit.palette import GREY, OF_LOSS
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured
from setclr_course.teach.predictions import embedded

# On a dark page the matrix is turned over: nothing is dark there, and all is light.
DARK = ":is(html[data-theme='dark'], body[data-jp-theme-light='false'], body.vscode-dark) .setclr-card img"
LOOK = "filter: invert(1) hue-rotate(180deg) !important; mix-blend-mode: screen !important"
TURNED = f"<style>{DARK} {{{LOOK}}}</style>"


@dataclass(frozen=True)
class Card:
    """What a page ends with, and 00 shows of every loss."""

    loss: str
    """As `setclr.losses.parse` reads it; its assignment is the card's picture."""
    inner: str
    knob: str
    zero: str
    when: str
    cost: str
    page: str
    """The notebook that explains it."""

    @property
    def name(self) -> str:
        return self.loss.split("(")[0]

    def lines(self) -> dict[str, str]:
        return {"inner problem": self.inner, "knob": self.knob, "who gets weight zero": self.zero,
                "when to use it": self.when, "cost": self.cost}  # fmt: skip

    def picture(self) -> Picture:
        """How much weight each of twelve views gives to the others, as a matrix."""
        weights = shares(self.loss)

        def draw(page: Page) -> str:
            table = page.table("matrix", 12, 12)
            table.cells(weights.numpy())
            table.line([-0.5, 11.5, np.nan, 5.5, 5.5], [5.5, 5.5, np.nan, -0.5, 11.5], GREY, 1)
            return f"The matrix of {self.name}: two views of six photographs, a row for each anchor."

        return pictured(draw, "matrix", (1.7, 1.6))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        said = "\n".join(f"{title}: {text}" for title, text in self.lines().items())
        return {"text/html": self.page_of(), "text/plain": f"{self.name}\n{said}"}, {}

    def page_of(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left; white-space:nowrap'>{title}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for title, text in self.lines().items()
        )
        colour = OF_LOSS[self.name]
        # A grey hairline beside the colour: black is not seen on a dark page.
        edge = f"border-left:6px solid {colour}; box-shadow:inset 1px 0 #8a8a8a"
        style = f"{edge}; padding-left:12px; display:flex; flex-wrap:wrap; gap:16px"
        return (
            f'<div class="setclr-card" style="{style}">{TURNED}'
            f'<div style="flex:none"><b>{self.name}</b><br>{embedded(self.picture())}</div>'
            f'<table style="flex:1 1 20em">{rows}</table></div>'
        )


LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["card"]
CARDS = {one.name: one for one in (Card(**fields) for fields in LISTED)}


def card(name: str) -> Card:
    """The card of a loss. Raises ValueError, with all names, if there is none of that name."""
    return CARDS[choice("name", name, CARDS)]


def shares(loss: str) -> Tensor:
    """How an anchor (row) shares its weight over the twelve views (columns), each row divided by its
    largest; for a regulariser, which has no assignment, the similarities between 0 and 1."""
    z = six_things()
    made: Any = losses.parse(loss)
    try:
        weights = made.assignment(z)
    except ValueError:
        x = z.flatten(0, 1)
        weights = ((1 + x @ x.T) / 2).fill_diagonal_(0)
    return weights / weights.amax(1, keepdim=True).clamp(min=1e-12)


@cache
def six_things() -> Tensor:
    """Two views of six things, (2, 6, 8): like their partners, and a little like everybody."""
    generator = torch.Generator().manual_seed(0)
    things = torch.randn(6, 8, generator=generator, dtype=torch.float64)
    noise = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    return normalize(things + 0.7 * noise, dim=-1)

"""A loss on one card: picture, inner problem, knob, who weighs nothing, when to use it, what it costs."""

import html
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr import losses
from setclr.checks import choice
from setclr_course.kit.palette import OF_LOSS, WHITE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured
from setclr_course.teach.predictions import embedded


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
            table.line([-0.5, 11.5, np.nan, 5.5, 5.5], [5.5, 5.5, np.nan, -0.5, 11.5], WHITE, 1)
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
            f'<div class="setclr-card" style="{style}">'
            f'<div style="flex:none"><b>{self.name}</b><br>{embedded(self.picture())}</div>'
            f'<table style="flex:1 1 20em">{rows}</table></div>'
        )


CARDS = {
    card.name: card
    for card in (
        Card(
            "InfoNCE(temperature=0.2)",
            "each anchor shares out one unit of attention over all others: a softmax",
            "temperature τ: small looks at the nearest only, large at everybody alike",
            "nobody: even a far negative gets a little",
            "first, and as the measure of all others",
            "one product of all pairs, N²",
            "01_five_numbers",
        ),
        Card(
            "LinearAssignment(temperature=0.2)",
            "match the two views one to one so that the matched pairs are closest: an assignment problem",
            "temperature τ of the softened matching",
            "made hard, every pair outside the best matching; made soft, nobody",
            "to understand the others; or where each thing has exactly one partner",
            "the exact matching N³, on the CPU",
            "02_pairs_and_assignments",
        ),
        Card(
            "SparseCLR()",
            "the same shares, kept on the simplex by the nearest point instead of a softmax",
            "margin: what is taken off the positive's score; with 1 the loss is 0 only at a lead of 2",
            "every negative below the water level",
            "where few hard negatives matter",
            "a sort of each row, N² log N",
            "03_sparse_support",
        ),
        Card(
            "QARe()",
            "match sets by the similarities inside each view: a quadratic assignment, bounded by eigenvalues",
            "its weight γ beside another loss",
            "nobody: it looks at all similarities within a view at once",
            "beside a loss on pairs, to spread a crowded batch sooner",
            "eigenvalues of two tables of E + 1 rows, E the numbers in an embedding; small beside the pairs",
            "04_sets_and_eigenvalues",
        ),
        Card(
            "GroCo(beta=1.0, negatives=5)",
            "sort the candidates of an anchor so that all positives come first: a network of soft swaps",
            "steepness β of a swap",
            "nobody; with a large β, candidates on their own side get nearly nothing",
            "with several positives, and where only the order counts",
            "a sorting network for every anchor, with as many layers as its list is long",
            "05_sorting_networks",
        ),
        Card(
            "IOT(constraint='both', epsilon=0.2)",
            "carry a pile of sand from each view to the others at the least cost: entropic optimal transport",
            "entropy ε, and the number of rounds",
            "nobody; each candidate receives one share in all",
            "where the shares must be fair to the candidates, too",
            "a few Sinkhorn rounds, N² each",
            "06_couplings",
        ),
        Card(
            "MMCL(bandwidth=1.0, solver='exact')",
            "find the widest street between the positive and the negatives: a support-vector machine",
            "bandwidth σ² of the kernel; bound C and ridge ρ of a weight",
            "every negative that stands behind its kerb",
            "in few dimensions, or where most negatives are easy",
            "a machine for each anchor; dearer than InfoNCE, page 14 measures by how much",
            "07_support_vectors",
        ),
    )
}


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

"""What page 10 asks: what a network learns from views that chance has made."""

import math
from collections.abc import Callable

import torch

from setclr.evaluation import knn
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "The network has random weights; nothing has been trained yet. Which patches does it put next to one "
        "another?",
        {
            "those of one photograph": "Too early: the tint, which chance has drawn, hides what they share.",
            "those of one tint": "Yes. A tint is in all numbers of a patch, so it outweighs the rest.",
            "any, without an order": "Its weights are random, but alike numbers still go to alike places.",
        },
        "those of one tint",
    ),
    "2": Question(
        "Crops and mirrors only, and colours as they are. What will the network look at after this epoch?",
        {
            "the colour": "Yes, tint and brightness, more than before training: no clue is easier.",
            "the pattern": "It would do, but it is harder to learn than what all pixels share.",
            "all of it, a little less well": "The loss asks for the partner only, and one clue is enough.",
        },
        "the colour",
    ),
    "3": Question(
        "Neighbours by the centred pixels, or by what the random network makes of the patches: who names "
        "more patches?",
        {
            "the pixels": "Yes. The random network's neighbours share a tint, as you saw at epoch 0. The "
            "tint was drawn by chance and says nothing of the photograph. The pixels have lost theirs.",
            "the random network": "It was lost to the tint at epoch 0, and the tint is chance. The pixels "
            "have lost theirs.",
            "both are at guessing": "Both are well above: patches of one photograph have patterns in common.",
        },
        "the pixels",
    ),
    "4": Question(
        "One run has collapsed, the other learns. How do their losses compare?",
        {
            "the collapsed one's is much larger": "One hopes so. But GroCo sees only which of two cosines is "
            "larger. Where they are equal, each swap is half done: a tossed coin, and no worse.",
            "they hardly differ": "Yes. Equal cosines leave each swap half done. At β = 1 the step is so "
            "soft that unequal ones leave it nearly half done, too (page 05).",
            "the collapsed one's is zero": "For that every positive would have to stand first for sure. At "
            "β = 1 the step is too soft for any sureness, and here all stand level.",
        },
        "they hardly differ",
    ),
}


def votes(answer: Callable) -> bool:
    """Whether a function of (bank, labels, queries) votes as the library does."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    generator = torch.Generator().manual_seed(4)
    centres = torch.randn(5, 6, generator=generator)
    labels = torch.arange(5).repeat(12)
    bank, queries = (centres[labels] + torch.randn(60, 6, generator=generator) for _ in range(2))
    wanted = knn(bank, labels, queries, k=10, temperature=0.1)
    return torch.equal(torch.as_tensor(answer(bank, labels, queries)).long(), wanted)


EXERCISES = {
    "1": Exercise(
        "a whole number, the epoch",
        4,
        "The number in the picture says it.",
        tolerance=0.001,
        why="After epoch 3 it is 47 %, after epoch 4 it is 51 %; epoch 0 is the untrained network.",
    ),
    "2": Exercise(
        "a number",
        math.log(255),
        "An anchor has 255 candidates. What share does each get?",
        tolerance=0.0003,
        why="Each of 255 equal candidates gets a 255th, so InfoNCE, unlike GroCo, tells of a collapse.",
    ),
    "3": Exercise(
        "a function of (bank, labels, queries)",
        votes,
        "topk of the cosines gives the ten; add their weights up class by class, and take the largest.",
        why="A neighbour at cosine 0.9 weighs e times as much as one at 0.8, so the nearest decide.",
    ),
}

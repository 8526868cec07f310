"""What page 00 asks: the one idea."""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr.losses import LinearAssignment
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Before training, the six photographs lie anywhere on the circle. Each ● asks: which ■ is mine? "
        "How will it choose?",
        {
            "the one with the same photograph": "It cannot see that. It sees places on the circle only.",
            "the nearest": "Yes, softly: it gets most, right or wrong. So training moves the points.",
            "any, by chance": "Places decide, not chance. But the places are still wrong.",
        },
        "the nearest",
    ),
    "2": Question(
        "The temperature τ goes up, and the points stay where they are. What can change?",
        {
            "who is preferred": "The order of the cosines stays, so the favourite stays, at any temperature.",
            "how much the favourite gets": "Yes: from everything, at τ near 0, to an equal share for all.",
            "nothing": "The shares change: a high temperature evens them out.",
        },
        "how much the favourite gets",
    ),
}


def one_direction(z: Tensor) -> Tensor:
    """InfoNCE from view 1 to view 2 at τ = 0.2: the row-wise assignment loss, divided by its temperature."""
    return LinearAssignment(temperature=0.2, mining="batch-hard")(z) / 0.2


def batch() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return normalize(torch.randn(2, 4, 3, generator=generator, dtype=torch.float64), dim=-1)


EXERCISES = {
    "1": Exercise(
        "a number",
        1.79,
        "Watch the last words of the sentence below the picture.",
        tolerance=0.05,
        why="Cosines differ by 2 at most. So at τ = 1.8 even the best ■ counts only e^(2 / 1.8) = 3 times "
        "as much as the worst.",
    ),
    "2": Exercise(
        "a number",
        math.log(11),
        "How many candidates has an anchor? They share alike.",
        why="Each of the eleven candidates gets 1/11, and minus the logarithm of 1/11 is log 11.",
    ),
    "3": Exercise(
        "a function of z",
        passes(one_direction, batch()),
        "The cosines from ● to ■ are an N × N table; its softmax by rows has the partners on its diagonal.",
        why="A row of the table is one ● that asks, and its entries are the ■ that may answer.",
    ),
}

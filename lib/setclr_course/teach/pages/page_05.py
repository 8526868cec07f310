"""What page 05 asks: sorting networks."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from setclr.inner import sorting_network
from setclr.losses import GroCo
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "The cat comes first if its distance is the smaller one. It is, by 0.35. Now the cat moves a little "
        "towards the coffee. What does the order of the two tell a network that learns from slopes?",
        {
            "how near they came": "The order only says who is first, and that is the cat, before and after.",
            "nothing": "Yes. The order is a staircase: flat, then a jump. A slope of zero teaches nothing.",
            "which way to move": "A slope would say it. But the order has none: it stays what it was.",
        },
        "nothing",
    ),
    "2": Question(
        "At β near 0 every swap is a coin that is tossed. The cat stands on the first place and belongs on "
        "the fifth of six. After all six layers, where is it most likely?",
        {
            "on the fifth place": "A coin does not look at distances, so it cannot bring the cat home.",
            "on each place alike": "Six layers are too few. To come far down, the cat would have to win "
            "nearly every toss.",
            "still on the first": "Yes. Coins do not sort. They let a photograph stagger, and it does not "
            "get far.",
        },
        "still on the first",
    ),
    "3": Question(
        "GroCo sorts the negatives among themselves first, so that the hardest, the coffee, begins beside "
        "the positives. You leave that out, and it begins at the far end of the list. How likely will it "
        "get one of the first two places?",
        {
            "as before": "In a hard sort the start makes no difference. A soft one carries nobody far.",
            "less": "Yes, half as likely. Soft swaps leave it near its start, and the loss sees less of it.",
            "more": "It has to travel through all others now, and soft swaps hold it up.",
        },
        "less",
    ),
}


def lists() -> Tensor:
    """Ten of two positives and ten negatives: distances."""
    return 2 * torch.rand(10, 12, generator=torch.Generator().manual_seed(5), dtype=torch.float64) - 1


def both_halves(x: Tensor) -> Tensor:
    P = sorting_network(x, 1.0).P
    truth = (torch.arange(12) < 2).to(x)
    first = binary_cross_entropy(P[:2].sum(0).clamp(0, 1), truth)
    return (first + binary_cross_entropy(P[2:].sum(0).clamp(0, 1), 1 - truth)) / 2


EXERCISES = {
    "1": Exercise(
        "a number, the steepness β",
        0.253,
        "Move β down from 8, and watch the last words of the sentence.",
        tolerance=0.15,
        why="At this β the swaps are so near to coins that the start counts for more than the distance.",
    ),
    "2": Exercise(
        "a number",
        float(GroCo(1e-6, negatives=5)(torch.eye(8, dtype=torch.float64).expand(2, 8, 8))),
        "Call GroCo(1e-6, negatives=5) on some batch of two views.",
        why="Coins leave ✚ near the front, where it was put; with equal chances for all it would be 0.45.",
    ),
    "3": Exercise(
        "a function of x",
        passes(both_halves, *lists(), alone=False),
        "The second half has the sum of the rows from 2 on, and the truth the other way round.",
        why="Columns of P add up to 1, so the second half equals the first and adds nothing.",
    ),
}

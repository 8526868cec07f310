"""What page 09 asks: two cameras see the same things."""

import torch
from torch import Tensor

from setclr.evaluation import matching_accuracy
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Two cameras, another tint and contrast in each patch. How many of 32 will have their true partner "
        "as the most similar one, if you compare the colours as they are?",
        {
            "nearly none": "The tint misleads, but shapes remain. Guessing would be 1 in 32.",
            "about half": "Yes. A tint misleads, but shapes remain. Now choose normalised pixels in the "
            "picture.",
            "nearly all": "The tints mislead: a patch likes what has its colour.",
        },
        "about half",
    ),
    "2": Question(
        "The network must learn to ignore the tint, or a first layer takes it out beforehand. Where will "
        "QARe help SparseCLR more?",
        {
            "on patches as they come": "Yes. There SparseCLR crowds its points, and QARe pushes them apart.",
            "behind that layer": "There SparseCLR spreads its points by itself.",
            "equally in both": "The tint is gone in one of them, and with it the need for help.",
        },
        "on patches as they come",
    ),
    "3": Question(
        "Among 128 things the last of these networks gave about six of ten their own other view. Now "
        "the pool is smaller. How many of 8 things get their own?",
        {
            "six of ten": "Each has 7 rivals now instead of 127, so a good rival is rarer.",
            "nine of ten": "Yes, 91 %. So a percentage means nothing without its pool.",
            "all": "Nearly. But among 7 rivals, too, there is one now and then that looks more alike.",
        },
        "nine of ten",
    ),
}


def views() -> list[Tensor]:
    """(2, N, D) with N = 40 and 25: two noisy views."""
    generator = torch.Generator().manual_seed(3)
    things = [torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in (40, 25)]
    return [z + 0.8 * torch.randn(2, *z.shape, generator=generator, dtype=torch.float64) for z in things]


EXERCISES = {
    "1": Exercise(
        "a number of points",
        20.3,
        "The sentence ends with it; the pool must be 8.",
        tolerance=0.02,
        why="One to one, a view that its own thing has taken cannot be taken by another, too.",
    ),
    "2": Exercise(
        "a whole number",
        64,
        "A wrong row has a 1 too few and a 1 too many.",
        tolerance=0.001,
        why="32 rows are wrong, and each differs in two entries.",
    ),
    "3": Exercise(
        "a function of ab",
        passes(lambda ab: torch.tensor(matching_accuracy(ab[0], ab[1], "euclidean")), *views()),
        "The cost is a table of distances between unit rows; linear_sum_assignment gives the columns.",
        why="A distance is the root of 2 − 2 cosine, so a sum of distances may prefer another matching.",
    ),
}

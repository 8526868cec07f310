"""What page 11 asks: which of two losses is better, and which differences would come again."""

import numpy as np

from setclr_course.search.statistics import holm
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Thirteen losses, the same network, the same pictures, 20 epochs. Does the loss that falls fastest "
        "end with the best features?",
        {
            "yes, the fastest does": "It is soon at its own minimum. Features need not be good there.",
            "no, the slowest does": "Slow does not mean thorough.",
            "neither: fast ones end high and low": "Yes. Of the three that lead at epoch 5 one "
            "ends fourth, one last but one, one last.",
        },
        "neither: fast ones end high and low",
    ),
    "2": Question(
        "All thirteen losses count, the collapsed one, too. If one corrects for having asked 78 questions, "
        "how many of these pairs are still different?",
        {
            "nearly all of them": "The least p has to be 78 times as small, and most gaps are a few points.",
            "about a dozen": "Yes, 13. Twelve of them pair SparseCLR with each of the others.",
            "none": "Some gaps are more than 20 points, and noise does not do that.",
        },
        "about a dozen",
    ),
    "3": Question(
        "On other pictures SparseCLR gets four learning rates, from a tenth of the records' rate to three "
        "times as much, and five margins at each. How does it do?",
        {
            "it fails at every rate": "It names up to 54 % right. The loss alone is not to blame.",
            "well at some, badly at others": "Yes. With a single rate, loss and rate are judged together.",
            "about equally well at all four": "None of the nine does: steps can be too small, and too large.",
        },
        "well at some, badly at others",
    ),
    "4": Question(
        "With τ = 0.004 a patch is pushed away from its most similar negative only. Where do two arbitrary "
        "patches end, compared with τ = 0.1?",
        {
            "more alike": "Yes. Each flees from one neighbour; nothing pushes the cloud as a whole apart.",
            "less alike": "The hardest negative is pushed most, but all the others are left alone.",
            "as alike": "What counts is who is pushed: with τ = 0.1 many are, with τ = 0.004 one.",
        },
        "more alike",
    ),
    "5": Question(
        "From the first five of these ten seeds, with each pair's own noise, Holm's test keeps none of the "
        "36 pairs by kNN. From all ten it keeps 13. Why so many more?",
        {
            "the gaps are larger": "They are about as large.",
            "with ten seeds a run scatters less": "A run scatters as before. Only the mean scatters less.",
            "noise and mean are better known": "Yes. Five gaps may lie close together by luck, so "
            "the first had to be 7.9 standard errors; with ten gaps 4.5 are enough. And a standard error is "
            "smaller, by a factor of √2.",
        },
        "noise and mean are better known",
    ),
}


def some_p() -> list[np.ndarray]:
    """Lists of p-values, one with equal ones."""
    drawn = np.random.default_rng(5)
    return [drawn.beta(0.3, 3, 20), np.array([0.03, 0.01, 0.01, 0.9, 0.04])]


EXERCISES = {
    "1": Exercise(
        "a number, the level",
        0.02,
        "Drag slowly and read the sentence: 12 must be kept. The slider's steps are a tenth of a decade.",
        tolerance=0.05,
        why="The thirteenth pair has a p of 0.022 after Holm, and 0.02 is the first stop below it.",
    ),
    "2": Exercise(
        "a whole number",
        18,
        "The difference of two means of n seeds has the deviation 1.5 √(2/n); twice that shall be 1.",
        tolerance=0.001,
        why="Both means scatter, so n is 8 · 1.5², twice what a single mean would need.",
    ),
    "3": Exercise(
        "a function of p",
        passes(holm, *some_p()),
        "Least first: times m, times m − 1, … Then no value below the one before it, and none above 1.",
        why="The p-value of rank k meets 0.05/(m − k + 1), so it is multiplied by m − k + 1.",
    ),
}

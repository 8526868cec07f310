"""What page 12 asks: many views of a photograph, many processes of a batch, many GPUs."""

from collections.abc import Callable

import numpy as np

from setclr_course.search.statistics import paired
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Two full views and six small crops are cut by chance. How often does a small crop share nothing "
        "with either of the two full views?",
        {
            "one time in 25": "Yes, on this photograph. One full view is missed about one time in six: a "
            "small crop has a width, and must lie wholly beside it. Here it must lie beside both.",
            "one time in four": "That often the full views miss a single point, or more often. But a crop "
            "has a width, and touches a full view long before its middle is inside.",
            "every second time": "Nearly that often it lies wholly inside one of them. Most others "
            "share a part.",
        },
        "one time in 25",
    ),
    "2": Question(
        "As many pixels in all: two views for 18 epochs, or two views and four small crops for 13. Whose "
        "neighbours name more patches right?",
        {
            "with small crops": "Yes, in each of three pairs of runs. Is that sure? Read on.",
            "trained longer": "It saw every photograph more often, but in fewer ways at a time.",
            "about equally": "Pixels cost the same wherever they are; what they teach differs.",
        },
        "with small crops",
    ),
    "3": Question(
        "Two processes gather all embeddings. Each computes the loss of the whole batch, and sends to the "
        "owner of each half what it says about that half. How large is the gradient that a process ends up "
        "with for its own half?",
        {
            "half of the right one": "Nobody divides by two on this way. That comes later, in the mean "
            "over both.",
            "the right one": "Each of the two says the right one, and both of them arrive.",
            "twice the right one": "Yes: it says the right one itself, and the other says it again. Each "
            "process hands its own half, doubled, to its copy of the weights. The mean over both is "
            "exactly right.",
        },
        "twice the right one",
    ),
    "4": Question(
        "Eight GPUs of GroCo's kind need about a day for 100 epochs of two full views. You have one, and "
        "want six small crops, too. How long?",
        {
            "about four days": "One instead of eight is eight times as long already.",
            "about eleven days": "Yes: eight times as long, and half as much again for the crops.",
            "half a year": "The crops cost half as much again, not a multiple.",
        },
        "about eleven days",
    ),
    "5": Question(
        "Nearly the same question, on smaller pictures, and now both train for as many epochs, 80. GroCo "
        "learns from patches of 32 pixels, with two full views or with six small crops of 14 pixels beside "
        "them. Whose neighbours name more patches right?",
        {
            "with small crops": "So it was above, and in the paper. Here it is the other way round, for "
            "every seed.",
            "two full views": "Yes, for every seed, although the others saw six more views of every patch.",
            "about equally": "The gap is ten times as wide as the seeds are apart.",
        },
        "two full views",
    ),
}


def intervals(answer: Callable) -> bool:
    """Whether a function of (a, b) gives the interval of their mean difference as the library does."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    rng = np.random.default_rng(2)
    for n in (3, 6):
        a, b = rng.normal(size=(2, n))
        found = paired(a, b)
        if not np.allclose(np.asarray(answer(a, b), float), [found.low, found.high], rtol=1e-4):
            return False
    return True


EXERCISES = {
    "1": Exercise(
        "a number of GPUs",
        128,
        "Fold out more knobs; the longest run has 800 epochs.",
        0.001,
        why="64 need 34 hours, and twice the GPUs need half the time, if nothing makes them wait.",
    ),
    "2": Exercise(
        "a number",
        (224 / 96) ** 2,
        "Work goes with the area, the side squared.",
        why="Pixels go with the square of the side, so 2.3 times the side is 5.4 times the pixels.",
    ),
    "3": Exercise(
        "a function of (a, b)",
        intervals,
        "With d = a − b: its mean, plus and minus t · s/√n; scipy.stats.t.ppf(0.975, n − 1) is t.",
        why="Few runs say little of their own scatter, so t is 4.3 for three of them and not 1.96.",
    ),
}

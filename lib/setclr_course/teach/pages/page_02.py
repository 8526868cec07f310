"""What page 02 asks: pairs and assignments."""

import math

import torch
from torch.nn.functional import normalize

from setclr.losses import LinearAssignment
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Each ● shall get one ■ and each ■ one ●, with as little line as can be. Which rule surely finds the "
        "shortest way?",
        {
            "each ● takes its nearest ■": "Then two may want the same ■, and another is left over.",
            "the shortest line first, then the next": "What it saves at first it may pay for twice: the last "
            "● gets what is left.",
            "neither of the two": "Yes. Whom one ● may take depends on what all others take.",
        },
        "neither of the two",
    ),
    "2": Question(
        "The true pairs are the cheapest matching now. You pull the flower's ■ away from its ●, slowly. When "
        "does the one-to-one loss leave zero?",
        {
            "at once": "The true pair gets longer at once, but so does what is counted off: both are still "
            "the same matching.",
            "when another matching becomes cheaper": "Yes. Until then the truth is best: no gap.",
            "when another ■ is the nearest to the flower's ●": "Wanting is not enough: whoever loses a "
            "partner must find another, and that costs.",
        },
        "when another matching becomes cheaper",
    ),
    "3": Question(
        "Now each ● is nearest to its own ■, so both losses are zero. A margin makes the true pairs dearer, "
        "and no others. Which loss leaves zero first?",
        {
            "that of free choice": "Yes. One ● that turns away is enough. A matching must change "
            "two pairs at once, at least, and the second may be dear.",
            "the one-to-one loss": "It cannot: whatever matching beats the truth, free choice beats it too.",
            "both at the same margin": "Only if a second ● were just as ready to turn away.",
        },
        "that of free choice",
    ),
    "4": Question(
        "One to one, every column of the table sums to 1, hard or soft. You raise τ with each row alone, "
        "where one ■ is wanted by three. What becomes of the sums of its columns?",
        {
            "each becomes exactly 1": "Nothing makes them: a row never looks at the other rows.",
            "they get more even, but not 1": "Yes: soft shares are more even. But nobody sees to their sums.",
            "they stay as they are": "The shares change with τ, and so do their sums.",
        },
        "they get more even, but not 1",
    ),
}


def greedy(distance: torch.Tensor) -> float:
    """The length of the matching that takes the shortest pair first, then the next that is free."""
    left, length = distance.clone(), 0.0
    for _ in range(len(left)):
        row, column = divmod(int(left.argmin()), len(left))
        length += float(distance[row, column])
        left[row], left[:, column] = math.inf, math.inf
    return length


def tables() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.rand(n, n, generator=generator, dtype=torch.float64) for n in (4, 6)]


COLLAPSED = normalize(torch.ones(2, 6, 3, dtype=torch.float64), dim=-1)

EXERCISES = {
    "1": Exercise(
        "a number, a length",
        4.0374,
        "Look for the smallest number of the table, cross out its row and its column, and look again.",
        tolerance=0.003,
    ),
    "2": Exercise(
        "a number",
        float(LinearAssignment(margin=0.5)(COLLAPSED)),
        "All distances are 0; only the margin is left. What does a matching pay that has no true pair?",
    ),
    "3": Exercise(
        "a function of a table of distances",
        passes(greedy, *tables()),
        "Take the smallest entry, then put infinity into its row and its column, and go on.",
    ),
}

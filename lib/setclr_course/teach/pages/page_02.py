"""What page 02 asks: pairs and assignments."""

import math

import torch
from torch.nn.functional import normalize

from setclr.losses import LinearAssignment
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Each ● is to get one ■, and each ■ one ●, with the least total length. Which rule always finds the "
        "smallest total length?",
        {
            "each ● takes its nearest ■": "Then two may want the same ■, and another is left over.",
            "the shortest line first, then the next": "What this saves at first, it may lose at the end: the "
            "last ● gets what is left.",
            "neither of the two": "Yes. Whom one ● may take depends on what all others take.",
        },
        "neither of the two",
    ),
    "2": Question(
        "The true pairs are the cheapest matching now. You pull the flower's ■ away from its ●, slowly. When "
        "does the one-to-one loss leave zero?",
        {
            "at once": "The true pair gets longer at once, but the cheapest matching gets longer by as much: "
            "it is still the true one.",
            "when another matching becomes cheaper": "Yes. Until then the true matching is the cheapest, and "
            "the gap is zero.",
            "when another ■ is the nearest to the flower's ●": "To want another is not enough: whoever loses "
            "a partner must find a new one, and that costs.",
        },
        "when another matching becomes cheaper",
    ),
    "3": Question(
        "Now each ● is nearest to its own ■, so both losses are zero. A margin makes the true pairs dearer "
        "and leaves the others as they are. Which loss leaves zero first?",
        {
            "that of free choice": "Yes. It is enough that one ● turns away. A matching must change "
            "at least two pairs at once, and the second may be dear.",
            "the one-to-one loss": "It cannot: whatever matching beats the truth, free choice beats it too.",
            "both at the same margin": "Only if a second ● were just as ready to turn away.",
        },
        "that of free choice",
    ),
    "4": Question(
        "One to one, every column of the table sums to 1, hard or soft. Now let each row choose alone: one ■ "
        "is wanted by three. You raise τ. What becomes of the column sums of this table?",
        {
            "each becomes exactly 1": "No rule makes them 1: a row never looks at the other rows.",
            "they get more even, but not 1": "Yes: soft shares are more even. But no rule fixes their sums. "
            "They come to 1 only as τ grows without end.",
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
        why="The flower must take what is left, and the last line costs more than the first ones saved.",
    ),
    "2": Exercise(
        "a number",
        float(LinearAssignment(margin=0.5)(COLLAPSED)),
        "All distances are 0; only the margin is left. What does a matching pay that has no true pair?",
        why="The truth pays the margin for each photograph, and a matching without a true pair pays nothing.",
    ),
    "3": Exercise(
        "a function of a table of distances",
        passes(greedy, *tables()),
        "Take the smallest entry, then put infinity into its row and its column, and go on.",
        why="Infinity crosses out a row and a column, so nobody is taken twice.",
    ),
}

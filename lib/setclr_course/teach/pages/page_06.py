"""What page 06 asks: couplings."""

import math

import torch

from setclr.inner import sinkhorn
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "You press columns!, and every bucket is exactly full. Then you press rows!, and every pile gives "
        "out exactly what it has. What becomes of the buckets, now and after many rounds?",
        {
            "they stay full": "Scaling a row changes a cell in every column, and so all columns.",
            "wrong again, and never better": "Wrong again, but round by round less; in the end both hold.",
            "wrong again, less and less": "Yes, round by round: at first the worst is off by 124 %, after a "
            "round of two presses by 45 %, in the end by nothing. A single press or bucket may do worse.",
        },
        "wrong again, less and less",
    ),
    "2": Question(
        "The coffee's bucket stands amid the piles. With rows! alone it receives two shares, and there are "
        "only six in all. Whose buckets pay for it?",
        {
            "all others alike": "The rocket's and the flower's gain a little. The coffee's own pile has no "
            "near bucket any more, and sends them its sand.",
            "those whose piles are near it": "Yes: cat, astronaut and temple get about half a "
            "share. It is their sand that goes to the hub.",
            "those farthest from it": "They lose nothing: their piles hardly send the hub any sand.",
        },
        "those whose piles are near it",
    ),
    "3": Question(
        "You make ε smaller, until each pile sends its sand to hardly more than one bucket. How many rounds "
        "will it take until all sums are right?",
        {
            "fewer": "What one bucket has too much must reach another, and most cells are all but closed.",
            "just as many": "A press moves sand only through cells that hold some, and now few cells do.",
            "more": "Yes, many more. Few cells hold sand, and what one bucket has too much must travel "
            "through them to the others.",
        },
        "more",
    ),
    "4": Question(
        "Two trainings from one start: one with the rows alone, one with both sides fair. Then both see new "
        "patches. Whose hub is found less often among the ten nearest?",
        {
            "with both sides": "The plan has no hub, whatever the features are. So they need not get rid of "
            "theirs.",
            "with the rows alone": "Its slope works against hubs, and that is enough to keep up, no more.",
            "no clear difference": "Yes. The rows alone push a hub away by their slope, and both sides leave "
            "it to the plan. Either ends near 30, where raw pixels have 90.",
        },
        "no clear difference",
    ),
}


def distances() -> torch.Tensor:
    """Of five piles and nine buckets."""
    return torch.rand(5, 9, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


EXERCISES = {
    "1": Exercise(
        "a number of presses",
        17,
        "Press on while the sentence says that the worst is off by 1 %.",
        why="Each round leaves about the same part of the error, so it falls below any limit.",
    ),
    "2": Exercise(
        "a number",
        math.log(127),
        "With a huge ε nobody has a preference: 128 points share evenly among all but themselves.",
        tolerance=0.001,  # log 128 is 0.16 % more
        why="Each of the 128 points shares evenly among the 127 others, for it may not choose itself.",
    ),
    "3": Exercise(
        "a function of d",
        passes(lambda d: sinkhorn(d, 0.2, iterations=50).P, distances()),
        "Two lines of the loop change: a row shall hold 1/n in the end, a column 1/m.",
        why="A scaling sets a sum to any number, so only the two numbers change.",
    ),
}

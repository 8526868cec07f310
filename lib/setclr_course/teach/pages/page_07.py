"""What page 07 asks: support vectors."""

import torch
from torch.nn.functional import normalize

from setclr.losses import MMCL
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "The rocket's bucket stands in a far corner. With rows! alone each pile sends its sand to buckets "
        "near it, and that bucket gets 0.05 shares. Then both sides are made fair. What does the temple's "
        "pile do, which is the nearest to that corner?",
        {
            "it fills its own bucket": "Then the rocket's bucket would stay empty. It has to be full, too.",
            "it sends a grain there": "So it did with rows! alone. But a whole share has to come there.",
            "it sends most of its sand there": "Yes, 0.64 of it. Somebody must fill that bucket, and all "
            "others stand even farther off.",
        },
        "it sends most of its sand there",
    ),
    "2": Question(
        "The street shall be as wide as it can be, with the cat on one side and five photographs behind the "
        "other kerb. How many of the five decide where it runs?",
        {
            "all five": "Three of them stand well behind the kerb; without them the street is the same.",
            "only those at the kerb": "Yes: two here. The others could be anywhere behind it.",
            "only the nearest to the cat": "Nearly. It could turn about the nearest; a second stops it.",
        },
        "only those at the kerb",
    ),
    "3": Question(
        "You lower C, the most that a negative may weigh, from 100 to 0.1. What becomes of the choice "
        "between negatives?",
        {
            "fewer of them weigh something": "The other way round: what the near ones may not carry, "
            "others must.",
            "it stays, only smaller": "The near ones are cut first, and others take over their part.",
            "in the end all weigh the same": "Yes. Twelve small weights make a short w, which leaves all "
            "twelve in the street, far in "
            "front of the kerb. So each is at its bound, and no choice is left.",
        },
        "in the end all weigh the same",
    ),
    "4": Question(
        "Coffee and rocket stand on one ray from the cat, the rocket behind. A solution without bounds may "
        "have negative weights, and the shortcut clips those to zero. What is left for the coffee?",
        {
            "the right weight": "The coffee's weight had to balance the one that was clipped.",
            "too little": "The rocket got a negative weight, and the coffee more to make up for it.",
            "far too much": "Yes, here four and a half times the right weight. Its g is above 0: worse "
            "than no weights at all.",
        },
        "far too much",
    ),
    "5": Question(
        "Each of the forty patches is once the query, and 3 of its 39 negatives are from its own photograph. "
        "How often does one of these three have the largest weight?",
        {
            "about 3 times, as chance has it": "They look like the query, so they stand near it, and that is "
            "where weights are.",
            "about 30 times": "Yes, 29 times. Who looks alike stands near. For query 30 all three lead.",
            "never": "That would be right if the machine knew the labels. It sees distances only.",
        },
        "about 30 times",
    ),
}


def batch() -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    return normalize(torch.randn(2, 5, 3, generator=generator, dtype=torch.float64), dim=-1)


EXERCISES = {
    "1": Exercise(
        "a number, the place from left to right",
        -0.75,
        "Watch the sentence below the picture: who holds it open?",
        tolerance=0.03,  # a stop of the slider is 0.05
        why="One stop farther left it stands behind the kerb, where f is below −1.",
    ),
    "2": Exercise(
        "a number",
        20.0,
        "What is f at the copy, which stands where ✚ stands?",
        why="At the copy f is 1, and (1 + 1) / 0.1 is 20, well below C.",
    ),
    "3": Exercise(
        "a function of z",
        passes(MMCL("rbf", 1.0, 0.001, 0.1, "exact"), batch(), alone=False),
        "All weights are C: sum C · (k(✕, ★) − k(✚, ★)) over the negatives, and average over the anchors.",
        why="With every weight at its bound the machine chooses nobody, so the loss is a plain sum.",
    ),
}

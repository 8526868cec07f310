"""What page 03 asks: sparse support."""

import torch

from setclr.inner import sparsemax
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "The dry parts add up to 1, and the temple stands under water. Now the temple sinks deeper. What do "
        "the others get?",
        {
            "a little more, all of them": "A softmax does so: what one loses, the others share out.",
            "what they had": "Yes. The dry parts still add up to 1, so the water has no reason to move.",
            "more for the cat only": "The temple has nothing to give away. Its dry part was 0 before.",
        },
        "what they had",
    ),
    "2": Question(
        "Three shares that add up to 1 are a point of a triangle: a corner gives everything to one. Three "
        "scores are a point beside it. Which point of the triangle does the water choose?",
        {
            "the nearest corner": "That is a hard choice. The water gives all to one only at a lead of 1.",
            "the nearest point": "Yes. From below an edge that is a point of the edge, and one gets nothing.",
            "a point well inside": "That is the softmax: it comes near an edge, and never touches it.",
        },
        "the nearest point",
    ),
    "3": Question(
        "SparseCLR takes a margin of 1 off the cat's score before the water is let out. Here that puts the "
        "cat ✚ under water: its share is 0. How hard is it pulled to the anchor, counted in shares?",
        {
            "not at all": "A share of 0 leaves a negative alone. ✚ is pulled by what its share lacks of 1.",
            "less than by InfoNCE": "InfoNCE gives the cat a share of nearly a half and pulls with the rest.",
            "as hard as can be": "Yes. The pull is 1 less its share, and its share is 0.",
        },
        "as hard as can be",
    ),
    "4": Question(
        "In a batch of 128 pairs an anchor has 254 negatives, many of them much alike. How many stand above "
        "the water?",
        {
            "about ten": "Yes. Leads add up: with nine ahead, a lead of 0.12 for each of them is too much.",
            "about a hundred": "For that, a hundred would have to be almost equally near: leads add up.",
            "one or two": "For that one or two would have to lead all others by far; in a crowd nobody does.",
        },
        "about ten",
    ),
}


def tables() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((4, 3), (2, 9))]


EXERCISES = {
    "1": Exercise(
        "a number, the similarity of the coffee",
        1.25 / 3,
        "Watch the sentence below the picture: from where on is the coffee exactly 0?",
        tolerance=0.05,
        why="Without coffee the level is (0.85 + 0.75 + 0.65 − 1) / 3 = 0.417. Below that it is wet.",
    ),
    "2": Exercise(
        "a number",
        0.1,
        "All ten lead by the same amount. How much may their leads be in sum?",
        why="Ten equal leads may add up to 1, so each may be a tenth.",
    ),
    "3": Exercise(
        "a function of S",
        passes(sparsemax, *tables()),
        "Sort each row, largest first. With k dry pillars the level is (their sum − 1) / k; of all k, "
        "the one with the highest level is right.",
        why="One pillar too few or too many lowers (sum − 1) / k, so the highest level is the right one.",
    ),
}

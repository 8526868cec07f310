"""What page 01 asks: five numbers."""

import math

import torch
from torch.nn.functional import normalize

from setclr.losses import InfoNCE
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "The anchor has one unit of attention to share out among five candidates: the nearer, the more. You "
        "pull the coffee nearer still, and it gets more. Who pays for it?",
        {
            "✚ alone": "Its bar shrinks, but the others do, too: the unit is shared among all five.",
            "all by the same amount": "Then the rocket, which has next to nothing, would end below zero.",
            "all by the same fraction": "Yes. What is left for the other four shrinks, and they share it as "
            "they did before. So everybody keeps something.",
        },
        "all by the same fraction",
    ),
    "2": Question(
        "Now the five numbers may move as each loss pushes them. One loss shares out, the other asks only "
        "whether ✚ stands in front. The rocket stands last from the start. Which loss still pushes it down?",
        {
            "both": "One does. But a sorter wants ✚ in front, and the last does not stand before ✚.",
            "the one that shares out": "Yes: every share is above zero, and a share is a push. So even the "
            "last is pushed. The sorter leaves it almost where it is.",
            "the one that sorts": "It has nothing to gain: ✚ is not nearer to the front when the last falls.",
        },
        "the one that shares out",
    ),
    "3": Question(
        "A push is a share divided by τ. You lower τ from 1 to 0.1. What becomes of InfoNCE's push on the "
        "rocket?",
        {
            "it grows tenfold": "The share is divided by a tenth, yes. But the share itself changes, too.",
            "it stays the same": "Both change: the divisor by ten, the share by very much more.",
            "it all but vanishes": "Yes. The divisor falls to a tenth, but at the start the rocket's "
            "share falls from 0.03 to a ten-millionth of a millionth. InfoNCE then looks at the nearest "
            "negative only.",
        },
        "it all but vanishes",
    ),
    "4": Question(
        "Drag the start of ✚ to the bottom, far behind all four negatives. Which loss brings it to the front "
        "first?",
        {
            "InfoNCE": "Yes, many times sooner at this step length. Its pull is strongest where ✚ has almost "
            "no share. A sorter sees only who stands before whom, and a small step hardly changes that.",
            "GroCo": "It pulls hard only where two numbers are nearly level. Far behind, ✚ is hardly pulled.",
            "both at the same step": "InfoNCE is much earlier: it feels how far ✚ is behind.",
        },
        "InfoNCE",
    ),
}


def batch() -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return normalize(torch.randn(2, 5, 3, generator=generator, dtype=torch.float64), dim=-1)


EXERCISES = {
    "1": Exercise(
        "a number, a similarity",
        0.5 * math.log(sum(math.exp(s / 0.5) for s in (0.65, 0.0, -0.85, -0.3))),
        "Read the share of the cat's other view in the sentence below the picture, or above its bar.",
        tolerance=0.02,
        why="It gets half when its power equals the powers of the four others together.",
    ),
    "2": Exercise(
        "a number",
        (4 + math.exp(2)) / (4 + math.exp(4)),
        "A push is a share: write the share of one of the four for a lead of 2, then for 4.",
        why="Each of the four has the share 1 / (4 + e^lead), so the push falls to a fifth.",
    ),
    "3": Exercise(
        "a function of z",
        passes(InfoNCE(0.5), batch(), batch()[:, :3]),
        "Put minus infinity on the diagonal of the similarities: nobody is their own candidate.",
        why="Minus the logarithm of a share is the logarithm of all powers' sum, less the positive's s / τ.",
    ),
}

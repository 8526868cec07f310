"""What page 08 asks: the losses side by side."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr.losses import IOT, InfoNCE
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "● rocket stands nearest to ■ astronaut, who is not its partner; ● astronaut stands there too. "
        "Little smoothing: which losses give ● rocket to the wrong one?",
        {
            "all of them": "Not those that count who is taken: ■ astronaut already has its own partner.",
            "those where each chooses for itself": "Yes. Assignment and transport see that it is taken.",
            "none, the partner wins": "Nobody knows the partner while matching; it only scores the result.",
        },
        "those where each chooses for itself",
    ),
    "2": Question(
        "The trap again: for one anchor the nearest is a wrong one, but of all matchings the true one is the "
        "shortest. Hard as they are now, which loss comes to rest?",
        {
            "InfoNCE": "One anchor's nearest is a wrong one: that pair is pushed harder, the smaller τ is.",
            "assignment": "Yes. As one matching of all, the batch is solved; nothing is left to push.",
            "MMCL": "The widest street must touch somebody, and whoever it touches has a weight.",
        },
        "assignment",
    ),
}


def cosines(z: Tensor) -> Tensor:
    x = z.flatten(0, 1)
    return (x @ x.T).fill_diagonal_(-torch.inf)


def batch(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(2, 6, 3, generator=generator, dtype=torch.float64), dim=-1)


def plan(s: Tensor) -> Tensor:
    """IOT's assignment on the points whose cosines are s (12, 12)."""
    shown = next(z for z in BATCHES if torch.equal(cosines(z), s))
    return IOT("both", 0.5, iterations=10).assignment(shown)


BATCHES = [batch(seed) for seed in (1, 2)]
EXERCISES = {
    "1": Exercise(
        "a whole number", 174, "The softmax prefers whoever is nearer. Where is the middle?", tolerance=0.005
    ),
    "2": Exercise(
        "a number",
        float(1e-4 * InfoNCE(1e-4)(batch(0))),
        "Take the largest cosine over the ten negatives of each anchor, less that of the partner.",
        tolerance=0.001,
    ),
    "3": Exercise(
        "a function of s",
        passes(plan, *map(cosines, BATCHES)),
        "Begin with exp(s / 0.5). One round: divide each column by its sum, then each row by its.",
    ),
}

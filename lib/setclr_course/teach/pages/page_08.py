"""What page 08 asks: the losses side by side."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr.losses import IOT, InfoNCE
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "● rocket stands nearest to ■ astronaut, who is not its partner. ● astronaut stands there, too. With "
        "little smoothing, which losses give more than half of ● rocket to ■ astronaut?",
        {
            "all of them": "Assignment and transport count who is taken, and ■ astronaut is taken already.",
            "those where each chooses for itself": "Yes. The two others see that ■ astronaut is taken.",
            "none, the partner wins": "A matching does not know who partners are. Only its score does.",
        },
        "those where each chooses for itself",
    ),
    "2": Question(
        "The trap again: for one anchor the nearest is a wrong one, but of all matchings the true one is the "
        "shortest. Hard as they are now, which loss comes to rest?",
        {
            "InfoNCE": "One anchor's nearest is a wrong one. The smaller τ is, the harder it is pushed.",
            "assignment": "Yes. As one matching of all, the batch is solved; nothing is left to push.",
            "MMCL": "The widest street must touch somebody, and whoever it touches has a weight.",
        },
        "assignment",
    ),
    "3": Question(
        "InfoNCE at τ = 0.5: the share of ✚ is 0.6. How strongly is ✚ lifted?",
        {
            "0.6 / 0.5 = 1.2": "A negative is pushed by its share. ✚ is lifted by what its share lacks of 1.",
            "0.4 / 0.5 = 0.8": "Yes: what the share lacks of 1, divided by τ.",
            "0.4": "The loss depends on s / τ, so its slope by s has a factor 1 / τ.",
        },
        "0.4 / 0.5 = 0.8",
    ),
    "4": Question(
        "In the cheapest matching two of six photographs have exchanged partners. How many cells of the "
        "table have a slope that is not zero?",
        {
            "2": "The two wrong pairs have one. But the two true pairs that were missed have one, too.",
            "4": "Yes: two wrong pairs are pushed apart, and two missed pairs are pulled together.",
            "12": "The other four photographs are matched rightly, and a right pair cancels.",
        },
        "4",
    ),
    "5": Question(
        "Three scores, 2, 0 and 0, stand in water. What are the shares?",
        {
            "0.79, 0.11 and 0.11": "That is the softmax at τ = 1.",
            "1, 0 and 0": "Yes: the first leads the others by more than 1.",
            "0.5, 0.25 and 0.25": "One level cuts all: at −0.25 the last two have 0.25, but the first "
            "has 2.25.",
        },
        "1, 0 and 0",
    ),
    "6": Question(
        "The lists 1, 2, 3 and 4, 5, 6 are multiplied pair by pair and added up. Which order gives most?",
        {
            "large with large": "Yes, 32: to exchange two of them would lose.",
            "large with small": "That gives least, 28.",
            "all orders give the same": "Only the sums of the lists stay the same, not that of the products.",
        },
        "large with large",
    ),
    "7": Question(
        "A soft swap gets two equal numbers. How likely does it exchange them?",
        {
            "never": "A swap is sure only if the gap is large compared with 1 / β.",
            "half of the time": "Yes, at any steepness: neither order is better.",
            "that depends on β": "β multiplies the gap, and the gap is 0.",
        },
        "half of the time",
    ),
    "8": Question(
        "Transport divides the columns by their sums, then the rows by theirs, and stops. Which sums are "
        "exact?",
        {
            "those of the rows": "Yes. What was divided last is exact. It has spoiled the columns a little.",
            "those of the columns": "They were exact before the rows were divided.",
            "both": "Only after many rounds, and then nearly.",
        },
        "those of the rows",
    ),
    "9": Question(
        "A machine gives a negative the weight zero. You take this negative away. What becomes of the "
        "street?",
        {
            "it becomes wider": "The negatives that hold it open still stand there.",
            "it stays as it is": "Yes: only those with a weight hold it.",
            "it becomes narrower": "A street never gets narrower when somebody leaves.",
        },
        "it stays as it is",
    ),
    "10": Question(
        "At their usual softness, which losses give some negatives exactly nothing?",
        {
            "InfoNCE and transport": "An entropy leaves everybody a little.",
            "SparseCLR and MMCL": "Yes: who is under water, and who stands behind the kerb.",
            "assignment and sorting": "Made soft, each of them leaves everybody a little.",
        },
        "SparseCLR and MMCL",
    ),
    "11": Question(
        "A network has collapsed: all 2N views lie on one point. What is InfoNCE?",
        {
            "0, since partners agree": "They agree, but so do all others. So the share of ✚ is small.",
            "log(2N − 1)": "Yes: each of the 2N − 1 candidates has the same share.",
            "without limit": "The share of ✚ is 1 / (2N − 1), which is above 0.",
        },
        "log(2N − 1)",
    ),
    "12": Question(
        "One ■ is the nearest to every ●. Which loss lets it have one unit in all, and no more?",
        {
            "InfoNCE": "Each row shares out by itself, so the column may receive several units.",
            "SparseCLR": "Its rows are sparse, but each of them still chooses by itself.",
            "transport": "Yes: the columns have a sum of 1, too.",
        },
        "transport",
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
        "a whole number",
        174,
        "The softmax prefers whoever is nearer. Where is the middle?",
        tolerance=0.005,
        why="The middle between ■ rocket at 152° and ■ astronaut at 197° is 174.5°.",
    ),
    "2": Exercise(
        "a number",
        float(1e-4 * InfoNCE(1e-4)(batch(0))),
        "Take the largest cosine over the ten negatives of each anchor, less that of the partner.",
        tolerance=0.001,
        why="A cold log-sum-exp is a maximum, and the partner is in it, so no anchor counts below 0.",
    ),
    "3": Exercise(
        "a function of s",
        passes(plan, *map(cosines, BATCHES)),
        "Begin with exp(s / 0.5). One round: divide each column by its sum, then each row by its.",
        why="Rounds that divide columns and rows in turn lead to the plan whose sums are all 1.",
    ),
}

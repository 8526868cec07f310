"""What page 04 asks: sets and eigenvalues."""

import torch

from setclr.losses import QARe
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Two lists of bars stand under each other. Each column is a product, and the products are added. You "
        "may rearrange the lower list. Which arrangement makes the sum largest?",
        {
            "tall under tall": "Yes. Swap two bars that stand against this rule, and the sum grows.",
            "tall under short": "That makes it smallest: the large factors are wasted on small ones.",
            "it makes no difference": "The bars stay the same, but a large factor counts what it meets.",
        },
        "tall under tall",
    ),
    "2": Question(
        "You turn all ■ together, and leave all ● where they are. What happens to the table of similarities "
        "within view 2?",
        {
            "nothing": "Yes. Each two ■ keep their angle. Pairs drift apart, but the shape is the same.",
            "every number changes": "Every ■ moves, but two that move alike stay as similar as they were.",
            "only the diagonal changes": "On the diagonal everything meets itself: always 1.",
        },
        "nothing",
    ),
    "3": Question(
        "Six ■ can be given to six ● in 720 ways, and each way has a fit. Now multiply the sorted "
        "eigenvalues of 1 + A and 1 + B, pair by pair, and add up. Where does the sum, over N², stand?",
        {
            "at the true matching": "Only if both shapes are equal. Here view 2 is scattered.",
            "in the middle": "Every fit is a mixture of products of eigenvalues, and tall under tall is "
            "the best one.",
            "above all of them": "Yes. No matching gets past it; the eigenvalues may even overshoot.",
        },
        "above all of them",
    ),
    "4": Question(
        "Somebody shuffles view 2: every photograph gets a wrong partner. What does QARe say?",
        {
            "it grows": "It would if it looked at pairs. It only sees two lists, sorted by size.",
            "it falls": "Wrong partners neither please nor hurt it. It does not see them.",
            "exactly what it said before": "Yes. Renaming the points of a view leaves its eigenvalues alone.",
        },
        "exactly what it said before",
    ),
    "5": Question(
        "QARe is added to InfoNCE, and their sum is made small. What does a larger weight γ do?",
        {
            "the points spread sooner": "Yes: crowded points fit in any way. They reach the same even "
            "spacing sooner.",
            "a view falls into one point": "There all similarities are 1, any matching fits, and QARe is "
            "largest: it is made small.",
            "each ● finds its ■ sooner": "QARe does not know who belongs to whom. Only InfoNCE does.",
        },
        "the points spread sooner",
    ),
}


def batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((2, 9, 3), (2, 30, 4))]


EXERCISES = {
    "1": Exercise("a number", 83.0, "Start from the largest. Which swap costs least?", 1e-6),
    "2": Exercise(
        "a number", 4.0, "All similarities are 1, so all entries of 1 + A are 2. N does not matter."
    ),
    "3": Exercise(
        "a function of z",
        passes(QARe(), *batches()),
        "Write a column of ones beside the unit vectors: Z. Then Z Zᵀ is 1 + A, and Zᵀ Z has the same "
        "eigenvalues but for zeros.",
    ),
}

"""What page 04 asks: sets and eigenvalues."""

import torch

from setclr.losses import QARe
from setclr_course.teach.answers import passes
from setclr_course.teach.asked import Exercise, Question

QUESTIONS = {
    "1": Question(
        "Each ■ stands 30° from its own ●. In one batch all ■ turned the same way. In another some turned "
        "the other way: cat met flower, and astronaut met rocket. A loss adds up how alike the true pairs "
        "are. Which batch does it find worse?",
        {
            "the one where all turned": "Each pair is 30° apart, here as there: the cosine is 0.87.",
            "the one where some met": "That batch is worse, as you will see. But every pair is 30° apart, "
            "and this loss sees nothing else.",
            "neither": "Yes. Every true pair has the cosine 0.87 in both, so both sums are the same.",
        },
        "neither",
    ),
    "2": Question(
        "Two lists of bars stand under each other. Each column is a product, and the products are added. You "
        "may rearrange the lower list. Which arrangement makes the sum largest?",
        {
            "tall under tall": "Yes. Swap two bars that stand against this rule, and the sum grows.",
            "tall under short": "That makes it smallest: the large factors are wasted on small ones.",
            "it makes no difference": "The bars stay the same, but a large factor counts what it meets.",
        },
        "tall under tall",
    ),
    "3": Question(
        "Six ■ can be given to six ● in 720 ways, and each way has a fit. Now multiply the sorted "
        "eigenvalues of 1 + A and 1 + B, pair by pair, and add up. Where does the sum, over N², stand?",
        {
            "at the true matching": "Only if both shapes are equal. Here view 2 is scattered.",
            "in the middle": "Some matchings would then fit better than two sorted lists. None does.",
            "above all of them": "Yes. No matching gets past it, and often none reaches it.",
        },
        "above all of them",
    ),
    "4": Question(
        "Somebody shuffles view 2: every photograph gets a wrong partner. What does QARe say?",
        {
            "it grows": "It would if it looked at pairs. It only sees two lists, sorted by size.",
            "it falls": "It would have to see the wrong partners, and it sees only two sorted lists.",
            "exactly what it said before": "Yes. Renaming the points of a view leaves its eigenvalues alone.",
        },
        "exactly what it said before",
    ),
    "5": Question(
        "QARe is added to InfoNCE with the weight γ, and their sum is made small, step by step. The batch is "
        "crowded, and γ is large. How far are a ● and its own ■ apart after a few steps, compared with "
        "InfoNCE alone?",
        {
            "nearer to each other": "QARe does not know who belongs to whom, so it cannot help.",
            "as far": "QARe does not see the pairs, but it moves every point, and partners, too.",
            "farther apart": "Yes. QARe spreads all points of a view. At step 8 partners are 21.7° "
            "apart for γ = 4, and 1.7° without QARe.",
        },
        "farther apart",
    ),
}


def batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((2, 9, 3), (2, 30, 4))]


EXERCISES = {
    "1": Exercise(
        "a number",
        83.0,
        "Start from the largest. Which swap costs least?",
        1e-6,
        "In the first two columns both lists differ by 1, so this swap costs 1 × 1.",
    ),
    "2": Exercise(
        "a number",
        4.0,
        "All similarities are 1, so all entries of 1 + A are 2. N does not matter.",
        why="Every product of two entries is 2 × 2, and no batch can have a larger mean.",
    ),
    "3": Exercise(
        "a function of z",
        passes(QARe(), *batches()),
        "Write a column of ones beside the unit vectors: Z. Then Z Zᵀ is 1 + A, and Zᵀ Z has the same "
        "eigenvalues but for zeros.",
        why="Z Zᵀ and Zᵀ Z have the same eigenvalues but for zeros, and zeros add nothing to the sum.",
    ),
}

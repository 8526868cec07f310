"""What page 13 asks: the loss is low, and what did the encoder learn?"""

from collections.abc import Callable

import torch
from torch import Tensor

from setclr_course.teach.asked import Exercise, Question

PATCHES, DIGITS = "embeddings on the patches, features on the digits", "features on both"

QUESTIONS = {
    "1": Question(
        "Nobody told the encoder which patch is of which photograph. Which photographs will lie in one piece "
        "on the map?",
        {
            "those that look alike everywhere": "Yes: brick and page. One patch of brick is like another.",
            "those with one large thing in the middle": "A patch shows a corner of it: an ear, or only fur.",
            "all eighteen": "What should tie a piece of the astronaut's suit to a piece of the flag "
            "behind? Only a label could.",
        },
        "those that look alike everywhere",
    ),
    "2": Question(
        "Now no training patch may vote. Each test patch names the test patch most similar to it, out of a "
        "quarter as many. How often is that one of its own photograph, compared with the vote?",
        {
            "less often": "With fewer to choose from it should be. But look where the patches were cut.",
            "about as often": "The encoder is the same. But look where the patches were cut.",
            "much more often": "Yes. Drag, and see where the most similar patch was cut: mostly on top.",
        },
        "much more often",
    ),
    "3": Question(
        "Ten neighbours vote, once by the features, once by the head's embeddings: on these patches, and on "
        "handwritten digits, which no network here has seen. Which vote is right more often?",
        {
            DIGITS: "So it is on digits, and so GroCo finds it on ImageNet. On these patches it is not.",
            "embeddings on both": "On the patches, yes. On digits the head is a loss, for all eight.",
            PATCHES: "Yes. The head is at home with the photographs it was trained on, and not with digits.",
        },
        PATCHES,
    ),
    "4": Question(
        "By ten neighbours GroCo's encoder is right for four patches in a hundred more than MMCL's. For how "
        "many in a hundred is exactly one of the two right?",
        {
            "about 4": "That would be so if MMCL failed wherever GroCo does. It also wins some.",
            "about 13": "Yes. For nine GroCo's alone is right, for four MMCL's alone.",
            "about 48": "Were their mistakes unrelated, yes. But hard patches are hard for both.",
        },
        "about 13",
    ),
    "5": Question(
        "The encoder with random weights lets the linear map guess with a median error of 44 degrees. And "
        "features that MMCL has learned from patches, without a word about space?",
        {
            "about 44: nobody taught them space": "Nobody taught them photographs, and yet they tell these "
            "apart. Edges and textures say something of both.",
            "about 33": "Yes. Some of what tells photographs apart tells floors from walls, too.",
            "about 10: nearly right": "That would be nearly as good as two cameras, from one picture and a "
            "linear map.",
        },
        "about 33",
    ),
}


def nearest_means(answer: Callable[[Tensor, Tensor], Tensor]) -> bool:
    """Whether it names the nearest mean, for shots of which cosines would name another."""
    if not callable(answer):
        raise TypeError(f"it is no function but {answer!r}")
    generator = torch.Generator().manual_seed(4)
    sizes = torch.tensor([0.5, 1, 2, 4])[:, None, None]
    shown = sizes * (1 + torch.randn(4, 20, 6, generator=generator))
    asked = 2 * torch.randn(60, 6, generator=generator)
    distances = (asked[:, None] - shown.mean(1)).square().sum(2)
    return torch.equal(torch.as_tensor(answer(shown, asked)).long(), distances.argmin(1))


EXERCISES = {
    "1": Exercise(
        "a word",
        "motorcycle",
        "The brightest cell of its row that is not on the diagonal.",
        why="A row says what a patch is, so its cells beside the diagonal are what it is taken for.",
    ),
    "2": Exercise(
        "a number in per cent",
        23.8,
        "Call `retrieve` with the pixels and True; times 100.",
        tolerance=0.02,
        why="GroCo's features find twice as many, so the encoder does beat the pixels when asked honestly.",
    ),
    "3": Exercise(
        "a function of shown and asked",
        nearest_means,
        "The means are shown.mean(1); torch.cdist gives all distances, and argmin the nearest.",
        why="A mean of twenty shots is a steadier place than any one of them.",
    ),
}
